// Arguments that come from outside of the loop a call stands in: what they have to wait for.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_LOOP_PIVOTS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_LOOP_PIVOTS_H_

#include <map>
#include <string>
#include <utility>

#include "cc/expand/call_program.h"
#include "cc/expand/node_writer.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// Whether the value comes from outside of the loop it is in, through conditionals in the loop if need be.
bool ComesFromOutside(const NodeList& list, std::string input);

// The LoopCond of the loop whose body `node` stands in; nothing for a node that is in no loop's body.
//
// In control flow v1 what a loop's body reads from outside lives in every iteration, also in the last one, which finds
// the condition false. An operator does not run then, because another input of it is dead. A call would: it lives if
// any of its arguments does. So an argument from outside has to wait for the condition.
std::string FindLoopCondition(const NodeList& list, const tensorflow::NodeDef& node);

// Makes the nodes that such arguments wait for. Shared by all calls of a loop.
class LoopPivots {
 public:
  explicit LoopPivots(NodeWriter* writer) : writer_(writer) {}

  // The node on `device` that lives in exactly the iterations in which `condition` holds.
  std::string Get(const std::string& condition, const std::string& device);

 private:
  NodeWriter* const writer_;
  std::map<std::pair<std::string, std::string>, std::string> pivots_;  // by LoopCond and device
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_LOOP_PIVOTS_H_
