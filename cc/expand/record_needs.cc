// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/record_needs.h"

#include "cc/base/names.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

bool IsControlInput(const std::string& input) {
  return tensorflow::IsTensorIdControl(tensorflow::ParseTensorName(input));
}

}  // namespace

void RecordNeeds::AddRetain(NodeList* list, int node) {
  const NodeDef& def = list->nodes[node];
  retains_[RecordOwner(def)].emplace_back(list, node);
  if (needs_all_) NeedAllRetained(def);
  const std::vector<bool>& needed = retained_[RecordOwner(def)].needed;
  for (int i = 0; i < def.input_size(); ++i) {
    if (IsControlInput(def.input(i)) || (i < static_cast<int>(needed.size()) && needed[i])) {
      follow_input_(list, def.input(i));
    }
  }
}

void RecordNeeds::AddRecall(NodeList* list, int node) {
  recalls_.emplace_back(list, node);
  if (needs_all_) NeedAllOf(list->nodes[node]);
}

void RecordNeeds::Need(const std::string& function, int value) {
  std::vector<bool>& needed = retained_[function].needed;
  if (value >= static_cast<int>(needed.size())) needed.resize(value + 1);
  if (needed[value]) return;
  needed[value] = true;
  for (const auto& [list, node] : retains_[function]) {
    const NodeDef& def = list->nodes[node];
    if (value >= def.input_size()) continue;  // the graph is forged, which the kernel will report
    if (!IsControlInput(def.input(value))) follow_input_(list, def.input(value));
  }
}

void RecordNeeds::NeedAllOf(const NodeDef& recall) {
  const int count = recall.attr().at(kTypeAttr).list().type_size();
  for (int value = 0; value < count; ++value) Need(RecordOwner(recall), value);
}

void RecordNeeds::NeedAll() {
  if (std::exchange(needs_all_, true)) return;
  const auto found = retains_;  // more may be found on the way
  for (const auto& [function, places] : found) {
    for (const auto& [list, node] : places) NeedAllRetained(list->nodes[node]);
  }
  for (const auto& [list, node] : recalls_) NeedAllOf(list->nodes[node]);
}

void RecordNeeds::NeedAllRetained(const NodeDef& retain) {
  for (int i = 0; i < retain.input_size(); ++i) {
    if (!IsControlInput(retain.input(i))) Need(RecordOwner(retain), i);
  }
}

}  // namespace tensorflow_recursion
