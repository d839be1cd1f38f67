// Counts the tensors that are alive, so that a test sees what a frame, a run or an error left behind.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_VALUES_LIVE_TENSORS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_VALUES_LIVE_TENSORS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "cc/values/value.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {

// Makes int32 vectors of one element: tensors that travel boxed, as a matrix would. Outlives them all.
class LiveTensors : private tensorflow::Allocator {
 public:
  Value Make(int32_t number) {
    auto* tensor = new tensorflow::Tensor(this, tensorflow::DT_INT32, tensorflow::TensorShape({1}));
    tensor->flat<int32_t>()(0) = number;
    return Value::Own(tensor);
  }

  // The number of such a tensor, of a constant or of a scalar.
  static int32_t Number(const Value& value) {
    if (value.is_scalar()) return value.int32;
    return TensorFromValue(value, tensorflow::DT_INT32).flat<int32_t>()(0);
  }

  int count() const { return count_; }
  int most() const { return most_; }  // ever alive at once

 private:
  std::string Name() override { return "live_tensors"; }
  void* AllocateRaw(size_t alignment, size_t bytes) override {
    const int now = ++count_;
    int most = most_;
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
    return tensorflow::cpu_allocator_base()->AllocateRaw(alignment, bytes);
  }
  void DeallocateRaw(void* memory) override {
    --count_;
    tensorflow::cpu_allocator_base()->DeallocateRaw(memory);
  }

  std::atomic<int> count_{0};
  std::atomic<int> most_{0};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_VALUES_LIVE_TENSORS_H_
