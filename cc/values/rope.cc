// SPDX-License-Identifier: Apache-2.0
#include "cc/values/rope.h"

#include <cstring>
#include <new>
#include <vector>

#include "cc/values/block_pool.h"
#include "cc/values/tensor_memory.h"

namespace tensorflow_recursion {

using tensorflow::Tensor;

Rope* Rope::New(Value* parts, uint32_t count, tensorflow::DataType dtype, const tensorflow::TensorShape& shape) {
  auto* const rope = new (TakeBlock(BytesOf(count))) Rope(count, dtype, shape);
  for (uint32_t i = 0; i < count; ++i) {  // which may outlive the program and the frames that lend
    rope->parts()[i] = parts[i].owns() ? parts[i].Take() : Value::Own(NewTensor(*parts[i].tensor_or_null()));
  }
  return rope;
}

const Tensor* Rope::only_tensor() const { return count_ == 1 ? parts()[0].tensor_or_null() : nullptr; }

const Tensor& Rope::Flat() {
  const Tensor* flat = flat_.load(std::memory_order_acquire);
  if (flat != nullptr) return *flat;
  Tensor* const joined = Join();
  if (flat_.compare_exchange_strong(flat, joined, std::memory_order_acq_rel)) return *joined;
  DeleteTensor(joined);  // another thread was faster
  return *flat;
}

Tensor* Rope::Join() const {
  const Tensor* const only = only_tensor();
  if (only != nullptr && only->IsAligned()) {
    Tensor* const same = NewTensor();
    if (same->CopyFrom(*only, shape_)) return same;
    DeleteTensor(same);
  }
  Tensor* const joined = NewPooledTensor(dtype_, shape_);
  CopyTo(static_cast<unsigned char*>(joined->data()));
  return joined;
}

void Rope::CopyTo(unsigned char* to) const {
  std::vector<const Value*> work;  // what is to be copied, the next one last
  auto push_parts = [&work](const Rope& rope) {
    for (uint32_t i = rope.count_; i > 0; --i) work.push_back(rope.parts() + i - 1);
  };
  push_parts(*this);
  while (!work.empty()) {
    const Value& part = *work.back();
    work.pop_back();
    const bool is_rope = part.kind == Value::Kind::kRope;
    const Tensor* const from = is_rope ? part.rope->flat_.load(std::memory_order_acquire) : part.tensor_or_null();
    if (from == nullptr) {
      push_parts(*part.rope);
      continue;
    }
    const size_t bytes = from->NumElements() * tensorflow::DataTypeSize(dtype_);
    if (bytes > 0) std::memcpy(to, from->data(), bytes);
    to += bytes;
  }
}

void Rope::Unref() {
  std::vector<Rope*> work;
  for (Rope* rope = this;;) {
    if (rope->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      for (uint32_t i = 0; i < rope->count_; ++i) {
        Value& part = rope->parts()[i];
        if (part.kind == Value::Kind::kRope) {
          work.push_back(part.rope);
        } else {
          part.Release();
        }
      }
      Delete(rope);
    }
    if (work.empty()) return;
    rope = work.back();
    work.pop_back();
  }
}

void Rope::Delete(Rope* rope) {
  const size_t bytes = BytesOf(rope->count_);
  const Tensor* const flat = rope->flat_.load(std::memory_order_acquire);
  if (flat != nullptr) DeleteTensor(const_cast<Tensor*>(flat));
  rope->~Rope();
  GiveBlock(rope, bytes);
}

}  // namespace tensorflow_recursion
