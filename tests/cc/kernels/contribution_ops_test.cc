// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/contribution_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/kernels/run_graph.h"
#include "tests/cc/values/contribution_values.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT64;
using tensorflow::DT_VARIANT;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Variant;

// The operators, in sessions. `sum` is fed, or what a test lets it be.
class ContributionOpsTest : public ::testing::Test {
 protected:
  void Const(const std::string& name, const Tensor& value) {
    graph_.Node(name, "Const", {}, {{"dtype", value.dtype()}, {"value", value}});
  }
  void Contribute(const std::string& name, const std::string& first, const std::string& second,
                  tensorflow::DataType first_type = DT_FLOAT, tensorflow::DataType second_type = DT_INT64) {
    graph_.Node(name, kContributeOp, {first, second}, {{"T", first_type}, {"U", second_type}});
  }
  void Collect(const std::string& input, const Shape& first, const Shape& second,
               tensorflow::DataType second_type = DT_INT64) {
    graph_.Node("collect", kCollectOp, {input},
                {{"T", DT_FLOAT},
                 {"U", second_type},
                 {"first_shape", PartialTensorShape(first)},
                 {"second_shape", PartialTensorShape(second)}});
  }

  absl::Status Run(const std::vector<std::string>& fetches, std::vector<Tensor>* outputs,
                   const std::vector<std::pair<std::string, Tensor>>& feeds = {}) {
    return RunGraph(graph_.graph(), fetches, outputs, feeds);
  }

  // Collects what is fed. Dimensions of -1 are open.
  absl::Status CollectFed(const Tensor& fed, const Shape& first, const Shape& second, std::vector<Tensor>* outputs) {
    graph_ = GraphBuilder();
    graph_.Node("sum", "Placeholder", {}, {{"dtype", DT_VARIANT}});
    Collect("sum", first, second);
    return Run({"collect:0", "collect:1"}, outputs, {{"sum:0", fed}});
  }

  void ExpectFault(const Tensor& fed, const Shape& first, const Shape& second, const std::string& text) {
    std::vector<Tensor> outputs;
    const absl::Status status = CollectFed(fed, first, second, &outputs);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "Gradient 'collect': " + text)) << status;
  }

  GraphBuilder graph_;
};

TEST_F(ContributionOpsTest, CollectConcatenatesTheTermsInTheirOrder) {
  const Contributions sum = Contributions::Sum(Contributions(Floats({2, 3}, 1), Int64s({5, 6})),
                                               Contributions(Floats({1, 3}, 7), Int64s({9})));
  std::vector<Tensor> outputs;
  ASSERT_TRUE(CollectFed(Box(sum), {3}, {}, &outputs).ok());
  EXPECT_EQ(outputs[0].shape(), TensorShape({3, 3}));
  EXPECT_EQ(ValuesOf(outputs[0]), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(outputs[1].DebugString(), Int64s({5, 6, 9}).DebugString());
}

TEST_F(ContributionOpsTest, CollectTakesTheTermsOfOnePart) {
  Const("a", Floats({1}, 1));
  Const("b", Floats({2}, 5));
  Const("ints", Int64s({7, 8}));
  for (const int part : {0, 1, 2}) {
    const std::string name = std::to_string(part);
    graph_.Node("of" + name, kContributeOp, part == 1 ? Inputs{"b", "ints"} : Inputs{"b", "a"},
                {{"T", DT_FLOAT}, {"U", part == 1 ? DT_INT64 : DT_FLOAT}, {kPartAttr, part}});
  }
  graph_.Node("view", kContributeViewOp, {"of1"});
  graph_.Node("sum", "AddN", {"of0", "view", "of2"}, {{"T", DT_VARIANT}, {"N", 3}});
  graph_.Node("collect", kCollectOp, {"sum"},
              {{"T", DT_FLOAT},
               {"U", DT_INT64},
               {"first_shape", TensorShape({})},
               {"second_shape", TensorShape({})},
               {kPartAttr, 1}});
  std::vector<Tensor> outputs;
  const absl::Status status = Run({"collect:0", "collect:1"}, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ValuesOf(outputs[0]), (std::vector<float>{5, 6}));
  EXPECT_EQ(outputs[1].DebugString(), Int64s({7, 8}).DebugString());
}

TEST_F(ContributionOpsTest, ZeroTermsAreZeroRows) {
  graph_.Node("none", kContributeNoneOp);
  Collect("none", {2, 3}, {});
  std::vector<Tensor> outputs;
  ASSERT_TRUE(Run({"collect:0", "collect:1"}, &outputs).ok());
  EXPECT_EQ(outputs[0].shape(), TensorShape({0, 2, 3}));
  EXPECT_EQ(outputs[0].dtype(), DT_FLOAT);
  EXPECT_EQ(outputs[1].shape(), TensorShape({0}));
  EXPECT_EQ(outputs[1].dtype(), DT_INT64);
}

TEST_F(ContributionOpsTest, TermsMayHaveNoRows) {
  const Contributions empty(Floats({0, 2}, 0), Int64s({}));
  const Contributions row(Floats({1, 2}, 1), Int64s({4}));
  std::vector<Tensor> outputs;
  ASSERT_TRUE(CollectFed(Box(Contributions::Sum(Contributions::Sum(empty, row), empty)), {2}, {}, &outputs).ok());
  EXPECT_EQ(ValuesOf(outputs[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(outputs[1].NumElements(), 1);
}

TEST_F(ContributionOpsTest, RowsMayBeEmpty) {
  std::vector<Tensor> outputs;
  ASSERT_TRUE(CollectFed(Box(Contributions(Floats({2, 0}, 0), Int64s({1, 2}))), {0}, {}, &outputs).ok());
  EXPECT_EQ(outputs[0].shape(), TensorShape({2, 0}));
}

TEST_F(ContributionOpsTest, TermsPassThroughTheGraph) {
  Const("x", Floats({1, 2}, 1));
  Const("dy", Floats({1, 3}, 5));
  Contribute("a", "x", "dy", DT_FLOAT, DT_FLOAT);
  Contribute("b", "dy", "x", DT_FLOAT, DT_FLOAT);
  Contribute("c", "x", "dy", DT_FLOAT, DT_FLOAT);
  graph_.Node("zero", "ZerosLike", {"b"}, {{"T", DT_VARIANT}});
  graph_.Node("sum", "AddN", {"a", "zero", "c"}, {{"T", DT_VARIANT}, {"N", 3}});
  Collect("sum", {2}, {3}, DT_FLOAT);
  std::vector<Tensor> outputs;
  const absl::Status status = Run({"collect:0", "collect:1"}, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ValuesOf(outputs[0]), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(ValuesOf(outputs[1]), (std::vector<float>{5, 6, 7, 5, 6, 7}));
}

// The two tensors of each term stay side by side, whatever order AddN takes.
TEST_F(ContributionOpsTest, AddNKeepsPairsTogether) {
  Inputs terms;
  constexpr int kTerms = 11;
  for (int i = 0; i < kTerms; ++i) {
    const std::string name = std::to_string(i);
    Const("x" + name, Floats({1}, static_cast<float>(i)));
    Const("i" + name, Int64s({i}));
    Contribute("term" + name, "x" + name, "i" + name);
    terms.push_back("term" + name);
  }
  graph_.Node("sum", "AddN", terms, {{"T", DT_VARIANT}, {"N", kTerms}});
  Collect("sum", {}, {});
  std::vector<Tensor> outputs;
  ASSERT_TRUE(Run({"collect:0", "collect:1"}, &outputs).ok());
  ASSERT_EQ(outputs[0].NumElements(), kTerms);
  int64_t sum = 0;
  for (int i = 0; i < kTerms; ++i) {
    const int64_t index = outputs[1].flat<int64_t>()(i);
    EXPECT_EQ(outputs[0].flat<float>()(i), static_cast<float>(index));
    sum += index;
  }
  EXPECT_EQ(sum, kTerms * (kTerms - 1) / 2);
}

TEST_F(ContributionOpsTest, CollectDeepSumsWithoutStack) {
  for (const bool leans_left : {true, false}) {
    Contributions sum;
    const Contributions term = Row(3);
    for (int i = 0; i < kDeep; ++i) {
      sum = leans_left ? Contributions::Sum(sum, term) : Contributions::Sum(term, sum);
    }
    std::vector<Tensor> outputs;
    ASSERT_TRUE(CollectFed(Box(std::move(sum)), {}, {}, &outputs).ok());
    EXPECT_EQ(outputs[0].shape(), TensorShape({kDeep}));
    const std::vector<float> values = ValuesOf(outputs[0]);
    EXPECT_EQ(std::count(values.begin(), values.end(), 3.0f), kDeep);
  }
}

TEST_F(ContributionOpsTest, TotalPassesItsValueOn) {
  Const("value", Floats({2}, 3));
  graph_.Node("none", kContributeNoneOp);
  graph_.Node("total", kTotalOp, {"value", "none"}, {{"T", DT_FLOAT}});
  std::vector<Tensor> outputs;
  ASSERT_TRUE(Run({"total:0"}, &outputs).ok());
  EXPECT_EQ(ValuesOf(outputs[0]), (std::vector<float>{3, 4}));
}

TEST_F(ContributionOpsTest, CollectReportsTermsOfAnotherShape) {
  const Tensor two_columns = Box(Contributions(Floats({1, 2}, 0), Int64s({0})));
  ExpectFault(two_columns, {3}, {}, "a term is float[1,2], expected rows of float[3]");
  ExpectFault(two_columns, {}, {}, "a term is float[1,2], expected rows of float[]");
  ExpectFault(two_columns, {2}, {1}, "a term is int64[1], expected rows of int64[1]");
  ExpectFault(Box(Contributions(Floats({}, 0), Int64s({0}))), {}, {}, "a term is float[], expected rows of float[]");
}

TEST_F(ContributionOpsTest, CollectReportsOneTermOfManyThatDoesNotFit) {
  const Contributions sum = Contributions::Sum(Row(1), Contributions(Floats({1, 2}, 0), Int64s({0})));
  ExpectFault(Box(sum), {}, {}, "a term is float[1,2], expected rows of float[]");
}

TEST_F(ContributionOpsTest, CollectReportsTermsOfAnotherType) {
  ExpectFault(Box(Contributions(Floats({1}, 0), Floats({1}, 0))), {}, {},
              "a term is float[1], expected rows of int64[]");
  ExpectFault(Box(Contributions(Int64s({1}), Int64s({1}))), {}, {}, "a term is int64[1], expected rows of float[]");
}

TEST_F(ContributionOpsTest, CollectReportsWhatIsNoContribution) {
  Tensor number(DT_VARIANT, TensorShape({}));
  number.scalar<Variant>()() = 17;
  ExpectFault(number, {}, {}, "its input is not what a gradient call returns");
  ExpectFault(Tensor(DT_VARIANT, TensorShape({})), {}, {}, "its input is not what a gradient call returns");
  ExpectFault(Tensor(DT_VARIANT, TensorShape({1})), {}, {}, "its input is not what a gradient call returns");
  ExpectFault(Tensor(DT_VARIANT, TensorShape({0})), {}, {}, "its input is not what a gradient call returns");
}

TEST_F(ContributionOpsTest, RowsOfUnknownRankAreRefused) {
  graph_.Node("none", kContributeNoneOp);
  graph_.Node(
      "collect", kCollectOp, {"none"},
      {{"T", DT_FLOAT}, {"U", DT_INT64}, {"first_shape", PartialTensorShape()}, {"second_shape", TensorShape({})}});
  std::vector<Tensor> outputs;
  const absl::Status status = Run({"collect:0"}, &outputs);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "Gradient 'collect': first_shape has no rank")) << status;
}

// A weight may have dimensions that only a run tells, such as an argument of a batch of any size.
TEST_F(ContributionOpsTest, OpenDimensionsAreThoseOfTheTerms) {
  const Shape open = {-1, 2};
  const Contributions sum = Contributions::Sum(Contributions(Floats({1, 3, 2}, 1), Int64s({4})),
                                               Contributions(Floats({2, 3, 2}, 7), Int64s({5, 6})));
  std::vector<Tensor> outputs;
  ASSERT_TRUE(CollectFed(Box(sum), open, {}, &outputs).ok());
  EXPECT_EQ(outputs[0].shape(), TensorShape({3, 3, 2}));
  EXPECT_EQ(ValuesOf(outputs[0])[17], 18);

  ASSERT_TRUE(CollectFed(Box(Contributions()), open, {}, &outputs).ok());
  EXPECT_EQ(outputs[0].shape(), TensorShape({0, 0, 2}));

  const Contributions others = Contributions::Sum(sum, Contributions(Floats({1, 4, 2}, 1), Int64s({4})));
  ExpectFault(Box(others), open, {}, "a term is float[1,4,2], expected rows of float[3,2]");
  ExpectFault(Box(Contributions(Floats({1}, 1), Int64s({4}))), open, {}, "a term is float[1], expected rows of");
}

}  // namespace
}  // namespace tensorflow_recursion
