// Tells the operators of control flow v1, of which loops and branches consist in a graph that runs.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_CONTROL_FLOW_NODES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_CONTROL_FLOW_NODES_H_

#include "cc/base/names.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

inline bool IsEnter(const tensorflow::NodeDef& node) { return node.op() == "Enter" || node.op() == "RefEnter"; }
inline bool IsExit(const tensorflow::NodeDef& node) { return node.op() == "Exit" || node.op() == "RefExit"; }
inline bool IsMerge(const tensorflow::NodeDef& node) { return node.op() == "Merge" || node.op() == "RefMerge"; }
// A _SwitchN has a side for each branch of a tf.switch_case.
inline bool IsSwitch(const tensorflow::NodeDef& node) {
  return node.op() == "Switch" || node.op() == "RefSwitch" || node.op() == "_SwitchN" || node.op() == "_RefSwitchN";
}
inline bool IsNextIteration(const tensorflow::NodeDef& node) {
  return node.op() == "NextIteration" || node.op() == "RefNextIteration";
}

// It stands in the main graph behind Switches and Enters while TensorFlow's optimizers look (branch_inputs.h), and only
// hands a value on.
inline bool IsBranchInput(const tensorflow::NodeDef& node) { return node.op() == kBranchInputOp; }

// Whether the node brings into a loop what is the same in all of its iterations, and lives in each of them.
inline bool IsConstantEnter(const tensorflow::NodeDef& node) {
  const auto is_constant = node.attr().find("is_constant");
  return IsEnter(node) && is_constant != node.attr().end() && is_constant->second.b();
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_CONTROL_FLOW_NODES_H_
