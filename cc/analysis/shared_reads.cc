// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/shared_reads.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "cc/analysis/argument_trace.h"
#include "cc/analysis/effects.h"
#include "cc/analysis/superfluous_waits.h"
#include "cc/base/names.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

// Whether the node only says something, so that nothing in the program can depend on it.
bool OnlyTells(const tensorflow::Node& node) {
  const std::string& op = node.type_string();
  return op == "Assert" || op == "Print" || op == "PrintV2";
}

bool IsInBody(const FlowGraph& flow, const FlowNode& node) {
  return flow.functions.count(flow.regions.FunctionRegionOf(node.region)) > 0;
}

// Whether something in a body may write to a variable or to what was read of it, or wait for somebody who does. Where a
// kernel changes its input, frames that read a variable for themselves may have got copies. An Invoke that is still
// there calls a function whose body is not in the graph.
bool BodiesMayWrite(const FlowGraph& flow) {
  return std::any_of(flow.nodes.begin(), flow.nodes.end(), [&](const FlowNode& node) {
    if (node.kind != OpKind::kKernel || !IsInBody(flow, node)) return false;
    const bool has_effect = HasEffect(*node.node) && !OnlyTells(*node.node);
    return has_effect || flow.kernels[node.index].changes_input || node.node->type_string() == kInvokeOp;
  });
}

std::vector<NodeId> FindReads(const FlowGraph& flow) {
  std::vector<NodeId> reads;
  for (NodeId id : flow.nodes.ids()) {
    const FlowNode& node = flow.nodes[id];
    const bool is_read = node.kind == OpKind::kKernel && flow.kernels[node.index].op == "ReadVariableOp";
    if (is_read && !node.is_removed && node.inputs[0].is_token() && IsInBody(flow, node)) reads.push_back(id);
  }
  return reads;
}

// Follows the arguments of the program into its functions.
class ProgramArguments {
 public:
  explicit ProgramArguments(const FlowGraph& flow) : flow_(flow) {
    for (const FlowCallSite& site : flow.call_sites) FollowCall(site);
    while (!changed_.empty()) {
      const NodeId entry = changed_.back();
      changed_.pop_back();
      for (NodeId reader : passed_to_[entry]) Join(reader, argument_of_.at(entry));
    }
  }

  // Returns which argument of the program the input of a body's node always is, or kNotOne.
  int Of(const Input& input) const {
    const ArgumentTrace trace = TraceArgument(flow_, input.source);
    const auto found = argument_of_.find(trace.entry);
    return trace.is_argument() && found != argument_of_.end() ? found->second : kNotOne;
  }

  static constexpr int kNotOne = -1;

 private:
  void FollowCall(const FlowCallSite& site) {
    const std::vector<NodeId>& entries = flow_.functions.at(flow_.regions.FindFunction(site.callee)).entries;
    const std::vector<Input>& inputs = flow_.nodes[site.node].inputs;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] == kNone) continue;
      // A call that lacks arguments, as forged graphs may have, can't tell which are which.
      const bool is_token = i < inputs.size() && inputs.size() == site.calls.size() && inputs[i].is_token();
      if (!is_token) {
        Join(entries[i], kNotOne);
        continue;
      }
      const ArgumentTrace trace = TraceArgument(flow_, inputs[i].source);
      const FlowNode& origin = flow_.nodes[trace.origin.node];
      if (trace.is_argument()) {
        passed_to_[trace.entry].push_back(entries[i]);
      } else {
        Join(entries[i], origin.kind == OpKind::kArgument ? static_cast<int>(origin.index) : kNotOne);
      }
    }
  }

  // `entry` gets the argument of the program besides what it is known to get.
  void Join(NodeId entry, int argument) {
    const auto [known, is_first] = argument_of_.try_emplace(entry, argument);
    if (!is_first) {
      if (known->second == argument || known->second == kNotOne) return;
      known->second = kNotOne;
    }
    changed_.push_back(entry);
  }

  const FlowGraph& flow_;
  std::map<NodeId, int> argument_of_;
  std::map<NodeId, std::vector<NodeId>> passed_to_;
  std::vector<NodeId> changed_;
};

class ReadSharer {
 public:
  ReadSharer(const VariableReaders& readers, FlowGraph* flow) : flow_(*flow) {
    for (const auto& [id, argument] : readers) AddReader(id, argument);
  }

  std::vector<ArgumentRead> Run() {
    for (FlowNode& node : flow_.nodes) {
      if (node.is_removed) continue;
      if (ReadsTable(node.kind)) TakeFromRecursion(&node);
      DropControls(&node);
    }
    ReplaceReads();
    return std::move(arguments_);
  }

 private:
  void AddReader(NodeId id, int argument) {
    const FlowNode& node = flow_.nodes[id];
    const FlowFunction& function = flow_.functions.at(flow_.regions.FunctionRegionOf(node.region));
    if (!node.inputs[0].is_invariant() || function.recursion == kNone) return;
    const tensorflow::DataType dtype = flow_.kernels[node.index].outputs[0];
    std::vector<InvariantRead>& reads = flow_.recursions[function.recursion].reads;
    const auto known = std::find_if(reads.begin(), reads.end(), [&](const InvariantRead& read) {
      return read.handle == node.inputs[0].invariant && flow_.kernels[read.kernel].outputs[0] == dtype;
    });
    number_of_[id] = function.num_invariants + static_cast<uint32_t>(known - reads.begin());
    if (known == reads.end()) reads.push_back({node.inputs[0].invariant, node.index});
    if (seen_.emplace(argument, dtype).second) arguments_.push_back({argument, node.index});
  }

  void TakeFromRecursion(FlowNode* node) {
    for (Input& input : node->inputs) {
      if (!input.is_token()) continue;
      ArgumentTrace trace = TraceArgument(flow_, input.source);
      const auto read = number_of_.find(trace.origin.node);
      if (trace.is_argument() || read == number_of_.end()) continue;
      input.invariant = read->second;
      input.guards = std::move(trace.guards);
      // An iteration takes place only where the read, outside of the loop, is live.
      if (flow_.nodes[read->first].region == node->region) AddWaits(read->first, &input.guards);
    }
  }

  // Whoever waited for the read waits for what the read has waited for.
  void DropControls(FlowNode* node) {
    std::vector<Source> controls;
    for (const Source& control : node->controls) {
      if (number_of_.count(control.node) > 0) {
        AddWaits(control.node, &controls);
      } else {
        controls.push_back(control);
      }
    }
    node->controls = std::move(controls);
  }

  void AddWaits(NodeId read, std::vector<Source>* sources) const {
    const FlowNode& node = flow_.nodes[read];
    for (const std::vector<Source>* more : {&node.inputs[0].guards, &node.controls}) {
      sources->insert(sources->end(), more->begin(), more->end());
    }
  }

  // Merges, results, loops and calls take nothing but tokens, so a node that they read sends them the value.
  void ReplaceReads() {
    std::set<NodeId> needed;
    for (const FlowNode& node : flow_.nodes) {
      if (!node.is_removed) ForEachSource(node, [&](const Source& source) { needed.insert(source.node); });
    }
    for (const auto& [read, number] : number_of_) {
      FlowNode& node = flow_.nodes[read];
      node.is_removed = needed.count(read) == 0;
      node.kind = OpKind::kPass;
      node.inputs[0].invariant = number;
    }
  }

  FlowGraph& flow_;
  // Which invariant a node yields.
  std::map<NodeId, uint32_t> number_of_;
  std::vector<ArgumentRead> arguments_;
  std::set<std::pair<int, tensorflow::DataType>> seen_;  // the same
};

}  // namespace

VariableReaders FindVariableReaders(const FlowGraph& flow) {
  VariableReaders readers;
  const std::vector<NodeId> reads = FindReads(flow);
  // What other devices send may be dead, or come late.
  if (reads.empty() || flow.crosses_devices || BodiesMayWrite(flow)) return readers;
  const ProgramArguments arguments(flow);
  for (NodeId id : reads) {
    const int argument = arguments.Of(flow.nodes[id].inputs[0]);
    if (argument != ProgramArguments::kNotOne) readers[id] = argument;
  }
  return readers;
}

absl::Status ShareReads(const VariableReaders& readers, FlowGraph* flow, std::vector<ArgumentRead>* read) {
  *read = ReadSharer(readers, flow).Run();
  return read->empty() ? absl::OkStatus() : DropSuperfluousWaits(flow);
}

}  // namespace tensorflow_recursion
