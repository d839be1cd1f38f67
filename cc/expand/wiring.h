// Says what the nodes of the final graph read: Returns instead of calls, and of records only what someone reads.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_WIRING_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_WIRING_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "cc/expand/call_program.h"
#include "cc/expand/emission_names.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// Translates inputs of a program's nodes to the final graph. Both arguments must outlive it. It changes nothing in
// them.
class Wiring {
 public:
  Wiring(const CallProgram& program, const EmissionNames& names);

  // `input` in the final graph. An output of a call comes from its Return, unless the call is fed. Outputs of a Recall
  // are numbered anew, because values that nothing reads are dropped.
  std::string Rewired(const std::string& input) const;

  // Gives `copy` the inputs of `node`. A Retain keeps only those that someone reads from its record.
  void AddInputs(const tensorflow::NodeDef& node, tensorflow::NodeDef* copy) const;

  // Completes `copy` of `node`, a Retain or Recall: drops the types and shapes of values that nobody reads, and says
  // which of the others are in the host's memory.
  void FinishRecord(const tensorflow::NodeDef& node, tensorflow::NodeDef* copy) const;

 private:
  void FindRecalls(const NodeList& list);
  const std::vector<bool>& NeededOf(const std::string& owner) const;

  const CallProgram& program_;
  const EmissionNames& names_;
  // By the name of each Recall, the function whose record it reads.
  std::unordered_map<std::string, std::string> recalls_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_WIRING_H_
