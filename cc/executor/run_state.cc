// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/run_state.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cc/base/call_path.h"
#include "cc/bytecode/interpreter.h"
#include "cc/executor/depth_errors.h"

namespace tensorflow_recursion {
namespace {

std::string CallName(const Program& program, const Frame* frame) {
  return program.SiteOf(frame->parent->region->ops[frame->site_op]).callee_name;
}

// Collects the ends of a path of calls, which is walked from the innermost call.
class PathEnds {
 public:
  explicit PathEnds(int64_t depth) : depth_(depth), level_(depth) {}

  void Add(const std::string& call) {
    if (level_ <= kCallPathEnd) {
      outermost_.insert(outermost_.begin(), call);
    } else if (level_ > depth_ - kCallPathEnd) {
      innermost_.insert(innermost_.begin(), call);
    }
    --level_;
  }

  // Says at which level the next call is. Those in between are not known, and need not be named.
  void SkipTo(int64_t level) { level_ = level; }

  std::string Format() const { return FormatCallPath(outermost_, depth_, innermost_); }

 private:
  const int64_t depth_;
  int64_t level_;
  std::vector<std::string> innermost_;
  std::vector<std::string> outermost_;
};

// Appends the path of calls that led to `frame`, and from there into compiled code, to the message:
// "\n  in call Fib > Fib > Fib > (94 more) > Fib > Fib > Fib".
absl::Status WithCallPath(const absl::Status& status, const Program& program, const Frame* frame,
                          const Interpreter* compiled) {
  while (frame != nullptr && frame->site_op == kNone) frame = frame->parent;
  if (frame == nullptr && compiled == nullptr) return status;
  PathEnds path(compiled != nullptr ? compiled->depth() : frame->depth);
  if (compiled != nullptr) {
    compiled->ForEachFrame([&](int64_t depth, const CodeFunction& function) {
      path.SkipTo(depth);
      path.Add(function.name);
    });
  }
  if (frame != nullptr) path.SkipTo(frame->depth);
  for (; frame != nullptr; frame = frame->parent) {
    if (frame->site_op != kNone) path.Add(CallName(program, frame));
  }
  return absl::Status(status.code(), absl::StrCat(status.message(), "\n\t in call ", path.Format()));
}

}  // namespace

RunState::RunState(RunEnvironment environment, std::function<void()> end)
    : environment(std::move(environment)),
      help_begins(this->environment.alone == absl::ZeroDuration() ? absl::InfinitePast()
                                                                  : absl::Now() + this->environment.alone),
      usual_max_frame_bytes_(this->environment.program->options.max_depth > kDefaultMaxDepth
                                 ? std::numeric_limits<int64_t>::max()
                                 : kDefaultMaxFrameBytes),
      watch_(this->environment.memory.reserve),
      end_(std::move(end)) {
  max_frame_bytes.store(usual_max_frame_bytes_, std::memory_order_relaxed);
  retvals.resize(this->environment.program->retval_types.size(), Value::Empty());
  for (const KernelNode& node : this->environment.program->kernels) {
    max_outputs = std::max(max_outputs, node.outputs.size());
  }
}

void RunState::Fail(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  failed_.store(true, std::memory_order_release);
  if (environment.on_error) environment.on_error(status);
}

void RunState::FailAt(const absl::Status& status, const Frame* frame, const Interpreter* compiled) {
  Fail(WithCallPath(status, *environment.program, frame, compiled));
}

absl::Status RunState::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

void RunState::End() {
  const std::function<void()> end = end_;  // a copy, because `end` may delete *this
  end();
}

void RunState::WatchMemory(absl::Duration now) {
  const MemoryGauge& gauge = environment.memory;
  if (gauge.reserve == 0) return;
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(now);
  int64_t next = next_look_.load(std::memory_order_relaxed);
  if (nanoseconds < next) return;
  const int64_t then = absl::ToInt64Nanoseconds(now + gauge.interval);
  if (!next_look_.compare_exchange_strong(next, then, std::memory_order_relaxed) || next == 0) return;
  bool must_end = false;
  {
    const std::lock_guard<std::mutex> lock(watch_mutex_);
    const int64_t available = gauge.available();
    const bool is_near = available != kUnknownMemory && available / 2 < gauge.reserve;
    if (is_near) next_look_.store(absl::ToInt64Nanoseconds(now + gauge.near_interval), std::memory_order_relaxed);
    const bool is_too_large = watch_.IsTooLarge(available);
    max_frame_bytes.store(is_too_large ? kNoFrameBytes : usual_max_frame_bytes_, std::memory_order_relaxed);
    must_end = is_too_large && watch_.MustEnd();
  }
  if (must_end) Fail(OutOfMemory(*this));
}

int64_t RunState::least_memory() const {
  const std::lock_guard<std::mutex> lock(watch_mutex_);
  return watch_.least();
}

bool RunState::BeginOffload() {
  if (offloads_.fetch_add(1, std::memory_order_relaxed) < environment.max_workers - 1) return true;
  EndOffload();
  return false;
}

}  // namespace tensorflow_recursion
