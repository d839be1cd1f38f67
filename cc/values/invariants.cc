// SPDX-License-Identifier: Apache-2.0
#include "cc/values/invariants.h"

#include <algorithm>
#include <new>

#include "cc/values/block_pool.h"

namespace tensorflow_recursion {

Invariants* Invariants::New(const Value* values, uint32_t size, uint32_t num_results) {
  auto* const result = new (TakeBlock(BytesOf(size, num_results))) Invariants(size, num_results);
  for (uint32_t i = 0; i < size; ++i) {
    result->values()[i] = values[i];
    result->values()[i].Flatten();  // frames borrow tensors, not ropes
  }
  for (uint32_t i = 0; i < num_results; ++i) {
    result->values()[size + i] = Value::Empty();
    new (&result->states()[i]) std::atomic<State>(State::kMissing);
  }
  return result;
}

void Invariants::KeepResults(uint32_t first, const Value* results, uint32_t count) {
  State missing = State::kMissing;
  if (std::any_of(results, results + count, [](const Value& result) { return result.is_empty(); })) return;
  if (!states()[first].compare_exchange_strong(missing, State::kBeingWritten)) return;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_borrowed = results[i].kind == Value::Kind::kBorrowed;  // of an invariant, which a kernel handed on
    Value& kept = values()[size_ + first + i];
    kept = is_borrowed ? results[i].Escape() : results[i].Copy();
    kept.Flatten();
  }
  states()[first].store(State::kKept, std::memory_order_release);
}

void Invariants::Delete(Invariants* invariants) {
  const size_t bytes = BytesOf(invariants->size_, invariants->num_results_);
  for (size_t i = 0; i < invariants->num_values(); ++i) invariants->values()[i].Release();
  invariants->~Invariants();
  GiveBlock(invariants, bytes);
}

}  // namespace tensorflow_recursion
