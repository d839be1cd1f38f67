// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/resolve_calls_pass.h"

#include <gtest/gtest.h>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

// A call of F whose record is read.
GraphBuilder OneDifferentiatedCall() {
  Attrs attrs = GraphBuilder::CallAttrs("F", {kInt}, {kInt});
  attrs.emplace_back("forward", "F__forward1");
  GraphBuilder builder;
  builder.Const("x").Node("y", kInvokeOp, {"x"}, attrs);
  return builder.Node("reader", "Identity", {"y:1"}, {{"T", tensorflow::DT_VARIANT}});
}

TEST(ResolveCallsPassTest, ResolvesUnderAnotherName) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(OneDifferentiatedCall().graph(), &graph).ok());
  tensorflow::GraphOptimizationPassOptions options;
  options.graph = &graph;
  ASSERT_TRUE(ResolveCallsPass().Run(options).ok());
  tensorflow::GraphDef resolved;
  graph->ToGraphDef(&resolved);
  ASSERT_NE(Find(resolved, "y/forward"), nullptr);
  EXPECT_EQ(Find(resolved, "y/forward")->attr().at("f").func().name(), "F__forward1");
}

TEST(ResolveCallsPassTest, LeavesPartitionsAlone) {
  EXPECT_TRUE(ResolveCallsPass().Run(tensorflow::GraphOptimizationPassOptions()).ok());
}

}  // namespace
}  // namespace tensorflow_recursion
