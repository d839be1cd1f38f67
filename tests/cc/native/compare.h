// Operands for native kernels, and a comparison of what they make of them with what stock kernels do.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_NATIVE_COMPARE_H_
#define TENSORFLOW_RECURSION_TESTS_CC_NATIVE_COMPARE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tests/cc/native/stock_kernel.h"

namespace tensorflow_recursion {

using Shape = std::vector<int64_t>;

// --- Operands -------------------------------------------------------------------------------------

// Ordinary numbers, reproducible, of both signs.
template <typename T>
tensorflow::Tensor Numbers(const Shape& shape, int seed = 1) {
  tensorflow::Tensor tensor(tensorflow::DataTypeToEnum<T>::value, tensorflow::TensorShape(shape));
  uint32_t state = 2463534242U + static_cast<uint32_t>(seed) * 747796405U;
  T* const data = tensor.flat<T>().data();
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    state = state * 1664525U + 1013904223U;
    data[i] = static_cast<T>((static_cast<double>(state >> 8) / (1 << 24) - 0.5) * 8);
  }
  return tensor;
}

template <typename T>
tensorflow::Tensor Vector(const std::vector<T>& numbers) {
  tensorflow::Tensor tensor(tensorflow::DataTypeToEnum<T>::value,
                            tensorflow::TensorShape({static_cast<int64_t>(numbers.size())}));
  for (size_t i = 0; i < numbers.size(); ++i) tensor.flat<T>()(static_cast<int64_t>(i)) = numbers[i];
  return tensor;
}

template <typename T>
std::vector<T> Edges() {
  using Limits = std::numeric_limits<T>;
  return {T(0),
          -T(0),
          T(1),
          -T(1),
          T(0.5),
          T(-3),
          T(90),
          T(-90),
          T(710),
          T(-800),
          T(1e-20),
          T(-1e-4),
          T(0.6),
          T(0.625001),
          T(-10),
          T(20.5),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN(),
          Limits::max(),
          Limits::lowest(),
          Limits::min(),
          T(1e30),
          T(0.3)};
}

// Each edge against each, along the rows of two matrices.
template <typename T>
std::vector<tensorflow::Tensor> AllPairs() {
  const std::vector<T> edges = Edges<T>();
  const auto count = static_cast<int64_t>(edges.size());
  tensorflow::Tensor x(tensorflow::DataTypeToEnum<T>::value, tensorflow::TensorShape({count, count})),
      y = Numbers<T>({count, count});
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < count; ++j) {
      x.matrix<T>()(i, j) = edges[i];
      y.matrix<T>()(i, j) = edges[j];
    }
  }
  return {x, y};
}

// --- Comparison -----------------------------------------------------------------------------------

inline constexpr double kExact = 0;
// By how much results may differ, a few last bits, where both sides compute series of their own or sum in another
// order.
template <typename T>
inline constexpr double kClose = sizeof(T) == 4 ? 2e-6 : 1e-14;

template <typename T>
bool IsClose(T got, T want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got) || tolerance == 0) return got == want;
  return std::abs(static_cast<double>(got) - want) <= tolerance * (1 + std::abs(static_cast<double>(want)));
}

template <typename T>
std::string FirstDifference(const tensorflow::Tensor& got, const tensorflow::Tensor& want, double tolerance) {
  for (int64_t i = 0; i < want.NumElements(); ++i) {
    const T a = got.unaligned_flat<T>()(i), b = want.unaligned_flat<T>()(i);
    if (!IsClose<T>(a, b, tolerance)) return absl::StrCat("element ", i, ": got ", a, ", the stock kernel says ", b);
  }
  return "";
}

inline std::string Difference(const tensorflow::Tensor& got, const tensorflow::Tensor& want, double tolerance) {
  if (got.dtype() != want.dtype()) return "another dtype";
  if (got.shape() != want.shape()) {
    return absl::StrCat("shape ", got.shape().DebugString(), ", expected ", want.shape().DebugString());
  }
  if (want.dtype() == tensorflow::DT_FLOAT) return FirstDifference<float>(got, want, tolerance);
  if (want.dtype() == tensorflow::DT_DOUBLE) return FirstDifference<double>(got, want, tolerance);
  return got.tensor_data() == want.tensor_data() ? "" : "other numbers";
}

inline Attributes None() {
  return [](tensorflow::NodeDefBuilder*) {};
}

struct Case {
  std::string op;
  std::vector<tensorflow::Tensor> inputs;
  Attributes attributes = None();
  int list_inputs = 0;
  double tolerance = kExact;
};

inline void ExpectSame(const Case& test) {
  tensorflow::DataTypeVector types;
  std::string what = test.op;
  for (const tensorflow::Tensor& input : test.inputs) {
    types.push_back(input.dtype());
    absl::StrAppend(&what, " ", tensorflow::DataTypeString(input.dtype()), input.shape().DebugString());
  }
  OneOperator op(test.op, types, test.list_inputs, test.attributes);
  ASSERT_TRUE(op.is_native()) << what;
  std::vector<tensorflow::Tensor> want;
  const absl::Status status = op.RunStock(test.inputs, &want);
  ASSERT_TRUE(status.ok()) << what << status;
  for (const bool are_owned : {false, true}) {
    const std::vector<tensorflow::Tensor> before = test.inputs;
    std::vector<tensorflow::Tensor> got;
    ASSERT_TRUE(op.RunNative(test.inputs, are_owned, &got)) << what;
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(Difference(got[i], want[i], test.tolerance), "") << what;
  }
}

// What shared inputs hold must be what it was: nobody else's memory is written.
inline void ExpectInputsKept(const Case& test) {
  tensorflow::DataTypeVector types;
  std::vector<tensorflow::Tensor> copies;
  for (const tensorflow::Tensor& input : test.inputs) {
    types.push_back(input.dtype());
    copies.push_back(tensorflow::tensor::DeepCopy(input));
  }
  OneOperator op(test.op, types, test.list_inputs, test.attributes);
  std::vector<tensorflow::Tensor> got;
  ASSERT_TRUE(op.RunNative(test.inputs, /*are_owned=*/false, &got));
  for (size_t i = 0; i < copies.size(); ++i) EXPECT_EQ(Difference(test.inputs[i], copies[i], kExact), "") << test.op;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_NATIVE_COMPARE_H_
