// SPDX-License-Identifier: Apache-2.0
#include "cc/program/fuse_pieces.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cc/bytecode/pieces.h"
#include "cc/program/layout.h"

namespace tensorflow_recursion {
namespace {

// Replaces pieces one by one, and in the end lets all other nodes read the new nodes.
class Fuser {
 public:
  Fuser(FlowGraph* flow, Program* program) : flow_(*flow), program_(*program) {}

  void Run(PiecesOfBodies found) {
    if (found.pieces.empty()) return;
    for (const PieceOfBody& piece : found.pieces) Fuse(piece, found.code->functions[piece.function].name);
    program_.piece_code = std::move(found.code);
    for (FlowNode& node : flow_.nodes) {
      for (Input& input : node.inputs) {
        if (!input.is_constant()) Redirect(&input.source);
      }
      for (Source& control : node.controls) Redirect(&control);
    }
    for (FlowLoop& loop : flow_.loops) {
      for (std::vector<Source>& controls : loop.next_controls) {
        for (Source& control : controls) Redirect(&control);
      }
    }
  }

 private:
  // Adds the node of a piece, and notes what those that read the members shall read instead.
  void Fuse(const PieceOfBody& from, const std::string& name) {
    const FlowNode& first = flow_.nodes[from.members[0]];
    FlowNode node(OpKind::kPiece, first.region, first.node);
    node.index = static_cast<uint32_t>(program_.pieces.size());
    node.num_ports = static_cast<int>(from.outputs.size());
    for (const Source& source : from.inputs) node.inputs.emplace_back().source = source;
    const auto fused = NodeId(flow_.nodes.size());
    Describe(from, name);
    for (NodeId member : from.members) {
      flow_.nodes[member].is_removed = true;
      redirected_[{member, Source::kWholeNode}] = {fused, Source::kWholeNode};
    }
    for (size_t i = 0; i < from.outputs.size(); ++i) redirected_[from.outputs[i]] = {fused, static_cast<int>(i)};
    flow_.nodes.Add(std::move(node));
  }

  void Describe(const PieceOfBody& from, const std::string& name) {
    Piece& piece = program_.pieces.emplace_back();
    piece.name = name;
    piece.function = from.function;
    piece.is_array = from.is_array;
    std::map<NodeId, uint32_t> members;
    std::map<Source, uint32_t> inputs;
    for (const Source& source : from.inputs) inputs.emplace(source, inputs.size());
    for (NodeId id : from.members) {
      const FlowNode& node = flow_.nodes[id];
      PieceMember& member = piece.members.emplace_back();
      member.scalar = node.scalar;
      member.kernel = node.index;
      member.reads_element = node.node->type_string() == "StridedSlice";
      for (const Input& input : node.inputs) member.operands.push_back(OperandOf(input, members, inputs));
      members.emplace(id, members.size());
    }
    for (const Source& output : from.outputs) piece.outputs.push_back(members.at(output.node));
  }

  PieceMember::Operand OperandOf(const Input& input, const std::map<NodeId, uint32_t>& members,
                                 const std::map<Source, uint32_t>& inputs) const {
    PieceMember::Operand operand;
    if (input.is_constant()) {
      operand.constant = ValueOfConstant(flow_.constants[input.constant]);
    } else if (const auto member = members.find(input.source.node); member != members.end()) {
      operand.member = member->second;
    } else {
      operand.input = inputs.at(input.source);
    }
    return operand;
  }

  void Redirect(Source* source) const {
    const auto position = redirected_.find(*source);
    if (position != redirected_.end()) *source = position->second;
  }

  FlowGraph& flow_;
  Program& program_;
  std::map<Source, Source> redirected_;
};

}  // namespace

void FusePieces(const ElementReads& reads, const std::set<RegionId>& compiled, FlowGraph* flow, Program* program) {
  Fuser(flow, program).Run(FindPieces(*flow, reads, compiled));
}

}  // namespace tensorflow_recursion
