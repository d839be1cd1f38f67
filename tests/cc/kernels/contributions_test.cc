// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/contributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/variant.h"
#include "tests/cc/executor/live_tensors.h"
#include "tests/cc/expand/graphs.h"
#include "tests/cc/kernels/run_graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT64;
using tensorflow::DT_VARIANT;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Variant;

constexpr int kDeep = 1'000'000;

using Shape = std::vector<int64_t>;

// A tensor of this shape that holds first, first + 1 ..
Tensor Floats(const Shape& shape, float first) {
  Tensor tensor(DT_FLOAT, TensorShape(shape));
  auto values = tensor.flat<float>();
  for (int64_t i = 0; i < values.size(); ++i) values(i) = first + static_cast<float>(i);
  return tensor;
}

Tensor Int64s(const std::vector<int64_t>& values) {
  Tensor tensor(DT_INT64, TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor.flat<int64_t>().data());
  return tensor;
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  return {values.data(), values.data() + values.size()};
}

Tensor Box(Contributions contributions) {
  Tensor box(DT_VARIANT, TensorShape({}));
  box.scalar<Variant>()() = std::move(contributions);
  return box;
}

// One term, a row `number` and its index.
Contributions Row(float number) { return Contributions(Floats({1}, number), Int64s({0})); }

class ContributionsTest : public ::testing::Test {
 protected:
  // Of one term, of tensors that are counted.
  Contributions Counted(int32_t number) { return Contributions(Make(number), Make(number)); }

  LiveTensors tensors_;

 private:
  Tensor Make(int32_t number) {
    Value value = tensors_.Make(number);
    Tensor tensor = TensorFromValue(value, kInt);
    value.Release();
    return tensor;
  }
};

TEST_F(ContributionsTest, AreZeroAtFirst) {
  EXPECT_TRUE(Contributions().Terms().empty());
  EXPECT_EQ(Contributions().DebugString(), "Contributions(0 terms)");
}

TEST_F(ContributionsTest, SumsHoldTheTermsOfBoth) {
  const Contributions a = Row(1), b = Row(2), c = Row(3);
  const Contributions sum = Contributions::Sum(Contributions::Sum(a, b), c);
  EXPECT_EQ(sum.Terms(), (std::vector<const Contributions::Term*>{a.Terms()[0], b.Terms()[0], c.Terms()[0]}));
  EXPECT_EQ(Contributions::Sum(a, Contributions::Sum(b, c)).Terms(), sum.Terms());
  EXPECT_EQ(Contributions::Sum(sum, sum).Terms().size(), 6);
}

TEST_F(ContributionsTest, ZeroAddsNothing) {
  const Contributions zero, a = Row(1);
  EXPECT_EQ(Contributions::Sum(zero, a).Terms(), a.Terms());
  EXPECT_EQ(Contributions::Sum(a, zero).Terms(), a.Terms());
  EXPECT_TRUE(Contributions::Sum(zero, zero).Terms().empty());
}

TEST_F(ContributionsTest, CopiesShareTheirTerms) {
  Contributions a = Counted(1);
  Contributions copy = a;
  EXPECT_EQ(tensors_.count(), 2);
  const Contributions moved = std::move(a);
  EXPECT_EQ(moved.Terms(), copy.Terms());
  copy = Contributions();
  EXPECT_EQ(moved.Terms().size(), 1);
  EXPECT_EQ(tensors_.count(), 2);
}

TEST_F(ContributionsTest, AssignmentFreesWhatWasThere) {
  Contributions a = Counted(1);
  a = Counted(2);
  EXPECT_EQ(tensors_.count(), 2);
  const Contributions& same = a;
  a = same;
  EXPECT_EQ(a.Terms().size(), 1);
  a = Contributions();
  EXPECT_EQ(tensors_.count(), 0);
}

TEST_F(ContributionsTest, TermsLiveAsLongAsSomeSumOfThem) {
  Contributions a = Counted(1), b = Counted(2);
  Contributions sum = Contributions::Sum(a, b), larger = Contributions::Sum(sum, a);
  a = b = sum = Contributions();
  EXPECT_EQ(larger.Terms().size(), 3);
  EXPECT_EQ(tensors_.count(), 4);
  larger = Contributions();
  EXPECT_EQ(tensors_.count(), 0);
}

// Recursion adds up depth first, so that a sum leans to one side. What the stack cannot hold would end the process.
TEST_F(ContributionsTest, DeepSumsNeedNoStack) {
  for (const bool leans_left : {true, false}) {
    Contributions sum = Counted(0);
    for (int i = 1; i < kDeep; ++i) {
      const Contributions term = Row(0);
      sum = leans_left ? Contributions::Sum(sum, term) : Contributions::Sum(term, sum);
    }
    EXPECT_EQ(sum.Terms().size(), kDeep);
    EXPECT_EQ(tensors_.count(), 2);
    sum = Contributions();
    EXPECT_EQ(tensors_.count(), 0);
  }
}

TEST_F(ContributionsTest, MayBeSharedByThreads) {
  const Contributions shared = Contributions::Sum(Counted(1), Counted(2));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([shared] {
      Contributions sum;
      for (int j = 0; j < 1000; ++j) sum = Contributions::Sum(sum, shared);
      EXPECT_EQ(sum.Terms().size(), 2000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tensors_.count(), 4);
}

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
                 {"first_shape", TensorShape(first)},
                 {"second_shape", TensorShape(second)}});
  }

  absl::Status Run(const std::vector<std::string>& fetches, std::vector<Tensor>* outputs,
                   const std::vector<std::pair<std::string, Tensor>>& feeds = {}) {
    return RunGraph(graph_.graph(), fetches, outputs, feeds);
  }

  // Collects what is fed.
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

TEST_F(ContributionOpsTest, CollectReportsRowsOfUnknownShape) {
  graph_.Node("none", kContributeNoneOp);
  graph_.Node("collect", kCollectOp, {"none"},
              {{"T", DT_FLOAT},
               {"U", DT_INT64},
               {"first_shape", tensorflow::PartialTensorShape({-1})},
               {"second_shape", TensorShape({})}});
  std::vector<Tensor> outputs;
  EXPECT_EQ(Run({"collect:0"}, &outputs).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tensorflow_recursion
