// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/hide_callees.h"

#include <string>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

using tensorflow::NameAttrList;
using tensorflow::Node;

namespace {

constexpr char kHiddenCalleeAttr[] = "_recursion_callee";

void SetCallee(const NameAttrList& callee, Node* call) {
  call->ClearAttr(kCalleeAttr);
  call->AddAttr(kCalleeAttr, callee);
}

}  // namespace

absl::Status HideCalleesPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr) return absl::OkStatus();
  for (Node* node : (*options.graph)->op_nodes()) {
    NameAttrList callee;
    if (node->type_string() != kInvokeOp || !GetNodeAttr(node->attrs(), kCalleeAttr, &callee).ok()) continue;
    node->ClearAttr(kHiddenCalleeAttr);
    node->AddAttr(kHiddenCalleeAttr, callee.SerializeAsString());
    SetCallee(NameAttrList(), node);  // the operator's schema wants one
  }
  return absl::OkStatus();
}

absl::Status ShowCalleesPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr) return absl::OkStatus();
  for (Node* node : (*options.graph)->op_nodes()) {
    std::string hidden;
    if (node->type_string() != kInvokeOp || !GetNodeAttr(node->attrs(), kHiddenCalleeAttr, &hidden).ok()) continue;
    NameAttrList callee;
    if (!callee.ParseFromString(hidden)) {
      return InvalidArgument("Node '", node->name(), "': attribute ", kHiddenCalleeAttr, " is not a function");
    }
    SetCallee(callee, node);
    node->ClearAttr(kHiddenCalleeAttr);
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
