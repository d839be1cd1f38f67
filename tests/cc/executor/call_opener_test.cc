// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/call_opener.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cc/executor/worker_parts_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

class CallOpenerTest : public WorkerPartsTest {
 protected:
  // An asynchronous kernel that hands its input on when it is answered.
  void Hold(const std::string& node) {
    runner_.OnAsync(node, [this, node](KernelCall* call, const FakeRunner::Done& done) {
      held_[node] = [call, done] {
        call->outputs[0] = call->inputs[0].Take();
        done(absl::OkStatus());
      };
    });
  }
  void Answer(const std::string& node) {
    held_.at(node)();
    for (Message& message : parts_->inbox.Take()) parts_->kernels.Land(&message);
    WorkToTheEnd();
  }

  std::map<std::string, std::function<void()>> held_;
};

TEST_F(CallOpenerTest, TheRootGetsTheArgumentsOfTheRun) {
  StaticGraph graph;
  graph.Arg("x").Arg("unread", 1).Kernel("k", {"x"}).Retval("k");
  SetProgram(graph);
  parts_->calls.OpenRoot({live_.Make(7), live_.Make(8)});
  EXPECT_EQ(live_.count(), 1);
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), std::vector<int>{7});
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(CallOpenerTest, ACallTakesItsArgumentsOutOfTheCallersSlots) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  SetProgram(graph);
  parts_->calls.OpenRoot(Numbers({3, 4}));
  ASSERT_TRUE(parts_->queue.has_calls());
  const ReadyCall call = parts_->queue.PopCall();
  parts_->calls.Open(call.frame, call.op);
  const Op& op = call.frame->region->ops[call.op];
  EXPECT_TRUE(call.frame->values()[op.slot].is_empty());
  EXPECT_TRUE(call.frame->values()[op.slot + 1].is_empty());
  ASSERT_TRUE(parts_->queue.has_operators());
  Frame* const child = parts_->queue.PopOperator()->frame;
  EXPECT_EQ(child->parent, call.frame);
  EXPECT_EQ(child->site_op, call.op);
  EXPECT_EQ(child->depth, 1);
}

TEST_F(CallOpenerTest, ACallThatWasGivenAwayTakesItsArgumentsFromTheMessage) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  SetProgram(graph);
  const Region& root = built_->regions[0];
  Frame* main = NewFrame(root);
  std::vector<Value> arguments = {live_.Make(3), live_.Make(4)};
  parts_->calls.OpenGiven(main, OpsOf(root, OpKind::kCallSite).front(), &arguments);
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), std::vector<int>{3});
}

TEST_F(CallOpenerTest, ACallBelowTheDepthLimitIsAnError) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x"}, /*max_depth=*/3).Call("F/call", "F", 2, {"F/x"}).Result("F", "F/call/return_0");
  SetProgram(graph);
  parts_->calls.OpenRoot(Numbers({1}));
  WorkToTheEnd();
  EXPECT_TRUE(absl::IsResourceExhausted(run_->status()));
  EXPECT_TRUE(absl::StrContains(run_->status().message(), "at depth 4, the limit is 3")) << run_->status();
  EXPECT_TRUE(parts_->context.must_poll());
}

TEST_F(CallOpenerTest, ACallMayOpenWithoutSomeOfItsArguments) {
  StaticGraph graph;
  graph.Arg("x").Kernel("late", {"x"}).Call("main", "F", 1, {"x", "late"}, 2);
  graph.Retval("main/return_0").Retval("main/return_1", 1);
  graph.Function("F", {"a", "b"}).Kernel("F/one", {"F/a"}).Kernel("F/two", {"F/b"});
  graph.Result("F", "F/one").Result("F", "F/two", 1);
  Hold("late");
  SetProgram(graph);
  parts_->calls.OpenRoot(Numbers({6}));
  WorkToTheEnd();
  EXPECT_TRUE(run_->retvals[0].is_empty());
  ASSERT_FALSE(parts_->incomplete_sites.empty());
  parts_->calls.OpenIncomplete(parts_->incomplete_sites.newest());
  EXPECT_TRUE(parts_->incomplete_sites.empty());
  EXPECT_FALSE(parts_->partial_calls.empty());
  WorkToTheEnd();
  EXPECT_EQ(run_->retvals[0].int32, 6);
  EXPECT_TRUE(run_->retvals[1].is_empty());
  Answer("late");
  EXPECT_EQ(Retvals(), (std::vector<int>{6, 6}));
  EXPECT_TRUE(parts_->partial_calls.empty());
}

// P(a, b) = a, b. Opening `i` gives `j` its last argument at once; `k` becomes incomplete only then, in the same frame.
TEST_F(CallOpenerTest, OpeningACallMayCompleteAnother) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Kernel("late", {"x"}).Kernel("later", {"y"});
  graph.Call("i", "P", 1, {"x", "late"}, 2).Call("j", "P", 2, {"y", "i/return_0"}, 2);
  graph.Kernel("then", {"j/return_1"}).Call("k", "P", 3, {"then", "later"}, 2);
  graph.Retval("i/return_1").Retval("k/return_0", 1).Retval("k/return_1", 2);
  graph.Function("P", {"a", "b"}).Result("P", "P/a").Result("P", "P/b", 1);
  Hold("late");
  Hold("later");
  SetProgram(graph);
  parts_->calls.OpenRoot(Numbers({1, 2}));
  WorkToTheEnd();
  ASSERT_FALSE(parts_->incomplete_sites.empty());
  parts_->calls.OpenIncomplete(parts_->incomplete_sites.newest());
  WorkToTheEnd();
  ASSERT_FALSE(parts_->incomplete_sites.empty()) << "k";
  parts_->calls.OpenIncomplete(parts_->incomplete_sites.newest());
  WorkToTheEnd();
  EXPECT_EQ(run_->retvals[1].int32, 1);
  Answer("later");
  Answer("late");
  EXPECT_EQ(Retvals(), (std::vector<int>{1, 1, 2}));
  EXPECT_TRUE(parts_->incomplete_sites.empty());
}

}  // namespace
}  // namespace tensorflow_recursion
