// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/run_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

class RunStateTest : public WorkerPartsTest {
 protected:
  void SetUp() override {
    const StaticGraph graph = FibGraph();
    SetProgram(graph, /*max_workers=*/3);
  }

  // For a run of its own.
  void SetMemory(const MemoryGauge& gauge) {
    RunEnvironment environment = run_->environment;
    environment.memory = gauge;
    parts_.reset();  // before what it points to
    run_ = std::make_unique<RunState>(environment, [] {});
  }
};

TEST_F(RunStateTest, EndsWithItsLastActivity) {
  run_->BeginActivity();
  run_->EndActivity();
  EXPECT_FALSE(has_ended_);
  run_->EndActivity();
  EXPECT_TRUE(has_ended_);
}

TEST_F(RunStateTest, WhoOnlyLooksOutIsNotBusy) {
  EXPECT_TRUE(run_->others_are_busy());  // the fixture's activity
  run_->BeginActivity();
  run_->BeginLookOut();
  EXPECT_TRUE(run_->others_are_busy());
  run_->BeginLookOut();
  EXPECT_FALSE(run_->others_are_busy());
  run_->EndLookOut();
  EXPECT_TRUE(run_->others_are_busy());
  run_->EndLookOut();
  run_->EndActivity();
}

TEST_F(RunStateTest, TheFirstErrorWins) {
  EXPECT_FALSE(run_->failed());
  EXPECT_TRUE(run_->status().ok());
  run_->Fail(absl::InternalError("first"));
  run_->Fail(absl::CancelledError("second"));
  EXPECT_TRUE(run_->failed());
  EXPECT_EQ(run_->status(), absl::InternalError("first"));
}

TEST_F(RunStateTest, AnErrorNamesTheCallsAboveIt) {
  const Region& root = built_->regions[0];
  const Region& fib = RegionOf("Fib");
  Frame* main = NewFrame(root);
  Frame* outer = NewFrame(fib, main, OpsOf(root, OpKind::kCallSite).front());
  Frame* inner = NewFrame(fib, outer, OpsOf(fib, OpKind::kCallSite).front());
  run_->FailAt(absl::InternalError("broken"), inner);
  EXPECT_TRUE(absl::StrContains(run_->status().message(), "broken\n\t in call Fib > Fib")) << run_->status();
}

// What FakeGauge finds.
std::atomic<int64_t> available{0};
std::atomic<int> num_looks{0};

MemoryGauge FakeGauge(int64_t mebibytes) {
  available = mebibytes << 20;
  num_looks = 0;
  MemoryGauge gauge;
  gauge.available = [] {
    ++num_looks;
    return available.load();
  };
  gauge.reserve = int64_t{500} << 20;
  gauge.interval = absl::Milliseconds(50);
  gauge.near_interval = gauge.interval;
  return gauge;
}

TEST_F(RunStateTest, LooksAtTheMemoryOnceInAnInterval) {
  SetMemory(FakeGauge(1000));
  for (int time = 100; time < 150; ++time) run_->WatchMemory(absl::Milliseconds(time));
  EXPECT_EQ(num_looks, 0) << "in the first interval";
  for (int time = 150; time < 250; ++time) run_->WatchMemory(absl::Milliseconds(time));
  EXPECT_EQ(num_looks, 2);
}

TEST_F(RunStateTest, LooksMoreOftenWhereThereIsLittleMemory) {
  MemoryGauge gauge = FakeGauge(999);
  gauge.near_interval = absl::Milliseconds(5);
  SetMemory(gauge);
  for (int time = 100; time <= 165; ++time) run_->WatchMemory(absl::Milliseconds(time));
  EXPECT_EQ(num_looks, 4);
}

TEST_F(RunStateTest, DoesNotLookAtTheMemoryWithoutAReserve) {
  MemoryGauge gauge = FakeGauge(1000);
  gauge.reserve = 0;
  SetMemory(gauge);
  for (int time = 100; time < 300; ++time) run_->WatchMemory(absl::Milliseconds(time));
  EXPECT_EQ(num_looks, 0);
}

TEST_F(RunStateTest, GoesNoDeeperWhileItTakesTheLastMemory) {
  SetMemory(FakeGauge(1000));
  const int64_t usual = run_->max_frame_bytes;
  int time = 0;
  const auto look = [&](int64_t mebibytes) {
    available = mebibytes << 20;
    run_->WatchMemory(absl::Milliseconds(time += 50));
  };
  look(1000);
  look(1000);
  look(600);
  EXPECT_FALSE(run_->is_out_of_memory());
  EXPECT_EQ(run_->max_frame_bytes, usual);
  look(400);
  EXPECT_TRUE(run_->is_out_of_memory());
  EXPECT_LT(run_->max_frame_bytes, run_->frame_bytes);
  EXPECT_EQ(run_->least_memory(), int64_t{400} << 20);
  look(450);
  EXPECT_FALSE(run_->is_out_of_memory()) << "it unwinds";
  EXPECT_EQ(run_->max_frame_bytes, usual);
}

TEST_F(RunStateTest, NamesTheFunctionsThatTakeTheLastMemoryWhenAllCallsAreOpen) {
  SetMemory(FakeGauge(1000));
  int time = 0;
  for (const int mebibytes : {1000, 1000, 400, 250}) {
    available = int64_t{mebibytes} << 20;
    run_->WatchMemory(absl::Milliseconds(time += 50));
  }
  EXPECT_FALSE(run_->failed()) << "it would end at its next call";
  available = int64_t{150} << 20;
  run_->WatchMemory(absl::Milliseconds(time += 50));
  EXPECT_EQ(run_->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(run_->status().message(),
                                "Recursion takes too much memory: all calls of 'Fib' are open, but the machine has "
                                "150 MiB of memory left, and 500 MiB have to stay free; "))
      << run_->status();
}

TEST_F(RunStateTest, KeepsOneWorkerFromOffloading) {
  EXPECT_TRUE(run_->BeginOffload());
  EXPECT_TRUE(run_->BeginOffload());
  EXPECT_FALSE(run_->BeginOffload());
  run_->EndOffload();
  EXPECT_TRUE(run_->BeginOffload());
}

}  // namespace
}  // namespace tensorflow_recursion
