// What the tests of a worker's parts share: a run without workers, and the parts of one that the tests drive
// themselves.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_WORKER_PARTS_FIXTURE_H_
#define TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_WORKER_PARTS_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/ids.h"
#include "cc/executor/run_state.h"
#include "cc/executor/worker_parts.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/executor/fake_runner.h"
#include "tests/cc/program/built_programs.h"
#include "tests/cc/values/live_tensors.h"

namespace tensorflow_recursion {

class WorkerPartsTest : public ::testing::Test {
 protected:
  // Closures for other threads are kept in `scheduled_`.
  void SetProgram(const StaticGraph& graph, int max_workers = 1, bool trace = false) {
    parts_.reset();  // before what it points to
    built_ = Build(graph);
    ASSERT_TRUE(built_.status.ok()) << built_.status;
    RunEnvironment environment;
    environment.program = built_.program.get();
    environment.runner = &runner_;
    environment.max_workers = max_workers;
    environment.schedule = [this](std::function<void()> work) { scheduled_.push_back(std::move(work)); };
    environment.trace = trace;
    environment.spreads_main_graph = spreads_main_graph_;
    run_ = std::make_unique<RunState>(environment, [this] { has_ended_ = true; });
    run_->BeginActivity();  // the worker's own
    parts_ = std::make_unique<WorkerParts>(run_.get(), 0, [] {});
    parts_->inbox.Open();
  }

  const Region& RegionOf(const std::string& name) const {
    for (const Region& region : built_->regions) {
      if (region.name == name) return region;
    }
    ADD_FAILURE() << "no region " << name;
    return built_->regions[0];
  }

  // The region's operators of a kind, by index.
  static std::vector<OpId> OpsOf(const Region& region, OpKind kind) {
    std::vector<OpId> ops;
    for (uint32_t i = 0; i < region.ops.size(); ++i) {
      if (region.ops[i].kind == kind) ops.emplace_back(i);
    }
    return ops;
  }

  Frame* NewFrame(const Region& region, Frame* parent = nullptr, OpId site_op = kNone) {
    return parts_->frames.New(region, parent, site_op, parent == nullptr ? 0 : parent->depth + 1);
  }

  // Fires the operator that is next.
  void FireNext() {
    ASSERT_TRUE(parts_->queue.has_operators());
    ReadyOperator* const item = parts_->queue.PopOperator();
    Frame* const frame = item->frame;
    parts_->operators.Fire(item);
    parts_->frames.Unref(frame);
  }

  // Works as a worker does, without opening incomplete call sites, until nothing is left to do.
  void WorkToTheEnd() {
    while (true) {
      if (parts_->router.has_deferred()) {
        parts_->router.DeliverDeferred();
      } else if (parts_->queue.has_operators()) {
        FireNext();
      } else if (parts_->queue.has_calls()) {
        const ReadyCall call = parts_->queue.PopCall();
        parts_->calls.Open(call.frame, call.op);
      } else {
        return;
      }
    }
  }

  std::vector<int> Retvals() {
    std::vector<int> numbers;
    for (Value& value : run_->retvals) {
      numbers.push_back(value.is_empty() ? Outcome::kDead : LiveTensors::Number(value));
      value.Release();
    }
    return numbers;
  }

  bool spreads_main_graph_ = false;  // of programs that are set from then on
  LiveTensors live_;
  BuiltProgram built_;
  FakeRunner runner_;
  std::vector<std::function<void()>> scheduled_;
  bool has_ended_ = false;
  std::unique_ptr<RunState> run_;
  std::unique_ptr<WorkerParts> parts_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_WORKER_PARTS_FIXTURE_H_
