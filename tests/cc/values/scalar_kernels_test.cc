// Compares the unboxed operators with TensorFlow's kernels, bit by bit, at the edges of every dtype.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cc/values/scalar_operators.h"
#include "cc/values/scalar_ops.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tests/cc/values/stock_session.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeToEnum;
using tensorflow::DataTypeVector;
using tensorflow::Tensor;

// Where arithmetic of this type has its edges.
template <typename T>
std::vector<T> Edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> edges = {T{0}, T{1}, T{2}, T{3}, T{7}, T{31}, T{63}, Limits::max(), Limits::lowest()};
  if constexpr (std::is_signed_v<T>) {
    for (const int edge : {-1, -2, -7, -64}) edges.push_back(static_cast<T>(edge));
  }
  if constexpr (std::is_integral_v<T>) edges.push_back(static_cast<T>(Limits::max() / 2 + 1));
  if constexpr (std::is_floating_point_v<T>) {
    edges.insert(edges.end(), {-T{0}, T(0.5), T(-0.5), T(1.5), T(2.5), T(-2.5), T(0.1), T(-0.3), T(1e10), T(-1e-10)});
    edges.insert(edges.end(), {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::min()});
    edges.insert(edges.end(), {T(127.5), T(128), T(255.9), T(-0.99), T(-129), T(2147483648.0), T(-2147483649.0)});
    edges.insert(edges.end(), {T(4294967296.0), T(9.3e18), T(1.9e19), T(3.14159265), T(20.5), T(88.8), T(709.9)});
  }
  return edges;
}

template <>
std::vector<bool> Edges<bool>() {
  return {false, true};
}

template <typename T>
bool SameBits(uint64_t a, uint64_t b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(FromBits<T>(a)) || std::isnan(FromBits<T>(b))) {
      return std::isnan(FromBits<T>(a)) && std::isnan(FromBits<T>(b));
    }
  }
  return a == b;
}

// One operator's kernel, run by a session that optimizes nothing.
class Kernel {
 public:
  Kernel(const std::string& op, const DataTypeVector& inputs, const DataTypeVector& attrs) {
    tensorflow::GraphDef graph;
    tensorflow::NodeDefBuilder builder("op", op);
    tensorflow::CallableOptions callable;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = absl::StrCat("x", i);
      TF_CHECK_OK(tensorflow::NodeDefBuilder(name, "Placeholder").Attr("dtype", inputs[i]).Finalize(graph.add_node()));
      builder.Input(name, 0, inputs[i]);
      callable.add_feed(name);
    }
    if (op == "Cast") builder.Attr("SrcT", attrs[0]).Attr("DstT", attrs[1]);
    builder.Device("/cpu:0");
    if (!builder.Finalize(graph.add_node()).ok()) return;
    callable.add_fetch("op");
    exists_ = session_->Create(graph).ok() && session_->MakeCallable(callable, &handle_).ok();
  }

  bool exists() const { return exists_; }

  absl::Status Run(const std::vector<Tensor>& inputs, Tensor* output) {
    std::vector<Tensor> outputs;
    const absl::Status status = session_->RunCallable(handle_, inputs, &outputs, nullptr);
    if (status.ok()) *output = outputs[0];
    return status;
  }

 private:
  const std::unique_ptr<tensorflow::Session> session_ = NewStockSession();
  tensorflow::Session::CallableHandle handle_ = 0;
  bool exists_ = false;
};

// What the operator itself says, if anything, is what the kernel says.
template <typename Out>
int Compare(const ScalarOperator& scalar, Kernel* kernel, const std::vector<Tensor>& inputs, const std::string& what) {
  std::vector<Value> values;
  for (const Tensor& input : inputs) values.push_back(ScalarFromTensor(input));
  Value value = Value::Empty();
  if (!scalar.on_values(values.data(), &value)) return 0;
  uint64_t bits = 0;
  EXPECT_TRUE(scalar.on_numbers(values[0].bits, values.size() > 1 ? values[1].bits : 0,
                                values.size() > 2 ? values[2].bits : 0, &bits));
  EXPECT_EQ(bits, value.bits) << what;
  Tensor output;
  const absl::Status status = kernel->Run(inputs, &output);
  EXPECT_TRUE(status.ok()) << what << ": " << status;
  if (!status.ok()) return 1;
  const uint64_t expected = ScalarFromTensor(output).bits;
  if (SameBits<Out>(bits, expected)) return 0;
  std::string operands;
  for (const Tensor& input : inputs) absl::StrAppend(&operands, input.DebugString(), " ");
  ADD_FAILURE() << what << " of " << operands << ": got " << +FromBits<Out>(bits) << ", the kernel says "
                << output.DebugString();
  return 1;
}

template <typename T>
int CompareBinary(const std::string& op, bool is_logic) {
  const DataType type = DataTypeToEnum<T>::value;
  const ScalarOperator scalar = FindScalarOperator(op, {type, type}, {is_logic ? tensorflow::DT_BOOL : type});
  if (scalar.on_values == nullptr) return 0;
  Kernel kernel(op, {type, type}, {});
  if (!kernel.exists()) return 0;
  int failures = 0;
  for (const T x : Edges<T>()) {
    for (const T y : Edges<T>()) {
      const std::vector<Tensor> inputs = {Tensor(x), Tensor(y)};
      failures += is_logic ? Compare<bool>(scalar, &kernel, inputs, op) : Compare<T>(scalar, &kernel, inputs, op);
      if (failures > 3) return failures;
    }
  }
  return failures;
}

template <typename T>
int CompareUnary(const std::string& op, bool is_logic) {
  const DataType type = DataTypeToEnum<T>::value;
  const ScalarOperator scalar = FindScalarOperator(op, {type}, {is_logic ? tensorflow::DT_BOOL : type});
  if (scalar.on_values == nullptr) return 0;
  Kernel kernel(op, {type}, {});
  if (!kernel.exists()) return 0;
  int failures = 0;
  for (const T x : Edges<T>()) {
    failures +=
        is_logic ? Compare<bool>(scalar, &kernel, {Tensor(x)}, op) : Compare<T>(scalar, &kernel, {Tensor(x)}, op);
  }
  return failures;
}

template <typename From, typename To>
void CompareCast() {
  const DataType from = DataTypeToEnum<From>::value;
  const DataType to = DataTypeToEnum<To>::value;
  const std::string what = absl::StrCat("Cast to ", tensorflow::DataTypeString(to));
  Kernel kernel("Cast", {from}, {from, to});
  ASSERT_TRUE(kernel.exists()) << what;
  for (const From x : Edges<From>()) {
    Compare<To>(FindScalarOperator("Cast", {from}, {to}), &kernel, {Tensor(x)}, what);
  }
}

template <typename T>
class ScalarKernelsTest : public ::testing::Test {};
using AllTypes =
    ::testing::Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
TYPED_TEST_SUITE(ScalarKernelsTest, AllTypes);

TYPED_TEST(ScalarKernelsTest, BinaryOperatorsSayWhatTheKernelsSay) {
  for (const char* op : {"AddV2",
                         "Sub",
                         "Mul",
                         "Div",
                         "TruncateDiv",
                         "RealDiv",
                         "FloorDiv",
                         "FloorMod",
                         "Mod",
                         "TruncateMod",
                         "Maximum",
                         "Minimum",
                         "SquaredDifference",
                         "Pow",
                         "BitwiseAnd",
                         "BitwiseOr",
                         "BitwiseXor",
                         "LeftShift",
                         "RightShift",
                         "Atan2",
                         "SqrtGrad",
                         "RsqrtGrad",
                         "ReciprocalGrad",
                         "InvGrad",
                         "TanhGrad",
                         "SigmoidGrad"}) {
    CompareBinary<TypeParam>(op, false);
  }
  for (const char* op :
       {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "LogicalAnd", "LogicalOr"}) {
    CompareBinary<TypeParam>(op, true);
  }
}

TYPED_TEST(ScalarKernelsTest, UnaryOperatorsSayWhatTheKernelsSay) {
  for (const char* op :
       {"Neg",  "Abs",        "Sign", "Square", "Round", "ZerosLike", "OnesLike", "Invert",  "Floor", "Ceil",
        "Rint", "Reciprocal", "Inv",  "Sqrt",   "Exp",   "Expm1",     "Log",      "Log1p",   "Sin",   "Cos",
        "Tan",  "Asin",       "Acos", "Atan",   "Sinh",  "Cosh",      "Tanh",     "Snapshot"}) {
    CompareUnary<TypeParam>(op, false);
  }
  for (const char* op : {"LogicalNot", "IsNan", "IsInf", "IsFinite"}) CompareUnary<TypeParam>(op, true);
}

TYPED_TEST(ScalarKernelsTest, CastsSayWhatTheKernelsSay) {
  CompareCast<TypeParam, bool>();
  CompareCast<TypeParam, int8_t>();
  CompareCast<TypeParam, int16_t>();
  CompareCast<TypeParam, int32_t>();
  CompareCast<TypeParam, int64_t>();
  CompareCast<TypeParam, uint8_t>();
  CompareCast<TypeParam, uint16_t>();
  CompareCast<TypeParam, uint32_t>();
  CompareCast<TypeParam, uint64_t>();
  CompareCast<TypeParam, float>();
  CompareCast<TypeParam, double>();
}

}  // namespace
}  // namespace tensorflow_recursion
