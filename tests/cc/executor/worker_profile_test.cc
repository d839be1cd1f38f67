// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/worker_profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/cc/executor/run_program_fixture.h"

namespace tensorflow_recursion {
namespace {

using WorkerProfileTest = RunProgramTest;

int64_t NanosecondsOf(const std::map<std::string, KernelTimes>& kernels) {
  int64_t sum = 0;
  for (const auto& [op, times] : kernels) sum += times.nanoseconds;
  return sum;
}

TEST_F(WorkerProfileTest, CountsTheKernelsOfTheMainGraphAndOfBodies) {
  StaticGraph graph;
  graph.Arg("x").Kernel("warm", {"x"}).Call("a", "F", 1, {"warm"}).Call("b", "F", 2, {"warm"});
  graph.Op("sum", "AddV2", {"a/return_0", "b/return_0"}).Retval("sum");
  graph.Function("F", {"x"}).Kernel("F/k", {"F/x"}).Kernel("F/l", {"F/k"}).Result("F", "F/l");
  SetProgram(graph);
  RunEnvironment environment = Environment();
  EXPECT_EQ(RunToEnd(environment, Numbers({1})).Numbers(), std::vector<int>{2}) << "not counted";
  StartProfile();
  environment.profiles = true;
  for (int i = 0; i < 3; ++i) RunToEnd(environment, Numbers({1}));
  const RunProfile profile = StopProfile();
  EXPECT_EQ(profile.runs, 3);
  ASSERT_EQ(profile.main_graph.size(), 1);
  EXPECT_EQ(profile.main_graph.begin()->second.count, 3);
  ASSERT_EQ(profile.bodies.size(), 1);
  EXPECT_EQ(profile.bodies.begin()->second.count, 3 * 2 * 2);
  EXPECT_GE(profile.busy_nanoseconds,
            NanosecondsOf(profile.main_graph) + NanosecondsOf(profile.bodies) + profile.release_nanoseconds);
  EXPECT_GT(profile.frame_bytes, 0);
  EXPECT_EQ(StopProfile().runs, 0) << "it was handed over";
}

TEST_F(WorkerProfileTest, CountsKernelsThatRunOnOtherThreads) {
  StaticGraph graph;
  graph.Arg("x").Kernel("k", {"x"}).Kernel("l", {"x"}).Kernel("m", {"x"}).Retval("k").Retval("l", 1).Retval("m", 2);
  const auto work = [](KernelCall* call) {
    for (const int64_t end = absl::GetCurrentTimeNanos() + 100'000; absl::GetCurrentTimeNanos() < end;) {
    }
    call->outputs[0] = call->inputs[0].Take().Escape();
    return absl::OkStatus();
  };
  for (const char* node : {"k", "l", "m"}) runner_.On(node, work, KernelRunner::Cost::kExpensive);
  SetProgram(graph);
  RunEnvironment environment = Environment();
  environment.max_workers = 4;
  environment.profiles = true;
  StartProfile();
  EXPECT_EQ(RunToEnd(environment, Numbers({5})).Numbers(), (std::vector<int>{5, 5, 5}));
  const RunProfile profile = StopProfile();
  EXPECT_EQ(profile.main_graph.begin()->second.count, 3);
  EXPECT_GE(NanosecondsOf(profile.main_graph), 3 * 100'000);
  EXPECT_GE(profile.busy_nanoseconds, NanosecondsOf(profile.main_graph));
}

}  // namespace
}  // namespace tensorflow_recursion
