// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/recursion_optimizer.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/passes/switched_on.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::ConfigProto;
using tensorflow::GraphDef;
using tensorflow::grappler::GrapplerItem;

auto* Parameters(ConfigProto* config) {
  return config->mutable_graph_options()
      ->mutable_rewrite_options()
      ->mutable_custom_optimizers(0)
      ->mutable_parameter_map();
}

GrapplerItem ItemOf(const GraphBuilder& builder) {
  GrapplerItem item;
  item.graph = builder.graph();
  item.fetch = {"y:0"};
  return item;
}

TEST(ReadOptionsTest, TakesDefaultsForWhatIsNotSaid) {
  ConfigProto config = SwitchedOn();
  (*Parameters(&config))["max_depth"].set_i(12);
  Options options;
  ASSERT_TRUE(ReadOptions(*FindSwitch(config), &options).ok());
  EXPECT_EQ(options.max_depth, 12);
  EXPECT_EQ(options.workers, kDefaultWorkers);
}

TEST(ReadOptionsTest, RefusesWhatIsUnknownOrOutOfRange) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, int>>{{"max_dept", 1}, {"max_depth", 0}, {"workers", -1}}) {
    ConfigProto config = SwitchedOn();
    (*Parameters(&config))[name].set_i(value);
    Options options;
    const absl::Status status = ReadOptions(*FindSwitch(config), &options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), "'" + name + "'")) << status;
  }
}

TEST(FindSwitchTest, IsOffWhereGrapplerIs) {
  ConfigProto config = SwitchedOn();
  EXPECT_NE(FindSwitch(config), nullptr);
  config.mutable_graph_options()->mutable_rewrite_options()->set_disable_meta_optimizer(true);
  EXPECT_EQ(FindSwitch(config), nullptr);
  EXPECT_EQ(FindSwitch(ConfigProto()), nullptr);
}

TEST(RecursionOptimizerTest, ExpandsCalls) {
  RecursionOptimizer optimizer;
  ASSERT_TRUE(optimizer.Init(nullptr).ok());
  GraphDef optimized;
  const absl::Status status = optimizer.Optimize(nullptr, ItemOf(OneCall()), &optimized);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(NodesOf(optimized, kCallOp).size(), 2);
}

TEST(RecursionOptimizerTest, AbortsWhereThereIsNothingToDo) {
  RecursionOptimizer optimizer;
  GraphDef optimized;
  GraphBuilder builder;
  EXPECT_EQ(optimizer.Optimize(nullptr, ItemOf(builder.Const("y")), &optimized).code(), absl::StatusCode::kAborted);
}

TEST(RecursionOptimizerTest, LeavesFunctionsOfTheLibraryAlone) {
  RecursionOptimizer optimizer;
  GraphDef optimized;
  GrapplerItem item = ItemOf(OneCall());
  item.optimization_options().allow_pruning_stateful_and_dataset_ops = false;
  EXPECT_EQ(optimizer.Optimize(nullptr, item, &optimized).code(), absl::StatusCode::kAborted);
}

TEST(RecursionOptimizerTest, KeepsGrapplerRunningWithFaultyOptions) {
  ConfigProto config = SwitchedOn();
  (*Parameters(&config))["max_depth"].set_i(0);
  RecursionOptimizer optimizer;
  EXPECT_TRUE(optimizer.Init(FindSwitch(config)).ok());
  GraphDef optimized;
  EXPECT_EQ(optimizer.Optimize(nullptr, ItemOf(OneCall()), &optimized).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tensorflow_recursion
