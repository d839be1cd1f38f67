// Compares native kernels with TensorFlow's, over shapes, dtypes and the edges of numbers.
// SPDX-License-Identifier: Apache-2.0
#include "cc/native/native_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "tests/cc/native/compare.h"
#include "tests/cc/native/stock_kernel.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeToEnum;
using tensorflow::NodeDefBuilder;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// --- Elementwise ----------------------------------------------------------------------------------

template <typename T>
class NativeKernelTest : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NativeKernelTest, Floats);

const std::vector<Shape>& SomeShapes() {
  static const auto* const shapes =
      new std::vector<Shape>{{1}, {3}, {50}, {1, 50}, {3, 17}, {2, 3, 5}, {0}, {4, 0}, {1, 1}, {2, 300}};
  return *shapes;
}

TYPED_TEST(NativeKernelTest, FunctionsOfOneNumber) {
  using T = TypeParam;
  for (const std::string op : {"Neg", "Abs", "Square", "Sqrt", "Reciprocal", "Relu", "Exp", "Log", "Tanh", "Sigmoid"}) {
    const bool is_exact = op.size() < 4 + 5 && op != "Exp" && op != "Log" && op != "Tanh" && op != "Sigmoid";
    for (const Shape& shape : SomeShapes()) {
      Case test{op, {Numbers<T>(shape)}};
      test.tolerance = is_exact ? kExact : kClose<T>;
      ExpectSame(test);
    }
    Case edges{op, {Vector<T>(Edges<T>())}};
    edges.tolerance = is_exact ? kExact : kClose<T>;
    ExpectSame(edges);
    ExpectInputsKept(edges);
  }
}

TYPED_TEST(NativeKernelTest, FunctionsOfTwoNumbers) {
  using T = TypeParam;
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{1, 50}, {1, 50}}, {{1, 50}, {50}},        {{50}, {3, 50}}, {{3, 1}, {3, 50}},     {{4, 50}, {1, 50}},
      {{2, 3}, {1}},      {{1, 1}, {2, 3}},       {{2, 3}, {}},    {{}, {2, 3}},          {{2, 3, 5}, {3, 5}},
      {{2, 3, 5}, {5}},   {{2, 1, 1}, {2, 3, 5}}, {{0}, {0}},      {{2, 3, 5}, {1, 3, 5}}};
  for (const std::string op :
       {"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Maximum", "Minimum", "SquaredDifference"}) {
    for (const auto& [x, y] : shapes) ExpectSame({op, {Numbers<T>(x), Numbers<T>(y, 2)}});
    ExpectSame({op, AllPairs<T>()});
    ExpectInputsKept({op, AllPairs<T>()});
  }
}

TYPED_TEST(NativeKernelTest, Repetitions) {
  using T = TypeParam;
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{1, 1}, {1, 50}},      {{3, 1}, {3, 50}},      {{1, 50}, {3, 50}}, {{1}, {7}},
      {{1, 3, 5}, {2, 3, 5}}, {{2, 1, 1}, {2, 3, 5}}, {{2, 3}, {2, 3}},   {{1, 1}, {1, 1}}};
  for (const auto& [x, y] : shapes) {
    std::vector<int32_t> multiples, sizes(y.begin(), y.end());
    for (size_t d = 0; d < x.size(); ++d) multiples.push_back(static_cast<int32_t>(y[d] / x[d]));
    ExpectSame({"Tile", {Numbers<T>(x), Vector<int32_t>(multiples)}});
    ExpectSame({"BroadcastTo", {Numbers<T>(x), Vector<int32_t>(sizes)}});
    ExpectInputsKept({"Tile", {Numbers<T>(x), Vector<int32_t>(multiples)}});
  }
  ExpectSame({"BroadcastTo", {Numbers<T>({5}), Vector<int32_t>({2, 3, 5})}});
  ExpectSame({"BroadcastTo", {Tensor(T(3)), Vector<int32_t>({2, 3})}});
  OneOperator tile("Tile", {DataTypeToEnum<T>::value, tensorflow::DT_INT32}, 0, None());
  std::vector<Tensor> got;
  EXPECT_FALSE(tile.RunNative({Numbers<T>({2, 3}), Vector<int32_t>({1, 2})}, true, &got));
  EXPECT_FALSE(tile.RunNative({Numbers<T>({1, 3}), Vector<int32_t>({0, 1})}, true, &got));
  EXPECT_FALSE(tile.RunNative({Numbers<T>({1, 3, 1}), Vector<int32_t>({2, 1, 2})}, true, &got));
  EXPECT_FALSE(tile.RunNative({Numbers<T>({1, 3}), Vector<int32_t>({2})}, true, &got));
  const int32_t many = 1 << 16;  // together more elements than a number can count
  EXPECT_FALSE(tile.RunNative({Numbers<T>({1, 1, 1, 1}), Vector<int32_t>({many, many, many, many})}, true, &got));
}

TYPED_TEST(NativeKernelTest, Gradients) {
  using T = TypeParam;
  for (const std::string op : {"ReluGrad", "TanhGrad", "SigmoidGrad", "SqrtGrad"}) {
    for (const Shape& shape : SomeShapes()) {
      Case test{op, {Numbers<T>(shape), Numbers<T>(shape, 2)}};
      test.tolerance = op == "ReluGrad" ? kExact : kClose<T>;
      ExpectSame(test);
    }
  }
  ExpectSame({"ReluGrad", AllPairs<T>()});
  // No gradient is 0 where the square root is 0, too.
  ExpectSame({"SqrtGrad", {Vector<T>({0, 0, 4, 1}), Vector<T>({0, 1, 0, -2})}});
}

// --- Products -------------------------------------------------------------------------------------

TYPED_TEST(NativeKernelTest, Products) {
  using T = TypeParam;
  for (const Shape& sizes : {Shape{1, 100, 50}, {1, 50, 2}, {3, 7, 33}, {8, 13, 64}, {2, 1, 1}, {5, 300, 20}}) {
    for (const bool is_transposed : {false, true}) {
      const Tensor x = Numbers<T>({sizes[0], sizes[1]});
      const Tensor w = is_transposed ? Numbers<T>({sizes[2], sizes[1]}, 2) : Numbers<T>({sizes[1], sizes[2]}, 2);
      ExpectSame({"MatMul",
                  {x, w},
                  [&](NodeDefBuilder* node) { node->Attr("transpose_b", is_transposed); },
                  0,
                  kClose<T> * 50});
      ExpectSame({"Einsum",
                  {x, w},
                  [&](NodeDefBuilder* node) { node->Attr("equation", is_transposed ? "ab,cb->ac" : "ij,jk->ik"); },
                  2,
                  kClose<T> * 50});
    }
    ExpectSame({"BatchMatMulV2",
                {Numbers<T>({sizes[0], sizes[1]}), Numbers<T>({sizes[1], sizes[2]}, 2)},
                None(),
                0,
                kClose<T> * 50});
    ExpectSame({"BiasAdd", {Numbers<T>({sizes[0], sizes[1]}), Numbers<T>({sizes[1]}, 2)}});
    Case sum{"BiasAddGrad", {Numbers<T>({sizes[0], sizes[1]})}};
    sum.tolerance = kClose<T>;
    ExpectSame(sum);
  }
}

// An infinity meets only its own column, and a row's numbers do not depend on the rows beside it.
TYPED_TEST(NativeKernelTest, ProductsOfEdges) {
  using T = TypeParam;
  for (const bool is_transposed : {false, true}) {
    Tensor x = Numbers<T>({4, 37}), w = Numbers<T>(is_transposed ? Shape{21, 37} : Shape{37, 21}, 2);
    w.flat<T>()(5) = std::numeric_limits<T>::infinity();
    w.flat<T>()(36) = std::numeric_limits<T>::quiet_NaN();
    const Attributes attributes = [&](NodeDefBuilder* node) { node->Attr("transpose_b", is_transposed); };
    ExpectSame({"MatMul", {x, w}, attributes, 0, kClose<T> * 20});
    OneOperator op("MatMul", {x.dtype(), w.dtype()}, 0, attributes);
    std::vector<Tensor> all, one;
    ASSERT_TRUE(op.RunNative({x, w}, false, &all));
    for (int64_t row = 0; row < 4; ++row) {
      ASSERT_TRUE(op.RunNative({x.Slice(row, row + 1), w}, false, &one));
      EXPECT_EQ(std::memcmp(one[0].data(), &all[0].template matrix<T>()(row, 0), one[0].TotalBytes()), 0);
    }
  }
}

// Several calls at once give what each gives by itself, to the last bit, and take the same buffers.
TYPED_TEST(NativeKernelTest, ProductsOfSeveralCalls) {
  using T = TypeParam;
  for (const bool is_transposed : {false, true}) {
    OneOperator op("MatMul", {DataTypeToEnum<T>::value, DataTypeToEnum<T>::value}, 0,
                   [&](NodeDefBuilder* node) { node->Attr("transpose_b", is_transposed); });
    const Tensor w = Numbers<T>(is_transposed ? Shape{150, 120} : Shape{120, 150}, 2);
    std::vector<std::vector<Tensor>> calls;
    for (const int64_t rows : {1, 2, 1, 3, 1}) calls.push_back({Numbers<T>({rows, 120}, static_cast<int>(rows)), w});
    std::vector<Tensor> together, one;
    ASSERT_TRUE(op.RunTogether(calls, &together));
    for (size_t i = 0; i < calls.size(); ++i) {
      ASSERT_TRUE(op.RunNative(calls[i], false, &one));
      ASSERT_EQ(together[i].shape(), one[0].shape());
      EXPECT_EQ(std::memcmp(one[0].data(), together[i].data(), one[0].TotalBytes()), 0) << "call " << i;
    }
    Tensor view;
    ASSERT_TRUE(view.CopyFrom(w, TensorShape({w.dim_size(0) / 2, w.dim_size(1) * 2})));
    const Tensor row = Numbers<T>({1, view.dim_size(is_transposed ? 1 : 0)});
    EXPECT_EQ(op.ShareOf({row, view}).operand, w.data());
    EXPECT_FALSE(op.RunTogether({calls[0], {row, view}}, &together)) << "another shape of the weight";
    EXPECT_FALSE(op.RunTogether({{row, view}, calls[0]}, &together)) << "another shape of the weight";
    calls.push_back({Numbers<T>({1, 7}), w});  // does not fit
    EXPECT_FALSE(op.RunTogether(calls, &together));
    EXPECT_EQ(op.ShareOf({calls[1][0], w}).operand, w.data());
    EXPECT_EQ(op.ShareOf({calls[1][0], w}).rows, 2);
    EXPECT_EQ(op.ShareOf({Numbers<T>({8, 120}), w}).operand, nullptr) << "as many rows as it takes";
  }
  OneOperator small("MatMul", {DataTypeToEnum<T>::value, DataTypeToEnum<T>::value}, 0, None());
  EXPECT_EQ(small.ShareOf({Numbers<T>({1, 10}), Numbers<T>({10, 10})}).operand, nullptr) << "a weight that is near";
}

TEST(ProductTest, LeavesOthersToTheStockKernel) {
  OneOperator op("MatMul", {tensorflow::DT_FLOAT, tensorflow::DT_FLOAT}, 0, None());
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({Numbers<float>({2, 3}), Numbers<float>({4, 3})}, true, &got));    // do not fit
  EXPECT_FALSE(op.RunNative({Numbers<float>({0, 3}), Numbers<float>({3, 4})}, true, &got));    // no rows
  EXPECT_FALSE(op.RunNative({Numbers<float>({100, 3}), Numbers<float>({3, 4})}, true, &got));  // many rows
  OneOperator other("MatMul", {tensorflow::DT_FLOAT, tensorflow::DT_FLOAT}, 0,
                    [](NodeDefBuilder* node) { node->Attr("transpose_a", true); });
  EXPECT_FALSE(other.RunNative({Numbers<float>({3, 2}), Numbers<float>({3, 4})}, true, &got));  // x is transposed
}

TYPED_TEST(NativeKernelTest, ColumnsAreMultipliedAsRows) {
  using T = TypeParam;
  for (const bool is_transposed : {false, true}) {
    const Attributes attributes = [=](NodeDefBuilder* node) { node->Attr("transpose_a", is_transposed); };
    const Tensor w = Numbers<T>(is_transposed ? Shape{50, 33} : Shape{33, 50});
    ExpectSame({"MatMul", {w, Numbers<T>({50, 1}, 2)}, attributes, 0, kClose<T> * 50});
  }
}

// --- Pieces ---------------------------------------------------------------------------------------

TYPED_TEST(NativeKernelTest, Concatenation) {
  using T = TypeParam;
  for (const int axis : {0, 1, -1, -2}) {
    const bool is_rows = axis == 0 || axis == -2;
    std::vector<Tensor> parts = {Numbers<T>({2, 3}), Numbers<T>(is_rows ? Shape{5, 3} : Shape{2, 7}, 2),
                                 Numbers<T>(is_rows ? Shape{1, 3} : Shape{2, 1}, 3), Tensor(axis)};
    ExpectSame({"ConcatV2", parts, None(), 3});
  }
  for (const int axis : {0, 1, 2, -1}) {
    const Attributes attributes = [axis](NodeDefBuilder* node) { node->Attr("axis", axis); };
    ExpectSame({"Pack", {Numbers<T>({2, 3}), Numbers<T>({2, 3}, 2)}, attributes, 2});
  }
  ExpectSame({"Pack", {Tensor(T(1)), Tensor(T(2)), Tensor(T(3))}, None(), 3});
}

// Each part is there as its value or as its shape; what follows the two parts is only waited for.
TYPED_TEST(NativeKernelTest, GradientsOfConcatenations) {
  using T = TypeParam;
  const Tensor rows = Numbers<T>({2, 3}), other_rows = Numbers<T>({5, 3}), shape = Vector<int32_t>({2, 4});
  auto attributes = [](const std::vector<bool>& are_shapes) {
    return [are_shapes](NodeDefBuilder* node) { node->Attr("N", 2).Attr("are_shapes", are_shapes); };
  };
  const std::string op = kConcatGradientOp;
  ExpectSame({op, {Tensor(0), Numbers<T>({7, 3}), rows, other_rows}, attributes({false, false}), -2});
  ExpectSame({op, {Tensor(-2), Numbers<T>({7, 3}), rows, other_rows, rows}, attributes({false, false, false}), -3});
  ExpectSame({op, {Tensor(1), Numbers<T>({2, 7}), rows, shape}, attributes({false, true}), -2});
  ExpectSame({op, {Tensor(-1), Numbers<T>({2, 7}), shape, rows}, attributes({true, false}), -2});
  const Tensor box = Numbers<T>({2, 1, 3});
  ExpectSame({op, {Tensor(1), Numbers<T>({2, 3, 3}), box, Numbers<T>({2, 2, 3})}, attributes({false, false}), -2});
  ExpectInputsKept({op, {Tensor(0), Numbers<T>({7, 3}), rows, other_rows}, attributes({false, false}), -2});
  OneOperator two(op, {tensorflow::DT_INT32, rows.dtype(), rows.dtype(), rows.dtype()}, -2, attributes({false, false}));
  std::vector<Tensor> got;
  // A rest behind the last part is nobody's, as for Slice.
  ExpectSame({op, {Tensor(0), Numbers<T>({8, 3}), rows, other_rows}, attributes({false, false}), -2});
  for (const auto& sizes : std::vector<Shape>{{6, 3}, {7, 4}, {7, 2}, {7}}) {
    EXPECT_FALSE(two.RunNative({Tensor(0), Numbers<T>(sizes), rows, other_rows}, false, &got)) << sizes[0];
  }
  EXPECT_FALSE(two.RunNative({Tensor(2), Numbers<T>({7, 3}), rows, other_rows}, false, &got));
  EXPECT_FALSE(two.RunNative({Tensor(0), Numbers<T>({2, 3}), rows, Numbers<T>({0, 3})}, false, &got));
}

TYPED_TEST(NativeKernelTest, Slices) {
  using T = TypeParam;
  const Tensor x = Numbers<T>({4, 5, 6});
  for (const auto& [begin, size] : std::vector<std::pair<std::vector<int>, std::vector<int>>>{{{0, 0, 0}, {4, 5, 6}},
                                                                                              {{1, 0, 0}, {2, 5, 6}},
                                                                                              {{0, 2, 0}, {4, 1, 6}},
                                                                                              {{1, 1, 1}, {2, 3, 4}},
                                                                                              {{3, 4, 5}, {1, 1, 1}},
                                                                                              {{2, 0, 3}, {-1, -1, -1}},
                                                                                              {{0, 0, 2}, {4, 5, 2}}}) {
    ExpectSame({"Slice", {x, Vector<int32_t>(begin), Vector<int32_t>(size)}});
  }
  struct Strided {
    std::vector<int> begin, end;
    int begin_mask = 0, end_mask = 0, shrink = 0;
  };
  for (const Strided& strided : std::vector<Strided>{{{1}, {3}},
                                                     {{-2}, {0}, 0, 1},
                                                     {{2}, {3}, 0, 0, 1},
                                                     {{0, 1}, {9, -1}, 1},
                                                     {{1, 2, 3}, {2, 3, 4}, 0, 0, 7},
                                                     {{1, 2, 3}, {2, 3, 6}, 0, 0, 3}}) {
    const std::vector<int32_t> ones(strided.begin.size(), 1);
    const Attributes attributes = [&](NodeDefBuilder* node) {
      node->Attr("begin_mask", strided.begin_mask).Attr("end_mask", strided.end_mask);
      node->Attr("shrink_axis_mask", strided.shrink);
    };
    ExpectSame({"StridedSlice",
                {x, Vector<int32_t>(strided.begin), Vector<int32_t>(strided.end), Vector<int32_t>(ones)},
                attributes});
    OneOperator op("StridedSlice", {x.dtype(), tensorflow::DT_INT32, tensorflow::DT_INT32, tensorflow::DT_INT32}, 0,
                   attributes);
    std::vector<Tensor> slice;
    ASSERT_TRUE(op.RunNative({x, Vector<int32_t>(strided.begin), Vector<int32_t>(strided.end), Vector<int32_t>(ones)},
                             false, &slice));
    std::vector<int32_t> sizes(x.dims());
    for (int d = 0; d < x.dims(); ++d) sizes[d] = static_cast<int32_t>(x.dim_size(d));
    ExpectSame({"StridedSliceGrad",
                {Vector<int32_t>(sizes), Vector<int32_t>(strided.begin), Vector<int32_t>(strided.end),
                 Vector<int32_t>(ones), slice[0]},
                attributes});
  }
}

TYPED_TEST(NativeKernelTest, Pads) {
  using T = TypeParam;
  const auto paddings = [](const std::vector<int32_t>& numbers) {
    Tensor tensor(tensorflow::DT_INT32, TensorShape({static_cast<int64_t>(numbers.size()) / 2, 2}));
    std::memcpy(tensor.data(), numbers.data(), numbers.size() * sizeof(int32_t));
    return tensor;
  };
  ExpectSame({"Pad", {Numbers<T>({1, 5}), paddings({0, 0, 1, 2})}});
  ExpectSame({"Pad", {Numbers<T>({3, 5}), paddings({2, 0, 0, 0})}});
  ExpectSame({"Pad", {Numbers<T>({3, 5}), paddings({0, 0, 0, 0})}});
  ExpectSame({"Pad", {Numbers<T>({2, 3, 5}), paddings({1, 2, 0, 3, 4, 0})}});
  ExpectSame({"Pad", {Numbers<T>({4}), paddings({1, 1})}});
  OneOperator op("Pad", {DataTypeToEnum<T>::value, tensorflow::DT_INT32}, 0, None());
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({Numbers<T>({4}), paddings({-1, 1})}, true, &got));
  EXPECT_FALSE(op.RunNative({Numbers<T>({4}), paddings({0, 1, 0, 1})}, true, &got));
  EXPECT_FALSE(op.RunNative({Numbers<T>({0}), paddings({1, 1})}, true, &got));
}

TYPED_TEST(NativeKernelTest, Splits) {
  using T = TypeParam;
  for (const int axis : {0, 1, -1}) {
    const Attributes attributes = [](NodeDefBuilder* node) { node->Attr("num_split", 2); };
    ExpectSame({"Split", {Tensor(axis), Numbers<T>({4, 6})}, attributes});
    ExpectSame({"SplitV", {Numbers<T>({4, 4}), Vector<int32_t>({3, 1}), Tensor(axis)}, attributes});
  }
}

TYPED_TEST(NativeKernelTest, Rows) {
  using T = TypeParam;
  const Tensor x = Numbers<T>({4, 5});
  ExpectSame({"GatherV2", {x, Vector<int32_t>({2}), Tensor(0)}});
  ExpectSame({"GatherV2", {x, Vector<int64_t>({3, 0, 0}), Tensor(0)}});
  ExpectSame({"GatherV2", {x, Tensor(1), Tensor(0)}});
  ExpectSame({"GatherV2", {Vector<T>({1, 2, 3}), Vector<int32_t>({2, 1}), Tensor(0)}});
  ExpectSame({"Gather", {x, Vector<int32_t>({2, 2})}});
  OneOperator op("GatherV2", {x.dtype(), tensorflow::DT_INT32, tensorflow::DT_INT32}, 0, None());
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({x, Vector<int32_t>({4}), Tensor(0)}, true, &got));
  EXPECT_FALSE(op.RunNative({x, Vector<int32_t>({0, -1}), Tensor(0)}, true, &got));
}

// --- Shapes ---------------------------------------------------------------------------------------

TYPED_TEST(NativeKernelTest, Views) {
  using T = TypeParam;
  for (const int axis : {0, 1, 2, -1, -3}) ExpectSame({"ExpandDims", {Numbers<T>({2, 3}), Tensor(axis)}});
  ExpectSame({"ExpandDims", {Tensor(T(3)), Tensor(0)}});
  ExpectSame({"Squeeze", {Numbers<T>({1, 3, 1})}});
  ExpectSame({"Squeeze", {Numbers<T>({1, 1})}});
  ExpectSame({"Squeeze", {Numbers<T>({1, 3, 1})}, [](NodeDefBuilder* node) { node->Attr("squeeze_dims", {0}); }});
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{6}, {3, 2}, {-1}, {1, -1, 2}, {2, 3}}) {
    ExpectSame({"Reshape", {Numbers<T>({2, 3}), Vector<int32_t>(sizes)}});
  }
  ExpectSame({"Reshape", {Numbers<T>({1, 1}), Vector<int32_t>({})}});
}

TYPED_TEST(NativeKernelTest, ShapesAndNewNumbers) {
  using T = TypeParam;
  ExpectSame({"Shape", {Numbers<T>({2, 3, 4})}});
  ExpectSame({"ShapeN", {Numbers<T>({2, 3}), Numbers<T>({5}), Numbers<T>({0, 1})}, None(), 3});
  ExpectSame({"ConcatOffset", {Tensor(0), Vector<int32_t>({2, 3}), Vector<int32_t>({5, 3})}, None(), -2});
  ExpectSame({"ConcatOffset", {Tensor(-1), Vector<int32_t>({2, 3}), Vector<int32_t>({2, 7})}, None(), -2});
  for (const Shape& shape : SomeShapes()) {
    ExpectSame({"ZerosLike", {Numbers<T>(shape)}});
    ExpectSame({"OnesLike", {Numbers<T>(shape)}});
  }
  ExpectSame({"Fill", {Vector<int32_t>({2, 3}), Tensor(T(7))}});
  ExpectSame({"Fill", {Vector<int64_t>({2, 0}), Tensor(T(7))}});
}

TEST(PackTest, LeavesAxesThatNumbersHaveNotToTheStockKernel) {
  for (const int axis : {1, -2}) {
    OneOperator op("Pack", {tensorflow::DT_FLOAT, tensorflow::DT_FLOAT}, 2,
                   [axis](NodeDefBuilder* node) { node->Attr("axis", axis); });
    std::vector<Tensor> got;
    EXPECT_FALSE(op.RunNative({Tensor(1.0F), Tensor(2.0F)}, true, &got));
    EXPECT_FALSE(op.RunStock({Tensor(1.0F), Tensor(2.0F)}, &got).ok());
  }
}

TEST(ShapeTest, LeavesLargeSizesToTheStockKernel) {
  const Tensor large(tensorflow::DT_FLOAT, TensorShape({(int64_t{1} << 33) + 5, 0}));
  OneOperator op("Shape", {tensorflow::DT_FLOAT}, 0, None());
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({large}, true, &got));
  EXPECT_FALSE(op.RunStock({large}, &got).ok());
  ExpectSame({"Shape", {large}, [](NodeDefBuilder* node) { node->Attr("out_type", tensorflow::DT_INT64); }});
}

TEST(SqueezeTest, LeavesManyDimensionsToTheStockKernel) {
  const Attributes attributes = [](NodeDefBuilder* node) { node->Attr("squeeze_dims", {0}); };
  ExpectSame({"Squeeze", {Numbers<float>(Shape(32, 1))}, attributes});
  OneOperator op("Squeeze", {tensorflow::DT_FLOAT}, 0, attributes);
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({Numbers<float>(Shape(70, 1))}, true, &got));
}

TEST(CastTest, ConvertsNumbers) {
  const auto to = [](DataType dtype) { return [dtype](NodeDefBuilder* node) { node->Attr("DstT", dtype); }; };
  for (const DataType dtype :
       {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE, tensorflow::DT_INT32, tensorflow::DT_INT64}) {
    ExpectSame({"Cast", {Vector<int32_t>({0, -1, 7, 1 << 30})}, to(dtype)});
    ExpectSame({"Cast", {Vector<int64_t>({0, -1, 7, int64_t{1} << 40})}, to(dtype)});
    Tensor booleans(tensorflow::DT_BOOL, TensorShape({2}));
    booleans.flat<bool>()(0) = false;
    booleans.flat<bool>()(1) = true;
    ExpectSame({"Cast", {booleans}, to(dtype)});
  }
  ExpectSame({"Cast", {Vector<double>(Edges<double>())}, to(tensorflow::DT_FLOAT)});
  ExpectSame({"Cast", {Vector<float>(Edges<float>())}, to(tensorflow::DT_DOUBLE)});
}

// --- Sums -----------------------------------------------------------------------------------------

TYPED_TEST(NativeKernelTest, Sums) {
  using T = TypeParam;
  for (const Shape& shape : SomeShapes()) {
    const Tensor x = Numbers<T>(shape), y = Numbers<T>(shape, 2), z = Numbers<T>(shape, 3);
    ExpectSame({"AddN", {x}, None(), 1});
    ExpectSame({"AddN", {x, y}, None(), 2});
    ExpectSame({"AddN", {x, y, z}, None(), 3, kClose<T>});
  }
}

TYPED_TEST(NativeKernelTest, Softmax) {
  using T = TypeParam;
  for (const Shape& shape : std::vector<Shape>{{1, 2}, {3, 17}, {2, 300}, {1, 1}}) {
    ExpectSame({"Softmax", {Numbers<T>(shape)}, None(), 0, kClose<T>});
  }
}

// Which stock kernels compute in less time.
TYPED_TEST(NativeKernelTest, SoftmaxOfManyShortRowsIsLeftToTheStockKernel) {
  using T = TypeParam;
  for (const std::string op : {"Softmax", "LogSoftmax"}) {
    OneOperator kernel(op, {DataTypeToEnum<T>::value}, 0, None());
    std::vector<Tensor> got;
    EXPECT_FALSE(kernel.RunNative({Numbers<T>({33, 15})}, true, &got)) << op;
    EXPECT_TRUE(kernel.RunNative({Numbers<T>({32, 15})}, true, &got)) << op;
    EXPECT_TRUE(kernel.RunNative({Numbers<T>({33, 16})}, true, &got)) << op;
  }
}

TYPED_TEST(NativeKernelTest, LogSoftmaxAndCrossEntropy) {
  using T = TypeParam;
  for (const Shape& shape : std::vector<Shape>{{1, 2}, {3, 17}, {2, 300}, {1, 1}}) {
    ExpectSame({"LogSoftmax", {Numbers<T>(shape)}, None(), 0, kClose<T>});
    const std::vector<int64_t> labels(shape[0], shape[1] - 1);
    const std::vector<int32_t> firsts(shape[0], 0);
    for (const Tensor& label : {Vector<int64_t>(labels), Vector<int32_t>(firsts)}) {
      ExpectSame({"SparseSoftmaxCrossEntropyWithLogits", {Numbers<T>(shape), label}, None(), 0, kClose<T>});
    }
  }
  OneOperator op("SparseSoftmaxCrossEntropyWithLogits", {DataTypeToEnum<T>::value, tensorflow::DT_INT32}, 0, None());
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({Numbers<T>({2, 3}), Vector<int32_t>({0, 3})}, true, &got));
  EXPECT_FALSE(op.RunNative({Numbers<T>({2, 3}), Vector<int32_t>({-1, 0})}, true, &got));
}

TYPED_TEST(NativeKernelTest, Reductions) {
  using T = TypeParam;
  for (const bool keeps : {false, true}) {
    const Attributes attributes = [keeps](NodeDefBuilder* node) { node->Attr("keep_dims", keeps); };
    for (const std::string op : {"Sum", "Mean", "Max"}) {
      const double tolerance = op == "Max" ? kExact : kClose<T> * 10;
      for (const auto& [shape, axes] : std::vector<std::pair<Shape, std::vector<int32_t>>>{{{3, 50}, {1}},
                                                                                           {{3, 50}, {-1}},
                                                                                           {{2, 3, 5}, {1, 2}},
                                                                                           {{2, 3, 5}, {0, 1, 2}},
                                                                                           {{7}, {0}},
                                                                                           {{1, 300}, {1}},
                                                                                           {{3, 50}, {0}},
                                                                                           {{1, 50}, {0}},
                                                                                           {{2, 3, 5}, {1}},
                                                                                           {{2, 3, 5}, {0, 1}},
                                                                                           {{2, 1, 5}, {0, 2}},
                                                                                           {{1, 3, 5}, {0, 2}}}) {
        ExpectSame({op, {Numbers<T>(shape), Vector<int32_t>(axes)}, attributes, 0, tolerance});
      }
      ExpectSame({op, {Numbers<T>({2, 3}), Tensor(-1)}, attributes, 0, tolerance});
    }
  }
  OneOperator op("Sum", {DataTypeToEnum<T>::value, tensorflow::DT_INT32}, 0, None());
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({Numbers<T>({2, 3, 4}), Vector<int32_t>({0, 2})}, true, &got));  // not side by side
  for (const Shape& shape : std::vector<Shape>{{1, 3}, {3, 1, 1}, {1}}) {
    Tensor zeros(DataTypeToEnum<T>::value, TensorShape(shape));
    for (int64_t i = 0; i < zeros.NumElements(); ++i) zeros.flat<T>()(i) = T(-0.0);
    const int32_t axis = shape.size() > 2 ? 1 : 0;
    for (const std::string each : {"Sum", "Mean", "Max"}) {  // of single numbers: -0 stays
      OneOperator reduction(each, {zeros.dtype(), tensorflow::DT_INT32}, 0, None());
      std::vector<Tensor> want;
      ASSERT_TRUE(reduction.RunNative({zeros, Tensor(axis)}, false, &got));
      ASSERT_TRUE(reduction.RunStock({zeros, Tensor(axis)}, &want).ok());
      EXPECT_EQ(got[0].tensor_data(), want[0].tensor_data()) << each;
    }
  }
}

TYPED_TEST(NativeKernelTest, EnsuredShapes) {
  using T = TypeParam;
  const Tensor x = Numbers<T>({2, 3});
  for (const tensorflow::PartialTensorShape& shape : std::vector<tensorflow::PartialTensorShape>{
           tensorflow::PartialTensorShape({2, 3}), tensorflow::PartialTensorShape({-1, 3}), {}}) {
    ExpectSame({"EnsureShape", {x}, [&](NodeDefBuilder* node) { node->Attr("shape", shape); }});
  }
  OneOperator op("EnsureShape", {x.dtype()}, 0,
                 [&](NodeDefBuilder* node) { node->Attr("shape", tensorflow::PartialTensorShape({-1, 4})); });
  std::vector<Tensor> got;
  EXPECT_FALSE(op.RunNative({x}, true, &got));
}

// Alone, since a processor's own library may stand in for the stock kernel in sessions, and does otherwise.
TYPED_TEST(NativeKernelTest, SoftmaxOfEdges) {
  using T = TypeParam;
  Tensor x = Numbers<T>({3, 5});
  x.flat<T>()(2) = std::numeric_limits<T>::quiet_NaN();
  x.flat<T>()(7) = -std::numeric_limits<T>::infinity();
  OneOperator op("Softmax", {x.dtype()}, 0, None());
  std::vector<Tensor> got;
  ASSERT_TRUE(op.RunNative({x}, true, &got));
  const auto rows = got[0].matrix<T>();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(rows(0, i)));
  EXPECT_EQ(rows(1, 2), 0);
  EXPECT_NEAR(rows(1, 0) + rows(1, 1) + rows(1, 3) + rows(1, 4), 1, 1e-6);
}

}  // namespace
}  // namespace tensorflow_recursion
