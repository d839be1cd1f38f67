// Finds arguments that come from outside of the loop a call stands in, and makes the nodes they have to wait for.
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

// Whether the value comes from outside of the loop that it is read in, perhaps through conditionals in the loop.
bool ComesFromOutside(const NodeList& list, std::string input);

// The name of the LoopCond of the loop whose body `node` stands in; empty if it is in no loop's body.
//
// In control flow v1 what a loop's body reads from outside lives in every iteration, also in the last one, which finds
// the condition false. An operator does not run then, because another input of it is dead. A call would: it lives if
// any of its arguments does. So an argument from outside has to wait for the condition.
std::string FindLoopCondition(const NodeList& list, const tensorflow::NodeDef& node);

// Makes the nodes that such arguments wait for. All calls of a loop share them.
class LoopPivots {
 public:
  explicit LoopPivots(NodeWriter* writer) : writer_(writer) {}

  // The name of the node on `device` that lives in exactly the iterations in which `condition` holds.
  std::string Get(const std::string& condition, const std::string& device);

 private:
  NodeWriter* const writer_;
  // By LoopCond and device.
  std::map<std::pair<std::string, std::string>, std::string> pivots_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_LOOP_PIVOTS_H_
