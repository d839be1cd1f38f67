// The flow graph, which says how values flow: it has a node for each future operator, and nodes name their sources.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_GRAPH_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/kernel_node.h"
#include "cc/analysis/op_kind.h"
#include "cc/analysis/regions.h"
#include "cc/base/ids.h"
#include "cc/values/device_memory.h"
#include "cc/values/record.h"
#include "cc/values/scalar_ops.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Where a value or a control signal comes from.
struct Source {
  // The `port` of a control signal, which says that the whole node has fired.
  static constexpr int kWholeNode = -1;

  NodeId node;
  int port = 0;

  bool operator<(const Source& other) const { return node != other.node ? node < other.node : port < other.port; }
  bool operator==(const Source& other) const { return node == other.node && port == other.port; }
};

// What a node reads. It is one of three things: a token that another node sends, a constant, or an invariant of the
// recursion. Nobody has to send the last two, so they come with `guards`: sources that must be live for the input to be
// live. For example, a constant in the true branch of a conditional has that side of the branch as its guard.
struct Input {
  // Where the token comes from, if it is one.
  Source source;
  // The constant's place in FlowGraph::constants; kNone if the input is no constant.
  ConstantId constant;
  // The number of the invariant; kNone if the input is no invariant. First come the arguments that are kept
  // (keep_invariants.h), then the variables that are read when the recursion is entered (shared_reads.h).
  uint32_t invariant = kNone;
  std::vector<Source> guards;

  bool is_constant() const { return constant != kNone; }
  bool is_invariant() const { return invariant != kNone; }
  bool is_token() const { return !is_constant() && !is_invariant(); }
};

// A future operator. Not every node of the TensorFlow graph has one: some only rename a value (Identity, LoopCond,
// Return, NextIteration and the like). Whoever reads such a node gets what the node reads as its source.
struct FlowNode {
  FlowNode(OpKind kind, RegionId region, const tensorflow::Node* node) : kind(kind), region(region), node(node) {}

  OpKind kind;
  RegionId region;
  // The graph's node that this one was made for, whose name errors give.
  const tensorflow::Node* node;
  std::vector<Input> inputs;
  std::vector<Source> controls;
  int num_ports = 0;
  // Which call site, loop, kernel, record, result, exit, argument or return value the node is about; its `kind` says
  // which of these it is.
  uint32_t index = 0;
  // A switch has here the kBranch on its predicate.
  NodeId branch;
  ScalarFunction scalar = nullptr;
  // The node's kernel may leave outputs unset, as that of a _Recv does when a dead value was sent.
  bool may_be_dead = false;
  // The start of a loop, or the end of an iteration, fires when its inputs are dead, too.
  bool takes_dead = false;
  // The node starts a loop, ends an iteration or brings a variable in, and the loop is partial.
  bool is_partial = false;
  // The node is an entry of a function whose values are never tensors of their own.
  bool is_number = false;
  // Nothing refers to the node any more.
  bool is_removed = false;
};

// A call site, which all nodes with its call_id make together. Its flow node `node` reads the arguments, in the order
// of `calls`.
struct FlowCallSite {
  int64_t call_id = 0;
  // What the names of the call's nodes begin with: "Fib/f1" for the call of Fib/f1/call_0 and Fib/f1/return_0.
  std::string name;
  // What the graph calls the function.
  std::string callee;
  NodeId node;
  // The Calls by the index of their argument, and the Returns by that of their result.
  std::map<int, const tensorflow::Node*> calls;
  std::map<int, const tensorflow::Node*> returns;
  // Of a call of several devices one decides whether it lives. There the announcement tells the others; on each of
  // these the join hears of it.
  const tensorflow::Node* join = nullptr;
  const tensorflow::Node* announcement = nullptr;
  std::optional<int> announce_port;
  // The caller is part of the callee's recursion, so the new frame has the invariants of the caller's.
  bool is_inside = false;
};

// A loop, with the nodes of the graph that it consists of. Its iterations are frames of `region`. Its flow node `start`
// opens the first iteration and `next` each further one; a loop that never goes round has kNone there.
struct FlowLoop {
  RegionId region;
  NodeId start;
  NodeId next;
  std::vector<const tensorflow::Node*> enters;
  std::vector<const tensorflow::Node*> nexts;
  std::vector<const tensorflow::Node*> merges;
  std::vector<const tensorflow::Node*> exits;
  // The LoopCond.
  const tensorflow::Node* condition = nullptr;
  // What each of `nexts` waits for besides its value.
  std::vector<std::vector<Source>> next_controls;
  // Where the body reads what an iteration was given: the entry of each Merge, and of each Enter that is read by
  // anything but a Merge. A Merge whose value_index is read has an entry for that number, too.
  std::map<const tensorflow::Node*, NodeId> entries;
  std::map<const tensorflow::Node*, NodeId> index_entries;
  int num_entries = 0;
  // A value is sent or received in the loop, or in a loop in it.
  bool crosses_devices = false;
  // Some of the variables may be dead while others live.
  bool is_partial = false;
};

// Where an Enter or a NextIteration is among `enters` or `nexts` of its loop, and so among the inputs of `start` or
// `next`.
inline uint32_t PositionIn(const std::vector<const tensorflow::Node*>& nodes, const tensorflow::Node* node) {
  return static_cast<uint32_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
}

// What a graph holds of a function's body.
struct FlowFunction {
  // By argument; kNone where the graph has no Entry, because nobody reads the argument.
  std::vector<NodeId> entries;
  NodeId frame_start;
  // By index.
  std::map<int, const tensorflow::Node*> results;
  // How many of the last arguments are invariants, which calls inside the recursion do not pass.
  uint32_t num_invariants = 0;
  // Which of FlowGraph::recursions has these invariants; kNone if there is none.
  uint32_t recursion = kNone;

  int num_results() const { return results.empty() ? 0 : results.rbegin()->first + 1; }
};

// What the frames of a recursion with invariants share.
struct FlowRecursion {
  // The variables that are read when the recursion is entered. Their values are further invariants, in this order.
  std::vector<InvariantRead> reads;
  // How many results of operators the first frames that compute them keep (kept_results.h).
  uint32_t num_kept_results = 0;
};

// All flow nodes of a partition graph or of a whole graph. BuildFlowGraph makes it.
struct FlowGraph {
  GraphRegions regions;
  IdVector<NodeId, FlowNode> nodes;
  std::vector<FlowCallSite> call_sites;
  std::vector<FlowLoop> loops;
  // Where in `loops` the loop is whose body is the region.
  std::map<RegionId, size_t> loop_of_region;
  std::map<RegionId, FlowFunction> functions;
  std::vector<FlowRecursion> recursions;
  // By ConstantId. They never move, because values point to them.
  std::deque<ConstantTensor> constants;
  // FlowNode::index of a Retain or Recall, or of a kKernel, says which of these is its own.
  std::vector<RecordType> records;
  std::vector<KernelNode> kernels;
  // The types of the graph's _Args and _Retvals.
  tensorflow::DataTypeVector argument_types;
  tensorflow::DataTypeVector retval_types;
  // Values are sent to other devices or received from them.
  bool crosses_devices = false;

  // The loop whose body is `region`; nullptr if the region is no loop's.
  FlowLoop* FindLoop(RegionId region);
  const FlowLoop* FindLoop(RegionId region) const;
  const FlowCallSite& SiteOf(const FlowNode& site) const { return call_sites[site.index]; }
  RegionId CalleeOf(const FlowNode& site) const { return regions.FindFunction(SiteOf(site).callee); }
  // Whether some kernel changes a tensor that others may have, so that it matters who reads that before.
  bool ChangesInputs() const;
};

// Makes the flow graph of `graph`, whose regions are `regions`, and which must outlive the result. InvalidArgument if
// its operators and attributes do not fit together; the message names the node.
absl::Status BuildFlowGraph(const tensorflow::Graph& graph, GraphRegions regions, const DeviceMemory& memory,
                            FlowGraph* flow);

// Sets `order` to all nodes, each behind its sources. InvalidArgument if they form a cycle.
absl::Status SortNodes(const FlowGraph& flow, std::vector<NodeId>* order);

// Calls `visit` with all that the node waits for.
template <typename Visit>
void ForEachSource(const FlowNode& node, Visit visit) {
  for (const Input& input : node.inputs) {
    if (input.is_token()) visit(input.source);
    for (const Source& guard : input.guards) visit(guard);
  }
  for (const Source& control : node.controls) visit(control);
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_GRAPH_H_
