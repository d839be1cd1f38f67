// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/blocks.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

// The body of F(x, p, q), whose p and q are predicates.
class Body : public StaticGraph {
 public:
  Body() { Function("F", {"x"}).Entry("F", "p", 1, tensorflow::DT_BOOL).Entry("F", "q", 2, tensorflow::DT_BOOL); }

  // Adds a node that reads the inputs; all of them have to live for it to run.
  Body& Reads(const std::string& name, const Inputs& inputs) {
    Op("F/" + name, inputs.size() == 1 ? "Neg" : "AddV2", inputs);
    return *this;
  }
  Body& Switch(const std::string& name, const std::string& data, const std::string& predicate) {
    Op("F/" + name, "Switch", {data, predicate});
    return *this;
  }
  // s = Switch(x, p), with a node `f` on the false side and `t` on the true one.
  Body& SwitchX() { return Switch("s", "F/x", "F/p").Reads("f", {"F/s"}).Reads("t", {"F/s:1"}); }
};

class BlocksTest : public ::testing::Test {
 protected:
  void Place() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    blocks_ = std::make_unique<Blocks>(built_->flow);
    for (NodeId id : built_->Order()) {
      if (!blocks_->Place(id)) misfits_.insert((*built_)[id].node->name());
    }
  }

  NodeId Node(const std::string& name, OpKind kind = OpKind::kScalar) const { return built_->Find("F/" + name, kind); }
  BlockId Of(const std::string& name, OpKind kind = OpKind::kScalar) const { return blocks_->of(Node(name, kind)); }
  BlockId Whole() { return blocks_->OfRegion(built_->flow.regions.FindFunction("F")); }

  Body graph_;
  std::unique_ptr<BuiltFlow> built_;
  std::unique_ptr<Blocks> blocks_;
  std::set<std::string> misfits_;  // nodes without a block
};

TEST_F(BlocksTest, WhatWaitsForNoBranchIsInTheBlockOfItsRegion) {
  graph_.Reads("sum", {"F/x", "F/x"});
  Place();
  EXPECT_EQ(Of("sum"), Whole());
  EXPECT_EQ(Of("x", OpKind::kEntry), Whole());
  EXPECT_TRUE(blocks_->IsWhole(Of("sum")));
  EXPECT_EQ((*blocks_)[Whole()].region, built_->flow.regions.FindFunction("F"));
}

TEST_F(BlocksTest, EachSideOfAConditionalIsABlockAndTheMergeIsOutside) {
  graph_.SwitchX();
  Merge(&graph_, "F/merge", {"F/f", "F/t"});
  Place();
  EXPECT_TRUE(misfits_.empty());
  const NodeId branch = (*built_)[Node("s", OpKind::kSwitch)].branch;
  for (const auto& [name, side] : {std::pair("f", 0), std::pair("t", 1)}) {
    const Block& block = (*blocks_)[Of(name)];
    EXPECT_EQ(block.parent, Whole());
    EXPECT_EQ(block.branch, branch);
    EXPECT_EQ(block.side, side);
    EXPECT_EQ(blocks_->FindSide(Whole(), branch, side), Of(name));
  }
  EXPECT_NE(Of("f"), Of("t"));
  EXPECT_EQ(Of("merge", OpKind::kMerge), Whole());
  EXPECT_EQ(blocks_->BranchOfMerge(Node("merge", OpKind::kMerge)), branch);
}

TEST_F(BlocksTest, ASideWithNothingInItIsNotFound) {
  graph_.Switch("s", "F/x", "F/p").Reads("t", {"F/s:1"});
  Place();
  EXPECT_EQ(blocks_->FindSide(Whole(), (*built_)[Node("s", OpKind::kSwitch)].branch, 0), kNone);
}

TEST_F(BlocksTest, AConditionalInASideHasItsBlocksInThatSide) {
  graph_.SwitchX().Switch("inner", "F/t", "F/q").Reads("tf", {"F/inner"}).Reads("tt", {"F/inner:1"});
  Merge(&graph_, "F/inner_merge", {"F/tf", "F/tt"});
  Merge(&graph_, "F/merge", {"F/f", "F/inner_merge"});
  Place();
  EXPECT_TRUE(misfits_.empty());
  EXPECT_EQ((*blocks_)[Of("tt")].parent, Of("t"));
  EXPECT_EQ(Of("inner_merge", OpKind::kMerge), Of("t"));
  EXPECT_EQ(Of("merge", OpKind::kMerge), Whole());
  EXPECT_TRUE(blocks_->Contains(Of("t"), Of("tt")));
  EXPECT_TRUE(blocks_->Contains(Of("tt"), Of("tt")));
  EXPECT_TRUE(blocks_->Contains(Whole(), Of("tt")));
  EXPECT_FALSE(blocks_->Contains(Of("tt"), Of("t")));
  EXPECT_FALSE(blocks_->Contains(Of("f"), Of("tt")));
}

TEST_F(BlocksTest, ANodeThatReadsSeveralValuesIsWhereTheInnermostLives) {
  graph_.SwitchX().Reads("sum", {"F/t", "F/x"});
  Place();
  EXPECT_EQ(Of("sum"), Of("t"));
}

TEST_F(BlocksTest, AConstantOfASideKeepsItsReaderThere) {
  graph_.Switch("s", "F/x", "F/p");
  graph_.Op("F/pivot", "Identity", {"F/s:1"}).Const("F/one", 1, {"^F/pivot"});
  graph_.Reads("t", {"F/s:1"}).Reads("sum", {"F/x", "F/one"});
  Place();
  EXPECT_EQ(Of("sum"), Of("t"));
}

TEST_F(BlocksTest, ANodeThatReadsBothSidesHasNoBlock) {
  graph_.SwitchX().Reads("both", {"F/f", "F/t"}).Reads("after", {"F/both"});
  Place();
  EXPECT_EQ(misfits_, (std::set<std::string>{"F/both", "F/after"}));
}

TEST_F(BlocksTest, ABranchWithinASideOfItselfTakesThatSide) {
  graph_.SwitchX().Switch("again", "F/t", "F/p").Reads("same", {"F/again:1"}).Reads("never", {"F/again"});
  Place();
  EXPECT_EQ(Of("same"), Of("t"));
  EXPECT_EQ(misfits_, std::set<std::string>{"F/never"});
}

TEST_F(BlocksTest, AMergeJoinsAllSidesOfOneBranch) {
  graph_.SwitchX().Switch("other", "F/x", "F/q").Reads("ot", {"F/other:1"}).Reads("t2", {"F/s:1"});
  Merge(&graph_, "F/of_two_branches", {"F/f", "F/ot"});
  Merge(&graph_, "F/of_one_side", {"F/t", "F/t2"});
  Merge(&graph_, "F/of_side_and_whole", {"F/f", "F/x"});
  Place();
  EXPECT_EQ(misfits_, (std::set<std::string>{"F/of_two_branches", "F/of_one_side", "F/of_side_and_whole"}));
}

TEST_F(BlocksTest, SwitchesOfACaseOnOneIndexAreOneBranch) {
  graph_.Entry("F", "i", 3);
  const Attrs attrs = {{"T", kInt}, {"num_outs", 3}};
  graph_.Node("F/a", "_SwitchN", {"F/x", "F/i"}, attrs).Node("F/b", "_SwitchN", {"F/x", "F/i"}, attrs);
  graph_.Reads("sum", {"F/a:2", "F/b:2"}).Reads("a0", {"F/a"}).Reads("b1", {"F/b:1"});
  Merge(&graph_, "F/merge", {"F/a0", "F/b1", "F/sum"});
  Merge(&graph_, "F/without_last", {"F/a0", "F/b1"});
  Place();
  EXPECT_EQ((*blocks_)[Of("sum")].side, 2);
  EXPECT_EQ((*blocks_)[Of("a0")].branch, (*blocks_)[Of("b1")].branch);
  EXPECT_EQ(Of("merge", OpKind::kMerge), Whole());
  EXPECT_EQ(misfits_, std::set<std::string>{"F/without_last"});
}

TEST_F(BlocksTest, WhatWaitsDeadOrAliveIsWhereAllThatItWaitsForIs) {
  graph_.SwitchX().Switch("inner", "F/t", "F/q").Reads("tf", {"F/inner"}).Reads("tt", {"F/inner:1"});
  graph_.Node("F/of_all", "ControlTrigger", {"^F/f", "^F/tt"});
  graph_.Node("F/of_inner", "ControlTrigger", {"^F/tf", "^F/tt"});
  Place();
  EXPECT_EQ(Of("of_all", OpKind::kUnion), Whole());
  EXPECT_EQ(Of("of_inner", OpKind::kUnion), Of("t"));
}

TEST_F(BlocksTest, AnIterationOfALoopIsARegionOfItsOwn) {
  AddFib(&graph_, 3);
  AddSumOfFibs(&graph_, "F/", "F/x", {"^F/frame_start"}, 2);
  Place();
  EXPECT_TRUE(misfits_.empty());
  const Block& goes_on = (*blocks_)[Of("add_i")];
  const Block& ends = (*blocks_)[Of("exit", OpKind::kExit)];
  EXPECT_EQ(goes_on.side, 1);
  EXPECT_EQ(ends.side, 0);
  EXPECT_EQ(goes_on.branch, ends.branch);
  ASSERT_EQ(built_->flow.loops.size(), 1);
  EXPECT_EQ(goes_on.region, built_->flow.loops[0].region);
  EXPECT_EQ(goes_on.parent, blocks_->OfRegion(goes_on.region));
}

}  // namespace
}  // namespace tensorflow_recursion
