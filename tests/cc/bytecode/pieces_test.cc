// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/pieces.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "cc/analysis/superfluous_waits.h"
#include "cc/bytecode/element_reads.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

using Names = std::set<std::string>;

// F(n, x) with the constants 1 and 2. Each test says how n is known to be a number: a predicate is computed of it.
class PiecesTest : public ::testing::Test {
 protected:
  PiecesTest() {
    graph_.Function("F", {"n", "x"}).Const("F/one", 1, {"^F/frame_start"}).Const("F/two", 2, {"^F/frame_start"});
  }

  // A branch on `predicate`, with a kernel on each side.
  void Branch(const std::string& predicate) {
    graph_.Op("F/switch", "Switch", {"F/x", predicate})
        .Kernel("F/false", {"F/switch"})
        .Kernel("F/true", {"F/switch:1"});
    Merge(&graph_, "F/merge", {"F/false", "F/true"}).Result("F", "F/merge");
  }

  void Find(const std::set<std::string>& compiled = {}) {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    ASSERT_TRUE(DropSuperfluousWaits(&built_->flow).ok());
    std::set<RegionId> regions;
    for (const std::string& name : compiled) regions.insert(built_->flow.regions.FindFunction(name));
    found_ = FindPieces(built_->flow, FindElementReads(built_->flow), regions);
  }

  std::string NameOf(NodeId id) const { return built_->flow.nodes[id].node->name(); }
  std::set<Names> Members() const {
    std::set<Names> all;
    for (const PieceOfBody& piece : found_.pieces) {
      Names names;
      for (NodeId id : piece.members) names.insert(NameOf(id));
      all.insert(names);
    }
    return all;
  }
  Names Named(const std::vector<Source>& sources) const {
    Names names;
    for (const Source& source : sources) names.insert(NameOf(source.node));
    return names;
  }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  PiecesOfBodies found_;
};

TEST_F(PiecesTest, WhatIsComputedOfOneArgumentIsOnePiece) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/sum", "AddV2", {"F/double", "F/n"});
  graph_.Op("F/less", "Less", {"F/sum", "F/two"});
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/double", "F/sum", "F/less"}}));
  EXPECT_EQ(Named(found_.pieces.at(0).inputs), Names{"F/n"});
  EXPECT_EQ(Named(found_.pieces.at(0).outputs), Names{"F/less"});
  EXPECT_EQ(found_.code->functions.size(), 1);
}

TEST_F(PiecesTest, WhatOthersReadOfAPieceIsAnOutput) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/less", "Less", {"F/double", "F/two"});
  graph_.Kernel("F/k", {"F/double"}).Result("F", "F/k", 1);
  Branch("F/less");
  Find();
  EXPECT_EQ(Named(found_.pieces.at(0).outputs), (Names{"F/double", "F/less"}));
}

TEST_F(PiecesTest, WhatMayBeATensorIsLeftAlone) {
  graph_.Op("F/double", "Mul", {"F/x", "F/two"}).Op("F/sum", "AddV2", {"F/double", "F/x"}).Result("F", "F/sum");
  Find();
  EXPECT_TRUE(found_.pieces.empty());
  EXPECT_EQ(found_.code, nullptr);
}

TEST_F(PiecesTest, AFunctionThatIsCompiledHasNoPieces) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/less", "Less", {"F/double", "F/two"});
  Branch("F/less");
  Find({"F"});
  EXPECT_TRUE(found_.pieces.empty());
}

TEST_F(PiecesTest, ASideOfABranchIsAPieceOfItsOwn) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/less", "Less", {"F/double", "F/two"});
  graph_.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/minus", "Sub", {"F/sn", "F/one"});
  graph_.Op("F/times", "Mul", {"F/minus", "F/sn"}).Op("F/other", "Mul", {"F/sn:1", "F/two"});
  graph_.Kernel("F/k", {"F/times"}).Kernel("F/l", {"F/other"});
  Merge(&graph_, "F/sides", {"F/k", "F/l"}).Result("F", "F/sides", 1);
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/double", "F/less"}, {"F/minus", "F/times"}}));
}

TEST_F(PiecesTest, WhatNeedsAKernelDoesNotHoldUpWhatDoesNot) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/less", "Less", {"F/double", "F/two"});
  graph_.Kernel("F/k", {"F/n"}).Op("F/late", "AddV2", {"F/k", "F/n"}).Op("F/later", "Mul", {"F/late", "F/double"});
  graph_.Op("F/decider", "Less", {"F/later", "F/two"});
  graph_.Op("F/s", "Switch", {"F/x", "F/decider"}).Kernel("F/f", {"F/s"}).Kernel("F/t", {"F/s:1"});
  Merge(&graph_, "F/m", {"F/f", "F/t"}).Result("F", "F/m", 1);
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/double", "F/less"}, {"F/late", "F/later", "F/decider"}}));
}

// n comes back from a kernel in between, so one operator of all would wait for itself.
TEST_F(PiecesTest, NothingIsPutTogetherAroundAKernel) {
  graph_.Op("F/a", "AddV2", {"F/n", "F/one"}).Kernel("F/k", {"F/a"}).Op("F/b", "AddV2", {"F/k", "F/a"});
  graph_.Op("F/less", "Less", {"F/b", "F/n"});
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/b", "F/less"}}));
}

// The second Switch on one predicate takes no side that was not taken. Around it, one operator of all would wait for
// itself, too.
TEST_F(PiecesTest, NothingIsPutTogetherAroundASwitch) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/less", "Less", {"F/double", "F/two"});
  graph_.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/minus", "Sub", {"F/sn", "F/one"});
  graph_.Op("F/again", "Switch", {"F/minus", "F/less"}).Op("F/sum", "AddV2", {"F/again", "F/sn"});
  graph_.Kernel("F/k", {"F/sum"}).Kernel("F/l", {"F/sn:1"});
  Merge(&graph_, "F/sides", {"F/k", "F/l"}).Result("F", "F/sides", 1);
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/double", "F/less"}}));
}

TEST_F(PiecesTest, WhatNeedsACallDoesNotHoldUpWhatDoesNot) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/less", "Less", {"F/double", "F/two"});
  graph_.Call("F/call", "F", 2, {"F/n", "F/x"}).Op("F/sum", "AddV2", {"F/call/return_0", "F/double"});
  graph_.Op("F/more", "AddV2", {"F/sum", "F/n"}).Op("F/last", "Less", {"F/more", "F/n"});
  graph_.Op("F/s", "Switch", {"F/x", "F/last"}).Kernel("F/f", {"F/s"}).Kernel("F/t", {"F/s:1"});
  Merge(&graph_, "F/m", {"F/f", "F/t"}).Result("F", "F/m", 1);
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/double", "F/less"}, {"F/sum", "F/more", "F/last"}}));
}

TEST_F(PiecesTest, AnArgumentThatComesLaterDoesNotHoldUpWhatDoesNotReadIt) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/less", "Less", {"F/double", "F/two"});
  graph_.Op("F/sum", "AddV2", {"F/double", "F/x"}).Op("F/more", "Less", {"F/sum", "F/n"});
  graph_.Op("F/s", "Switch", {"F/x", "F/more"}).Kernel("F/f", {"F/s"}).Kernel("F/t", {"F/s:1"});
  Merge(&graph_, "F/m", {"F/f", "F/t"}).Result("F", "F/m", 1);
  Branch("F/less");
  graph_.Kernel("F/k", {"F/x"}).Call("F/call", "F", 2, {"F/n", "F/k"}).Result("F", "F/call/return_0", 2);
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/double", "F/less"}, {"F/sum", "F/more"}}));
}

TEST_F(PiecesTest, ArgumentsThatComeTogetherAreReadTogether) {
  graph_.Op("F/double", "Mul", {"F/n", "F/two"}).Op("F/sum", "AddV2", {"F/double", "F/x"});
  graph_.Op("F/less", "Less", {"F/sum", "F/two"});
  Branch("F/less");
  graph_.Call("F/call", "F", 2, {"F/double", "F/x"}).Result("F", "F/call/return_0", 1);
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/double", "F/sum", "F/less"}}));
}

TEST_F(PiecesTest, WhatSharesNoValueStaysApart) {
  graph_.Op("F/a", "AddV2", {"F/n", "F/one"}).Op("F/less", "Less", {"F/a", "F/two"});
  graph_.Op("F/b", "AddV2", {"F/x", "F/one"}).Op("F/more", "Less", {"F/b", "F/two"});
  graph_.Op("F/s", "Switch", {"F/x", "F/more"}).Kernel("F/f", {"F/s"}).Kernel("F/t", {"F/s:1"});
  Merge(&graph_, "F/m", {"F/f", "F/t"}).Result("F", "F/m", 1);
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/a", "F/less"}, {"F/b", "F/more"}}));
}

TEST_F(PiecesTest, WhatWaitsForAnEffectIsLeftOut) {
  graph_.Kernel("F/effect", {"F/x"}, 1, /*is_stateful=*/true);
  graph_.Op("F/a", "AddV2", {"F/n", "F/one", "^F/effect"}).Op("F/b", "Mul", {"F/n", "F/two"});
  graph_.Op("F/less", "Less", {"F/b", "F/n"}).Kernel("F/k", {"F/a"}).Result("F", "F/k", 1);
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/b", "F/less"}}));
}

TEST_F(PiecesTest, ElementsAreReadOfArrays) {
  graph_.Const("F/axis", 0, {"^F/frame_start"});
  graph_.Op("F/next", "AddV2", {"F/n", "F/one"});
  graph_.Node("F/read", "GatherV2", {"F/x", "F/next", "F/axis"},
              {{"Tparams", tensorflow::DT_INT32},
               {"Tindices", tensorflow::DT_INT32},
               {"Taxis", tensorflow::DT_INT32},
               {"batch_dims", 0}});
  graph_.Op("F/less", "Less", {"F/read", "F/two"});
  Branch("F/less");
  Find();
  EXPECT_EQ(Members(), (std::set<Names>{{"F/next", "F/read", "F/less"}}));
  const PieceOfBody& piece = found_.pieces.at(0);
  for (size_t i = 0; i < piece.inputs.size(); ++i) {
    EXPECT_EQ(piece.is_array[i], NameOf(piece.inputs[i].node) == "F/x");
  }
}

}  // namespace
}  // namespace tensorflow_recursion
