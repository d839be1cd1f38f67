// SPDX-License-Identifier: Apache-2.0
#include "cc/values/invariants.h"

#include <new>

#include "cc/values/block_pool.h"

namespace tensorflow_recursion {

Invariants* Invariants::New(const Value* values, uint32_t size) {
  auto* const result = new (TakeBlock(BytesOf(size))) Invariants(size);
  for (uint32_t i = 0; i < size; ++i) {
    result->values()[i] = values[i];
    result->values()[i].Flatten();  // frames borrow tensors, not ropes
  }
  return result;
}

void Invariants::Delete(Invariants* invariants) {
  const size_t bytes = BytesOf(invariants->size());
  for (uint32_t i = 0; i < invariants->size(); ++i) invariants->values()[i].Release();
  invariants->~Invariants();
  GiveBlock(invariants, bytes);
}

}  // namespace tensorflow_recursion
