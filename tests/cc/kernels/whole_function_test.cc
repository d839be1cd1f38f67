// Functions with calls in a session of TensorFlow that knows nothing of us: who runs them, and what comes of it.
// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/whole_function.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cc/base/names.h"
#include "cc/base/notices.h"
#include "cc/base/static_settings.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/kernels/run_graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;

std::vector<std::string>& AllHeard() {
  static auto* const all = new std::vector<std::string>;
  return *all;
}

// F(n) = 12 / n, or a function that cannot be made static because it calls one that is missing.
FunctionDef MakeF(bool is_static) {
  const std::vector<BodyNode> divide = {BodyConst("twelve", 12),
                                        MakeBodyNode("div", "FloorDiv", {"twelve:output:0", "n"}, {{"T", kInt}})};
  return is_static ? FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {}, divide, {{"r", "div:z:0"}})
                   : FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {},
                                               {BodyCall("call", "Missing", {"n"})}, {{"r", "call:results:0"}});
}

BodyNode StaticCall(const std::string& name, const std::string& input, int max_depth) {
  BodyNode call = BodyCall(name, "F", {input});
  call.attr.emplace_back(kStaticAttr, true);
  call.attr.emplace_back("_recursion_max_depth", max_depth);
  return call;
}

class WholeFunctionTest : public ::testing::Test {
 protected:
  WholeFunctionTest() {
    AllHeard().clear();
    SetNoticeListener([](NoticeKind /*kind*/, const std::string& text) { AllHeard().push_back(text); });
  }
  ~WholeFunctionTest() override {
    SetNoticeListener(nullptr);
    SetStaticSettings(StaticSettings());
  }

  // What about the functions is not as usual.
  struct Faults {
    int second_max_depth = 100;
    bool in_caller = false;  // the caller holds a node of a body of F, so the body would be there twice
    bool in_callee = false;
  };

  // Runs Outer(n) = F(n) + F(F(n)), whose calls may have different limits.
  static absl::Status Run(int n, int* result, const Faults& faults) {
    GraphBuilder builder;
    builder.Node("n", "Placeholder", {}, {{"dtype", kInt}}).Function(MakeF(!faults.in_callee));
    std::vector<BodyNode> nodes = {StaticCall("a", "n", 100), StaticCall("b", "a:results:0", faults.second_max_depth)};
    std::vector<std::string> summands = {"a:results:0", "b:results:0"};
    if (faults.in_caller) {
      nodes.push_back(MakeBodyNode("entry", kEntryOp, {}, {{"T", kInt}, {"function", "F"}, {"index", 0}}));
      summands.push_back("^entry");
    }
    nodes.push_back(MakeBodyNode("add", "AddV2", summands, {{"T", kInt}}));
    builder.Function(FunctionDefHelper::Create("Outer", {"n: int32"}, {"r: int32"}, {}, nodes, {{"r", "add:z:0"}}));
    builder.Node("outer", "PartitionedCall", {"n"},
                 {{"f", FunctionDefHelper::FunctionRef("Outer")},
                  {"Tin", tensorflow::DataTypeSlice{kInt}},
                  {"Tout", tensorflow::DataTypeSlice{kInt}}});
    std::vector<tensorflow::Tensor> outputs;
    TFR_RETURN_IF_ERROR(RunGraph(builder.graph(), {"outer"}, &outputs, {{"n", tensorflow::Tensor(n)}}));
    *result = outputs[0].scalar<int32_t>()();
    return absl::OkStatus();
  }
  static absl::Status Run(int n, int* result) { return Run(n, result, Faults()); }

  // How many calls have run statically and dynamically since the last time.
  std::pair<int64_t, int64_t> Count() {
    const OutermostCalls before = std::exchange(counted_, CountOutermostCalls());
    return {counted_.as_static - before.as_static, counted_.as_dynamic - before.as_dynamic};
  }

  using Counts = std::pair<int64_t, int64_t>;
  OutermostCalls counted_ = CountOutermostCalls();
};

TEST_F(WholeFunctionTest, RunsStatically) {
  int result = 0;
  ASSERT_TRUE(Run(3, &result).ok());
  EXPECT_EQ(result, 4 + 3);
  EXPECT_EQ(Count(), (Counts{2, 0}));
}

TEST_F(WholeFunctionTest, RunsAsItIsWhileStaticExecutionIsOff) {
  StaticSettings off;
  off.is_on = false;
  SetStaticSettings(off);
  int result = 0;
  ASSERT_TRUE(Run(3, &result).ok());
  EXPECT_EQ(result, 4 + 3);
  EXPECT_EQ(Count(), (Counts{0, 2}));
}

TEST_F(WholeFunctionTest, CallsOfDifferentLimitsRunOneByOne) {
  int result = 0;
  Faults faults;
  faults.second_max_depth = 50;
  ASSERT_TRUE(Run(4, &result, faults).ok());
  EXPECT_EQ(result, 3 + 4);
  EXPECT_EQ(Count(), (Counts{2, 0}));
}

TEST_F(WholeFunctionTest, SaysWhyCallsRunOneByOne) {
  int result = 0;
  Faults faults;
  faults.in_caller = true;
  const absl::Status status = Run(3, &result, faults);
  EXPECT_TRUE(absl::StrContains(status.message(), "'entry'")) << status;  // its kernel has run, and knows nothing to do
  ASSERT_EQ(AllHeard().size(), 1);
  EXPECT_TRUE(absl::StrContains(AllHeard()[0], "'F' run one by one")) << AllHeard()[0];
  EXPECT_TRUE(absl::StrContains(AllHeard()[0], "the graph holds calls of it and its body")) << AllHeard()[0];
}

TEST_F(WholeFunctionTest, ThatCallsRunOneByOneIsAnErrorWhereThatIsAskedFor) {
  StaticSettings strict;
  strict.on_fallback = OnFallback::kError;
  SetStaticSettings(strict);
  int result = 0;
  Faults faults;
  faults.in_caller = true;
  const absl::Status status = Run(3, &result, faults);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "'F' run one by one")) << status;
  EXPECT_TRUE(AllHeard().empty());
}

// One notice is enough where the calls cannot be made static either.
TEST_F(WholeFunctionTest, SaysOnceThatCallsRunDynamically) {
  int result = 0;
  Faults faults;
  faults.in_callee = true;
  const absl::Status status = Run(3, &result, faults);
  EXPECT_TRUE(absl::StrContains(status.message(), "'Missing'")) << status;
  ASSERT_EQ(AllHeard().size(), 1);
  EXPECT_TRUE(absl::StrContains(AllHeard()[0], "'F' runs dynamically")) << AllHeard()[0];
}

TEST_F(WholeFunctionTest, ErrorsHaveTheCallPath) {
  int result = 0;
  const absl::Status status = Run(0, &result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "in call F")) << status;
}

}  // namespace
}  // namespace tensorflow_recursion
