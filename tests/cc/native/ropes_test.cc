// When concatenations and cuts put their copying off, and what they make then.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cc/base/names.h"
#include "cc/native/native_kernel.h"
#include "cc/values/rope.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::NodeDefBuilder;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int64_t kColumns = 10;
// Rows that together are as large as the smallest rope.
constexpr int64_t kManyRows = (kSmallestRope + kColumns * 4 - 1) / (kColumns * 4);

Tensor Rows(int64_t count, float first) {
  Tensor rows(tensorflow::DT_FLOAT, TensorShape({count, kColumns}));
  for (int64_t i = 0; i < rows.NumElements(); ++i) rows.flat<float>()(i) = first + static_cast<float>(i);
  return rows;
}

// An operator, and one that reads its outputs.
class ReadOperator {
 public:
  ReadOperator(const std::string& reader, NodeDefBuilder op, int outputs = 1)
      : graph_(tensorflow::OpRegistry::Global()) {
    tensorflow::GraphDef def;
    for (const char* name : {"x", "y"}) AddPlaceholder(name, tensorflow::DT_FLOAT, &def);
    for (const char* name : {"axis", "sizes"}) AddPlaceholder(name, tensorflow::DT_INT32, &def);
    TF_CHECK_OK(op.Finalize(def.add_node()));
    for (int i = 0; i < outputs; ++i) {
      TF_CHECK_OK(NodeDefBuilder(absl::StrCat("reader", i), reader)
                      .Input("op", i, tensorflow::DT_FLOAT)
                      .Finalize(def.add_node()));
    }
    TF_CHECK_OK(tensorflow::ConvertGraphDefToGraph({}, def, &graph_));
    for (const tensorflow::Node* node : graph_.op_nodes()) {
      if (node->name() == "op") kernel_ = FindNativeKernel(*node);
    }
  }

  // The outputs; empty if the kernel leaves the inputs to TensorFlow's. The inputs are the caller's.
  std::vector<Value> Run(std::vector<Value> inputs) {
    std::vector<Value> outputs(kernel_.num_outputs, Value::Empty());
    const bool is_done = kernel_.run(kernel_, NativeContext(), inputs.data(), outputs.data());
    for (Value& input : inputs) input.Release();
    return is_done ? outputs : std::vector<Value>();
  }

 private:
  static void AddPlaceholder(const char* name, DataType dtype, tensorflow::GraphDef* def) {
    TF_CHECK_OK(NodeDefBuilder(name, "Placeholder").Attr("dtype", dtype).Finalize(def->add_node()));
  }

  tensorflow::Graph graph_;
  NativeKernel kernel_;
};

NodeDefBuilder Concat() {
  NodeDefBuilder builder("op", "ConcatV2");
  builder.Input({{"x", 0, tensorflow::DT_FLOAT}, {"y", 0, tensorflow::DT_FLOAT}});
  builder.Input("axis", 0, tensorflow::DT_INT32);
  return builder;
}

NodeDefBuilder ConcatGradient() {
  NodeDefBuilder builder("op", kConcatGradientOp);
  builder.Input("axis", 0, tensorflow::DT_INT32).Input("x", 0, tensorflow::DT_FLOAT);
  builder.Input({{"x", 0, tensorflow::DT_FLOAT}, {"y", 0, tensorflow::DT_FLOAT}});
  builder.Attr("N", 2).Attr("are_shapes", std::vector<bool>{false, false});
  return builder;
}

NodeDefBuilder SplitV() {
  NodeDefBuilder builder("op", "SplitV");
  builder.Input("x", 0, tensorflow::DT_FLOAT).Input("sizes", 0, tensorflow::DT_INT32);
  builder.Input("axis", 0, tensorflow::DT_INT32).Attr("num_split", 2);
  return builder;
}

Value Of(const Tensor& tensor) { return Value::Own(NewTensor(tensor)); }
Value Axis(int32_t axis) { return Value::Scalar(static_cast<uint32_t>(axis)); }

void ExpectRows(Value value, const Tensor& want) {
  const Tensor got = TensorFromValue(value, tensorflow::DT_FLOAT);
  ASSERT_EQ(got.shape(), want.shape());
  ASSERT_TRUE(got.IsAligned());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.TotalBytes()), 0);
  value.Release();
}

TEST(RopesTest, LargeConcatenationsThatAreHandedOnBecomeRopes) {
  for (const std::string reader : {"Identity", "Relu"}) {
    ReadOperator concat(reader, Concat());
    for (const int64_t rows : {kManyRows, int64_t{2}}) {
      const std::vector<Value> outputs = concat.Run({Of(Rows(rows, 0)), Of(Rows(1, 7)), Axis(0)});
      ASSERT_EQ(outputs.size(), 1);
      const bool is_rope = outputs[0].kind == Value::Kind::kRope;
      EXPECT_EQ(is_rope, reader == "Identity" && rows == kManyRows) << reader << rows;
      Tensor want(tensorflow::DT_FLOAT, TensorShape({rows + 1, kColumns}));
      std::memcpy(want.data(), Rows(rows, 0).data(), rows * kColumns * sizeof(float));
      std::memcpy(want.flat<float>().data() + rows * kColumns, Rows(1, 7).data(), kColumns * sizeof(float));
      ExpectRows(outputs[0], want);
    }
  }
}

TEST(RopesTest, PartsWithoutRowsAddNone) {
  ReadOperator concat("Identity", Concat());
  ExpectRows(concat.Run({Of(Rows(0, 0)), Of(Rows(kManyRows, 3)), Axis(-2)})[0], Rows(kManyRows, 3));
}

// Rows without memory of their own: each rope is made of the same two parts.
TEST(RopesTest, WhatNoMemoryHoldsIsLeftToTheStockKernel) {
  ReadOperator concat("Identity", Concat());
  Value rows = Of(Rows(kManyRows, 0));
  int64_t bytes = kManyRows * kColumns * 4;
  for (; 2 * bytes <= Rope::MostBytes(); bytes *= 2) {
    const std::vector<Value> outputs = concat.Run({rows, rows.Copy(), Axis(0)});
    ASSERT_EQ(outputs.size(), 1);
    ASSERT_EQ(outputs[0].kind, Value::Kind::kRope);
    rows = outputs[0];
  }
  EXPECT_TRUE(concat.Run({rows, rows.Copy(), Axis(0)}).empty());
}

// A size that is more than an int64 holds may come of parts without elements, too.
TEST(RopesTest, SizesThatOverflowAreLeftToTheStockKernel) {
  ReadOperator concat("Identity", Concat());
  const Tensor rows(tensorflow::DT_FLOAT, TensorShape({int64_t{1} << 62, 0}));
  EXPECT_TRUE(concat.Run({Of(rows), Of(rows), Axis(0)}).empty());
}

TEST(RopesTest, PartsSideBySideAreCopied) {
  ReadOperator concat("Identity", Concat());
  const std::vector<Value> outputs = concat.Run({Of(Rows(kManyRows, 0)), Of(Rows(kManyRows, 1)), Axis(1)});
  ASSERT_EQ(outputs.size(), 1);
  EXPECT_EQ(outputs[0].kind, Value::Kind::kTensor);
  Value(outputs[0]).Release();
}

// The error says what TensorFlow's kernel says.
TEST(RopesTest, PartsThatDoNotFitAreAnError) {
  ReadOperator concat("Identity", Concat());
  Tensor other(tensorflow::DT_FLOAT, TensorShape({kManyRows, kColumns + 1}));
  EXPECT_TRUE(concat.Run({Of(Rows(kManyRows, 0)), Of(other), Axis(0)}).empty());
  EXPECT_TRUE(concat.Run({Of(Rows(kManyRows, 0)), Of(Rows(1, 0)), Axis(2)}).empty());
}

TEST(RopesTest, GradientsCutViewsOfViews) {
  ReadOperator gradient("Identity", ConcatGradient(), 2);
  const Tensor whole = Rows(4 * kManyRows + 1, 0);
  std::vector<Value> outer = gradient.Run({Axis(0), Of(whole), Of(Rows(3 * kManyRows, 0)), Of(Rows(kManyRows + 1, 0))});
  ASSERT_EQ(outer.size(), 2);
  ASSERT_EQ(outer[1].kind, Value::Kind::kRope);
  EXPECT_TRUE(outer[1].rope->View().SharesBufferWith(whole));
  ExpectRows(outer[0], Rows(3 * kManyRows, 0));
  const auto first = static_cast<float>(3 * kManyRows * kColumns);
  std::vector<Value> inner = gradient.Run({Axis(0), outer[1], Of(Rows(1, 0)), Of(Rows(kManyRows, 0))});
  ASSERT_EQ(inner.size(), 2);
  EXPECT_EQ(inner[0].kind, Value::Kind::kTensor);  // too small to share memory
  ASSERT_EQ(inner[1].kind, Value::Kind::kRope);
  EXPECT_TRUE(inner[1].rope->View().SharesBufferWith(whole));
  ExpectRows(inner[0], Rows(1, first));
  ExpectRows(inner[1], Rows(kManyRows, first + kColumns));
}

// The parts of the concatenation are ropes, too: only their shapes matter.
TEST(RopesTest, GradientsReadTheShapesOfRopes) {
  ReadOperator concat("Identity", Concat()), gradient("Identity", ConcatGradient(), 2);
  const Value part = concat.Run({Of(Rows(kManyRows, 0)), Of(Rows(1, 0)), Axis(0)})[0];
  const Tensor whole = Rows(kManyRows + 3, 0);
  std::vector<Value> cut = gradient.Run({Axis(0), Of(whole), part, Of(Rows(2, 0))});
  ASSERT_EQ(cut.size(), 2);
  ExpectRows(cut[0], Rows(kManyRows + 1, 0));
  ExpectRows(cut[1], Rows(2, static_cast<float>((kManyRows + 1) * kColumns)));
}

TEST(RopesTest, CutsOfARopeOfManyParts) {
  ReadOperator concat("Identity", Concat()), split("Identity", SplitV(), 2);
  const Value rope = concat.Run({Of(Rows(kManyRows, 0)), Of(Rows(kManyRows, kManyRows * kColumns)), Axis(0)})[0];
  Tensor sizes(tensorflow::DT_INT32, TensorShape({2}));
  sizes.flat<int32_t>()(0) = 3;
  sizes.flat<int32_t>()(1) = static_cast<int32_t>(2 * kManyRows - 3);
  std::vector<Value> cut = split.Run({rope, Of(sizes), Axis(0)});
  ASSERT_EQ(cut.size(), 2);
  ExpectRows(cut[0], Rows(3, 0));
  ExpectRows(cut[1], Rows(2 * kManyRows - 3, 3 * kColumns));
}

}  // namespace
}  // namespace tensorflow_recursion
