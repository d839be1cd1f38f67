// SPDX-License-Identifier: Apache-2.0
#include "cc/program/firing_history.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

// The history of the main graph, asked by the names of kernels.
class FiringHistoryTest : public ::testing::Test {
 protected:
  void Compute(const StaticGraph& graph) {
    flow_ = std::make_unique<BuiltFlow>(graph);
    ASSERT_TRUE(flow_->status.ok()) << flow_->status;
    std::vector<NodeId> nodes;
    for (NodeId id : flow_->flow.nodes.ids()) nodes.push_back(id);
    history_ = std::make_unique<FiringHistory>(flow_->flow, nodes);
    history_->Compute();
  }
  FiringHistory::FiredSet After(const std::string& kernel) const {
    return history_->Before({flow_->Kernel(kernel), 0});
  }
  bool HasFired(const std::string& first, const std::string& second) const {
    return FiringHistory::Has(After(second), history_->Fired(flow_->Kernel(first)));
  }

  std::unique_ptr<BuiltFlow> flow_;
  std::unique_ptr<FiringHistory> history_;
};

TEST_F(FiringHistoryTest, WhatANodeWaitsForHasFiredBeforeIt) {
  StaticGraph graph;
  graph.Arg("x").Kernel("a", {"x"}).Kernel("b", {"a"}).Kernel("c", {"x", "^b"}).Kernel("other", {"x"});
  Compute(graph);
  EXPECT_TRUE(HasFired("a", "b"));
  EXPECT_TRUE(HasFired("a", "c")) << "by a control edge";
  EXPECT_FALSE(HasFired("b", "a"));
  EXPECT_FALSE(HasFired("other", "c"));
  EXPECT_LT(history_->PositionOf(flow_->Kernel("a")), history_->PositionOf(flow_->Kernel("c")));
}

TEST_F(FiringHistoryTest, OfTwoSidesOfABranchOnlyOneIsTaken) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1);
  AddConditional(&graph, "p", "x");
  graph.Kernel("apart", {"x"});
  Compute(graph);
  EXPECT_TRUE(history_->Exclude(After("f"), After("t")));
  EXPECT_FALSE(history_->Exclude(After("f"), After("apart")));
}

TEST_F(FiringHistoryTest, AMergeKnowsWhatAllItsInputsHaveInCommon) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1).Kernel("before", {"x"});
  AddConditional(&graph, "p", "before");
  graph.Kernel("after", {"y"});
  Compute(graph);
  EXPECT_TRUE(HasFired("before", "after"));
  EXPECT_FALSE(HasFired("f", "after"));
  EXPECT_FALSE(HasFired("t", "after"));
}

TEST_F(FiringHistoryTest, WhenAnyInputHasComeTheOthersMayBeMissing) {
  StaticGraph graph;
  graph.Arg("x").Kernel("common", {"x"}).Kernel("a", {"common"}).Kernel("b", {"common"}).Kernel("both", {"a", "b"});
  Compute(graph);
  const FiringHistory::FiredSet events = history_->BeforeAny((*flow_)[flow_->Kernel("both")]);
  EXPECT_TRUE(FiringHistory::Has(events, history_->Fired(flow_->Kernel("common"))));
  EXPECT_FALSE(FiringHistory::Has(events, history_->Fired(flow_->Kernel("a"))));
  const FiringHistory::FiredSet ready = history_->BeforeFired(flow_->Kernel("both"));
  EXPECT_TRUE(FiringHistory::Has(ready, history_->Fired(flow_->Kernel("a"))));
  EXPECT_FALSE(FiringHistory::Has(ready, history_->Fired(flow_->Kernel("both"))));
}

}  // namespace
}  // namespace tensorflow_recursion
