// SPDX-License-Identifier: Apache-2.0
#include "cc/values/tensor_memory.h"

#include <cstddef>

#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorBuffer;

// The buffer of a pooled tensor. One block holds this object and, 64 bytes further, the numbers. The size of the
// numbers lies in between, outside of the object, because operator delete needs it after the object's life has ended.
class PooledBuffer final : public TensorBuffer {
 public:
  static PooledBuffer* New(size_t bytes) {
    auto* const block = static_cast<unsigned char*>(TakeBlock(kBlockAlignment + bytes));
    *SizeIn(block) = bytes;
    return new (block) PooledBuffer(block + kBlockAlignment);
  }
  static void operator delete(void* block) { GiveBlock(block, kBlockAlignment + *SizeIn(block)); }

  size_t size() const override { return *SizeIn(const_cast<PooledBuffer*>(this)); }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription* proto) const override {
    proto->set_requested_bytes(static_cast<int64_t>(size()));
    proto->set_allocator_name("tensorflow_recursion");
  }

 private:
  explicit PooledBuffer(void* numbers) : TensorBuffer(numbers) {}
  static void* operator new(size_t /*bytes*/, unsigned char* block) { return block; }
  static size_t* SizeIn(void* block) {
    return reinterpret_cast<size_t*>(static_cast<unsigned char*>(block) + kBlockAlignment - sizeof(size_t));
  }
};
static_assert(sizeof(PooledBuffer) <= kBlockAlignment - sizeof(size_t));

}  // namespace

Tensor PooledTensor(tensorflow::DataType dtype, const tensorflow::TensorShape& shape) {
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * tensorflow::DataTypeSize(dtype);
  if (bytes == 0) return Tensor(dtype, shape);
  PooledBuffer* const buffer = PooledBuffer::New(bytes);
  Tensor tensor(dtype, shape, buffer);  // takes a reference of its own
  buffer->Unref();
  return tensor;
}

Tensor* NewPooledTensor(tensorflow::DataType dtype, const tensorflow::TensorShape& shape) {
  return NewTensor(PooledTensor(dtype, shape));
}

}  // namespace tensorflow_recursion
