// SPDX-License-Identifier: Apache-2.0
#include "cc/values/rope.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>

#include "absl/strings/string_view.h"
#include "cc/base/available_memory.h"
#include "cc/values/block_pool.h"
#include "cc/values/side_by_side.h"
#include "cc/values/tensor_memory.h"

namespace tensorflow_recursion {

using tensorflow::Tensor;
using tensorflow::thread::ThreadPool;

namespace {

constexpr int64_t kPartOfMemory = 4;
constexpr int64_t kMemoryIfUnknown = int64_t{16} << 30;

// Tells that some rope has become flat. Threads seldom wait for that, so all ropes share it.
std::condition_variable_any& RopeJoined() {
  static auto* const condition = new std::condition_variable_any;
  return *condition;
}

}  // namespace

int64_t Rope::MostBytes() {
  static const int64_t most = [] {
    const int64_t total = ReadMemoryLevel().total;
    return (total == kUnknownMemory ? kMemoryIfUnknown : total) / kPartOfMemory;
  }();
  return most;
}

Rope* Rope::New(Value* parts, uint32_t count, tensorflow::DataType dtype, const tensorflow::TensorShape& shape) {
  auto* const rope = new (TakeBlock(BytesOf(count))) Rope(count, dtype, shape);
  for (uint32_t i = 0; i < count; ++i) {  // borrowed ones are copied: the rope may outlive who lends them
    rope->parts()[i] = parts[i].owns() ? parts[i].Take() : Value::Own(NewTensor(*parts[i].tensor_or_null()));
  }
  return rope;
}

Tensor Rope::Flat(ThreadPool* threads) {
  Parts parts;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    AwaitJoin(&lock);
    if (is_flat_) return flat_;
    is_being_joined_ = true;
    TakeParts(&parts);
  }
  const Tensor joined = Join(std::move(parts), threads);  // without the lock: no thread holds those of two ropes
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    flat_ = joined;
    is_flat_ = true;
    is_being_joined_ = false;
  }
  RopeJoined().notify_all();
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

// Waits until no thread is joining the parts. A thread that joins some waits at most for ropes among them.
void Rope::AwaitJoin(std::unique_lock<std::mutex>* lock) const {
  if (is_being_joined_) RopeJoined().wait(*lock, [this] { return !is_being_joined_; });
}

// Appends the parts in reverse order, and has none afterwards.
void Rope::TakeParts(Parts* held) {
  for (; count_ > 0; --count_) held->push_back(parts()[count_ - 1]);
}

// Appends what the rope consists of in reverse order: its parts, with a reference on each if others may read the rope.
// The caller has a reference, and reads the rope no more.
void Rope::Open(Parts* held) {
  std::unique_lock<std::mutex> lock(mutex_);
  AwaitJoin(&lock);
  if (is_flat_) return held->push_back(Value::Own(NewTensor(flat_)));
  if (references_.load(std::memory_order_acquire) == 1) return TakeParts(held);
  for (uint32_t i = count_; i > 0; --i) held->push_back(parts()[i - 1].Copy());
}

Tensor Rope::Join(Parts held, ThreadPool* threads) const {
  Tensor result;
  const bool is_tensor = held.size() == 1 && held[0].kind == Value::Kind::kTensor;
  if (is_tensor && held[0].tensor->IsAligned() && result.CopyFrom(*held[0].tensor, shape_)) {
    held[0].Release();
    return result;
  }
  Tensor* const joined = NewPooledTensor(dtype_, shape_);
  result = *joined;
  DeleteTensor(joined);
  Parts tensors;
  while (!held.empty()) {
    Value part = held.back();
    held.pop_back();
    if (part.kind == Value::Kind::kTensor) {
      tensors.push_back(part);
      continue;
    }
    part.rope->Open(&held);
    part.Release();
  }
  std::vector<absl::string_view> pieces;
  pieces.reserve(tensors.size());
  for (const Value& part : tensors) pieces.push_back(part.tensor->tensor_data());
  CopySideBySide(pieces, result.data(), threads);
  for (Value& part : tensors) part.Release();
  return result;
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
