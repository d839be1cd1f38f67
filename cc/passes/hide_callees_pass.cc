// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/hide_callees_pass.h"

#include "cc/base/names.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

using tensorflow::NameAttrList;
using tensorflow::Node;

absl::Status HideCalleesPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr) return absl::OkStatus();
  for (Node* node : (*options.graph)->op_nodes()) {
    NameAttrList callee;
    if (node->type_string() != kInvokeOp || !GetNodeAttr(node->attrs(), kCalleeAttr, &callee).ok()) continue;
    node->ClearAttr(kHiddenCalleeAttr);
    node->AddAttr(kHiddenCalleeAttr, callee.SerializeAsString());
    node->ClearAttr(kCalleeAttr);
    node->AddAttr(kCalleeAttr, NameAttrList());  // the operator's schema wants one
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
