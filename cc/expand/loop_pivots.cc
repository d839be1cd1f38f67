// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/loop_pivots.h"

#include <set>
#include <tuple>
#include <vector>

#include "cc/expand/control_flow_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

// A node, and how many loops deeper it is than the node that the walk has started from.
struct Place {
  int node;
  int depth;

  bool operator<(const Place& other) const { return std::tie(node, depth) < std::tie(other.node, other.depth); }
};

}  // namespace

bool ComesFromOutside(const NodeList& list, std::string input) {
  while (true) {
    const NodeDef& node = list.nodes[list.ProducerOf(input)];
    if (IsEnter(node)) return IsConstantEnter(node);
    const bool stays_in_loop = node.op() == "Identity" || IsBranchInput(node) || IsSwitch(node);
    if (!stays_in_loop || node.input_size() == 0) return false;
    input = node.input(0);
  }
}

std::string FindLoopCondition(const NodeList& list, const NodeDef& first) {
  std::vector<Place> work = {{list.index.at(first.name()), 0}};
  std::set<Place> seen;
  while (!work.empty()) {
    const Place place = work.back();
    work.pop_back();
    const NodeDef& node = list.nodes[place.node];
    if (node.op() == "LoopCond" && place.depth == 0) return node.name();
    if (IsNextIteration(node) || (IsEnter(node) && place.depth == 0)) continue;
    const int depth = place.depth + (IsExit(node) ? 1 : 0) - (IsEnter(node) ? 1 : 0);
    for (const std::string& input : node.input()) {
      const Place before{list.ProducerOf(input), depth};
      if (seen.insert(before).second) work.push_back(before);
    }
  }
  return "";
}

std::string LoopPivots::Get(const std::string& condition, const std::string& device) {
  std::string& pivot = pivots_[{condition, device}];
  if (!pivot.empty()) return pivot;
  NodeDef* branch = writer_->Add(writer_->Unique(condition + "/call_switch"), "Switch", device);
  for (int i = 0; i < 2; ++i) branch->add_input(condition);
  tensorflow::AddNodeAttr("T", tensorflow::DT_BOOL, branch);
  NodeDef* node = writer_->Add(writer_->Unique(condition + "/call_pivot"), "Identity", device);
  node->add_input(branch->name() + ":1");  // the side that lives if the condition holds
  tensorflow::AddNodeAttr("T", tensorflow::DT_BOOL, node);
  pivot = node->name();
  return pivot;
}

}  // namespace tensorflow_recursion
