// How values flow through a graph: one node for each future operator, linked by sources instead of edges.
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
  static constexpr int kWholeNode = -1;  // a control signal of the node, not of one port
  NodeId node;
  int port = 0;

  bool operator<(const Source& other) const { return node != other.node ? node < other.node : port < other.port; }
  bool operator==(const Source& other) const { return node == other.node && port == other.port; }
};

// What a node reads: a token that another node sends, or a constant or an invariant of the recursion, which no one has
// to send.
struct Input {
  Source source;               // of a token
  ConstantId constant;         // in FlowGraph::constants; kNone if it is none
  uint32_t invariant = kNone;  // which of the recursion's (keep_invariants.h); kNone if it is none
  std::vector<Source> guards;  // of what is no token: what must be live for it to be

  bool is_constant() const { return constant != kNone; }
  bool is_invariant() const { return invariant != kNone; }
  bool is_token() const { return !is_constant() && !is_invariant(); }
};

// A future operator. Nodes of the TensorFlow graph that only rename a value (Identity, LoopCond, Return, NextIteration
// and the like) have none: whoever reads them gets what they read as its source.
struct FlowNode {
  FlowNode(OpKind kind, RegionId region, const tensorflow::Node* node) : kind(kind), region(region), node(node) {}

  OpKind kind;
  RegionId region;
  const tensorflow::Node* node;  // that it was made for; names it in errors
  std::vector<Input> inputs;
  std::vector<Source> controls;
  int num_ports = 0;
  uint32_t index = 0;  // of a call site, loop, kernel, record, result, exit, argument or return value, by `kind`
  NodeId branch;       // of a switch: the kBranch on its predicate
  ScalarFunction scalar = nullptr;
  bool may_be_dead = false;  // its kernel may leave outputs unset (_Recv)
  bool takes_dead = false;   // of a loop's start or next: fires with dead inputs too
  bool is_partial = false;   // of a loop of which a part may be dead: its start, the end of an iteration, or an entry
  bool is_number = false;    // of a function's entry: its values are never tensors of their own
  bool is_removed = false;   // nothing refers to it any more
};

// A call, made of all nodes with its call_id.
struct FlowCallSite {
  int64_t call_id = 0;
  std::string name;    // of the call node
  std::string callee;  // the function's name in the graph
  NodeId node;
  std::map<int, const tensorflow::Node*> calls;    // by argument; the node's inputs are in the same order
  std::map<int, const tensorflow::Node*> returns;  // by result
  const tensorflow::Node* join = nullptr;          // says that the call lives, where another device decides it
  const tensorflow::Node* announcement = nullptr;  // tells the others, where this one does
  std::optional<int> announce_port;
  bool is_inside = false;  // of the callee's recursion: its frame has the caller's invariants
};

struct FlowLoop {
  RegionId region;  // of the body
  NodeId start;
  NodeId next;  // kNone if it never goes round
  std::vector<const tensorflow::Node*> enters;
  std::vector<const tensorflow::Node*> nexts;
  std::vector<const tensorflow::Node*> merges;
  std::vector<const tensorflow::Node*> exits;
  const tensorflow::Node* condition = nullptr;              // its LoopCond
  std::vector<std::vector<Source>> next_controls;           // of each NextIteration
  std::map<const tensorflow::Node*, NodeId> entries;        // of a Merge, and of an Enter read otherwise
  std::map<const tensorflow::Node*, NodeId> index_entries;  // of a Merge whose value_index is read
  int num_entries = 0;
  bool crosses_devices = false;  // a value is sent or received in it, or in a loop in it
  bool is_partial = false;       // some of its variables may be dead while others live
};

// Where an Enter or a NextIteration is among `enters` or `nexts` of its loop, and so among the inputs of `start` or
// `next`.
inline uint32_t PositionIn(const std::vector<const tensorflow::Node*>& nodes, const tensorflow::Node* node) {
  return static_cast<uint32_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
}

// What a graph holds of a function's body.
struct FlowFunction {
  std::vector<NodeId> entries;  // by argument; kNone where there is none
  NodeId frame_start;
  std::map<int, const tensorflow::Node*> results;  // by index
  uint32_t num_invariants = 0;                     // its last arguments, which calls inside the recursion do not pass

  int num_results() const { return results.empty() ? 0 : results.rbegin()->first + 1; }
};

struct FlowGraph {
  GraphRegions regions;
  IdVector<NodeId, FlowNode> nodes;
  std::vector<FlowCallSite> call_sites;
  std::vector<FlowLoop> loops;
  std::map<RegionId, size_t> loop_of_region;  // in `loops`, by the body's region
  std::map<RegionId, FlowFunction> functions;
  std::deque<ConstantTensor> constants;  // by ConstantId; they never move, values point to them
  std::vector<RecordType> records;       // by FlowNode::index of a Retain or Recall
  std::vector<KernelNode> kernels;
  tensorflow::DataTypeVector argument_types;  // of the graph's _Args
  tensorflow::DataTypeVector retval_types;    // of the graph's _Retvals
  bool crosses_devices = false;               // values are sent to other devices or received from them

  // The loop whose body is `region`; null if it is no loop's.
  FlowLoop* FindLoop(RegionId region);
  const FlowLoop* FindLoop(RegionId region) const;
  const FlowCallSite& SiteOf(const FlowNode& site) const { return call_sites[site.index]; }
  RegionId CalleeOf(const FlowNode& site) const { return regions.FindFunction(SiteOf(site).callee); }
};

// Describes `graph`, whose regions are `regions`, and which must outlive the result. InvalidArgument if its operators
// and attributes do not fit together; the message names the node.
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
