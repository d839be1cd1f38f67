// The invariants of a recursion: values that its frames read without being passed them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cc/values/value.h"

namespace tensorflow_recursion {

// The values of the arguments that never change in a recursion, such as `w` in f(n, w) = f(n - 1, w) * w. They, and the
// values of variables that are read when the recursion is entered, are kept once for each call that enters it: the
// frame of that call owns them, and the frames below it end before it does. They are immutable, so frames of any worker
// may read them.
//
// Beside them is room for results of operators that compute the same in every frame, of `transpose(w)` for example. The
// first frame that has computed them keeps them here.
class Invariants {
 public:
  // Takes over the values, none of which may be empty. There is room for `num_results` results.
  static Invariants* New(const Value* values, uint32_t size, uint32_t num_results = 0);
  static void Delete(Invariants* invariants);

  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  uint32_t size() const { return size_; }
  // The invariant for a reader in a frame of the recursion. A tensor is borrowed, anything else is copied.
  Value Get(uint32_t index) const { return values()[index].Lend(); }

  // Whether the results are kept of the operator whose first result has number `first`.
  bool HasResults(uint32_t first) const { return states()[first].load(std::memory_order_acquire) == State::kKept; }
  // A copy of one of them, which may outlive the recursion.
  Value GetResult(uint32_t number) const { return values()[size_ + number].Copy(); }
  // Keeps copies of all results of an operator, unless another frame has been faster or a result is missing.
  void KeepResults(uint32_t first, const Value* results, uint32_t count);

 private:
  // Whether the results of an operator are kept. The state is that of its first result.
  enum class State : uint8_t { kMissing, kBeingWritten, kKept };

  Invariants(uint32_t size, uint32_t num_results) : size_(size), num_results_(num_results) {}
  ~Invariants() = default;

  // The values follow this header, then the results, then a byte for each of those: that of an operator's first result
  // is its state.
  static size_t BytesOf(uint32_t size, uint32_t num_results) {
    return sizeof(Invariants) + (size_t{size} + num_results) * sizeof(Value) + num_results;
  }
  size_t num_values() const { return size_t{size_} + num_results_; }
  Value* values() { return reinterpret_cast<Value*>(this + 1); }
  const Value* values() const { return reinterpret_cast<const Value*>(this + 1); }
  std::atomic<State>* states() { return reinterpret_cast<std::atomic<State>*>(values() + num_values()); }
  const std::atomic<State>* states() const {
    return reinterpret_cast<const std::atomic<State>*>(values() + num_values());
  }

  alignas(alignof(Value)) const uint32_t size_;
  const uint32_t num_results_;
};

static_assert(sizeof(std::atomic<uint8_t>) == 1, "a state for each result is a byte");

static_assert(sizeof(Invariants) % alignof(Value) == 0, "values follow the header");

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_
