// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/frame_conditions.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

// The conditions in a frame of F(x, p), whose p is a predicate.
class FrameConditionsTest : public ::testing::Test {
 protected:
  FrameConditionsTest() { graph_.Function("F", {"x"}).Entry("F", "p", 1, tensorflow::DT_BOOL); }

  void Find() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    found_ = std::make_unique<FrameConditions>(built_->flow, built_->Order());
  }

  NodeId Node(const std::string& name, OpKind kind) const { return built_->Find("F/" + name, kind); }
  // Under which a kernel fires.
  Condition Of(const std::string& name, OpKind kind = OpKind::kKernel) const {
    return found_->Of(Source{Node(name, kind), 0});
  }
  Condition OfWhole(const std::string& name, OpKind kind) const {
    return found_->Of(Source{Node(name, kind), Source::kWholeNode});
  }
  Event Comes(const std::string& argument) const { return {Node(argument, OpKind::kEntry), 0}; }
  // The branch on the predicate of `switch_node` takes this side.
  Event Takes(const std::string& switch_node, uint32_t side) const {
    return {(*built_)[Node(switch_node, OpKind::kSwitch)].branch, side};
  }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  std::unique_ptr<FrameConditions> found_;
};

TEST_F(FrameConditionsTest, AnOperatorFiresWhenAllThatItReadsHasCome) {
  graph_.Entry("F", "y", 2).Kernel("F/one", {"F/x"}).Kernel("F/both", {"F/one", "F/y"});
  Find();
  EXPECT_EQ(Of("one"), Condition{Comes("x")});
  EXPECT_EQ(Of("both"), (Condition{Comes("x"), Comes("y")}));
}

TEST_F(FrameConditionsTest, AnArgumentThatIsKnownToLiveIsNoEvent) {
  graph_.Entry("F", "y", 2).Kernel("F/both", {"F/x", "F/y"});
  Find();
  IdVector<NodeId, bool> live(built_->flow.nodes.size(), false);
  live[Node("x", OpKind::kEntry)] = true;
  found_ = std::make_unique<FrameConditions>(built_->flow, built_->Order(), &live);
  EXPECT_EQ(Of("both"), Condition{Comes("y")});
}

TEST_F(FrameConditionsTest, AnOperatorWaitsForItsControlInputs) {
  graph_.Entry("F", "y", 2).Kernel("F/before", {"F/y"}, 1, /*is_stateful=*/true);
  graph_.Kernel("F/after", {"F/x", "^F/before"});
  Find();
  EXPECT_EQ(Of("after"), (Condition{Comes("x"), Comes("y")}));
}

TEST_F(FrameConditionsTest, TheFrameAlwaysStarts) {
  Find();
  EXPECT_TRUE(OfWhole("frame_start", OpKind::kFrameStart).is_always());
}

TEST_F(FrameConditionsTest, ASideOfABranchIsAnEventThatAllItsSwitchesShare) {
  graph_.Op("F/s", "Switch", {"F/x", "F/p"}).Kernel("F/f", {"F/s"}).Kernel("F/t", {"F/s:1"});
  graph_.Op("F/again", "Switch", {"F/x", "F/p"}).Kernel("F/t2", {"F/again:1"});
  Find();
  EXPECT_EQ(Of("f"), (Condition{Comes("x"), Comes("p"), Takes("s", 0)}));
  EXPECT_EQ(Of("t"), (Condition{Comes("x"), Comes("p"), Takes("s", 1)}));
  EXPECT_EQ(Of("t2"), Of("t"));
}

TEST_F(FrameConditionsTest, ASwitchItselfFiresOnWhicheverSide) {
  graph_.Op("F/s", "Switch", {"F/x", "F/p"}).Kernel("F/f", {"F/s"});
  Find();
  EXPECT_EQ(OfWhole("s", OpKind::kSwitch), (Condition{Comes("x"), Comes("p")}));
}

TEST_F(FrameConditionsTest, EachSideOfACaseIsAnEvent) {
  graph_.Entry("F", "i", 2).Node("F/s", "_SwitchN", {"F/x", "F/i"}, {{"T", kInt}, {"num_outs", 3}});
  graph_.Kernel("F/k", {"F/s:2"});
  Find();
  EXPECT_EQ(Of("k"), (Condition{Comes("x"), Comes("i"), Event{Node("s", OpKind::kSwitchN), 2}}));
}

TEST_F(FrameConditionsTest, AConstantLivesWhereItsGuardsDo) {
  graph_.Op("F/s", "Switch", {"F/x", "F/p"}).Op("F/pivot", "Identity", {"F/s:1"});
  graph_.Const("F/one", 1, {"^F/pivot"}).Kernel("F/k", {"F/one"});
  Find();
  EXPECT_EQ(Of("k"), (Condition{Comes("x"), Comes("p"), Takes("s", 1)}));
}

// Both values come of x, so x has come if either has; whether either does is an event of the merge.
TEST_F(FrameConditionsTest, AMergeLivesUnderWhatItsInputsHaveInCommonAndAnEventOfItsOwn) {
  graph_.Entry("F", "y", 2).Op("F/s", "Switch", {"F/x", "F/p"});
  graph_.Kernel("F/f", {"F/s"}).Kernel("F/t", {"F/s:1", "F/y"});
  Merge(&graph_, "F/merge", {"F/f", "F/t"});
  Find();
  EXPECT_EQ(Of("merge", OpKind::kMerge), (Condition{Comes("x"), Comes("p"), Event{Node("merge", OpKind::kMerge), 0}}));
}

TEST_F(FrameConditionsTest, EachResultOfACallIsAnEventAndAnyArgumentOpensIt) {
  graph_.Entry("F", "y", 2).Call("F/call", "G", 1, {"F/x", "F/y"}, /*num_returns=*/2);
  graph_.Kernel("F/first", {"F/call/return_0"}).Kernel("F/second", {"F/call/return_1"});
  graph_.Function("G", {"a", "b"}).Result("G", "G/a", 0).Result("G", "G/b", 1);
  Find();
  const NodeId call = built_->flow.call_sites.at(0).node;
  EXPECT_EQ(Of("first"), (Condition{Event{call, 1}}));
  EXPECT_EQ(Of("second"), (Condition{Event{call, 2}}));
}

TEST_F(FrameConditionsTest, WhatWaitsDeadOrAliveFiresInAnyCase) {
  graph_.Op("F/s", "Switch", {"F/x", "F/p"}).Kernel("F/f", {"F/s"}).Node("F/all", "ControlTrigger", {"^F/f"});
  Find();
  EXPECT_TRUE(OfWhole("all", OpKind::kUnion).is_always());
}

TEST_F(FrameConditionsTest, ANodeThatIsAddedFiresUnderWhatIsSaid) {
  graph_.Kernel("F/k", {"F/x"});
  Find();
  const NodeId added = built_->flow.nodes.Add(FlowNode(OpKind::kPass, RegionId(), nullptr));
  found_->Add(Of("k"));
  EXPECT_EQ(found_->Of(Source{added, 0}), Condition{Comes("x")});
}

}  // namespace
}  // namespace tensorflow_recursion
