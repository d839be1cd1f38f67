// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/effect_states.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

constexpr EffectState kNothing{}, kWrites{true, false}, kReads{false, true}, kBoth{true, true};

void ExpectEqual(EffectState state, EffectState expected, const std::string& what) {
  EXPECT_EQ(state.writes, expected.writes) << what;
  EXPECT_EQ(state.reads, expected.reads) << what;
}

// The nodes of a builder. Those whose names begin with "write" have a side effect.
NodeList ListOf(const GraphBuilder& builder) {
  NodeList list;
  for (const tensorflow::NodeDef& node : builder.graph().node()) list.Add(node, node.name().rfind("write", 0) == 0);
  return list;
}

// write -> a -> read, b, where an arrow is an edge of some kind.
NodeList Chain() {
  GraphBuilder builder;
  builder.Node("write", "NoOp").Node("a", "NoOp", {"^write"}).Node("read", "ReadVariableOp", {"a"}).Node("b", "NoOp");
  return ListOf(builder);
}

TEST(EffectStateTest, OrderMattersWhereOneOfTheTwoWrites) {
  EXPECT_TRUE(kWrites.IsSeenBy(kWrites));
  EXPECT_TRUE(kWrites.IsSeenBy(kReads));
  EXPECT_TRUE(kReads.IsSeenBy(kWrites));
  EXPECT_FALSE(kReads.IsSeenBy(kReads));
  EXPECT_FALSE(kNothing.IsSeenBy(kBoth));
  EXPECT_FALSE(kBoth.IsSeenBy(kNothing));
}

TEST(EffectStateTest, TellsWhetherAnythingHasChanged) {
  EffectState state;
  EXPECT_FALSE(state.Add(kNothing));
  EXPECT_TRUE(state.Add(kReads));
  EXPECT_FALSE(state.Add(kReads));
  EXPECT_TRUE(state.Add(kBoth));
}

TEST(EffectStatesTest, ACallDoesWhatItsCalleeDoes) {
  GraphBuilder builder;
  builder.Call("quiet", "Quiet", {}).Call("loud", "Loud", {}).Node("write", "NoOp").Node("read", "ReadVariableOp");
  CallProgram program;
  program.functions["Quiet"].reads_state = true;
  program.functions["Loud"].has_effects = true;
  const EffectStates states = StatesOf(program, ListOf(builder));
  const std::vector<EffectState> expected = {kReads, kWrites, kWrites, kReads};
  ASSERT_EQ(states.size(), expected.size());
  for (size_t i = 0; i < states.size(); ++i) ExpectEqual(states[i], expected[i], builder.graph().node(i).name());
}

TEST(EffectStatesTest, NeighboursAreThoseOfDataAndControlEdges) {
  const NodeList list = Chain();
  EXPECT_EQ(ReadersOf(list), (Neighbours{{1}, {2}, {}, {}}));
  EXPECT_EQ(ProducersOf(list), (Neighbours{{}, {0}, {1}, {}}));
}

TEST(EffectStatesTest, StatesSpreadToAllThatComeAfterOrBefore) {
  const NodeList list = Chain();
  EffectStates before = StatesOf(CallProgram(), list), after = before;
  Spread(ReadersOf(list), &before);
  Spread(ProducersOf(list), &after);
  const EffectStates expected_before = {kWrites, kWrites, kBoth, kNothing};
  const EffectStates expected_after = {kBoth, kReads, kReads, kNothing};
  for (size_t i = 0; i < list.nodes.size(); ++i) {
    ExpectEqual(before[i], expected_before[i], "before " + list.nodes[i].name());
    ExpectEqual(after[i], expected_after[i], "after " + list.nodes[i].name());
  }
}

TEST(EffectStatesTest, MarksSpreadAroundCircles) {
  std::vector<bool> marks = {false, true, false, false};
  Spread(Neighbours{{1}, {2}, {0}, {2}}, &marks);
  EXPECT_EQ(marks, (std::vector<bool>{true, true, true, false}));
}

}  // namespace
}  // namespace tensorflow_recursion
