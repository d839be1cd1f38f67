// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/element_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cc/values/scalar_operators.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

// Looks at the body of F(x, i, j), whose x is a tensor of floats.
class ElementReadsTest : public ::testing::Test {
 protected:
  ElementReadsTest() {
    graph_.Function("F", {}).Entry("F", "x", 0, tensorflow::DT_FLOAT).Entry("F", "i", 1).Entry("F", "j", 2);
    graph_.Const("F/one", 1, {"^F/frame_start"});
  }

  void Gather(int axis) {
    graph_.Const("F/axis", axis, {"^F/frame_start"});
    graph_.Node("F/read", "GatherV2", {"F/x", "F/i", "F/axis"},
                {{"Tparams", tensorflow::DT_FLOAT}, {"Tindices", kInt}, {"Taxis", kInt}, {"batch_dims", 0}});
  }

  void Bounds(const std::string& name, const std::vector<int32_t>& values) {
    tensorflow::Tensor tensor(kInt, tensorflow::TensorShape({static_cast<int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
    graph_.Node(name, "Const", {"^F/frame_start"}, {{"dtype", kInt}, {"value", tensor}});
  }
  void Pack(const std::string& name, const Inputs& numbers) {
    graph_.Node(name, "Pack", numbers, {{"T", kInt}, {"N", static_cast<int>(numbers.size())}, {"axis", 0}});
  }

  // x[begin:end:strides], with dimensions taken out as `shrink` says.
  void Slice(const std::string& begin, const std::string& end, int shrink, int begin_mask = 0,
             tensorflow::DataType index = kInt) {
    graph_.Node("F/read", "StridedSlice", {"F/x", begin, end, "F/strides"},
                {{"T", tensorflow::DT_FLOAT},
                 {"Index", index},
                 {"begin_mask", begin_mask},
                 {"end_mask", 0},
                 {"ellipsis_mask", 0},
                 {"new_axis_mask", 0},
                 {"shrink_axis_mask", shrink}});
  }

  void Find() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    found_ = FindElementReads(built_->flow);
  }

  NodeId Entry(const std::string& name) const { return built_->Find("F/" + name, OpKind::kEntry); }
  const ElementRead& TheRead() const { return found_.reads.begin()->second; }
  bool IsBound(const std::string& pack) const { return found_.packs.count(built_->Kernel(pack)) > 0; }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  ElementReads found_;
};

TEST_F(ElementReadsTest, AGatherOfTheFirstDimensionReadsAnElement) {
  Gather(/*axis=*/0);
  Find();
  ASSERT_EQ(found_.reads.size(), 1);
  EXPECT_EQ(found_.reads.begin()->first, built_->Find("F/read", OpKind::kScalar));
  EXPECT_EQ(TheRead().array.source.node, Entry("x"));
  ASSERT_EQ(TheRead().indices.size(), 1);
  EXPECT_EQ(TheRead().indices[0].input.source.node, Entry("i"));
  EXPECT_EQ(TheRead().indices[0].known, std::nullopt);
  EXPECT_EQ(TheRead().access.log_size, 2) << "a float has four bytes";
  EXPECT_FALSE(TheRead().access.is_int64);
  EXPECT_FALSE(TheRead().access.is_matrix);
  EXPECT_FALSE(TheRead().access.counts_from_end);
}

TEST_F(ElementReadsTest, AGatherOfAnotherDimensionReadsMore) {
  Gather(/*axis=*/1);
  Find();
  EXPECT_TRUE(found_.reads.empty());
}

TEST_F(ElementReadsTest, ASliceOfPackedNumbersReadsAnElementOfAMatrix) {
  Bounds("F/strides", {1, 1});
  graph_.Op("F/i1", "AddV2", {"F/i", "F/one"}).Op("F/j1", "AddV2", {"F/j", "F/one"});
  Pack("F/begin", {"F/i", "F/j"});
  Pack("F/end", {"F/i1", "F/j1"});
  Slice("F/begin", "F/end", /*shrink=*/3);
  Find();
  ASSERT_EQ(found_.reads.size(), 1);
  ASSERT_EQ(TheRead().indices.size(), 2);
  EXPECT_EQ(TheRead().indices[0].input.source.node, Entry("i"));
  EXPECT_EQ(TheRead().indices[1].input.source.node, Entry("j"));
  EXPECT_TRUE(TheRead().access.is_matrix);
  EXPECT_TRUE(TheRead().access.counts_from_end);
  EXPECT_TRUE(IsBound("F/begin"));
  EXPECT_TRUE(IsBound("F/end"));
}

// TensorFlow's optimizers spell the Pack of one number so.
TEST_F(ElementReadsTest, ANumberOfANewDimensionIsABound) {
  Bounds("F/strides", {1});
  graph_.Const("F/axis", 0, {"^F/frame_start"}).Op("F/i1", "AddV2", {"F/i", "F/one"});
  for (const char* const name : {"begin", "end"}) {
    const std::string number = std::string(name) == "begin" ? "F/i" : "F/i1";
    graph_.Node(std::string("F/") + name, "ExpandDims", {number, "F/axis"}, {{"T", kInt}, {"Tdim", kInt}});
  }
  Slice("F/begin", "F/end", /*shrink=*/1);
  Find();
  ASSERT_EQ(found_.reads.size(), 1);
  ASSERT_EQ(TheRead().indices.size(), 1);
  EXPECT_EQ(TheRead().indices[0].input.source.node, Entry("i"));
  EXPECT_TRUE(IsBound("F/begin"));
  EXPECT_TRUE(IsBound("F/end"));
}

TEST_F(ElementReadsTest, APackThatSomebodyElseReadsIsAnOperatorOfItsOwn) {
  Bounds("F/strides", {1});
  graph_.Op("F/i1", "AddV2", {"F/i", "F/one"});
  Pack("F/begin", {"F/i"});
  Pack("F/end", {"F/i1"});
  Slice("F/begin", "F/end", /*shrink=*/1);
  graph_.Kernel("F/reader", {"F/begin"});
  Find();
  EXPECT_EQ(found_.reads.size(), 1);
  EXPECT_FALSE(IsBound("F/begin"));
  EXPECT_TRUE(IsBound("F/end"));
}

TEST_F(ElementReadsTest, ConstantBoundsSayTheIndex) {
  Bounds("F/strides", {1});
  Bounds("F/begin", {-1});
  Bounds("F/end", {0});
  Slice("F/begin", "F/end", /*shrink=*/1);
  Find();
  ASSERT_EQ(found_.reads.size(), 1);
  ASSERT_EQ(TheRead().indices.size(), 1);
  EXPECT_EQ(TheRead().indices[0].known, ToBits(int32_t{-1}));
}

TEST_F(ElementReadsTest, ASliceThatKeepsADimensionReadsMore) {
  Bounds("F/strides", {1, 1});
  Pack("F/begin", {"F/i", "F/j"});
  Slice("F/begin", "F/begin", /*shrink=*/1);
  Find();
  EXPECT_TRUE(found_.reads.empty());
}

TEST_F(ElementReadsTest, ASliceFromTheBeginningReadsMore) {
  Bounds("F/strides", {1});
  Pack("F/begin", {"F/i"});
  Slice("F/begin", "F/begin", /*shrink=*/1, /*begin_mask=*/1);
  Find();
  EXPECT_TRUE(found_.reads.empty());
}

TEST_F(ElementReadsTest, ASliceWithOtherStridesReadsMore) {
  Bounds("F/strides", {2});
  Pack("F/begin", {"F/i"});
  Slice("F/begin", "F/begin", /*shrink=*/1);
  Find();
  EXPECT_TRUE(found_.reads.empty());
}

// The stock kernel takes them; nothing here reads them.
TEST_F(ElementReadsTest, ASliceWithBoundsOfAnotherTypeIsAnOperatorOfItsOwn) {
  tensorflow::Tensor bound(tensorflow::DT_INT16, tensorflow::TensorShape({1}));
  bound.flat<int16_t>()(0) = 1;
  for (const char* const name : {"F/begin", "F/end", "F/strides"}) {
    graph_.Node(name, "Const", {"^F/frame_start"}, {{"dtype", tensorflow::DT_INT16}, {"value", bound}});
  }
  Slice("F/begin", "F/end", /*shrink=*/1, /*begin_mask=*/0, tensorflow::DT_INT16);
  Find();
  EXPECT_TRUE(found_.reads.empty());
}

}  // namespace
}  // namespace tensorflow_recursion
