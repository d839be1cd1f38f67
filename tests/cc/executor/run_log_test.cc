// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/run_log.h"

#include <vector>

#include "gtest/gtest.h"

namespace tensorflow_recursion {
namespace {

// A function whose only operator is call site 7 of itself.
class RunLogTest : public ::testing::Test {
 protected:
  RunLogTest() {
    Region& region = program_.regions.emplace_back();
    region.kind = RegionKind::kFunction;
    region.name = "F";
    region.ops.emplace_back();
    region.ops.back().kind = OpKind::kCallSite;
    region.ops.back().index = 0;
    program_.sites.emplace_back();
    program_.sites.back().call_id = 7;
  }

  // The innermost of `depth` calls below a root.
  const Frame& FrameAt(int depth) {
    frames_.assign(depth + 1, Frame());
    for (int i = 0; i <= depth; ++i) {
      frames_[i].parent = i == 0 ? nullptr : &frames_[i - 1];
      frames_[i].region = &program_.regions[0];
      frames_[i].site_op = i == 0 ? OpId() : OpId(0);
    }
    return frames_.back();
  }

  Program program_;
  std::vector<Frame> frames_;
};

TEST_F(RunLogTest, TagListsCallSitesInnermostFirst) {
  EXPECT_EQ(FrameTagText(program_, FrameAt(0)), "[]");
  EXPECT_EQ(FrameTagText(program_, FrameAt(2)), "[7,7]");
  program_.sites.emplace_back();
  program_.sites.back().call_id = 3;
  Region caller = program_.regions[0];
  caller.ops[0].index = 1;
  FrameAt(2);
  frames_[0].region = &caller;
  EXPECT_EQ(FrameTagText(program_, frames_[2]), "[7,3]");
}

TEST_F(RunLogTest, TagNamesIterationsOfLoops) {
  Region loop;
  loop.name = "while";
  FrameAt(1);
  frames_[1].region = &loop;
  frames_[1].site_op = kNone;
  frames_[1].iteration = 4;
  EXPECT_EQ(FrameTagText(program_, frames_[1]), "[while#4]");
}

TEST_F(RunLogTest, TagCountsTheMiddleOfADeepRecursion) {
  EXPECT_EQ(FrameTagText(program_, FrameAt(8)), "[7,7,7,7,7,7,7,7]");
  EXPECT_EQ(FrameTagText(program_, FrameAt(100)), "[7,7,7,7,...92 more...,7,7,7,7]");
}

}  // namespace
}  // namespace tensorflow_recursion
