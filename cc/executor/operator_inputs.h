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

// Puts the inputs side by side, which come from slots, from the program's tables, or have just arrived. Not
// thread-safe: it is the worker's own.
class OperatorInputs {
 public:
  explicit OperatorInputs(size_t max_inputs) : gathered_(max_inputs, Value::Empty()) {}

  // Returns the inputs of `op` in `frame`, which the caller has to release before it calls this again. They have to be
  // read before anything is delivered. `arrival` is the value that was the last to come, if it lies in no slot.
  Value* Of(Frame* frame, const Op& op, Value* arrival) {
    switch (op.inputs) {
      case InputsIn::kSlots:
        return frame->slots_of(op);
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
  // The value that an entry of a table stands for: a constant, or an invariant of the frame's recursion.
  static Value Kept(const Frame& frame, const Value& entry) {
    return IsInvariantEntry(entry) ? frame.invariants().Get(entry.position) : entry;
  }

  Value* Gather(Frame* frame, const Op& op) {
    const Value* table = frame->region->TableOf(op);
    for (uint32_t i = 0; i < op.num_inputs; ++i) {
      gathered_[i] = table[i].is_empty() ? frame->values()[table[i].position].Take() : Kept(*frame, table[i]);
    }
    return gathered_.data();
  }

  Value* GatherWith(const Frame& frame, const Op& op, const Value& arrival) {
    const Value* table = frame.region->TableOf(op);
    Value* inputs = gathered_.data();
    for (uint32_t i = 0; i < op.num_inputs; ++i) inputs[i] = Kept(frame, table[i]);
    if (op.arriving_input < op.num_inputs) arrival.CopyTo(&inputs[op.arriving_input]);
    return inputs;
  }

  // The inputs of the operator that fires, if they did not lie side by side.
  std::vector<Value> gathered_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_OPERATOR_INPUTS_H_
