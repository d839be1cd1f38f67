// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/schedule.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

// F(x, p, q): conditionals one after the other, each of which takes what the one before it gives.
class Conditionals : public StaticGraph {
 public:
  Conditionals() {
    Function("F", {"x"}).Entry("F", "p", 1, tensorflow::DT_BOOL).Entry("F", "q", 2, tensorflow::DT_BOOL);
  }

  // Its nodes are named by its number, from 0 on.
  Conditionals& Add(const std::string& predicate) {
    const auto in = [&](const char* name) { return absl::StrCat("F/", name, num_); };
    Op(in("s"), "Switch", {last_, predicate}).Op(in("f"), "Neg", {in("s")}).Op(in("t"), "Abs", {in("s") + ":1"});
    Merge(this, in("m"), {in("f"), in("t")});
    last_ = in("m");
    ++num_;
    return *this;
  }
  // On the sign of what the one before it gives.
  Conditionals& AddOnLast() {
    const std::string sign = absl::StrCat("F/sign", num_);
    Op(sign, "Less", {last_, "F/x"});
    return Add(sign);
  }
  Conditionals& End() {
    Result("F", last_);
    return *this;
  }

 private:
  std::string last_ = "F/x";
  int num_ = 0;
};

class ScheduleTest : public ::testing::Test {
 protected:
  void Make() {
    built_ = std::make_unique<BuiltFlow>(graph_.End());
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    blocks_ = std::make_unique<Blocks>(built_->flow);
    std::vector<NodeId> nodes;
    for (NodeId id : built_->Order()) {
      ASSERT_TRUE(blocks_->Place(id));
      if (built_->flow.regions.FindFunction("F") == (*built_)[id].region) nodes.push_back(id);
    }
    schedule_ = std::make_unique<Schedule>(built_->flow, blocks_.get(), nodes);
  }

  // Emits a block as the emitter does; returns the names of what is emitted of the block and all that is in it. The
  // sides of a conditional are in brackets.
  std::string EmitBlock(BlockId block, const NodeSet& allowed) {
    std::string text;
    while (true) {
      if (const NodeId id = schedule_->FindNode(block, allowed); id != kNone) {
        text += " " + (*built_)[id].node->name();
        schedule_->SetEmitted(id);
        continue;
      }
      const auto part = schedule_->FindPart(block, allowed, kNone);
      if (!part) return text;
      for (const int side : {1, 0}) {
        const BlockId inside = blocks_->FindSide(block, part->branch, side);
        text += " [" + (inside == kNone ? "" : EmitBlock(inside, part->nodes)) + " ]";
      }
      for (NodeId merge : part->merges) {
        text += " " + (*built_)[merge].node->name();
        schedule_->SetEmitted(merge);
      }
    }
  }
  std::string Emit() { return EmitBlock(blocks_->OfRegion(built_->flow.regions.FindFunction("F")), schedule_->all()); }

  Conditionals graph_;
  std::unique_ptr<BuiltFlow> built_;
  std::unique_ptr<Blocks> blocks_;
  std::unique_ptr<Schedule> schedule_;
};

// Finds `part` in what was emitted, behind `*at`, which it moves there.
::testing::AssertionResult ComesNext(const std::string& part, const std::string& text, size_t* at) {
  *at = text.find(part, *at);
  if (*at != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << part << " does not come next in" << text;
}

TEST_F(ScheduleTest, WhatIsOnSidesComesBetweenConditionAndMerge) {
  graph_.Add("F/p").AddOnLast();
  Make();
  const std::string text = Emit();
  EXPECT_TRUE(schedule_->IsDone());
  size_t at = 0;
  for (const char* part : {" F/s0", "[ F/t0 ] [ F/f0 ] F/m0", " F/sign1", "[ F/t1 ] [ F/f1 ] F/m1", " F/result_0"}) {
    EXPECT_TRUE(ComesNext(part, text, &at));
  }
}

TEST_F(ScheduleTest, ConditionalsOnOneConditionComeInPartsIfOneReadsTheOther) {
  graph_.Add("F/p").Add("F/p");
  Make();
  const std::string text = Emit();
  EXPECT_TRUE(schedule_->IsDone());
  size_t at = 0;
  for (const char* part : {"[ F/t0 ] [ F/f0 ] F/m0", "[ F/t1 ] [ F/f1 ] F/m1", " F/result_0"}) {
    EXPECT_TRUE(ComesNext(part, text, &at));
  }
}

TEST_F(ScheduleTest, NothingOutsideOfTheAllowedNodesIsFound) {
  graph_.Add("F/p");
  Make();
  const BlockId block = blocks_->OfRegion(built_->flow.regions.FindFunction("F"));
  EXPECT_EQ(schedule_->FindNode(block, {}), kNone);
  EXPECT_FALSE(schedule_->FindPart(block, {}, kNone).has_value());
}

// How often nodes are looked at grows with their number, not with its square.
TEST_F(ScheduleTest, OneConditionalMoreCostsTheSameHoweverManyThereAre) {
  for (const std::string predicate : {"", "F/p"}) {  // on the last value, and on one condition
    std::vector<size_t> visits;
    for (const int size : {100, 200}) {
      graph_ = Conditionals();
      for (int i = 0; i < size; ++i) predicate.empty() ? graph_.AddOnLast() : graph_.Add(predicate);
      Make();
      Emit();
      EXPECT_TRUE(schedule_->IsDone());
      visits.push_back(schedule_->num_visits());
    }
    EXPECT_LT(visits[1], visits[0] * 2 + 100) << predicate;
  }
}

}  // namespace
}  // namespace tensorflow_recursion
