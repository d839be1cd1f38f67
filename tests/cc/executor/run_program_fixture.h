// What the tests of whole runs share: how they run a program, and the programs that several themes run.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_RUN_PROGRAM_FIXTURE_H_
#define TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_RUN_PROGRAM_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cc/executor/run_program.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/executor/fake_runner.h"
#include "tests/cc/executor/thread_pool.h"
#include "tests/cc/program/built_programs.h"
#include "tests/cc/values/numbers.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {

inline constexpr uint64_t kSeeds = 40;

class RunProgramTest : public ::testing::Test {
 protected:
  void SetProgram(const StaticGraph& graph) {
    built_ = Build(graph);
    ASSERT_TRUE(built_.status.ok()) << built_.status;
  }

  RunEnvironment Environment(uint64_t seed = 0) { return EnvironmentOf(built_, &runner_, &pool_, seed); }

  Outcome RunWith(std::vector<Value> arguments, uint64_t seed = 0) {
    return RunToEnd(Environment(seed), std::move(arguments));
  }

  // The results are the same newest first, in any order, by kernels alone, and on several workers.
  void ExpectInEveryOrder(const std::vector<int>& arguments, const std::vector<int>& expected) {
    auto expect = [&](const RunEnvironment& environment) {
      const Outcome outcome = RunToEnd(environment, Numbers(arguments));
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.Numbers(), expected);
    };
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
      RunEnvironment environment = Environment(seed);
      expect(environment);
      environment.max_workers = 4;
      expect(environment);
    }
    RunEnvironment traced = Environment();
    traced.trace = true;
    expect(traced);
  }

  void ExpectError(const Outcome& outcome, absl::StatusCode code, const std::vector<std::string>& texts) {
    EXPECT_EQ(outcome.status.code(), code) << outcome.status;
    for (const std::string& text : texts) {
      EXPECT_TRUE(absl::StrContains(outcome.status.message(), text)) << outcome.status;
    }
    EXPECT_TRUE(outcome.retvals.empty());
    EXPECT_EQ(live_.count(), 0);
  }

  LiveTensors live_;
  BuiltProgram built_;
  FakeRunner runner_;
  ThreadPool pool_{4};
};

// F(n, t) = t + ... + t, n times: t is handed down unchanged and read on the way up.
inline void AddRepeat(StaticGraph* graph) {
  const Inputs frame_start = {"^F/frame_start"};
  graph->Function("F", {"n", "t"}).Const("F/one", 1, frame_start).Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/st", "Switch", {"F/t", "F/less"});
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/st"});
  graph->Kernel("F/add", {"F/call/return_0", "F/st"}).Kernel("F/base", {"F/st:1"});
  Merge(graph, "F/merge", {"F/add", "F/base"}).Result("F", "F/merge");
}

// F(n) = 0 if n < 1 else async(F(n - 1)) + 1
inline StaticGraph AsyncCount() {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  const Inputs frame_start = {"^F/frame_start"};
  graph.Function("F", {"n"}, 2000).Const("F/one", 1, frame_start).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/switch", "Switch", {"F/n", "F/less"}).Op("F/n1", "Sub", {"F/switch", "F/one"});
  graph.Kernel("F/down", {"F/n1"}).Call("F/call", "F", 2, {"F/down"}).Kernel("F/up", {"F/call/return_0"});
  graph.Op("F/sum", "AddV2", {"F/up", "F/one"});
  Merge(&graph, "F/merge", {"F/sum", "F/switch:1"}).Result("F", "F/merge");
  return graph;
}

// F(n, t) calls itself twice, without end.
inline StaticGraph Endless(int64_t max_depth) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "t"}, max_depth)
      .Const("F/one", 1, {"^F/frame_start"})
      .Op("F/n1", "AddV2", {"F/n", "F/one"});
  graph.Kernel("F/k", {"F/t"}).Call("F/a", "F", 2, {"F/n1", "F/k"}).Call("F/b", "F", 3, {"F/n1", "F/k"});
  graph.Op("F/sum", "AddV2", {"F/a/return_0", "F/b/return_0"}).Result("F", "F/sum");
  return graph;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_RUN_PROGRAM_FIXTURE_H_
