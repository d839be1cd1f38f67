// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/idle_workers.h"

#include <gtest/gtest.h>

namespace tensorflow_recursion {
namespace {

// Only told apart, never used.
Worker* AWorker(int number) { return reinterpret_cast<Worker*>(static_cast<intptr_t>(64 * number)); }

TEST(IdleWorkersTest, TheLastToComeIsTakenFirst) {
  IdleWorkers idle(/*num_unmade=*/0);
  EXPECT_FALSE(idle.MayHaveAny());
  EXPECT_EQ(idle.Take(), nullptr);
  idle.Add(AWorker(1));
  idle.Add(AWorker(2));
  EXPECT_TRUE(idle.MayHaveAny());
  EXPECT_EQ(idle.Take(), AWorker(2));
  EXPECT_EQ(idle.Take(), AWorker(1));
  EXPECT_FALSE(idle.MayHaveAny());
}

TEST(IdleWorkersTest, WorkersThatMayStillBeMadeCountAsIdle) {
  IdleWorkers idle(/*num_unmade=*/1);
  EXPECT_TRUE(idle.MayHaveAny());
  EXPECT_EQ(idle.Take(), nullptr);
  idle.NoteMade();
  EXPECT_FALSE(idle.MayHaveAny());
}

TEST(IdleWorkersTest, LeavingHasNoEffectOnOneThatWasTaken) {
  IdleWorkers idle(/*num_unmade=*/0);
  idle.Add(AWorker(1));
  idle.Add(AWorker(2));
  idle.Leave(AWorker(1));
  idle.Leave(AWorker(1));
  EXPECT_TRUE(idle.MayHaveAny());
  EXPECT_EQ(idle.Take(), AWorker(2));
  idle.Leave(AWorker(2));
  EXPECT_FALSE(idle.MayHaveAny());
}

}  // namespace
}  // namespace tensorflow_recursion
