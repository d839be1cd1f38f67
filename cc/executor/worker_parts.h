// Lists the parts that a worker consists of, and which of them know which others.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_PARTS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_PARTS_H_

#include <functional>
#include <utility>

#include "cc/executor/call_opener.h"
#include "cc/executor/compiled_calls.h"
#include "cc/executor/control_flow.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/inbox.h"
#include "cc/executor/incomplete_sites.h"
#include "cc/executor/kernel_launcher.h"
#include "cc/executor/loop_runner.h"
#include "cc/executor/operator_inputs.h"
#include "cc/executor/operator_runner.h"
#include "cc/executor/partial_calls.h"
#include "cc/executor/piece_runner.h"
#include "cc/executor/ready_queue.h"
#include "cc/executor/run_state.h"
#include "cc/executor/token_router.h"
#include "cc/executor/waves.h"
#include "cc/executor/worker_context.h"

namespace tensorflow_recursion {

// The parts are ordered from those that only keep something to those that act. Each knows only parts that come before
// it.
struct WorkerParts {
  // `wake` has the worker work; it is called on another thread when a message comes and the worker is asleep.
  WorkerParts(RunState* run, int index, std::function<void()> wake)
      : context(run, index), inbox(run, std::move(wake)), queue(ShuffleSeed(*run, index)) {}

  WorkerContext context;
  Inbox inbox;
  ReadyQueue queue;
  PartialCalls partial_calls;
  IncompleteSites incomplete_sites{context.program, &partial_calls};
  FrameStore frames{context, &inbox, &partial_calls};
  TokenRouter router{&queue, &frames, &partial_calls, &incomplete_sites};
  Waves waves;
  OperatorInputs inputs{context.program.max_inputs};
  KernelLauncher kernels{&context, &queue, &inputs, &waves, &frames, &router};
  PieceRunner pieces{&context, &router};
  CompiledCalls compiled{&context, &inbox, &frames, &router};
  CallOpener calls{&context, &frames, &partial_calls, &incomplete_sites, &router, &compiled};
  LoopRunner loops{&context, &frames, &router};
  ControlFlow control_flow{&context, &router};
  OperatorRunner operators{&context, &queue, &inputs, &router, &kernels, &pieces, &loops, &control_flow};

 private:
  static uint64_t ShuffleSeed(const RunState& run, int index) {
    const uint64_t seed = run.environment.shuffle_seed;
    return seed == 0 ? 0 : seed + static_cast<uint64_t>(index);
  }
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_PARTS_H_
