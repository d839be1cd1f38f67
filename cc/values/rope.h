// Ropes: tensors whose numbers do not lie side by side yet, such as the parts of a concatenation, or a view of some
// rows of another tensor.
//
// A recursion that collects rows hands them through every level: concat([rows of the left child, rows of the right
// child, own row]). If each level copied them, n rows would take time in proportion to n times the depth. As ropes they
// take time in proportion to n, because the first who reads the numbers copies them, once (Boehm, Atkinson and Plass,
// "Ropes: an alternative to strings", 1995).
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_ROPE_H_
#define TENSORFLOW_RECURSION_CC_VALUES_ROPE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow_recursion {

// A sequence of parts, each a tensor or a rope; the concatenation and other shape kernels of cc/native make them. Its
// numbers never change. Any number of threads may read it, and share it by counted references. Its dtype is one of
// plain numbers, which may be copied as bytes.
class Rope {
 public:
  // How many bytes a rope may have that joins parts: a quarter of the machine's memory. To join parts takes no memory,
  // so a recursion that doubles a tensor would soon have one that nobody can read. What is larger is left to
  // TensorFlow's kernel, which reports that there is no memory for it.
  static int64_t MostBytes();

  // A new rope with one reference, which is the caller's. Takes over the parts. Together they have as many numbers as
  // `shape`, in the order in which the whole has them; their own shapes do not matter.
  static Rope* New(Value* parts, uint32_t count, tensorflow::DataType dtype, const tensorflow::TensorShape& shape);

  Rope(const Rope&) = delete;
  Rope& operator=(const Rope&) = delete;

  tensorflow::DataType dtype() const { return dtype_; }
  const tensorflow::TensorShape& shape() const { return shape_; }

  // The whole in one piece of aligned memory, which the first who asks makes. The rope lets go of its parts then: if
  // ropes at each level were read, the numbers would otherwise be held once more at each. `threads` share a large copy.
  tensorflow::Tensor Flat(tensorflow::thread::ThreadPool* threads = nullptr);

  // A tensor of the same numbers whose memory may be part of another tensor's, and not aligned: if the rope has a
  // single part, that part, in its own shape; else Flat().
  tensorflow::Tensor View();

  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  // Frees the rope when this was the last reference, and with it the ropes that only it refers to. That takes a list of
  // work instead of recursive calls, because a rope may be as deep as the recursion was.
  void Unref();

 private:
  Rope(uint32_t count, tensorflow::DataType dtype, const tensorflow::TensorShape& shape)
      : count_(count), dtype_(dtype), shape_(shape) {}
  ~Rope() = default;

  static size_t BytesOf(uint32_t count) { return sizeof(Rope) + count * sizeof(Value); }
  static void Delete(Rope* rope);
  Value* parts() { return reinterpret_cast<Value*>(this + 1); }
  const Value* parts() const { return reinterpret_cast<const Value*>(this + 1); }
  using Parts = std::vector<Value>;
  void AwaitJoin(std::unique_lock<std::mutex>* lock) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeParts(Parts* held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Open(Parts* held);
  // Takes over the parts in `held`, and copies the last of them first.
  tensorflow::Tensor Join(Parts held, tensorflow::thread::ThreadPool* threads) const;
  void MoveParts(std::vector<Rope*>* ropes);

  std::mutex mutex_;  // for the parts and `flat_`
  std::atomic<uint32_t> references_{1};
  uint32_t count_;  // of parts; 0 once they are taken to make the rope flat
  const tensorflow::DataType dtype_;
  const uint32_t capacity_ = count_;
  const tensorflow::TensorShape shape_;
  tensorflow::Tensor flat_ ABSL_GUARDED_BY(mutex_);
  bool is_flat_ ABSL_GUARDED_BY(mutex_) = false;
  // A thread has taken the parts, and is about to make `flat_` of them.
  bool is_being_joined_ ABSL_GUARDED_BY(mutex_) = false;
};

static_assert(sizeof(Rope) % alignof(Value) == 0, "parts follow the header");

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_ROPE_H_
