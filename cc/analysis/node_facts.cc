// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/node_facts.h"

#include "cc/base/names.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

using tensorflow::Edge;
using tensorflow::Node;

bool IsSwitchN(const Node* node) { return Is(node, "_SwitchN") || Is(node, "_RefSwitchN"); }

bool IsBodySource(const Node* node) { return Is(node, kEntryOp) || Is(node, kFrameStartOp); }

bool IsCallSitePart(const Node* node) {
  return Is(node, kCallOp) || Is(node, kReturnOp) || Is(node, kJoinCallOp) || Is(node, kAnnounceCallOp);
}

bool HoldsConstant(const Node* node) { return node->IsConstant() || Is(node, "FakeParam"); }

bool IsLoopConstant(const Node& enter) {
  bool is_constant = false;
  return tensorflow::GetNodeAttr(enter.attrs(), "is_constant", &is_constant).ok() && is_constant;
}

bool IsOfPartialLoop(const Node* node) { return node->attrs().Find(kPartialLoopAttr) != nullptr; }

bool ReadsReference(const Node* node) {
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Edge* const edge = InputEdge(node, i);
    if (edge != nullptr && tensorflow::IsRefType(edge->src()->output_type(edge->src_output()))) return true;
  }
  return false;
}

const Edge* InputEdge(const Node* node, int input) {
  const Edge* edge = nullptr;
  return node->input_edge(input, &edge).ok() ? edge : nullptr;
}

absl::Status ReadInteger(const Node* node, const char* attr, int64_t* value) {
  return tensorflow::GetNodeAttr(node->attrs(), attr, value);
}

}  // namespace tensorflow_recursion
