// Functions with calls in a session of TensorFlow that knows nothing of us: who runs them, and what comes of it.
// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/whole_function.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cc/base/static_settings.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/kernels/run_graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;

// F(n) = 12 / n
FunctionDef Divide() {
  return FunctionDefHelper::Create(
      "F", {"n: int32"}, {"r: int32"}, {},
      {BodyConst("twelve", 12), MakeBodyNode("div", "FloorDiv", {"twelve:output:0", "n"}, {{"T", kInt}})},
      {{"r", "div:z:0"}});
}

BodyNode StaticCall(const std::string& name, const std::string& input, int max_depth) {
  BodyNode call = BodyCall(name, "F", {input});
  call.attr.emplace_back(kStaticAttr, true);
  call.attr.emplace_back("_recursion_max_depth", max_depth);
  return call;
}

class WholeFunctionTest : public ::testing::Test {
 protected:
  ~WholeFunctionTest() override { SetStaticSettings(StaticSettings()); }

  // Runs Outer(n) = F(n) + F(F(n)), whose calls may have different limits.
  static absl::Status Run(int n, int* result, int second_max_depth = 100) {
    GraphBuilder builder;
    builder.Const("n", n).Function(Divide());
    builder.Function(
        FunctionDefHelper::Create("Outer", {"n: int32"}, {"r: int32"}, {},
                                  {StaticCall("a", "n", 100), StaticCall("b", "a:results:0", second_max_depth),
                                   MakeBodyNode("add", "AddV2", {"a:results:0", "b:results:0"}, {{"T", kInt}})},
                                  {{"r", "add:z:0"}}));
    builder.Node("outer", "PartitionedCall", {"n"},
                 {{"f", FunctionDefHelper::FunctionRef("Outer")},
                  {"Tin", tensorflow::DataTypeSlice{kInt}},
                  {"Tout", tensorflow::DataTypeSlice{kInt}}});
    std::vector<tensorflow::Tensor> outputs;
    TFR_RETURN_IF_ERROR(RunGraph(builder.graph(), {"outer"}, &outputs));
    *result = outputs[0].scalar<int32_t>()();
    return absl::OkStatus();
  }

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
  ASSERT_TRUE(Run(4, &result, /*second_max_depth=*/50).ok());
  EXPECT_EQ(result, 3 + 4);
  EXPECT_EQ(Count(), (Counts{2, 0}));
}

TEST_F(WholeFunctionTest, ErrorsHaveTheCallPath) {
  int result = 0;
  const absl::Status status = Run(0, &result);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "in call F")) << status;
}

}  // namespace
}  // namespace tensorflow_recursion
