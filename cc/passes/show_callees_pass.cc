// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/show_callees_pass.h"

#include <string>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

absl::Status ShowCalleesPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr) return absl::OkStatus();
  for (tensorflow::Node* node : (*options.graph)->op_nodes()) {
    std::string hidden;
    if (node->type_string() != kInvokeOp || !GetNodeAttr(node->attrs(), kHiddenCalleeAttr, &hidden).ok()) continue;
    tensorflow::NameAttrList callee;
    if (!callee.ParseFromString(hidden)) {
      return InvalidArgument("Node '", node->name(), "': attribute ", kHiddenCalleeAttr, " is not a function");
    }
    node->ClearAttr(kCalleeAttr);
    node->AddAttr(kCalleeAttr, callee);
    node->ClearAttr(kHiddenCalleeAttr);
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
