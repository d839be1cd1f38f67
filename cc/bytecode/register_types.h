// Tells numbers, arrays and records apart, because it must be known beforehand what a register of compiled code holds.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_TYPES_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/element_reads.h"
#include "cc/bytecode/hand_ons.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// A graph mostly does not say whether a value is a number or a tensor, because shapes are unknown. But its readers say
// it: a value that arithmetic reads is a number, one whose elements are read is an array, and one whose values are
// recalled is a record. A value that is only handed on (an argument that is passed down, a loop's variable) is what it
// is where it is used, so such values are joined into classes across calls. If a value would have to be two of these,
// its functions can't be compiled.
class RegisterTypes {
 public:
  RegisterTypes(const FlowGraph& flow, const ElementReads& reads);

  // Looks only at nodes of `regions`, whose functions must call only one another.
  void Find(const std::set<RegionId>& regions);

  bool IsArray(const Source& source) const;
  // The kResult node of output `index` of the function whose body is `region`; kNone if there is none.
  NodeId ResultOf(RegionId region, int index) const { return hand_ons_.ResultOf(region, index); }
  // The regions in which some value would have to be two of these.
  const std::set<RegionId>& conflicts() const { return conflicts_; }

 private:
  // A bit for each use. If a value would have to be several things, several bits are set.
  enum class Use : uint8_t { kNone = 0, kNumber = 1, kArray = 2, kRecord = 4, kShape = 8 };

  void Mark(const Source& source, Use use) { MarkClass(classes_.Root(source), use); }
  void Mark(const Input& input, Use use);
  void MarkClass(size_t root, Use use);
  void Join(const Input& input, const Source& target);
  void Visit(NodeId id);
  void VisitRecord(NodeId id);
  void VisitKernel(NodeId id);
  Use UseOfConstant(ConstantId constant) const;
  // The use that a value of this type in a record makes of its register.
  static Use UseOfKept(tensorflow::DataType dtype);
  bool IsConflict(NodeId id, int port) const;
  void MarkUnread(NodeId id);
  void FindConflicts(const std::set<RegionId>& regions);

  const FlowGraph& flow_;
  const ElementReads& reads_;
  const HandOns hand_ons_;
  ValueClasses classes_;
  // Each root of `classes_` has the use of its class.
  std::vector<Use> uses_;
  std::set<RegionId> conflicts_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_TYPES_H_
