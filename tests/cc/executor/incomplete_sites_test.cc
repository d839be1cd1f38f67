// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/incomplete_sites.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

// F(a, b) calls itself with what two kernels make of its arguments.
class IncompleteSitesTest : public WorkerPartsTest {
 protected:
  void SetUp() override {
    StaticGraph graph;
    graph.Function("F", {"a", "b"}).Kernel("F/x", {"F/a"}).Kernel("F/y", {"F/b"});
    graph.Call("F/call", "F", 2, {"F/x", "F/y"}).Result("F", "F/call/return_0");
    SetProgram(graph);
    region_ = &RegionOf("F");
    site_ = OpsOf(*region_, OpKind::kCallSite).front();
  }

  // Does what the router does when an argument arrives.
  void Arrive(Frame* frame, uint16_t argument, bool is_dead = false) {
    if (is_dead) partial_calls_.AddDeadArgument(frame, site_, argument);
    const Edge edge = {site_, SlotId(region_->ops[site_].slot + argument), argument, EdgeKind::kCallArgument};
    sites_->NoteArgument(frame, edge, is_dead, partial_calls_.Find(frame, site_));
    --frame->pending()[site_];
  }

  const Region* region_ = nullptr;
  OpId site_;
  PartialCalls partial_calls_;
  std::unique_ptr<IncompleteSites> sites_;

  void MakeSites() { sites_ = std::make_unique<IncompleteSites>(*built_.program, &partial_calls_); }
};

TEST_F(IncompleteSitesTest, ASiteIsIncompleteFromItsFirstArgumentToItsLast) {
  MakeSites();
  Frame* frame = NewFrame(*region_);
  EXPECT_FALSE(sites_->IsIncomplete(frame, site_));
  Arrive(frame, 0);
  EXPECT_TRUE(sites_->IsIncomplete(frame, site_));
  EXPECT_EQ(sites_->newest(), frame);
  EXPECT_EQ(frame->live, 2);
  Arrive(frame, 1);
  EXPECT_FALSE(sites_->IsIncomplete(frame, site_));
  EXPECT_TRUE(sites_->empty());
  EXPECT_EQ(frame->live, 1);
}

TEST_F(IncompleteSitesTest, DeadArgumentsAloneDoNotOpenACall) {
  MakeSites();
  Frame* frame = NewFrame(*region_);
  Arrive(frame, 0, /*is_dead=*/true);
  EXPECT_FALSE(sites_->IsIncomplete(frame, site_));
  EXPECT_TRUE(sites_->empty());
  Arrive(frame, 1);
  EXPECT_TRUE(sites_->empty());
}

TEST_F(IncompleteSitesTest, ADeadArgumentMayComeAfterALiveOne) {
  MakeSites();
  Frame* frame = NewFrame(*region_);
  Arrive(frame, 1);
  EXPECT_TRUE(sites_->IsIncomplete(frame, site_));
  Arrive(frame, 0, /*is_dead=*/true);
  EXPECT_TRUE(sites_->empty());
  EXPECT_EQ(frame->live, 1);
}

// A call from outside that enters the recursion of F(n, m, w), whose w is an invariant.
TEST_F(IncompleteSitesTest, ASiteThatEntersARecursionNeedsItsInvariants) {
  StaticGraph graph;
  AddMain(&graph, "F", 3);
  graph.Function("F", {"n", "m", "w"}).Kernel("F/x", {"F/n"}).Kernel("F/y", {"F/m"});
  graph.Call("F/call", "F", 2, {"F/x", "F/y", "F/w"}).Result("F", "F/call/return_0");
  SetProgram(graph);
  region_ = &built_->regions[0];
  site_ = OpsOf(*region_, OpKind::kCallSite).front();
  ASSERT_EQ(built_->sites[region_->ops[site_].index].num_invariants, 1);
  MakeSites();
  for (const bool is_first : {false, true}) {
    Frame* frame = NewFrame(*region_);
    auto arrive_and_stay = [&](uint16_t argument) {
      Arrive(frame, argument);
      frame->values()[region_->ops[site_].slot + argument] = Value::Scalar(0);
    };
    arrive_and_stay(is_first ? 2 : 0);
    EXPECT_EQ(sites_->IsIncomplete(frame, site_), is_first);
    arrive_and_stay(is_first ? 0 : 2);
    EXPECT_TRUE(sites_->IsIncomplete(frame, site_));
    EXPECT_EQ(frame->live, 2);
    Arrive(frame, 1);
    EXPECT_TRUE(sites_->empty());
    EXPECT_EQ(frame->live, 1);
  }
}

TEST_F(IncompleteSitesTest, AnOpenedSiteIsIncompleteNoMore) {
  MakeSites();
  Frame* frame = NewFrame(*region_);
  Arrive(frame, 0);
  partial_calls_.SetChild(frame, site_, frame);
  EXPECT_FALSE(sites_->IsIncomplete(frame, site_));
  sites_->NoteOpened(frame);
  EXPECT_TRUE(sites_->empty());
}

TEST_F(IncompleteSitesTest, TheNewestFrameComesFirstWhicheverWentBefore) {
  constexpr int kFrames = 1000;
  MakeSites();
  std::vector<Frame*> frames;
  for (int i = 0; i < kFrames; ++i) {
    frames.push_back(NewFrame(*region_));
    Arrive(frames.back(), 0);
  }
  for (int i = 0; i < kFrames; ++i) {
    if (i % 3 != 0) Arrive(frames[i], 1);  // leaves gaps, which are closed
  }
  for (int i = kFrames - 1; i >= 0; --i) {
    if (i % 3 != 0) continue;
    ASSERT_EQ(sites_->newest(), frames[i]);
    Arrive(frames[i], 1);
  }
  EXPECT_TRUE(sites_->empty());
}

}  // namespace
}  // namespace tensorflow_recursion
