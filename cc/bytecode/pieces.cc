// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/pieces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/disjoint_sets.h"
#include "cc/bytecode/candidates.h"
#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/compile_context.h"
#include "cc/bytecode/encoder.h"
#include "cc/bytecode/known_ranks.h"
#include "cc/bytecode/node_emitter.h"
#include "cc/bytecode/origins.h"
#include "cc/bytecode/step_writer.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {
namespace {

// How many operators one piece has at most. The outputs of a piece come only when all of it has run, and to simplify
// code takes time in proportion to the square of its size.
constexpr size_t kMostMembers = 400;

// Whether the node is arithmetic on values that are surely numbers, or reads an element, and waits for nothing else.
class Arithmetic {
 public:
  Arithmetic(const FlowGraph& flow, const ElementReads& reads) : flow_(flow), reads_(reads), ranks_(flow, reads) {}

  bool Includes(NodeId id) const {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind != OpKind::kScalar || node.is_removed || !node.controls.empty()) return false;
    for (const Input& input : node.inputs) {
      if (!input.guards.empty()) return false;
    }
    if (!ranks_.IsNumber(Source{id, 0})) return false;
    if (const auto read = reads_.reads.find(id); read != reads_.reads.end()) return IsFit(read->second);
    return flow_.kernels[node.index].op != "GatherV2" &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Input& input) { return IsNumber(input); });
  }

 private:
  bool IsNumber(const Input& input) const {
    return input.is_constant() ? flow_.constants[input.constant].is_number() : ranks_.IsNumber(input);
  }

  bool IsFit(const ElementRead& read) const {
    if (read.array.is_constant() && !flow_.constants[read.array.constant].is_on_host) return false;
    if (ranks_.IsNumber(read.array)) return false;
    return std::all_of(read.indices.begin(), read.indices.end(),
                       [&](const ElementIndex& index) { return index.known || IsNumber(index.input); });
  }

  const FlowGraph& flow_;
  const ElementReads& reads_;
  const KnownRanks ranks_;
};

// Puts nodes together that share a value.
class Grouper {
 public:
  Grouper(const FlowGraph& flow, const std::vector<NodeId>& order)
      : flow_(flow), order_(order), sets_(flow.nodes.size()) {}

  // Takes the nodes that are arithmetic according to `origins`, without those in `skipped` regions.
  std::vector<std::vector<NodeId>> Run(const Origins& origins, const std::set<RegionId>& skipped) {
    // The first node of each origin that reads or makes a value.
    std::map<std::pair<Condition, Source>, NodeId> readers;
    std::vector<NodeId> members;
    for (NodeId id : order_) {
      if (!origins.IsArithmetic(id) || skipped.count(flow_.nodes[id].region) > 0) continue;
      members.push_back(id);
      Join(id, readers.try_emplace({origins.Of(id), {id, 0}}, id).first->second);
      for (const Input& input : flow_.nodes[id].inputs) {
        if (input.is_constant()) continue;
        Join(id, readers.try_emplace({origins.Of(id), input.source}, id).first->second);
      }
    }
    std::map<size_t, std::vector<NodeId>> groups;
    for (NodeId id : members) groups[sets_.Root(id)].push_back(id);
    std::vector<std::vector<NodeId>> result;
    for (const auto& [root, group] : groups) Split(group, &result);
    return result;
  }

 private:
  // Makes pieces of a group. One operator alone is no piece, because it runs as fast by itself.
  static void Split(const std::vector<NodeId>& group, std::vector<std::vector<NodeId>>* result) {
    for (size_t begin = 0; begin + 1 < group.size(); begin += kMostMembers) {
      const size_t end = std::min(begin + kMostMembers, group.size());
      result->emplace_back(group.begin() + static_cast<std::ptrdiff_t>(begin),
                           group.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }

  void Join(NodeId a, NodeId b) { sets_.Join(a, b); }

  const FlowGraph& flow_;
  const std::vector<NodeId>& order_;
  // The groups, of nodes by their ids.
  DisjointSets sets_;
};

// --- What a piece reads and makes -------------------------------------------------------------------

// Says which values each group reads of other nodes, and which of its own other nodes read.
class PieceBoundaries {
 public:
  PieceBoundaries(const FlowGraph& flow, const ElementReads& reads, const std::vector<std::vector<NodeId>>& groups)
      : flow_(flow), reads_(reads), groups_(groups) {
    group_of_.assign(flow.nodes.size(), groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      for (NodeId id : groups[i]) group_of_[id] = i;
    }
    FindOutputs();
  }

  PieceOfBody Of(size_t group) const {
    PieceOfBody piece;
    piece.members = groups_[group];
    std::map<Source, size_t> positions;
    const auto read = [&](const Input& input, bool is_array) {
      if (input.is_constant() || group_of_[input.source.node] == group) return;
      if (!positions.try_emplace(input.source, piece.inputs.size()).second) return;
      piece.inputs.push_back(input.source);
      piece.is_array.push_back(is_array);
    };
    for (NodeId id : piece.members) {
      const bool reads_element = reads_.reads.count(id) > 0;
      for (size_t i = 0; i < flow_.nodes[id].inputs.size(); ++i) {
        read(flow_.nodes[id].inputs[i], reads_element && i == 0);
      }
      if (outputs_.count({id, 0}) > 0) piece.outputs.push_back({id, 0});
    }
    return piece;
  }

 private:
  void FindOutputs() {
    for (NodeId reader : flow_.nodes.ids()) {
      if (flow_.nodes[reader].is_removed) continue;
      ForEachSource(flow_.nodes[reader], [&](const Source& source) { Read(source, group_of_[reader]); });
    }
    for (const FlowLoop& loop : flow_.loops) {
      for (const std::vector<Source>& controls : loop.next_controls) {
        for (const Source& source : controls) Read(source, groups_.size());
      }
    }
  }

  void Read(const Source& source, size_t by) {
    const size_t group = group_of_[source.node];
    if (group < groups_.size() && group != by && source.port != Source::kWholeNode) outputs_.insert(source);
  }

  const FlowGraph& flow_;
  const ElementReads& reads_;
  const std::vector<std::vector<NodeId>>& groups_;
  IdVector<NodeId, size_t> group_of_;
  std::set<Source> outputs_;
};

// --- Code -------------------------------------------------------------------------------------------

// The name of a piece, such as "Node/add (+ 4)", is that of its last member, to which the others mostly lead.
std::string NameOf(const FlowGraph& flow, const PieceOfBody& piece) {
  return absl::StrCat(flow.kernels[flow.nodes[piece.members.back()].index].name, " (+ ", piece.members.size() - 1, ")");
}

CodeFunction SignatureOf(const FlowGraph& flow, const PieceOfBody& piece) {
  CodeFunction signature;
  signature.name = signature.graph_name = NameOf(flow, piece);
  for (size_t i = 0; i < piece.inputs.size(); ++i) {
    signature.arguments.push_back({tensorflow::DT_INVALID, piece.is_array[i]});
  }
  for (const Source& output : piece.outputs) {
    signature.results.push_back({flow.nodes[output.node].node->output_type(0), /*is_array=*/false});
  }
  return signature;
}

// Returns false if something of the piece does not fit into an instruction.
bool CompilePiece(CompileContext* context, PieceOfBody* piece) {
  FunctionSteps steps;
  StepWriter writer(context, &steps);
  NodeEmitter emitter(context, &writer);
  for (const Source& input : piece->inputs) {
    steps.arguments.push_back(writer.NewVirtual());
    writer.Define(input.node, input.port, {steps.arguments.back()});
  }
  for (NodeId id : piece->members) emitter.Emit(id);
  std::vector<VirtualId> results;
  for (const Source& output : piece->outputs) {
    Input input;
    input.source = output;
    results.push_back(writer.Register(writer.ValueOf(input)));
  }
  if (writer.misses_values()) return false;
  Step& step = writer.Add(results.size() == 1 ? Opcode::kReturn : Opcode::kReturnAll);
  step.operands = std::move(results);
  SimplifySteps(&steps);
  FuseReturns(&steps);
  CodeBuilder& builder = *context->builder;
  piece->function = builder.Declare(SignatureOf(context->flow, *piece));
  builder.Begin(piece->function);
  Encode(steps, &builder);
  return builder.End().ok();
}

// Whether there may be a piece at all. If not, nothing has to be computed.
bool HasScalars(const FlowGraph& flow, const std::set<RegionId>& skipped) {
  size_t count = 0;
  for (const FlowNode& node : flow.nodes) {
    if (node.kind == OpKind::kScalar && !node.is_removed && skipped.count(node.region) == 0) ++count;
  }
  return count > 1;
}

}  // namespace

PiecesOfBodies FindPieces(const FlowGraph& flow, const ElementReads& reads, const std::set<RegionId>& compiled) {
  PiecesOfBodies found;
  std::set<RegionId> skipped = {RegionId(GraphRegions::kRoot)};
  for (RegionId region : flow.regions.regions().ids()) {
    if (compiled.count(FunctionOf(flow, region)) > 0) skipped.insert(region);
  }
  std::vector<NodeId> order;
  if (flow.crosses_devices || !HasScalars(flow, skipped) || !SortNodes(flow, &order).ok()) return found;
  const Arithmetic arithmetic(flow, reads);
  IdVector<NodeId, bool> is_arithmetic;
  is_arithmetic.assign(flow.nodes.size(), false);
  for (NodeId id : order) is_arithmetic[id] = arithmetic.Includes(id);
  const Origins origins(flow, order, std::move(is_arithmetic));
  const std::vector<std::vector<NodeId>> groups = Grouper(flow, order).Run(origins, skipped);
  const PieceBoundaries boundaries(flow, reads, groups);
  auto code = std::make_unique<Code>();
  CodeBuilder builder(code.get());
  CompileContext context{flow, reads, /*blocks=*/nullptr, &builder, code.get(), {}, {}, {}};
  for (size_t i = 0; i < groups.size(); ++i) {
    PieceOfBody piece = boundaries.Of(i);
    if (CompilePiece(&context, &piece)) found.pieces.push_back(std::move(piece));
  }
  if (!found.pieces.empty()) found.code = std::move(code);
  return found;
}

}  // namespace tensorflow_recursion
