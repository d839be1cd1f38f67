// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/run_state.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

class RunStateTest : public WorkerPartsTest {
 protected:
  void SetUp() override {
    const StaticGraph graph = FibGraph();
    SetProgram(graph, /*max_workers=*/3);
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

TEST_F(RunStateTest, KeepsOneWorkerFromOffloading) {
  EXPECT_TRUE(run_->BeginOffload());
  EXPECT_TRUE(run_->BeginOffload());
  EXPECT_FALSE(run_->BeginOffload());
  run_->EndOffload();
  EXPECT_TRUE(run_->BeginOffload());
}

}  // namespace
}  // namespace tensorflow_recursion
