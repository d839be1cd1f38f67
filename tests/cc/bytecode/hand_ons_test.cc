// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/hand_ons.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

class HandOnsTest : public ::testing::Test {
 protected:
  void Build() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    const FlowGraph& flow = built_->flow;
    const HandOns hand_ons(flow);
    classes_ = std::make_unique<ValueClasses>(flow);
    const auto join = [&](const Input& from, const Source& to) {
      if (from.is_token()) classes_->Join(classes_->Root(from.source), classes_->Root(to));
    };
    for (NodeId id : flow.nodes.ids()) hand_ons.VisitNode(id, join);
    for (const FlowLoop& loop : flow.loops) hand_ons.VisitLoop(loop, join);
  }

  size_t ClassOf(const std::string& name, OpKind kind, int port = 0) const {
    return classes_->Root({built_->Find(name, kind), port});
  }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  std::unique_ptr<ValueClasses> classes_;
};

// F(n, x) = x if n < 1 else F(n - 1, x)
TEST_F(HandOnsTest, AnArgumentThatIsPassedDownIsTheResult) {
  AddMain(&graph_, "F", 2);
  graph_.Function("F", {"n", "x"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph_.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sx", "Switch", {"F/x", "F/less"});
  graph_.Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/sx"});
  Merge(&graph_, "F/merge", {"F/call/return_0", "F/sx:1"}).Result("F", "F/merge");
  Build();
  const size_t x = ClassOf("F/x", OpKind::kEntry);
  EXPECT_EQ(ClassOf("F/sx", OpKind::kSwitch, 0), x);
  EXPECT_EQ(ClassOf("F/sx", OpKind::kSwitch, 1), x);
  EXPECT_EQ(ClassOf("F/merge", OpKind::kMerge), x);
  const size_t n = ClassOf("F/n", OpKind::kEntry);
  EXPECT_NE(n, x);
  EXPECT_EQ(ClassOf("F/n1", OpKind::kScalar), n);
  EXPECT_NE(ClassOf("F/less", OpKind::kScalar), n);
}

TEST_F(HandOnsTest, ResultsAreFoundByTheirIndex) {
  graph_.Function("F", {"n"}).Op("F/twice", "AddV2", {"F/n", "F/n"});
  graph_.Result("F", "F/n", 1).Result("F", "F/twice");
  Build();
  const HandOns hand_ons(built_->flow);
  const RegionId body = built_->flow.nodes[built_->Find("F/n", OpKind::kEntry)].region;
  for (int index = 0; index < 2; ++index) {
    const NodeId result = hand_ons.ResultOf(body, index);
    ASSERT_NE(result, kNone);
    EXPECT_EQ(built_->flow.nodes[result].index, static_cast<uint32_t>(index));
    EXPECT_EQ(classes_->Root({result, 0}),
              index == 1 ? ClassOf("F/n", OpKind::kEntry) : ClassOf("F/twice", OpKind::kScalar));
  }
  EXPECT_EQ(hand_ons.ResultOf(body, 2), kNone);
}

// F(n) = the sum of Fib(i) for i < n.
TEST_F(HandOnsTest, ALoopsVariableIsWhatItBecomesAndWhatComesOut) {
  graph_.Function("F", {"n"});
  AddSumOfFibs(&graph_, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  AddFib(&graph_, 3);
  Build();
  const FlowGraph& flow = built_->flow;
  const HandOns hand_ons(flow);
  const size_t sum = ClassOf("F/s", OpKind::kEntry);
  EXPECT_EQ(ClassOf("F/add_s", OpKind::kScalar), sum);
  const RegionId body = flow.nodes[built_->Find("F/n", OpKind::kEntry)].region;
  EXPECT_EQ(classes_->Root({hand_ons.ResultOf(body, 0), 0}), sum);
  EXPECT_EQ(ClassOf("F/enter_n", OpKind::kEntry), ClassOf("F/n", OpKind::kEntry))
      << "it is the same in every iteration";
  EXPECT_NE(ClassOf("F/i", OpKind::kEntry), sum);
}

TEST_F(HandOnsTest, SeparatedValuesAreAloneAgain) {
  graph_.Function("F", {"n"}).Result("F", "F/n");
  Build();
  const HandOns hand_ons(built_->flow);
  const NodeId entry = built_->Find("F/n", OpKind::kEntry);
  const NodeId result = hand_ons.ResultOf(built_->flow.nodes[entry].region, 0);
  EXPECT_EQ(classes_->Root({entry, 0}), classes_->Root({result, 0}));
  classes_->Separate();
  EXPECT_NE(classes_->Root({entry, 0}), classes_->Root({result, 0}));
}

}  // namespace
}  // namespace tensorflow_recursion
