// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/run_cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "absl/synchronization/notification.h"
#include "tensorflow/core/framework/cancellation.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::CancellationManager;

TEST(RunCancellationTest, TellsTheKernelsWhenTheStepIsCancelled) {
  CancellationManager step;
  const std::shared_ptr<RunCancellation> run = RunCancellation::Of(&step);
  absl::Notification told, ended;
  ASSERT_TRUE(run->manager()->RegisterCallback(run->manager()->get_cancellation_token(), [&] { told.Notify(); }));
  EXPECT_FALSE(run->IsCancelled());
  step.StartCancel();
  told.WaitForNotification();
  EXPECT_TRUE(run->IsCancelled());
  run->End([&] { ended.Notify(); });
  ended.WaitForNotification();
}

TEST(RunCancellationTest, EndsAtOnceWithoutCancellation) {
  CancellationManager step;
  for (CancellationManager* const manager : {&step, static_cast<CancellationManager*>(nullptr)}) {
    bool has_ended = false;
    RunCancellation::Of(manager)->End([&] { has_ended = true; });
    EXPECT_TRUE(has_ended);
  }
}

TEST(RunCancellationTest, EndsAtOnceWhenTheStepWasCancelledBefore) {
  CancellationManager step;
  step.StartCancel();
  const std::shared_ptr<RunCancellation> run = RunCancellation::Of(&step);
  EXPECT_TRUE(run->IsCancelled());
  bool has_ended = false;
  run->End([&] { has_ended = true; });
  EXPECT_TRUE(has_ended);
}

// As a queue does: it ends the kernel that waits, which ends the run, and then goes on with memory that the step owns.
TEST(RunCancellationTest, EndsNoSoonerThanTheKernelsHaveBeenTold) {
  CancellationManager step;
  const std::shared_ptr<RunCancellation> run = RunCancellation::Of(&step);
  std::atomic<bool> has_ended = false, had_ended = true;
  absl::Notification ended;
  ASSERT_TRUE(run->manager()->RegisterCallback(run->manager()->get_cancellation_token(), [&] {
    run->End([&] {
      has_ended = true;
      ended.Notify();
    });
    had_ended = has_ended.load();
  }));
  step.StartCancel();
  ended.WaitForNotification();
  EXPECT_FALSE(had_ended);
}

TEST(RunCancellationTest, EndsNoSoonerWhenAnotherThreadEndsTheRun) {
  CancellationManager step;
  const std::shared_ptr<RunCancellation> run = RunCancellation::Of(&step);
  std::atomic<bool> has_ended = false, had_ended = true;
  absl::Notification telling, asked, ended;
  ASSERT_TRUE(run->manager()->RegisterCallback(run->manager()->get_cancellation_token(), [&] {
    telling.Notify();
    asked.WaitForNotification();
    had_ended = has_ended.load();
  }));
  step.StartCancel();
  telling.WaitForNotification();
  run->End([&] {
    has_ended = true;
    ended.Notify();
  });
  asked.Notify();
  ended.WaitForNotification();
  EXPECT_FALSE(had_ended);
}

}  // namespace
}  // namespace tensorflow_recursion
