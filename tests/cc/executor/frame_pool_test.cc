// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/frame_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <vector>

#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/program/built_programs.h"
#include "tests/cc/values/live_tensors.h"

namespace tensorflow_recursion {
namespace {

// F(a, b): a kernel of both; a call with a constant; G: a body of another size.
class FramePoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StaticGraph graph;
    graph.Function("F", {"a", "b"}).Const("F/c", 7, {"^F/frame_start"});
    graph.Kernel("F/k", {"F/a", "F/b"}).Call("F/call", "F", 2, {"F/k", "F/c"}).Result("F", "F/call/return_0");
    graph.Function("G", {"a"}).Op("G/sum", "AddV2", {"G/a", "G/a"}).Result("G", "G/sum");
    program_ = Build(graph);
    ASSERT_TRUE(program_.status.ok()) << program_.status;
    for (const Region& region : program_->regions) {
      if (region.name == "F") f_ = &region;
      if (region.name == "G") g_ = &region;
    }
    op_ = std::find_if(f_->ops.begin(), f_->ops.end(), [](const Op& op) { return op.kind == OpKind::kKernel; });
    ASSERT_NE(op_, f_->ops.end());
    site_ = std::find_if(f_->ops.begin(), f_->ops.end(), [](const Op& op) { return op.kind == OpKind::kCallSite; });
    ASSERT_NE(site_, f_->ops.end());
  }

  // Stores a value as a worker does.
  void Store(Frame* frame, uint32_t input, Value value) {
    frame->values()[op_->slot + input] = value;
    frame->owns_tensors = true;
  }

  BuiltProgram program_;
  std::atomic<int64_t> bytes_{0};
  const Region* f_ = nullptr;
  const Region* g_ = nullptr;
  std::vector<Op>::const_iterator op_;
  std::vector<Op>::const_iterator site_;
};

TEST_F(FramePoolTest, NewFramesAreCopiesOfTheTemplate) {
  FramePool pool(*program_.program, &bytes_);
  Frame* frame = pool.New(*f_);
  EXPECT_EQ(frame->region, f_);
  EXPECT_EQ(frame->incomplete_sites, 0);
  EXPECT_FALSE(frame->owns_tensors);
  const Value* inputs = frame->values() + op_->slot;
  EXPECT_TRUE(inputs[0].is_empty());
  EXPECT_TRUE(inputs[1].is_empty());
  const Value& constant = frame->values()[site_->slot + 1];
  ASSERT_TRUE(constant.is_scalar());
  EXPECT_EQ(constant.int32, 7);
  EXPECT_EQ(frame->pending()[op_ - f_->ops.begin()], 2);
}

TEST_F(FramePoolTest, CountsTheBytesOfItsSlabsOnce) {
  FramePool pool(*program_.program, &bytes_);
  EXPECT_EQ(bytes_, 0);
  std::vector<Frame*> frames;
  for (int i = 0; i < 1000; ++i) frames.push_back(pool.New(*f_));
  const int64_t bytes = bytes_;
  EXPECT_GE(bytes, static_cast<int64_t>(1000 * (sizeof(Frame) + f_->frame_template.size())));
  for (Frame* frame : frames) pool.Delete(frame);
  for (int i = 0; i < 1000; ++i) pool.New(*f_);
  EXPECT_EQ(bytes_, bytes);
}

TEST_F(FramePoolTest, ReusesTheFrameDeletedLast) {
  FramePool pool(*program_.program, &bytes_);
  Frame* first = pool.New(*f_);
  Frame* second = pool.New(*f_);
  pool.Delete(first);
  pool.Delete(second);
  EXPECT_EQ(pool.New(*f_), second);
  EXPECT_EQ(pool.New(*f_), first);
}

TEST_F(FramePoolTest, ReusedFramesAreCopiesOfTheTemplate) {
  FramePool pool(*program_.program, &bytes_);
  Frame* frame = pool.New(*f_);
  frame->values()[op_->slot] = Value::Scalar(5);
  frame->values()[site_->slot + 1].Release();
  frame->pending()[op_ - f_->ops.begin()] = 0;
  frame->incomplete_sites = 3;
  frame->owns_tensors = true;
  pool.Delete(frame);
  ASSERT_EQ(pool.New(*f_), frame);
  EXPECT_TRUE(frame->values()[op_->slot].is_empty());
  EXPECT_EQ(frame->values()[site_->slot + 1].int32, 7);
  EXPECT_EQ(frame->pending()[op_ - f_->ops.begin()], 2);
  EXPECT_EQ(frame->incomplete_sites, 0);
  EXPECT_FALSE(frame->owns_tensors);
}

TEST_F(FramePoolTest, RegionsDoNotShareFrames) {
  FramePool pool(*program_.program, &bytes_);
  Frame* frame = pool.New(*f_);
  pool.Delete(frame);
  EXPECT_NE(pool.New(*g_), frame);
  EXPECT_EQ(pool.New(*f_), frame);
}

TEST_F(FramePoolTest, ManyFramesStayWhereTheyAre) {
  constexpr int kFrames = 50'000;  // several slabs of the largest size
  FramePool pool(*program_.program, &bytes_);
  std::vector<Frame*> frames;
  for (int i = 0; i < kFrames; ++i) {
    frames.push_back(pool.New(*f_));
    frames.back()->depth = i;
    frames.back()->values()[op_->slot].bits = i;
  }
  EXPECT_EQ(std::set<Frame*>(frames.begin(), frames.end()).size(), kFrames);
  for (int i = 0; i < kFrames; ++i) {
    ASSERT_EQ(frames[i]->depth, i);
    ASSERT_EQ(frames[i]->values()[op_->slot].bits, i);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(frames[i]) % alignof(Value), 0);
  }
}

TEST_F(FramePoolTest, GivesBackSlabsWithoutLiveFrames) {
  constexpr int kFrames = 50'000;
  FramePool pool(*program_.program, &bytes_);
  std::vector<Frame*> frames;
  for (int i = 0; i < kFrames; ++i) {
    frames.push_back(pool.New(*f_));
    frames.back()->depth = i;
  }
  const int64_t bytes = bytes_;
  for (int i = kFrames - 1; i > 0; --i) {
    if (i != kFrames / 2) pool.Delete(frames[i]);
  }
  // Left: the small ones at the beginning, the one with a frame, a spare one.
  EXPECT_LE(bytes_, 4 * static_cast<int64_t>(kSlabBytes));
  EXPECT_EQ(frames[0]->depth, 0);
  EXPECT_EQ(frames[kFrames / 2]->depth, kFrames / 2);
  std::set<Frame*> used = {frames[0], frames[kFrames / 2]};
  for (int i = 2; i < kFrames; ++i) used.insert(pool.New(*f_));
  EXPECT_EQ(used.size(), kFrames);
  EXPECT_GE(bytes_, bytes - static_cast<int64_t>(kSlabBytes));
  EXPECT_LE(bytes_, bytes + static_cast<int64_t>(kSlabBytes));
}

// A recursion that goes up and down across the end of a slab.
TEST_F(FramePoolTest, KeepsASpareSlab) {
  FramePool pool(*program_.program, &bytes_);
  std::vector<Frame*> frames;
  const int64_t most = 8 * static_cast<int64_t>(kSlabBytes);
  while (bytes_ < most) frames.push_back(pool.New(*f_));
  const int64_t bytes = bytes_;
  Frame* last = frames.back();  // the only one in its slab
  for (int i = 0; i < 10; ++i) {
    pool.Delete(last);
    EXPECT_EQ(bytes_, bytes);
    last = pool.New(*f_);
    EXPECT_EQ(bytes_, bytes);
  }
}

TEST_F(FramePoolTest, SlabsMayEmptyInAnyOrder) {
  constexpr int kFrames = 30'000;
  std::mt19937 random(5);
  FramePool pool(*program_.program, &bytes_);
  std::vector<Frame*> frames;
  for (int round = 0; round < 3; ++round) {
    while (frames.size() < kFrames) {
      frames.push_back(pool.New(frames.size() % 2 == 0 ? *f_ : *g_));
      frames.back()->values()[0].bits = frames.size();
      frames.back()->depth = static_cast<uint32_t>(frames.size());
    }
    std::shuffle(frames.begin(), frames.end(), random);
    for (Frame* frame : frames) ASSERT_EQ(frame->values()[0].bits, frame->depth);
    const size_t kept = round == 2 ? 0 : kFrames / 3;
    for (; frames.size() > kept; frames.pop_back()) pool.Delete(frames.back());
  }
  EXPECT_LE(bytes_, 4 * static_cast<int64_t>(kSlabBytes));
}

TEST_F(FramePoolTest, DeletedFramesReleaseTheirTensors) {
  LiveTensors live;
  FramePool pool(*program_.program, &bytes_);
  Frame* frame = pool.New(*f_);
  Store(frame, 0, live.Make(1));
  Store(frame, 1, live.Make(2));
  pool.Delete(frame);
  EXPECT_EQ(live.count(), 0);
}

TEST_F(FramePoolTest, TensorsOfLiveFramesGoWithThePool) {
  LiveTensors live;
  {
    FramePool pool(*program_.program, &bytes_);
    std::vector<Frame*> frames;
    for (int i = 0; i < 1000; ++i) {
      frames.push_back(pool.New(*f_));
      Store(frames.back(), 0, live.Make(i));
    }
    for (int i = 0; i < 1000; i += 3) pool.Delete(frames[i]);
    EXPECT_EQ(live.count(), 1000 - 334);
  }
  EXPECT_EQ(live.count(), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
