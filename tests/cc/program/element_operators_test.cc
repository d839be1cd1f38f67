// SPDX-License-Identifier: Apache-2.0
#include "cc/program/element_operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cc/values/scalar_operators.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/program/built_programs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr tensorflow::DataType kInt = tensorflow::DT_INT32;

// F(x, i, j), where x is made by a kernel, so that F runs in frames.
class ElementOperatorsTest : public ::testing::Test {
 protected:
  ElementOperatorsTest() {
    graph_.Function("F", {"a", "i", "j"}).Const("F/one", 1, {"^F/frame_start"}).Kernel("F/x", {"F/a"});
    graph_.Op("F/i1", "AddV2", {"F/i", "F/one"}).Op("F/j1", "AddV2", {"F/j", "F/one"});
  }

  void Bounds(const std::string& name, const std::vector<int32_t>& values) {
    Tensor tensor(kInt, TensorShape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
    graph_.Node(name, "Const", {"^F/frame_start"}, {{"dtype", kInt}, {"value", tensor}});
  }
  void Pack(const std::string& name, const Inputs& numbers) {
    graph_.Node(name, "Pack", numbers, {{"T", kInt}, {"N", static_cast<int>(numbers.size())}, {"axis", 0}});
  }
  void Slice(int dims) {
    Bounds("F/strides", std::vector<int32_t>(dims, 1));
    graph_.Node("F/read", "StridedSlice", {"F/x", "F/begin", "F/end", "F/strides"},
                {{"T", kInt},
                 {"Index", kInt},
                 {"begin_mask", 0},
                 {"end_mask", 0},
                 {"ellipsis_mask", 0},
                 {"new_axis_mask", 0},
                 {"shrink_axis_mask", (1 << dims) - 1}});
  }

  void Build() {
    graph_.Result("F", "F/read");
    program_ = BuildOrFail(graph_);
  }

  // The names of what F runs.
  std::set<std::string> Run(OpKind kind) const {
    std::set<std::string> names;
    for (const Op* op : OpsOf(RegionOf(program_, "F"), kind)) names.insert(program_->kernels[op->index].name);
    return names;
  }

  // What the operator reads; nothing if it leaves that to its kernel.
  std::optional<int32_t> Read(const Value& array, const Value& first, const Value& second = Value::Empty()) const {
    const Value in[] = {array, first, second, Value::Empty()};
    Value out = Value::Empty();
    if (!OnlyOp(RegionOf(program_, "F"), OpKind::kScalar).scalar(in, &out)) return std::nullopt;
    return FromBits<int32_t>(out.bits);
  }

  static Value Number(int32_t number) { return Value::Scalar(ToBits(number)); }

  StaticGraph graph_;
  BuiltProgram program_;
};

TEST_F(ElementOperatorsTest, AReadOfAVectorIsOneOperator) {
  Pack("F/begin", {"F/i"});
  Pack("F/end", {"F/i1"});
  Slice(1);
  Build();
  EXPECT_EQ(Run(OpKind::kKernel), std::set<std::string>{"F/x"});
  EXPECT_EQ(Run(OpKind::kScalar), (std::set<std::string>{"F/j1", "F/read"}));  // nothing has read j + 1 before
}

TEST_F(ElementOperatorsTest, WhatOthersReadStays) {
  Pack("F/begin", {"F/i"});
  Pack("F/end", {"F/i1"});
  Slice(1);
  graph_.Kernel("F/other", {"F/end"}).Op("F/sum", "AddV2", {"F/j1", "F/i1"});
  Build();
  EXPECT_EQ(Run(OpKind::kKernel), (std::set<std::string>{"F/end", "F/x", "F/other"}));
  EXPECT_EQ(Run(OpKind::kScalar), (std::set<std::string>{"F/i1", "F/j1", "F/read", "F/sum"}));
}

TEST_F(ElementOperatorsTest, ReadsOfMatricesCountFromTheEndToo) {
  Pack("F/begin", {"F/i", "F/j"});
  Pack("F/end", {"F/i1", "F/j1"});
  Slice(2);
  Build();
  Tensor matrix(kInt, TensorShape({2, 3}));
  for (int i = 0; i < 6; ++i) matrix.flat<int32_t>()(i) = 10 * i;
  const Value x = Value::Borrow(&matrix);
  EXPECT_EQ(Read(x, Number(1), Number(2)), 50);
  EXPECT_EQ(Read(x, Number(-2), Number(-1)), 20);
  EXPECT_EQ(Read(x, Number(2), Number(0)), std::nullopt);
  EXPECT_EQ(Read(x, Number(0), Number(-4)), std::nullopt);
  EXPECT_EQ(Read(Number(7), Number(0), Number(0)), std::nullopt);
  const Tensor vector(kInt, TensorShape({6}));
  EXPECT_EQ(Read(Value::Borrow(&vector), Number(0), Number(0)), std::nullopt);
  EXPECT_EQ(Read(x, Value::Borrow(&vector), Number(0)), std::nullopt);
}

TEST_F(ElementOperatorsTest, KernelsGetBounds) {
  Tensor strides(kInt, TensorShape({2}));
  Value inputs[] = {Value::Empty(), Number(4), Number(-1), Value::Borrow(&strides)};
  ASSERT_TRUE(PackIndices(kInt, inputs));
  EXPECT_EQ(inputs[1].tensor->vec<int32_t>()(0), 4);
  EXPECT_EQ(inputs[1].tensor->vec<int32_t>()(1), -1);
  EXPECT_EQ(inputs[2].tensor->vec<int32_t>()(0), 5);
  EXPECT_EQ(inputs[2].tensor->vec<int32_t>()(1), 0);
  for (Value& input : inputs) input.Release();
}

TEST_F(ElementOperatorsTest, AnIndexThatIsNoNumberHasNoBounds) {
  const Tensor strides(kInt, TensorShape({1}));
  const Tensor vector(kInt, TensorShape({3}));
  Value inputs[] = {Value::Empty(), Value::Borrow(&vector), Value::Empty(), Value::Borrow(&strides)};
  EXPECT_FALSE(PackIndices(kInt, inputs));
}

}  // namespace
}  // namespace tensorflow_recursion
