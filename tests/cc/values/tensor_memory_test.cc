// SPDX-License-Identifier: Apache-2.0
#include "cc/values/tensor_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <utility>

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

TEST(TensorMemoryTest, TensorsAreAlignedAndTheirOwn) {
  Tensor* const tensor = NewPooledTensor(tensorflow::DT_FLOAT, TensorShape({3, 5}));
  EXPECT_TRUE(tensor->IsAligned());
  EXPECT_TRUE(tensor->RefCountIsOne());
  EXPECT_EQ(tensor->TotalBytes(), 60);
  EXPECT_GE(tensor->AllocatedBytes(), 60);
  tensor->flat<float>().setConstant(7);
  DeleteTensor(tensor);
}

TEST(TensorMemoryTest, TensorsMayBeEmpty) {
  Tensor* const tensor = NewPooledTensor(tensorflow::DT_INT64, TensorShape({3, 0}));
  EXPECT_TRUE(tensor->IsInitialized());
  EXPECT_EQ(tensor->dim_size(1), 0);
  DeleteTensor(tensor);
}

// The memory goes with the last reference, wherever that is.
TEST(TensorMemoryTest, CopiesShareTheNumbersOnAnyThread) {
  Tensor* const tensor = NewPooledTensor(tensorflow::DT_INT32, TensorShape({100}));
  tensor->flat<int32_t>().setConstant(5);
  Tensor copy = *tensor;
  EXPECT_FALSE(tensor->RefCountIsOne());
  DeleteTensor(tensor);
  EXPECT_TRUE(copy.RefCountIsOne());
  std::thread([copy = std::move(copy)] { EXPECT_EQ(copy.flat<int32_t>()(99), 5); }).join();
}

TEST(TensorMemoryTest, SlicesKeepTheWholeAlive) {
  Tensor* const tensor = NewPooledTensor(tensorflow::DT_DOUBLE, TensorShape({4, 8}));
  tensor->flat<double>().setConstant(2);
  const Tensor slice = tensor->Slice(1, 2);
  DeleteTensor(tensor);
  EXPECT_EQ(slice.matrix<double>()(0, 7), 2);
}

// A stock kernel's header was made by the ordinary `new`: the pool does not grow with every one.
TEST(TensorMemoryTest, AdoptsHeadersOfOthers) {
  const int64_t before = SpareBlockBytes();
  for (int i = 0; i < 100'000; ++i) {
    Tensor* const tensor = AdoptTensor(new Tensor(tensorflow::DT_FLOAT, TensorShape({2})));
    EXPECT_EQ(tensor->dim_size(0), 2);
    DeleteTensor(tensor);
  }
  EXPECT_LE(SpareBlockBytes(), before + (64 << 10));
}

}  // namespace
}  // namespace tensorflow_recursion
