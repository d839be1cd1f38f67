// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/call_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorflow_recursion {
namespace {

TEST(CallGraphTest, PutsMutuallyRecursiveFunctionsIntoOneComponent) {
  const CallGraph graph({{"main", {"even"}}, {"even", {"odd"}}, {"odd", {"even", "leaf"}}, {"leaf", {}}});
  EXPECT_EQ(graph.ComponentOf("even"), graph.ComponentOf("odd"));
  EXPECT_NE(graph.ComponentOf("main"), graph.ComponentOf("even"));
  EXPECT_NE(graph.ComponentOf("leaf"), graph.ComponentOf("even"));
}

TEST(CallGraphTest, ListsCalleesBeforeCallers) {
  const CallGraph graph({{"a", {"b"}}, {"b", {"c"}}, {"c", {}}});
  EXPECT_EQ(graph.components(), (std::vector<std::vector<std::string>>{{"c"}, {"b"}, {"a"}}));
}

TEST(CallGraphTest, ReachesWhatAComponentCalls) {
  const CallGraph graph({{"a", {"b"}}, {"b", {"a", "c"}}, {"c", {}}, {"d", {"a"}}});
  EXPECT_EQ(graph.ReachableFrom(graph.ComponentOf("b")), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(CallGraphTest, ChainsMayBeLongerThanTheStackIsDeep) {
  constexpr int kFunctions = 200'000;
  CallGraph::Calls calls;
  for (int i = 0; i < kFunctions; ++i) {
    calls[std::to_string(i)] = {std::to_string((i + 1) % kFunctions)};
  }
  const CallGraph graph(std::move(calls));
  EXPECT_EQ(graph.components().size(), 1);
}

}  // namespace
}  // namespace tensorflow_recursion
