// Kernels of several frames that run together.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/live_tensors.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

// F(n, t, w) = t if n < 1 else product(F(n - 1, t, w) + F(n - 1, t, w), w), where a "product" is one more.
class RunProgramWavesTest : public RunProgramTest {
 protected:
  void SetUp() override {
    StaticGraph graph;
    const Inputs frame_start = {"^F/frame_start"};
    AddMain(&graph, "F", 3);
    graph.Function("F", {"n", "t", "w"}).Const("F/one", 1, frame_start).Op("F/less", "Less", {"F/n", "F/one"});
    graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/st", "Switch", {"F/t", "F/less"});
    graph.Op("F/sw", "Switch", {"F/w", "F/less"}).Op("F/n1", "Sub", {"F/sn", "F/one"});
    graph.Call("F/a", "F", 2, {"F/n1", "F/st", "F/sw"}).Call("F/b", "F", 3, {"F/n1", "F/st", "F/sw"});
    graph.Kernel("F/add", {"F/a/return_0", "F/b/return_0"}).Kernel("F/product", {"F/add", "F/sw"});
    Merge(&graph, "F/merge", {"F/product", "F/st:1"}).Result("F", "F/merge");
    runner_.On("F/add", [this](KernelCall* call) {
      call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
      return absl::OkStatus();
    });
    runner_.OnTogether(
        "F/product", [this](KernelCall* call) { return Product(call); },
        [this](absl::Span<KernelCall> calls) { return Products(calls); });
    SetProgram(graph);
  }

  absl::Status Product(KernelCall* call) {
    if (++products_ == failing_) return absl::InternalError("broken");
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
    return absl::OkStatus();
  }

  bool Products(absl::Span<KernelCall> calls) {
    if (refuses_) return false;
    int most = most_;
    while (most < static_cast<int>(calls.size()) && !most_.compare_exchange_weak(most, calls.size())) {
    }
    for (KernelCall& call : calls) EXPECT_TRUE(Product(&call).ok());
    return true;
  }

  // A tree of `depth` levels of products.
  Outcome RunTree(int depth, const RunEnvironment& environment) {
    products_ = 0;
    most_ = 0;
    return RunToEnd(environment, {Number(depth), live_.Make(3), live_.Make(0)});
  }

  std::atomic<int> products_{0};
  std::atomic<int> failing_{0};  // which of them; 0: none
  std::atomic<int> most_{0};     // products at once
  bool refuses_ = false;
};

TEST_F(RunProgramWavesTest, EightRowsAtMostRunTogetherInAnyOrder) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const int workers : {1, 4}) {
      SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed, ", workers ", workers));
      RunEnvironment environment = Environment(seed);
      environment.max_workers = workers;
      Outcome outcome = RunTree(8, environment);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.Numbers(), std::vector<int>{3 * 256 + 255});
      EXPECT_EQ(products_, 255);
      EXPECT_GT(most_, 1);
      EXPECT_LE(most_, KernelRunner::kFullWave);
      if (workers == 1) {
        EXPECT_EQ(most_, KernelRunner::kFullWave);
      }
      outcome.Release();
      EXPECT_EQ(live_.count(), 0);
    }
  }
}

TEST_F(RunProgramWavesTest, MemoryGrowsByAsMuchAsWaitsTogether) {
  Outcome outcome = RunTree(14, Environment());
  EXPECT_EQ(outcome.Numbers(), std::vector<int>{3 * 16384 + 16383});
  EXPECT_LE(live_.most(), KernelRunner::kFullWave * 14 * 3);
}

TEST_F(RunProgramWavesTest, WhatCannotRunTogetherRunsOneByOne) {
  refuses_ = true;
  Outcome outcome = RunTree(6, Environment());
  EXPECT_EQ(outcome.Numbers(), std::vector<int>{3 * 64 + 63});
  EXPECT_EQ(products_, 63);
}

TEST_F(RunProgramWavesTest, AnErrorReleasesWhatWaits) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    RunEnvironment environment = Environment(seed);
    environment.max_workers = static_cast<int>(1 + seed % 4);
    refuses_ = true;
    failing_ = 1 + static_cast<int>(seed);
    ExpectError(RunTree(7, environment), absl::StatusCode::kInternal, {"broken", "in call F"});
    EXPECT_EQ(live_.count(), 0);
  }
}

}  // namespace
}  // namespace tensorflow_recursion
