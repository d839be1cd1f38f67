// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/known_ranks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cc/base/names.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

class KnownRanksTest : public ::testing::Test {
 protected:
  int RankOf(const std::string& name, OpKind kind = OpKind::kEntry) {
    if (built_ == nullptr) {
      built_ = std::make_unique<BuiltFlow>(graph_);
      EXPECT_TRUE(built_->status.ok()) << built_->status;
      ranks_ = std::make_unique<KnownRanks>(built_->flow, FindElementReads(built_->flow));
    }
    return ranks_->RankOf(Source{built_->Find(name, kind), 0});
  }

  // Sides with kernels.
  void Branch(const std::string& predicate, const std::string& value) {
    graph_.Op("F/switch", "Switch", {value, predicate})
        .Kernel("F/false", {"F/switch"})
        .Kernel("F/true", {"F/switch:1"});
    Merge(&graph_, "F/merge", {"F/false", "F/true"}).Result("F", "F/merge");
  }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  std::unique_ptr<KnownRanks> ranks_;
};

TEST_F(KnownRanksTest, APredicateIsComputedOfNumbers) {
  graph_.Function("F", {"n", "m", "x"}).Op("F/sum", "AddV2", {"F/n", "F/m"}).Op("F/less", "Less", {"F/sum", "F/m"});
  Branch("F/less", "F/x");
  EXPECT_EQ(RankOf("F/n"), 0);
  EXPECT_EQ(RankOf("F/m"), 0);
  EXPECT_EQ(RankOf("F/sum", OpKind::kScalar), 0);
  EXPECT_LT(RankOf("F/x"), 0);
}

TEST_F(KnownRanksTest, ArgumentsAreWhatTheCallerGives) {
  graph_.Function("F", {"n", "x"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  Branch("F/less", "F/x");
  graph_.Op("F/more", "AddV2", {"F/n", "F/one"}).Call("F/call", "G", 2, {"F/more", "F/x"});
  graph_.Result("F", "F/call/return_0", 1);
  graph_.Function("G", {"m", "y"}).Op("G/twice", "AddV2", {"G/m", "G/m"}).Result("G", "G/twice");
  EXPECT_EQ(RankOf("G/m"), 0);
  EXPECT_LT(RankOf("G/y"), 0);
  EXPECT_EQ(RankOf("G/twice", OpKind::kScalar), 0);
}

TEST_F(KnownRanksTest, ANumberIsReadOfAVectorByANumber) {
  graph_.Function("F", {"i", "x"}).Const("F/zero", 0, {"^F/frame_start"});
  graph_.Node("F/read", "GatherV2", {"F/x", "F/i", "F/zero"},
              {{"Tparams", tensorflow::DT_INT32},
               {"Tindices", tensorflow::DT_INT32},
               {"Taxis", tensorflow::DT_INT32},
               {"batch_dims", 0}});
  graph_.Op("F/less", "Less", {"F/read", "F/zero"});
  Branch("F/less", "F/x");
  EXPECT_EQ(RankOf("F/x"), 1);
  EXPECT_EQ(RankOf("F/i"), 0);
}

TEST_F(KnownRanksTest, AnArgumentStatesItsShape) {
  graph_.Function("F", {"n"})
      .Node("F/v", kEntryOp, {},
            {{kTypeAttr, tensorflow::DT_INT32},
             {kFunctionAttr, "F"},
             {kIndexAttr, 1},
             {kShapeAttr, tensorflow::PartialTensorShape({-1})}});
  graph_.Op("F/sum", "AddV2", {"F/v", "F/v"}).Result("F", "F/sum");
  EXPECT_EQ(RankOf("F/v"), 1);
  EXPECT_EQ(RankOf("F/sum", OpKind::kScalar), 1);
  EXPECT_LT(RankOf("F/n"), 0);
}

// The first call gives a number, the second one a vector.
TEST_F(KnownRanksTest, WhatIsSaidToHaveTwoRanksHasNone) {
  graph_.Function("F", {"n", "x"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  Branch("F/less", "F/x");
  graph_.Const("F/vector", tensorflow::Tensor(tensorflow::DT_INT32, {2}), {"^F/frame_start"});
  graph_.Kernel("F/k", {"F/n"}).Call("F/a", "G", 2, {"F/n", "F/k"}).Call("F/b", "G", 3, {"F/vector", "F/k"});
  graph_.Result("F", "F/a/return_0", 1).Result("F", "F/b/return_0", 2);
  graph_.Function("G", {"m", "y"}).Op("G/twice", "AddV2", {"G/m", "G/m"}).Result("G", "G/twice");
  EXPECT_LT(RankOf("G/m"), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
