// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/token_router.h"

#include <gtest/gtest.h>

#include "tests/cc/executor/worker_parts_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

using TokenRouterTest = WorkerPartsTest;

TEST_F(TokenRouterTest, AnOperatorIsReadyWhenItsLastInputHasCome) {
  StaticGraph graph;
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  SetProgram(graph);
  Frame* frame = NewFrame(RegionOf("F"));
  parts_->router.DeliverArgument(frame, 0, Number(3));
  EXPECT_TRUE(parts_->queue.empty());
  parts_->router.DeliverArgument(frame, 1, Number(4));
  ASSERT_TRUE(parts_->queue.has_operators());
  const OpId op = parts_->queue.PopOperator()->op;
  const Value* inputs = frame->values() + frame->region->ops[op].slot;
  EXPECT_EQ(inputs[0].int32, 3);
  EXPECT_EQ(inputs[1].int32, 4);
}

TEST_F(TokenRouterTest, AValueThatIsTheOnlyInputComesAlongWithItsOperator) {
  StaticGraph graph;
  graph.Function("F", {"a"}).Kernel("F/k", {"F/a"}).Result("F", "F/k");
  SetProgram(graph);
  parts_->router.DeliverArgument(NewFrame(RegionOf("F")), 0, Number(3));
  ASSERT_TRUE(parts_->queue.has_operators());
  EXPECT_EQ(parts_->queue.PopOperator()->value.int32, 3);
}

TEST_F(TokenRouterTest, WhatNobodyReadsIsReleased) {
  StaticGraph graph;
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a"}).Result("F", "F/k");
  SetProgram(graph);
  Frame* frame = NewFrame(RegionOf("F"));
  parts_->router.DeliverArgument(frame, 1, live_.Make(1));
  parts_->router.DeliverArgument(frame, 7, live_.Make(1));  // an argument that only other devices know
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(TokenRouterTest, TheFirstInputOfAMergeWins) {
  StaticGraph graph;
  graph.Function("F", {"a", "b"});
  Merge(&graph, "F/merge", {"F/a", "F/b"}).Kernel("F/k", {"F/merge"}).Result("F", "F/k");
  SetProgram(graph);
  Frame* frame = NewFrame(RegionOf("F"));
  parts_->router.DeliverArgument(frame, 1, Number(4));
  ASSERT_TRUE(parts_->queue.has_operators());
  EXPECT_EQ(parts_->queue.PopOperator()->value.int32, 4);
  parts_->router.DeliverArgument(frame, 0, live_.Make(3));
  EXPECT_TRUE(parts_->queue.empty());
  EXPECT_EQ(live_.count(), 0);
}

// Id(x) = x, which the router walks through.
TEST_F(TokenRouterTest, AResultGoesStraightToItsCallersReaders) {
  StaticGraph graph;
  AddMain(&graph, "Id", 1);
  graph.Function("Id", {"x"}).Result("Id", "Id/x");
  SetProgram(graph);
  const Region& root = built_->regions[0];
  Frame* main = NewFrame(root);
  Frame* child = NewFrame(RegionOf("Id"), main, OpsOf(root, OpKind::kCallSite).front());
  parts_->router.DeliverArgument(child, 0, Number(5));
  ASSERT_TRUE(parts_->queue.has_operators()) << "the retval";
  const ReadyOperator& item = *parts_->queue.PopOperator();
  EXPECT_EQ(item.frame, main);
  EXPECT_EQ(item.value.int32, 5);
}

TEST_F(TokenRouterTest, AValueOnItsWayThroughWaitsWhileOthersReadItToo) {
  StaticGraph graph;
  graph.Arg("x").Call("main", "F", 1, {"x"}, 2).Retval("main/return_0").Retval("main/return_1", 1);
  graph.Function("F", {"x"}).Result("F", "F/x").Result("F", "F/x", 1);
  SetProgram(graph);
  const Region& root = built_->regions[0];
  Frame* main = NewFrame(root);
  Frame* child = NewFrame(RegionOf("F"), main, OpsOf(root, OpKind::kCallSite).front());
  parts_->router.DeliverArgument(child, 0, Number(5));
  EXPECT_TRUE(parts_->router.has_deferred());
  EXPECT_EQ(main->live, 3) << "its own, the retval that is ready, the value that waits";
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), (std::vector<int>{5, 5}));
  EXPECT_EQ(main->live, 1);
}

TEST_F(TokenRouterTest, WhatIsDeferredCanBeReleased) {
  StaticGraph graph;
  graph.Arg("x").Call("main", "F", 1, {"x"}, 2).Retval("main/return_0").Retval("main/return_1", 1);
  graph.Function("F", {"x"}).Result("F", "F/x").Result("F", "F/x", 1);
  SetProgram(graph);
  const Region& root = built_->regions[0];
  Frame* child = NewFrame(RegionOf("F"), NewFrame(root), OpsOf(root, OpKind::kCallSite).front());
  parts_->router.DeliverArgument(child, 0, live_.Make(5));
  ASSERT_TRUE(parts_->router.has_deferred());
  parts_->router.ClearDeferred();
  EXPECT_FALSE(parts_->router.has_deferred());
  parts_->queue.Clear();
  parts_.reset();
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(TokenRouterTest, AResultForAnotherWorkersFrameIsAMessage) {
  StaticGraph graph;
  AddMain(&graph, "Id", 1);
  graph.Function("Id", {"x"}).Result("Id", "Id/x");
  SetProgram(graph);
  WorkerParts other(run_.get(), 1, [] {});
  other.inbox.Open();
  const Region& root = built_->regions[0];
  Frame* main = other.frames.New(root, nullptr, kNone, 0);
  const OpId site = OpsOf(root, OpKind::kCallSite).front();
  Frame* child = NewFrame(RegionOf("Id"), main, site);
  parts_->router.DeliverArgument(child, 0, Number(5));
  EXPECT_TRUE(parts_->queue.empty());
  const std::vector<Message> mail = other.inbox.Take();
  ASSERT_EQ(mail.size(), 1);
  EXPECT_EQ(mail[0].kind, Message::Kind::kResult);
  EXPECT_EQ(mail[0].frame, main);
  EXPECT_EQ(mail[0].op, site);
  EXPECT_EQ(mail[0].values.at(0).int32, 5);
}

}  // namespace
}  // namespace tensorflow_recursion
