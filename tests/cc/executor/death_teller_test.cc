// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/death_teller.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "tests/cc/executor/worker_parts_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

// main(x, y) calls F(a, b), whose arguments the tests declare dead in F's frame.
class DeathTellerTest : public WorkerPartsTest {
 protected:
  void Open(const StaticGraph& graph) {
    SetProgram(graph);
    const Region& root = built_->regions[0];
    main_ = NewFrame(root);
    f_ = NewFrame(RegionOf("F"), main_, OpsOf(root, OpKind::kCallSite).front());
    teller_ = std::make_unique<DeathTeller>(&parts_->router, &parts_->frames, &parts_->partial_calls);
  }

  void Kill(uint32_t argument) {
    const Region& region = *f_->region;
    teller_->Kill(f_, region.port_deaths[region.ops[region.entries[argument]].port]);
  }

  // Takes what is ready out of the queue; says how many operators of the main graph were among it.
  int ReadyInMain() {
    int count = 0;
    while (parts_->queue.has_operators()) count += parts_->queue.PopOperator()->frame == main_;
    return count;
  }

  Frame* main_ = nullptr;
  Frame* f_ = nullptr;
  std::unique_ptr<DeathTeller> teller_;
};

StaticGraph MergeOfArguments() {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"});
  Merge(&graph, "F/merge", {"F/a", "F/b"}).Kernel("F/k", {"F/merge"}).Result("F", "F/k");
  return graph;
}

// The value_index makes the merge keep its inputs' deaths in a slot, and not in its pending count.
StaticGraph MergeWithItsIndex() {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"});
  Merge(&graph, "F/merge", {"F/a", "F/b"}).Kernel("F/k", {"F/merge", "F/merge:1"}).Result("F", "F/k");
  return graph;
}

TEST_F(DeathTellerTest, AMergeIsDeadWithItsLastInput) {
  for (const StaticGraph& graph : {MergeOfArguments(), MergeWithItsIndex()}) {
    Open(graph);
    Kill(0);
    EXPECT_EQ(parts_->router.has_deferred() || !parts_->queue.empty(), false) << "input 1 may still come";
    parts_->router.DeliverArgument(f_, 1, Number(4));
    EXPECT_TRUE(parts_->queue.has_operators());
    parts_->queue.Clear();

    Open(graph);
    Kill(0);
    Kill(1);
    EXPECT_TRUE(parts_->queue.empty()) << "what is dead does not fire";
  }
}

TEST_F(DeathTellerTest, ADeathThatIsToldTwiceCountsOnce) {
  for (const StaticGraph& graph : {MergeOfArguments(), MergeWithItsIndex()}) {
    Open(graph);
    Kill(0);
    Kill(0);
    parts_->router.DeliverArgument(f_, 1, Number(4));
    EXPECT_TRUE(parts_->queue.has_operators());
    parts_->queue.Clear();
  }
}

TEST_F(DeathTellerTest, AMergeThatHasItsValueIgnoresDeaths) {
  Open(MergeOfArguments());
  parts_->router.DeliverArgument(f_, 0, Number(3));
  Kill(1);
  ASSERT_TRUE(parts_->queue.has_operators());
  EXPECT_EQ(parts_->queue.PopOperator()->value.int32, 3);
  EXPECT_TRUE(parts_->queue.empty());
}

// main's union fires when the call's result has come or is dead.
TEST_F(DeathTellerTest, ADeadResultIsToldInTheCallersFrame) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Call("main", "F", 1, {"x", "y"});
  graph.Node("union", "ControlTrigger", {"^main/return_0"}).Const("one", 1, {"^union"}).Retval("one");
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  Open(graph);
  Kill(0);
  EXPECT_EQ(ReadyInMain(), 1) << "the union";
}

TEST_F(DeathTellerTest, ADeadArgumentOfACallIsKeptForWhenItOpens) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Call("F/g", "G", 2, {"F/a", "F/b"}).Result("F", "F/g/return_0");
  graph.Function("G", {"a", "b"}).Kernel("G/k", {"G/a"}).Result("G", "G/k");
  Open(graph);
  const OpId site = OpsOf(*f_->region, OpKind::kCallSite).front();
  Kill(1);
  const PartialCall* const partial = parts_->partial_calls.Find(f_, site);
  ASSERT_NE(partial, nullptr);
  EXPECT_TRUE(partial->is_dead(1));
  EXPECT_FALSE(partial->is_dead(0));
  EXPECT_FALSE(parts_->queue.has_calls()) << "argument 0 may still come";
  parts_->router.DeliverArgument(f_, 0, Number(3));
  EXPECT_TRUE(parts_->queue.has_calls());
}

// Each merge loses one input with b, and the other with the merge before it, which dies when it learns of b.
TEST_F(DeathTellerTest, AChainOfDeathsIsFollowedToItsEnd) {
  constexpr int kLinks = 1000;
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Call("main", "F", 1, {"x", "y"});
  graph.Node("union", "ControlTrigger", {"^main/return_0"}).Const("one", 1, {"^union"}).Retval("one");
  graph.Function("F", {"a", "b"});
  Merge(&graph, "F/m0", {"F/a", "F/b"});
  for (int i = 1; i < kLinks; ++i) Merge(&graph, absl::StrCat("F/m", i), {absl::StrCat("F/m", i - 1), "F/b"});
  graph.Result("F", absl::StrCat("F/m", kLinks - 1));
  Open(graph);
  Kill(0);
  EXPECT_TRUE(parts_->queue.empty());
  Kill(1);
  EXPECT_EQ(ReadyInMain(), 1) << "the union";
}

}  // namespace
}  // namespace tensorflow_recursion
