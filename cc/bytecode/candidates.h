// Finds the functions that can be compiled.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_CANDIDATES_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_CANDIDATES_H_

#include <map>
#include <set>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/blocks.h"
#include "cc/bytecode/element_reads.h"
#include "cc/bytecode/register_types.h"

namespace tensorflow_recursion {

// The function whose body the region is, or is part of; kNone in the main graph.
RegionId FunctionOf(const FlowGraph& flow, RegionId region);

// A function is compiled if its body, loops included, is made of arithmetic on numbers, reads of single elements,
// constants, branches, loops, records of these for a gradient, and calls of functions that are compiled, too. None of
// these has effects, so nobody can tell in which order they run, and every result lives if the call does.
class Candidates {
 public:
  // `order` is what SortNodes() says.
  Candidates(const FlowGraph& flow, const std::vector<NodeId>& order, const ElementReads& reads, Blocks* blocks,
             RegisterTypes* types)
      : flow_(flow), order_(order), reads_(reads), blocks_(*blocks), types_(*types) {}

  // Returns the regions of the bodies of these functions. Afterwards `blocks` and `types` know their nodes.
  std::set<RegionId> Find();
  // Returns those of `functions` that call no others, nor any that do.
  std::set<RegionId> Restrict(std::set<RegionId> functions);
  // The functions that can't be compiled because of what is in them, each with a node that is to blame.
  const std::map<RegionId, const tensorflow::Node*>& misfits() const { return misfits_; }

 private:
  bool IsFit(NodeId id);
  bool IsNumber(const Input& constant) const;
  bool HasFitConstants(NodeId id) const;
  bool IsFitLoop(const FlowNode& node) const;
  bool IsFitSite(const FlowNode& node) const;
  bool IsFitRecord(const FlowNode& node) const;
  bool IsWhereItShould(NodeId id);
  void DropCallersOfOthers();
  std::set<RegionId> WithLoops() const;

  const FlowGraph& flow_;
  const std::vector<NodeId>& order_;
  const ElementReads& reads_;
  Blocks& blocks_;
  RegisterTypes& types_;
  std::set<RegionId> functions_;
  std::map<RegionId, const tensorflow::Node*> misfits_;
  // The merges whose output 1 is read, which tells the input that they have let through.
  std::set<NodeId> read_positions_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_CANDIDATES_H_
