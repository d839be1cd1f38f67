// SPDX-License-Identifier: Apache-2.0
#include "cc/values/rope.h"

#include <cstring>
#include <deque>
#include <mutex>
#include <new>

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
  for (uint32_t i = 0; i < count; ++i) {  // which may outlive the program and the frames that lend
    rope->parts()[i] = parts[i].owns() ? parts[i].Take() : Value::Own(NewTensor(*parts[i].tensor_or_null()));
  }
  return rope;
}

Tensor Rope::Flat() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_flat_) MakeFlat();
  return flat_;
}

Tensor Rope::View() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_view = !is_flat_ && count_ == 1 && parts()[0].kind == Value::Kind::kTensor;
  if (is_view) return *parts()[0].tensor;
  if (!is_flat_) MakeFlat();
  return flat_;
}

void Rope::MakeFlat() {
  const Value& first = parts()[0];
  const bool is_aligned = count_ == 1 && first.kind == Value::Kind::kTensor && first.tensor->IsAligned();
  if (!is_aligned || !flat_.CopyFrom(*first.tensor, shape_)) {
    Tensor* const joined = NewPooledTensor(dtype_, shape_);
    CopyTo(static_cast<unsigned char*>(joined->data()));
    flat_ = *joined;
    DeleteTensor(joined);
  }
  is_flat_ = true;
  std::vector<Rope*> ropes;
  MoveParts(&ropes);
  for (Rope* rope : ropes) rope->Unref();
}

// A part that others hold, too, may be made flat meanwhile, and lose its parts: those are held here. What only its
// parent holds can be reached by nobody else.
void Rope::CopyTo(unsigned char* to) {
  std::deque<Value> held;
  std::vector<const Value*> work;  // what is to be copied, the next one last
  for (uint32_t i = count_; i > 0; --i) work.push_back(parts() + i - 1);
  while (!work.empty()) {
    const Value& part = *work.back();
    work.pop_back();
    if (part.kind == Value::Kind::kTensor) {
      to = Append(*part.tensor, to);
      continue;
    }
    Rope& rope = *part.rope;
    const bool is_shared = !rope.IsUnshared();
    const std::lock_guard<std::mutex> lock(rope.mutex_);
    if (rope.is_flat_) to = Append(rope.flat_, to);
    for (uint32_t i = rope.count_; i > 0; --i) {
      const Value* inner = rope.parts() + i - 1;
      work.push_back(is_shared ? &held.emplace_back(inner->Copy()) : inner);
    }
  }
  for (Value& value : held) value.Release();
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
