// Finds which values of a graph are surely single numbers, and how many dimensions tensors have.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_KNOWN_RANKS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_KNOWN_RANKS_H_

#include <cstdint>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/element_reads.h"
#include "cc/bytecode/hand_ons.h"

namespace tensorflow_recursion {

// Shapes are mostly unknown when a graph is prepared, and an operator of kind kScalar may compute with tensors all the
// same. But a predicate is a number, and then so is what it was computed of: in `cond(n < size, ...)`, n and size are.
// A value that is handed on (an argument, a result, a variable of a loop) has the same rank before and after, and an
// argument may state its shape. This finds what the program means, but proves nothing: when a wrong graph runs, a value
// may have another rank.
class KnownRanks {
 public:
  // `reads` is what FindElementReads() said before MakeElementOperators() changed the graph.
  KnownRanks(const FlowGraph& flow, const ElementReads& reads);

  bool IsNumber(const Source& source) const { return RankOf(source) == 0; }
  bool IsNumber(const Input& input) const { return RankOf(input) == 0; }
  // Negative if it is not known.
  int RankOf(const Source& source) const;
  int RankOf(const Input& input) const;

 private:
  static constexpr int8_t kUnknown = -1;
  // The value would have to have two ranks.
  static constexpr int8_t kConflict = -2;

  void Join(const Input& input, const Source& target);
  void Set(const Source& source, int rank);
  void Set(const Input& input, int rank);

  void JoinValues();
  void SetByKind(NodeId id);
  void SetStated(NodeId id);
  void SetIndices(NodeId id);
  void SetByKernel(NodeId id);
  void Relate(NodeId id);
  void RelateRead(NodeId id, const ElementRead& read);

  const FlowGraph& flow_;
  const ElementReads& reads_;
  // Values are in one class with those that they are handed on as, so that they have the same rank. Each root has the
  // rank of its class.
  ValueClasses classes_;
  std::vector<int8_t> ranks_;
  bool changed_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_KNOWN_RANKS_H_
