// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_types.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

class RegisterTypesTest : public ::testing::Test {
 protected:
  // Reads element `index` of `array`.
  StaticGraph& Gather(const std::string& name, const std::string& array, const std::string& index,
                      const std::string& function) {
    graph_.Const(name + "_axis", 0, {"^" + function + "/frame_start"});
    return graph_.Node(name, "GatherV2", {array, index, name + "_axis"},
                       {{"Tparams", kInt}, {"Tindices", kInt}, {"Taxis", kInt}, {"batch_dims", 0}});
  }

  // Finds the types of all functions and loops.
  void Find() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    reads_ = FindElementReads(built_->flow);
    types_ = std::make_unique<RegisterTypes>(built_->flow, reads_);
    std::set<RegionId> regions;
    for (const auto& [region, function] : built_->flow.functions) regions.insert(region);
    for (const FlowLoop& loop : built_->flow.loops) regions.insert(loop.region);
    types_->Find(regions);
  }

  bool IsArray(const std::string& name, OpKind kind = OpKind::kEntry) const {
    return types_->IsArray({built_->Find(name, kind), 0});
  }
  RegionId RegionOf(const std::string& function) const { return built_->flow.regions.FindFunction(function); }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  ElementReads reads_;
  std::unique_ptr<RegisterTypes> types_;
};

TEST_F(RegisterTypesTest, WhatElementsAreReadOfIsAnArray) {
  graph_.Function("F", {"x", "i"});
  Gather("F/read", "F/x", "F/i", "F").Result("F", "F/read");
  Find();
  EXPECT_TRUE(IsArray("F/x"));
  EXPECT_FALSE(IsArray("F/i"));
  EXPECT_FALSE(IsArray("F/read", OpKind::kScalar));
  EXPECT_TRUE(types_->conflicts().empty());
}

TEST_F(RegisterTypesTest, AnArgumentIsWhatTheCalleeTakesItFor) {
  graph_.Function("F", {"x", "i"}).Call("F/call", "G", 2, {"F/x", "F/i"}).Result("F", "F/call/return_0");
  graph_.Function("G", {"y", "j"});
  Gather("G/read", "G/y", "G/j", "G").Result("G", "G/read");
  Find();
  EXPECT_TRUE(IsArray("F/x"));
  EXPECT_FALSE(IsArray("F/i"));
}

TEST_F(RegisterTypesTest, AResultIsWhatTheCallerTakesItFor) {
  graph_.Function("F", {"x", "i"}).Call("F/call", "G", 2, {"F/x"});
  Gather("F/read", "F/call/return_0", "F/i", "F").Result("F", "F/read");
  graph_.Function("G", {"y"}).Result("G", "G/y");
  Find();
  EXPECT_TRUE(IsArray("G/y"));
  EXPECT_TRUE(IsArray("F/x"));
  EXPECT_TRUE(types_->IsArray({types_->ResultOf(RegionOf("G"), 0), 0}));
  EXPECT_EQ(types_->ResultOf(RegionOf("G"), 1), kNone);
}

// F(x, n) = x, passed through a loop of n iterations.
TEST_F(RegisterTypesTest, AVariableOfALoopIsTheSameInEveryIterationAndAfterIt) {
  graph_.Function("F", {"x", "n", "i"}).Const("F/zero", 0, {"^F/frame_start"});
  graph_.Enter("F/enter_k", "F/zero", "loop").Enter("F/enter_x", "F/x", "loop").Enter("F/enter_n", "F/n", "loop", true);
  Merge(&graph_, "F/k", {"F/enter_k", "F/next_k"});
  Merge(&graph_, "F/y", {"F/enter_x", "F/next_x"});
  graph_.Op("F/less", "Less", {"F/k", "F/enter_n"}).Node("F/cond", "LoopCond", {"F/less"});
  graph_.Op("F/switch_k", "Switch", {"F/k", "F/cond"}).Op("F/switch_x", "Switch", {"F/y", "F/cond"});
  graph_.Op("F/body", "Identity", {"F/switch_k:1"}).Const("F/one", 1, {"^F/body"});
  graph_.Op("F/add", "AddV2", {"F/body", "F/one"}).Op("F/next_k", "NextIteration", {"F/add"});
  graph_.Op("F/next_x", "NextIteration", {"F/switch_x:1"}).Op("F/exit", "Exit", {"F/switch_x"});
  Gather("F/read", "F/exit", "F/i", "F").Result("F", "F/read");
  Find();
  EXPECT_TRUE(IsArray("F/x"));
  EXPECT_TRUE(IsArray("F/y"));
  EXPECT_FALSE(IsArray("F/n"));
  EXPECT_FALSE(IsArray("F/k"));
  EXPECT_TRUE(types_->conflicts().empty());
}

TEST_F(RegisterTypesTest, BothSidesOfAConditionalAreTheSame) {
  graph_.Function("F", {"x", "y", "i"}).Const("F/two", 2, {"^F/frame_start"}).Op("F/less", "Less", {"F/i", "F/two"});
  graph_.Op("F/sx", "Switch", {"F/x", "F/less"}).Op("F/sy", "Switch", {"F/y", "F/less"});
  Merge(&graph_, "F/merge", {"F/sx", "F/sy:1"});
  Gather("F/read", "F/merge", "F/i", "F").Result("F", "F/read");
  Find();
  EXPECT_TRUE(IsArray("F/x"));
  EXPECT_TRUE(IsArray("F/y"));
}

TEST_F(RegisterTypesTest, AValueThatWouldBeBothIsAConflictOfItsFunctions) {
  graph_.Function("F", {"x", "i"}).Op("F/neg", "Neg", {"F/x"}).Call("F/call", "G", 2, {"F/x", "F/i"});
  graph_.Result("F", "F/call/return_0");
  graph_.Function("G", {"y", "j"});
  Gather("G/read", "G/y", "G/j", "G").Result("G", "G/read");
  AddFib(&graph_, 3);
  Find();
  EXPECT_EQ(types_->conflicts(), (std::set<RegionId>{RegionOf("F"), RegionOf("G")}));
}

TEST_F(RegisterTypesTest, AnArgumentThatNobodyReadsIsWhatItsTypeMakesLikely) {
  graph_.Function("F", {"n"}).Entry("F", "text", 1, tensorflow::DT_STRING).Entry("F", "unread", 2);
  graph_.Op("F/neg", "Neg", {"F/n"}).Result("F", "F/neg");
  Find();
  EXPECT_TRUE(IsArray("F/text"));
  EXPECT_FALSE(IsArray("F/unread"));
}

}  // namespace
}  // namespace tensorflow_recursion
