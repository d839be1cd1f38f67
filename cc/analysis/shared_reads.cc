// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/shared_reads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
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

// Whether the node changes the tensor that it is given, as InplaceAdd does: then frames that read a variable for
// themselves may have got copies.
bool ChangesInput(const tensorflow::Node& node) { return absl::StartsWith(node.type_string(), "Inplace"); }

// Whether something in the graph may write to a variable or to what was read of it, or wait for somebody who does. An
// Invoke that is still there calls a function whose body is not in the graph.
bool MayWrite(const tensorflow::Graph& graph) {
  return std::any_of(graph.op_nodes().begin(), graph.op_nodes().end(), [](const tensorflow::Node* node) {
    return (HasEffect(*node) && !OnlyTells(*node)) || ChangesInput(*node) || node->type_string() == kInvokeOp;
  });
}

bool IsInBody(const FlowGraph& flow, const FlowNode& node) {
  return flow.functions.count(flow.regions.FunctionRegionOf(node.region)) > 0;
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
  ReadSharer(const SharedReads& shared, FlowGraph* flow) : shared_(shared), flow_(*flow) {}

  void Run() {
    for (NodeId id : flow_.nodes.ids()) {
      FlowNode& node = flow_.nodes[id];
      if (node.is_removed) continue;
      if (ReadsTable(node.kind)) TakeFromRun(&node);
      DropControls(&node);
    }
    RemoveUnread();
  }

 private:
  void TakeFromRun(FlowNode* node) {
    for (Input& input : node->inputs) {
      if (!input.is_token()) continue;
      ArgumentTrace trace = TraceArgument(flow_, input.source);
      const auto read = shared_.number_of.find(trace.origin.node);
      if (trace.is_argument() || read == shared_.number_of.end()) continue;
      input.invariant = kFirstOfRun + read->second;
      input.guards = std::move(trace.guards);
      // An iteration takes place only where the read, outside of the loop, is live.
      if (flow_.nodes[read->first].region == node->region) AddWaits(read->first, &input.guards);
    }
  }

  // Whoever waited for the read waits for what the read has waited for.
  void DropControls(FlowNode* node) {
    std::vector<Source> controls;
    for (const Source& control : node->controls) {
      if (shared_.number_of.count(control.node) > 0) {
        AddWaits(control.node, &controls);
      } else {
        controls.push_back(control);
      }
    }
    node->controls = std::move(controls);
  }

  void AddWaits(NodeId read, std::vector<Source>* sources) const {
    const FlowNode& node = flow_.nodes[read];
    const Input& handle = node.inputs[0];
    std::vector<Source> guards = handle.is_token() ? TraceArgument(flow_, handle.source).guards : handle.guards;
    for (const std::vector<Source>& more : {guards, node.controls}) {
      sources->insert(sources->end(), more.begin(), more.end());
    }
  }

  void RemoveUnread() {
    std::map<NodeId, int> readers;
    for (const FlowNode& node : flow_.nodes) {
      if (!node.is_removed) ForEachSource(node, [&](const Source& source) { ++readers[source.node]; });
    }
    for (const auto& [read, number] : shared_.number_of) {
      if (readers[read] == 0) flow_.nodes[read].is_removed = true;
    }
  }

  const SharedReads& shared_;
  FlowGraph& flow_;
};

}  // namespace

SharedReads FindSharedReads(const tensorflow::Graph& graph, const FlowGraph& flow) {
  SharedReads shared;
  const std::vector<NodeId> reads = FindReads(flow);
  // What other devices send may be dead, or come late.
  if (reads.empty() || flow.crosses_devices || MayWrite(graph)) return shared;
  const ProgramArguments arguments(flow);
  std::map<std::pair<int, tensorflow::DataType>, uint32_t> numbers;
  for (NodeId id : reads) {
    const FlowNode& read = flow.nodes[id];
    const int argument = arguments.Of(read.inputs[0]);
    if (argument == ProgramArguments::kNotOne) continue;
    const auto number = static_cast<uint32_t>(shared.reads.size());
    const auto [known, is_new] = numbers.try_emplace({argument, flow.kernels[read.index].outputs[0]}, number);
    if (is_new) shared.reads.push_back({argument, read.index});
    shared.number_of[id] = known->second;
  }
  return shared;
}

absl::Status ShareReads(const SharedReads& shared, FlowGraph* flow) {
  if (shared.reads.empty()) return absl::OkStatus();
  ReadSharer(shared, flow).Run();
  return DropSuperfluousWaits(flow);
}

}  // namespace tensorflow_recursion
