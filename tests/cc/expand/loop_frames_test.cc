// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/loop_frames.h"

#include <gtest/gtest.h>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

TEST(LoopFramesTest, CallsOutsideOfLoopsHaveNone) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(CallAndReader().graph(), &graph).ok());
  CallProgram program;
  ASSERT_TRUE(FindLoopFrames(graph.get(), &program).ok());
  EXPECT_TRUE(program.frames.empty());
  EXPECT_TRUE(program.frame_of.empty());
}

TEST(LoopFramesTest, LoopsAreFoundFromTheOutsideIn) {
  GraphBuilder builder;
  builder.Const("x").Function(Endless("F", "F"));
  AddLoop(&builder, "outer", "x");
  AddLoop(&builder, "inner", "outer/next");
  builder.Call("a", "F", {"inner/next"}).Call("b", "F", {"inner/exit"}).Call("c", "F", {"outer/exit"});
  builder.Node("inner/iterate", "NextIteration", {"a"}, {{"T", kInt}});
  builder.Node("outer/iterate", "NextIteration", {"b"}, {{"T", kInt}});
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  CallProgram program;
  ASSERT_TRUE(FindLoopFrames(graph.get(), &program).ok());
  ASSERT_EQ(program.frames.size(), 2);
  EXPECT_EQ(program.frames[0].name, "outer_frame");
  EXPECT_EQ(program.frames[0].parent, kNoLoop);
  EXPECT_EQ(program.frames[1].name, "inner_frame");
  EXPECT_EQ(program.frames[1].parent, 0);
  EXPECT_EQ(program.frames[1].parallel_iterations, 10);
  EXPECT_EQ(program.frame_of, (std::unordered_map<std::string, int>{{"a", 1}, {"b", 0}}));
}

TEST(LoopFramesTest, ReportsMalformedLoops) {
  GraphBuilder builder;
  builder.Const("x").Node("enter", "Enter", {"x"}, {{"T", kInt}, {"frame_name", "loop"}});
  builder.Node("sum", "AddV2", {"x", "enter"}, {{"T", kInt}});  // in two frames at once
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  CallProgram program;
  EXPECT_EQ(FindLoopFrames(graph.get(), &program).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tensorflow_recursion
