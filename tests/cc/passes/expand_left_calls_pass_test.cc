// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/expand_left_calls_pass.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cc/base/notices.h"
#include "cc/passes/dynamic_calls.h"
#include "tensorflow/core/public/session_options.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::GraphDef;

struct Heard {
  NoticeKind kind;
  std::string text;
};
std::vector<Heard>& AllHeard() {
  static auto* const all = new std::vector<Heard>;
  return *all;
}

// Runs the pass on a graph, and listens to its notices.
class ExpandLeftCallsPassTest : public ::testing::Test {
 protected:
  ExpandLeftCallsPassTest() {
    AllHeard().clear();
    SetNoticeListener([](NoticeKind kind, const std::string& text) { AllHeard().push_back({kind, text}); });
  }
  ~ExpandLeftCallsPassTest() override { SetNoticeListener(nullptr); }

  void SwitchOn(const std::string& on_fallback = "warn") {
    auto* entry = session_.config.mutable_graph_options()->mutable_rewrite_options()->add_custom_optimizers();
    entry->set_name(kOptimizerName);
    (*entry->mutable_parameter_map())["on_fallback"].set_s(on_fallback);
  }

  absl::Status Run(const GraphBuilder& builder) {
    tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), builder.graph().library());
    const absl::Status status = Construct(builder.graph(), &graph_);
    EXPECT_TRUE(status.ok()) << status;
    tensorflow::GraphOptimizationPassOptions options;
    options.graph = &graph_;
    options.flib_def = &library;
    options.session_options = &session_;
    return ExpandLeftCallsPass().Run(options);
  }

  std::vector<std::string> Nodes(const std::string& op) const {
    std::vector<std::string> names;
    for (const tensorflow::Node* node : graph_->op_nodes()) {
      if (node->type_string() == op) names.push_back(node->name());
    }
    return names;
  }

  tensorflow::SessionOptions session_;
  std::unique_ptr<Graph> graph_;
};

// A graph that is about to run: what is fed and fetched are nodes of it.
GraphBuilder CutGraph(const std::string& function = "F") {
  GraphBuilder builder;
  builder.Node("x", "_Arg", {}, {{"T", kInt}, {"index", 0}}).Call("y", function, {"x"});
  return builder.Node("r", "_Retval", {"y"}, {{"T", kInt}, {"index", 0}}).Function(Endless("F", "F"));
}

TEST_F(ExpandLeftCallsPassTest, ExpandsWhatIsLeft) {
  SwitchOn();
  ASSERT_TRUE(Run(CutGraph()).ok());
  EXPECT_EQ(Nodes(kInvokeOp), Inputs{});
  EXPECT_EQ(Nodes(kCallOp).size(), 2);
  EXPECT_EQ(Nodes("_Arg"), Inputs{"x"});
  EXPECT_EQ(Nodes("_Retval"), Inputs{"r"});
  EXPECT_TRUE(AllHeard().empty());
}

TEST_F(ExpandLeftCallsPassTest, TellsWhatCannotBeExpanded) {
  SwitchOn();
  ASSERT_TRUE(Run(CutGraph("Missing")).ok());
  EXPECT_EQ(Nodes(kInvokeOp), Inputs{"y"});
  ASSERT_EQ(AllHeard().size(), 1);
  EXPECT_EQ(AllHeard()[0].kind, NoticeKind::kFallback);
  EXPECT_TRUE(absl::StrContains(AllHeard()[0].text, "'Missing' runs dynamically"));
}

TEST_F(ExpandLeftCallsPassTest, FailsWhereThatIsAskedFor) {
  SwitchOn("error");
  const absl::Status status = Run(CutGraph("Missing"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "'Missing' runs dynamically")) << status;
  EXPECT_TRUE(AllHeard().empty());
}

TEST_F(ExpandLeftCallsPassTest, SaysThatThereIsASwitch) {
  ASSERT_TRUE(Run(CutGraph()).ok());
  EXPECT_EQ(Nodes(kInvokeOp), Inputs{"y"});
  ASSERT_EQ(AllHeard().size(), 1);
  EXPECT_EQ(AllHeard()[0].kind, NoticeKind::kNoSwitch);
  EXPECT_TRUE(absl::StrContains(AllHeard()[0].text, "tfr.session_config()"));
}

TEST_F(ExpandLeftCallsPassTest, IsSilentWithoutCalls) {
  GraphBuilder builder;
  ASSERT_TRUE(Run(builder.Const("x")).ok());
  EXPECT_TRUE(AllHeard().empty());
}

TEST_F(ExpandLeftCallsPassTest, FindsCallsInFunctions) {
  GraphBuilder builder;
  builder.Const("x").Function(Endless("F", "F"));
  builder.Function(tensorflow::FunctionDefHelper::Create("Outer", {"n: int32"}, {"r: int32"}, {},
                                                         {BodyCall("call", "F", {"n"})}, {{"r", "call:results:0"}}));
  builder.Node("outer", "PartitionedCall", {"x"},
               {{"f", tensorflow::FunctionDefHelper::FunctionRef("Outer")},
                {"Tin", tensorflow::DataTypeSlice{kInt}},
                {"Tout", tensorflow::DataTypeSlice{kInt}}});
  ASSERT_TRUE(Run(builder).ok());
  const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), builder.graph().library());
  EXPECT_EQ(FindDynamicCalls(*graph_, library), DynamicCalls{"F"});
}

}  // namespace
}  // namespace tensorflow_recursion
