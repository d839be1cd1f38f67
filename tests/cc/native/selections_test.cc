// Comparisons and selections by native kernels against those of stock ones.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/cc/native/compare.h"
#include "tests/cc/native/stock_kernel.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

template <typename T>
class SelectionsTest : public ::testing::Test {};
using SelectionFloats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SelectionsTest, SelectionFloats);

Tensor EverySecond(const Shape& shape) {
  Tensor tensor(tensorflow::DT_BOOL, TensorShape(shape));
  for (int64_t i = 0; i < tensor.NumElements(); ++i) tensor.flat<bool>()(i) = i % 2 == 0;
  return tensor;
}

TYPED_TEST(SelectionsTest, Comparisons) {
  using T = TypeParam;
  const std::vector<std::pair<Shape, Shape>> shapes = {{{1, 50}, {1, 50}}, {{2, 3, 5}, {2, 3, 5}}, {{2, 3}, {}},
                                                       {{}, {2, 3}},       {{1, 1}, {2, 3}},       {{50}, {1}},
                                                       {{0}, {0}},         {{4, 0}, {}},           {{1}, {1}}};
  for (const std::string op : {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"}) {
    for (const auto& [x, y] : shapes) ExpectSame({op, {Numbers<T>(x), Numbers<T>(y, 2)}});
    ExpectSame({op, AllPairs<T>()});
    ExpectInputsKept({op, AllPairs<T>()});
    OneOperator other(op, {Numbers<T>({1}).dtype(), Numbers<T>({1}).dtype()}, 0, None());
    std::vector<Tensor> got;
    EXPECT_FALSE(other.RunNative({Numbers<T>({2, 3}), Numbers<T>({3})}, true, &got)) << op;
    EXPECT_FALSE(other.RunNative({Numbers<T>({2, 3}), Numbers<T>({1, 1, 1})}, true, &got)) << op;
  }
}

TYPED_TEST(SelectionsTest, SelectsOfTwoTensors) {
  using T = TypeParam;
  const Tensor x = Numbers<T>({2, 3}), y = Numbers<T>({2, 3}, 2);
  for (const std::string op : {"Select", "SelectV2"}) {
    ExpectSame({op, {EverySecond({2, 3}), x, y}});
    ExpectInputsKept({op, {EverySecond({2, 3}), x, y}});
    for (const bool one : {false, true}) ExpectSame({op, {Tensor(one), x, y}});
  }
}

TYPED_TEST(SelectionsTest, SelectsOfTwoLargeTensorsByOneCondition) {
  using T = TypeParam;
  const Tensor x = Numbers<T>({300, 300}), y = Numbers<T>({300, 300}, 2);
  OneOperator op("SelectV2", {tensorflow::DT_BOOL, x.dtype(), x.dtype()}, 0, None());
  for (const bool one : {false, true}) {
    std::vector<Tensor> got;
    EXPECT_TRUE(op.RunNative({Tensor(one), x, y}, true, &got));
    ExpectSame({"SelectV2", {Tensor(one), x, y}});
  }
}

TYPED_TEST(SelectionsTest, SelectsOfNumbers) {
  using T = TypeParam;
  const Tensor x = Numbers<T>({2, 3});
  for (const Tensor& number : {Tensor(T(7)), Numbers<T>({1}), Numbers<T>({1, 1})}) {
    ExpectSame({"SelectV2", {EverySecond({2, 3}), x, number}});
    ExpectSame({"SelectV2", {EverySecond({2, 3}), number, x}});
    ExpectSame({"SelectV2", {EverySecond({2, 3}), number, Tensor(T(-2))}});
    ExpectInputsKept({"SelectV2", {EverySecond({2, 3}), x, number}});
    ExpectInputsKept({"SelectV2", {EverySecond({2, 3}), number, x}});
  }
}

TYPED_TEST(SelectionsTest, OtherBroadcastsAreLeftToTheStockKernel) {
  using T = TypeParam;
  const auto dtype = Numbers<T>({1}).dtype();
  OneOperator op("SelectV2", {tensorflow::DT_BOOL, dtype, dtype}, 0, None());
  std::vector<Tensor> got;
  const Tensor x = Numbers<T>({2, 3});
  EXPECT_FALSE(op.RunNative({EverySecond({3}), x, x}, true, &got));
  EXPECT_FALSE(op.RunNative({EverySecond({2, 3}), x, Numbers<T>({3})}, true, &got));
  EXPECT_FALSE(op.RunNative({EverySecond({2, 3}), x, Numbers<T>({1, 1, 1})}, true, &got));
  EXPECT_FALSE(op.RunNative({Tensor(true), x, Tensor(T(1))}, true, &got));
}

}  // namespace
}  // namespace tensorflow_recursion
