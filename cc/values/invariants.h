// The invariants of a recursion: values that its frames read without being passed them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_INVARIANTS_H_

#include <cstddef>
#include <cstdint>

#include "cc/values/value.h"

namespace tensorflow_recursion {

// The values of the arguments that never change in a recursion, such as `w` in f(n, w) = f(n - 1, w) * w. They, and the
// values of variables that are read when the recursion is entered, are kept once for each call that enters it: the
// frame of that call owns them, and the frames below it end before it does. They are immutable, so frames of any worker
// may read them.
class Invariants {
 public:
  // Takes over the values, none of which may be empty.
  static Invariants* New(const Value* values, uint32_t size);
  static void Delete(Invariants* invariants);

  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  uint32_t size() const { return size_; }
  // The invariant for a reader in a frame of the recursion. A tensor is borrowed, anything else is copied.
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
