// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/verify_functions_pass.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cc/base/names.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

absl::Status Verify(const GraphBuilder& builder) {
  std::unique_ptr<tensorflow::Graph> graph = MakeGraph(builder);
  tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), builder.graph().library());
  tensorflow::GraphOptimizationPassOptions options;
  options.graph = &graph;
  options.flib_def = &library;
  return VerifyFunctionsPass().Run(options);
}

// A function with a conditional that is marked for lowering.
tensorflow::FunctionDef Lowered(const std::string& name, const std::string& branch) {
  auto function = tensorflow::FunctionDefHelper::Create(
      name, {"n: int32"}, {"r: int32"}, {}, {BodyTrue("p"), BodyIf("if", branch, branch)}, {{"r", "if:output:0"}});
  (*function.mutable_node_def(1)->mutable_attr())["_lower_using_switch_merge"].set_b(true);
  return function;
}

TEST(VerifyFunctionsPassTest, AcceptsFunctionsThatFit) {
  EXPECT_TRUE(Verify(OneCall().Function(Lowered("G", "F"))).ok());
}

TEST(VerifyFunctionsPassTest, RefusesBranchesThatDoNotFit) {
  GraphBuilder builder = OneCall();
  builder.Function(tensorflow::FunctionDefHelper::Create("Nothing", {"n: int32"}, {}, {}, {}, {}));
  const absl::Status status = Verify(builder.Function(Lowered("G", "Nothing")));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "Node 'if' (If): its functions are missing or do not fit")) << status;
}

TEST(VerifyFunctionsPassTest, SaysWhatAConditionIsThatIsNoBool) {
  auto function = Lowered("G", "F");
  (*function.mutable_node_def(1)->mutable_attr())["Tcond"].set_type(tensorflow::DT_INT64);
  const absl::Status status = Verify(OneCall().Function(function));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "Node 'if' (If): its condition is int64, expected bool")) << status;
}

TEST(VerifyFunctionsPassTest, RefusesBranchesThatContainThemselves) {
  const absl::Status status = Verify(OneCall().Function(Lowered("G", "G")));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "'G' contains itself")) << status;
}

TEST(VerifyFunctionsPassTest, RefusesMissingAttributes) {
  auto function = Endless("G", "F");
  function.mutable_node_def(0)->mutable_attr()->erase("value");
  const absl::Status status = Verify(OneCall().Function(function));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "Function 'G': Node 'one' (Const): attribute value is missing"))
      << status;
}

TEST(VerifyFunctionsPassTest, RefusesConstantsOfAnotherDtype) {
  auto function = Endless("G", "F");
  ASSERT_EQ(function.node_def(0).op(), "Const");
  (*function.mutable_node_def(0)->mutable_attr())["dtype"].set_type(tensorflow::DT_FLOAT);
  const absl::Status status = Verify(OneCall().Function(function));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(
      absl::StrContains(status.message(), "Function 'G': Node 'one' (Const): its value is int32, its attribute"))
      << status;
}

TEST(VerifyFunctionsPassTest, RefusesExitsOfNoLoopInTransformedGraphs) {
  GraphBuilder builder;
  builder.Const("x").Node("exit", "Exit", {"x"}, {{"T", tensorflow::DT_INT32}});
  EXPECT_TRUE(Verify(builder).ok()) << "it is none of ours";
  builder.Node("return", kReturnOp, {},
               {{"T", tensorflow::DT_INT32}, {"function", "F"}, {"index", 0}, {"call_id", 1}, {"N", 0}});
  const absl::Status status = Verify(builder);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "Node 'exit' (Exit) is in no loop")) << status;
}

TEST(VerifyFunctionsPassTest, RefusesExitsOfNoLoopBesideCalls) {
  GraphBuilder builder = OneCall();
  builder.Node("exit", "Exit", {"x"}, {{"T", tensorflow::DT_INT32}});
  const absl::Status status = Verify(builder);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "Node 'exit' (Exit) is in no loop")) << status;
}

TEST(VerifyFunctionsPassTest, LeavesGraphsWithoutCallsAlone) {
  GraphBuilder builder;
  EXPECT_TRUE(Verify(builder.Const("x").Function(Lowered("G", "G"))).ok());
}

}  // namespace
}  // namespace tensorflow_recursion
