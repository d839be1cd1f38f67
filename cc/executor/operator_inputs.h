// Finds the inputs of an operator that fires.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_OPERATOR_INPUTS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_OPERATOR_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/executor/frame.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Brings side by side what lies in slots, in the program's tables and in what has just arrived. Not thread-safe: it is
// the worker's own.
class OperatorInputs {
 public:
  explicit OperatorInputs(size_t max_inputs) : gathered_(max_inputs, Value::Empty()) {}

  // The inputs of `op` in `frame`, the caller's to release until the next call. `arrival` is the value that was the
  // last to come, if it lies in no slot. It has to be read before anything is delivered.
  Value* Of(Frame* frame, const Op& op, Value* arrival) {
    switch (op.inputs) {
      case InputsIn::kSlots:
        return frame->values() + op.slot;
      case InputsIn::kArrival:
        return arrival;
      case InputsIn::kTable:
        return Gather(frame, op);
      case InputsIn::kTableAndArrival:
        break;
    }
    return GatherWith(*frame, op, *arrival);
  }

 private:
  // What a table of inputs says without a slot: a constant, or an invariant of the frame's recursion.
  static Value Kept(const Frame& frame, const Value& entry) {
    return IsInvariantEntry(entry) ? frame.invariants().Get(entry.position) : entry;
  }

  Value* Gather(Frame* frame, const Op& op) {
    const Value* table = frame->region->inputs.data() + op.slot;
    for (uint32_t i = 0; i < op.num_inputs; ++i) {
      gathered_[i] = table[i].is_empty() ? frame->values()[table[i].position].Take() : Kept(*frame, table[i]);
    }
    return gathered_.data();
  }

  Value* GatherWith(const Frame& frame, const Op& op, const Value& arrival) {
    const Value* table = frame.region->inputs.data() + op.slot;
    Value* inputs = gathered_.data();
    for (uint32_t i = 0; i < op.num_inputs; ++i) inputs[i] = Kept(frame, table[i]);
    if (op.only < op.num_inputs) arrival.CopyTo(&inputs[op.only]);
    return inputs;
  }

  std::vector<Value> gathered_;  // of the operator that fires, if they do not lie side by side
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_OPERATOR_INPUTS_H_
