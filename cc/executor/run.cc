// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/run.h"

#include <mutex>
#include <utility>

#include "absl/base/optimization.h"
#include "cc/base/run_profile.h"

namespace tensorflow_recursion {
namespace {

void NoteRunInProfile(const RunState& state) {
  RunProfile counted;
  counted.runs = 1;
  counted.frame_bytes = state.frame_bytes.load(std::memory_order_relaxed);
  AddToProfile(counted);
}

}  // namespace

Run::Run(RunEnvironment environment, RunDone done)
    : state(std::move(environment), [this] { Finish(); }),
      idle_workers(state.environment.max_workers - 1),
      done_(std::move(done)) {}

void Run::Start(std::vector<Value> arguments) {
  state.BeginActivity();
  MakeWorker()->WorkFromRoot(std::move(arguments));
}

// Workers are made when they are needed, because most runs are over before a second one would have started.
Worker* Run::TakeIdleWorker() {
  if (Worker* const worker = idle_workers.Take(); worker != nullptr) return worker;
  Worker* const worker = MakeWorker();
  if (worker != nullptr) idle_workers.NoteMade();
  return worker;
}

// Returns nullptr if the run has as many workers as it may have.
Worker* Run::MakeWorker() {
  std::lock_guard<std::mutex> lock(mutex_);
  const int index = static_cast<int>(workers_.size());
  if (index > 0 && index >= state.environment.max_workers) return nullptr;
  workers_.push_back(std::make_unique<Worker>(this, index));
  return workers_.back().get();
}

void Run::Finish() {
  const absl::Status status = state.status();
  RunDone done = std::move(done_);
  std::vector<Value> results = std::move(state.retvals);
  if (!status.ok()) {
    for (Value& value : results) value.Release();
    results.clear();
  }
  if (ABSL_PREDICT_FALSE(state.environment.profiles)) NoteRunInProfile(state);
  delete this;  // frames that an error left behind go with their pools
  done(status, std::move(results));
}

void RunProgram(RunEnvironment environment, std::vector<Value> arguments, RunDone done) {
  auto* run = new Run(std::move(environment), std::move(done));
  run->Start(std::move(arguments));
}

}  // namespace tensorflow_recursion
