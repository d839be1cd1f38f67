// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/run.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/call_path.h"

namespace tensorflow_recursion {
namespace {

std::string CallName(const Program& program, const Frame* frame) {
  return program.sites[frame->parent->region->ops[frame->site_op].index].callee_name;
}

// Appends the calls above and including `frame`: "\n  in call Fib > Fib > (94 more) > Fib".
absl::Status WithCallPath(const absl::Status& status, const Program& program, const Frame* frame) {
  while (frame != nullptr && frame->site_op == kNone) frame = frame->parent;
  if (frame == nullptr) return status;
  const int64_t depth = frame->depth;
  std::vector<std::string> innermost;
  std::vector<std::string> outermost;
  for (int64_t level = depth; frame != nullptr; frame = frame->parent) {
    if (frame->site_op == kNone) continue;
    if (level <= kCallPathEnd) {
      outermost.insert(outermost.begin(), CallName(program, frame));
    } else if (level > depth - kCallPathEnd) {
      innermost.insert(innermost.begin(), CallName(program, frame));
    }
    --level;
  }
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "\n\t in call ", FormatCallPath(outermost, depth, innermost)));
}

}  // namespace

Run::Run(RunEnvironment environment, RunDone done)
    : environment(std::move(environment)),
      max_frame_bytes(this->environment.program->options.max_depth > kDefaultMaxDepth
                          ? std::numeric_limits<int64_t>::max()
                          : kDefaultMaxFrameBytes),
      done_(std::move(done)) {
  retvals.resize(this->environment.program->retval_types.size(), Value::Empty());
  workers_.push_back(std::make_unique<Worker>(this, 0));
  for (const KernelNode& node : this->environment.program->kernels) {
    max_outputs = std::max(max_outputs, node.outputs.size());
  }
}

void Run::Start(std::vector<Value> arguments) {
  Worker* first;
  {
    absl::MutexLock lock(&mutex_);
    first = workers_.front().get();
  }
  idle_.store(environment.max_workers - 1, std::memory_order_relaxed);
  BeginActivity();
  {
    absl::MutexLock lock(&first->mutex_);
    first->active_ = true;
  }
  first->OpenRoot(std::move(arguments));
  first->Work();
}

void Run::Fail(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  failed_.store(true, std::memory_order_release);
  if (environment.on_error) environment.on_error(status);
}

void Run::FailAt(const absl::Status& status, const Frame* frame) {
  Fail(WithCallPath(status, *environment.program, frame));
}

// Workers are made when first needed: most runs are over before a second one would have started.
Worker* Run::TakeIdleWorker() {
  absl::MutexLock lock(&mutex_);
  if (!idle_workers_.empty()) {
    Worker* worker = idle_workers_.back();
    idle_workers_.pop_back();
    idle_.fetch_sub(1, std::memory_order_relaxed);
    return worker;
  }
  if (static_cast<int>(workers_.size()) >= environment.max_workers) return nullptr;
  idle_.fetch_sub(1, std::memory_order_relaxed);
  workers_.push_back(std::make_unique<Worker>(this, static_cast<int>(workers_.size())));
  return workers_.back().get();
}

void Run::ReturnIdleWorker(Worker* worker) {
  absl::MutexLock lock(&mutex_);
  idle_workers_.push_back(worker);
  idle_.fetch_add(1, std::memory_order_relaxed);
}

void Run::LeaveIdle(Worker* worker) {
  absl::MutexLock lock(&mutex_);
  auto position = std::find(idle_workers_.begin(), idle_workers_.end(), worker);
  if (position == idle_workers_.end()) return;
  idle_workers_.erase(position);
  idle_.fetch_sub(1, std::memory_order_relaxed);
}

void Run::Finish() {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = status_;
  }
  RunDone done = std::move(done_);
  std::vector<Value> results = std::move(retvals);
  if (!status.ok()) {
    for (Value& value : results) value.Release();
    results.clear();
  }
  delete this;  // frames that an error left behind go with their pools
  done(status, std::move(results));
}

void RunProgram(RunEnvironment environment, std::vector<Value> arguments, RunDone done) {
  auto* run = new Run(std::move(environment), std::move(done));
  run->Start(std::move(arguments));
}

}  // namespace tensorflow_recursion
