// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/hold_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/expand/control_flow_nodes.h"
#include "cc/expand/control_inputs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::NodeDef;

bool HasWait(const NodeDef& node) { return std::any_of(node.input().begin(), node.input().end(), IsControl); }

// Adds the control edges to the calls of one function or graph.
class CallHolder {
 public:
  explicit CallHolder(NodeDefs* nodes) : nodes_(*nodes) {
    for (int i = 0; i < nodes_.size(); ++i) index_[nodes_[i].name()] = i;
  }

  void Hold(int call) {
    std::set<std::string> waits;
    for (const std::string& decider : FindDeciders(call)) waits.insert(WaitFor(decider));
    for (const std::string& wait : waits) nodes_[call].add_input(wait);
  }

 private:
  // The node that makes an input: that of "n" for "n:1", "n:z:0" and "^n". nullptr if it is an argument's.
  const NodeDef* ProducerOf(const std::string& input) const {
    const std::string name = IsControl(input) ? input.substr(1) : input.substr(0, input.find(':'));
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &nodes_[found->second];
  }

  // Inputs, of the call or of nodes before it, that decide whether it runs, and how often. What enters a loop once for
  // all of its iterations lives in every one of them, so it decides only if nothing else does.
  std::set<std::string> FindDeciders(int call) const {
    std::set<std::string> found, constant, seen;
    std::vector<const NodeDef*> work = {&nodes_[call]};
    while (!work.empty()) {
      const NodeDef& node = *work.back();
      work.pop_back();
      for (const std::string& input : node.input()) {
        const NodeDef* const producer = ProducerOf(input);
        if (producer == nullptr) continue;
        if (IsConstantEnter(*producer)) {
          constant.insert(input);
        } else if (IsSwitch(*producer) || IsMerge(*producer) || IsEnter(*producer) || IsExit(*producer)) {
          found.insert(input);
        } else if (seen.insert(producer->name()).second) {
          work.push_back(producer);
        }
      }
    }
    return found.empty() ? constant : found;
  }

  // The control input by which a node waits for `value`. A control edge from a Switch would not tell which side it has
  // taken, so there is an Identity at that side to wait for.
  std::string WaitFor(const std::string& value) {
    const NodeDef& producer = *ProducerOf(value);
    const bool has_side = !IsControl(value) && IsSwitch(producer) && producer.attr().count("T") > 0;
    if (!has_side) return absl::StrCat("^", producer.name());
    const auto [known, is_new] = sides_.emplace(value, "");
    if (is_new) known->second = AddSide(value, producer);
    return absl::StrCat("^", known->second);
  }

  std::string AddSide(const std::string& value, const NodeDef& producer) {
    NodeDef side;
    std::string name = absl::StrCat(producer.name(), "/side");
    for (int i = 1; index_.count(name) > 0; ++i) name = absl::StrCat(producer.name(), "/side_", i);
    side.set_name(name);
    side.set_op("Identity");
    side.set_device(producer.device());
    side.add_input(value);
    (*side.mutable_attr())["T"] = producer.attr().at("T");
    index_[name] = nodes_.size();
    *nodes_.Add() = std::move(side);
    return name;
  }

  NodeDefs& nodes_;
  std::unordered_map<std::string, int> index_;
  // The Identities, by the side of a Switch that they are at.
  std::map<std::string, std::string> sides_;
};

// Whether TensorFlow puts a callee in the place of the node.
bool IsOrdinaryCall(const NodeDef& node, const FunctionLibraryDefinition& library) {
  return node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall" || node.op() == "SymbolicGradient" ||
         library.Find(node.op()) != nullptr;
}

}  // namespace

void HoldCalls(const FunctionLibraryDefinition& library, const std::function<bool(const NodeDef&)>& holds,
               NodeDefs* nodes) {
  const auto is_control_flow = [](const NodeDef& node) { return IsSwitch(node) || IsEnter(node); };
  if (std::none_of(nodes->begin(), nodes->end(), is_control_flow)) return;
  CallHolder holder(nodes);
  const int count = nodes->size();
  for (int i = 0; i < count; ++i) {
    const NodeDef& node = nodes->Get(i);
    if (!HasWait(node) && IsOrdinaryCall(node, library) && holds(node)) holder.Hold(i);
  }
}

}  // namespace tensorflow_recursion
