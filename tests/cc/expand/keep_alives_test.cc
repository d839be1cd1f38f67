// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/keep_alives.h"

#include <gtest/gtest.h>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::GraphDef;

TEST(KeepAlivesTest, OnlyReturnsOfTheMainGraphHoldTheBodies) {
  const GraphDef expanded = Expand(CallAndReader().graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "y/return_0"), (Inputs{"recursion_keep_alive/F", "^y/call_0"}));
  EXPECT_EQ(InputsOf(expanded, "F/call/return_0"), Inputs{"^F/call/call_0"});
  EXPECT_EQ(InputsOf(expanded, "recursion_keep_alive/F"), (Inputs{"^F/recursion_frame_start", "^F/r"}));
}

TEST(KeepAlivesTest, KeepAlivesHoldAllThatTheComponentCalls) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "Even", {"x"}).Function(Endless("Even", "Odd")).Function(Endless("Odd", "Even"));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/Even", "^Even/r"));
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/Even", "^Odd/r"));
}

TEST(KeepAlivesTest, CallsInLoopsTakeTheTokenThroughTheLoopsFrames) {
  GraphBuilder builder;
  builder.Const("x").Function(Endless("F", "F"));
  AddLoop(&builder, "outer", "x");
  AddLoop(&builder, "inner", "outer/next");
  builder.Call("a", "F", {"inner/next"}).Call("b", "F", {"a"}).Call("c", "F", {"inner/exit"});
  builder.Node("inner/iterate", "NextIteration", {"b"}, {{"T", kInt}});
  builder.Node("outer/iterate", "NextIteration", {"c"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"outer/exit:0"});

  const std::string outer = "recursion_keep_alive/F/enter/outer_frame",
                    inner = "recursion_keep_alive/F/enter/inner_frame";
  EXPECT_EQ(InputsOf(expanded, outer), Inputs{"recursion_keep_alive/F"});
  EXPECT_EQ(InputsOf(expanded, inner), Inputs{outer});
  EXPECT_TRUE(Find(expanded, inner)->attr().at("is_constant").b());
  EXPECT_TRUE(HasInput(expanded, "a/return_0", inner));
  EXPECT_TRUE(HasInput(expanded, "b/return_0", inner)) << "shared by the frame's calls";
  EXPECT_TRUE(HasInput(expanded, "c/return_0", outer));
}

}  // namespace
}  // namespace tensorflow_recursion
