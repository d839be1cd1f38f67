// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/compiled_call_lists.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "cc/executor/run_state.h"
#include "cc/executor/worker_context.h"
#include "tests/cc/executor/fake_runner.h"
#include "tests/cc/program/built_programs.h"

namespace tensorflow_recursion {
namespace {

class CompiledCallListsTest : public testing::Test {
 protected:
  RunEnvironment Environment() {
    RunEnvironment environment;
    environment.program = built_.program.get();
    environment.runner = &runner_;
    return environment;
  }

  std::vector<CompiledCall*> Running() const {
    std::vector<CompiledCall*> running;
    for (const std::unique_ptr<CompiledCall>& call : lists_.running()) running.push_back(call.get());
    return running;
  }

  const BuiltProgram built_ = BuildCompiled(FibGraph());
  FakeRunner runner_;
  RunState run_{Environment(), [] {}};
  WorkerContext context_{&run_, 0};
  CompiledCallLists lists_{&context_};
};

TEST_F(CompiledCallListsTest, ACallThatHasWaitedRunsAsTheNewest) {
  CompiledCall* const first = lists_.New();
  CompiledCall* const second = lists_.New();
  for (int i = 0; i < 2; ++i) lists_.Suspend(first);
  EXPECT_EQ(Running(), std::vector<CompiledCall*>({second}));
  EXPECT_TRUE(lists_.has_waiting());
  for (int i = 0; i < 2; ++i) lists_.WakeUp(first);
  EXPECT_EQ(Running(), std::vector<CompiledCall*>({second, first}));
  EXPECT_FALSE(lists_.has_waiting());
}

TEST_F(CompiledCallListsTest, ACallThatHasEndedIsUsedAgainWithoutWhatWasSplitOff) {
  CompiledCall* const call = lists_.New();
  auto fork = std::make_shared<Fork>();
  fork->split_from = call;
  call->forks.push_back(fork);
  call->ends_early = true;
  lists_.Suspend(call);
  lists_.Retire(call);
  EXPECT_EQ(fork->split_from, nullptr);
  EXPECT_FALSE(fork->is_wanted);
  EXPECT_FALSE(lists_.has_waiting());
  EXPECT_EQ(lists_.New(), call);
  EXPECT_TRUE(call->forks.empty());
  EXPECT_FALSE(call->ends_early);
}

TEST_F(CompiledCallListsTest, AllMayEndAtOnce) {
  lists_.Suspend(lists_.New());
  lists_.New();
  lists_.RetireAll();
  EXPECT_TRUE(lists_.running().empty());
  EXPECT_FALSE(lists_.has_waiting());
}

}  // namespace
}  // namespace tensorflow_recursion
