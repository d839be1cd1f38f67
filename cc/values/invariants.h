// What all frames of a recursion read and none of them gets passed.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_

#include <cstddef>
#include <cstdint>

#include "cc/values/value.h"

namespace tensorflow_recursion {

// The values of the arguments that never change in a recursion, kept once for each call that enters it: that call's
// frame owns them, and those below end before it does. Immutable, so frames of any worker may read them.
class Invariants {
 public:
  // Takes over the values, all of which must be there.
  static Invariants* New(const Value* values, uint32_t size);
  static void Delete(Invariants* invariants);

  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  uint32_t size() const { return size_; }
  // The invariant as a reader in a frame of the recursion gets it, which borrows a tensor.
  Value Get(uint32_t index) const { return values()[index].Lend(); }

 private:
  explicit Invariants(uint32_t size) : size_(size) {}
  ~Invariants() = default;

  static size_t BytesOf(uint32_t size) { return sizeof(Invariants) + size * sizeof(Value); }
  Value* values() { return reinterpret_cast<Value*>(this + 1); }
  const Value* values() const { return reinterpret_cast<const Value*>(this + 1); }

  alignas(alignof(Value)) const uint32_t size_;
};

static_assert(sizeof(Invariants) % alignof(Value) == 0, "values follow the header");

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_
