// SPDX-License-Identifier: Apache-2.0
#include "cc/values/rope.h"

#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "cc/values/block_pool.h"
#include "cc/values/tensor_memory.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;

unsigned char* Append(const Tensor& from, unsigned char* to) {
  const size_t bytes = from.NumElements() * tensorflow::DataTypeSize(from.dtype());
  if (bytes > 0) std::memcpy(to, from.data(), bytes);
  return to + bytes;
}

}  // namespace

Rope* Rope::New(Value* parts, uint32_t count, tensorflow::DataType dtype, const tensorflow::TensorShape& shape) {
  auto* const rope = new (TakeBlock(BytesOf(count))) Rope(count, dtype, shape);
  for (uint32_t i = 0; i < count; ++i) {  // borrowed ones are copied: the rope may outlive who lends them
    rope->parts()[i] = parts[i].owns() ? parts[i].Take() : Value::Own(NewTensor(*parts[i].tensor_or_null()));
  }
  return rope;
}

Tensor Rope::Flat() {
  Parts parts;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_flat_) return flat_;
    Hold(&parts);
  }
  const Tensor joined = Join(std::move(parts));  // without the lock, so that no thread holds the locks of two ropes
  Parts gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_flat_) return flat_;  // another thread was faster
    flat_ = joined;
    is_flat_ = true;
    gone.assign(this->parts(), this->parts() + count_);
    count_ = 0;
  }
  for (Value& part : gone) part.Release();
  return joined;
}

Tensor Rope::View() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool is_view = count_ == 1 && parts()[0].kind == Value::Kind::kTensor;
    if (is_view) return *parts()[0].tensor;
  }
  return Flat();
}

// Appends the parts in reverse order, with a reference on each, because another thread may take them from the rope.
void Rope::Hold(Parts* held) const {
  for (uint32_t i = count_; i > 0; --i) held->push_back(parts()[i - 1].Copy());
}

Tensor Rope::Join(Parts held) const {
  Tensor result;
  const bool is_tensor = held.size() == 1 && held[0].kind == Value::Kind::kTensor;
  if (is_tensor && held[0].tensor->IsAligned() && result.CopyFrom(*held[0].tensor, shape_)) {
    held[0].Release();
    return result;
  }
  Tensor* const joined = NewPooledTensor(dtype_, shape_);
  result = *joined;
  DeleteTensor(joined);
  CopyParts(std::move(held), static_cast<unsigned char*>(result.data()));
  return result;
}

void Rope::CopyParts(Parts held, unsigned char* to) {
  while (!held.empty()) {
    Value part = held.back();
    held.pop_back();
    if (part.kind == Value::Kind::kTensor) {
      to = Append(*part.tensor, to);
    } else {
      Rope& rope = *part.rope;
      const std::lock_guard<std::mutex> lock(rope.mutex_);
      if (rope.is_flat_) to = Append(rope.flat_, to);
      rope.Hold(&held);
    }
    part.Release();
  }
}

void Rope::MoveParts(std::vector<Rope*>* ropes) {
  for (uint32_t i = 0; i < count_; ++i) {
    Value& part = parts()[i];
    if (part.kind == Value::Kind::kRope) {
      ropes->push_back(part.rope);
    } else {
      part.Release();
    }
  }
  count_ = 0;
}

void Rope::Unref() {
  std::vector<Rope*> work;
  for (Rope* rope = this;;) {
    if (rope->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      rope->MoveParts(&work);
      Delete(rope);
    }
    if (work.empty()) return;
    rope = work.back();
    work.pop_back();
  }
}

void Rope::Delete(Rope* rope) {
  const size_t bytes = BytesOf(rope->capacity_);
  rope->~Rope();
  GiveBlock(rope, bytes);
}

}  // namespace tensorflow_recursion
