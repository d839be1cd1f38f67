// What other threads tell a worker.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_INBOX_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_INBOX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "cc/base/ids.h"
#include "cc/executor/frame.h"
#include "cc/executor/kernel_runner.h"
#include "cc/values/block_pool.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

class RunState;
struct Fork;

// A kernel that runs on another thread, or by itself. Owns its inputs and outputs until the owner of the frame takes
// them.
struct KernelInFlight {
  // How a kernel runs beside the worker: by itself, once it is started (an asynchronous kernel); on another thread, as
  // far as the run has threads to spare; or, if it is the main graph's, on a thread of its own.
  enum class Way { kAsynchronous, kOffloaded, kSpread };

  Way way = Way::kAsynchronous;
  OpId op;
  const KernelNode* node = nullptr;
  KernelCall call;
  absl::InlinedVector<Value, 4> inputs;
  absl::InlinedVector<Value, 2> outputs;
  absl::Status status;
  int64_t nanoseconds = 0;  // of a profiled run: how long a thread was busy with it

  // The kernel that waits for this one's output and nothing else, if it runs on the same thread right after: the output
  // becomes its input `arrival`.
  std::unique_ptr<KernelInFlight> next;
  uint32_t arrival = 0;
  bool is_handed_on = false;  // the output is the next one's

  ~KernelInFlight() { Clear(); }
  static void* operator new(size_t bytes) { return TakeBlock(bytes); }
  static void operator delete(void* block, size_t bytes) { GiveBlock(block, bytes); }

  void ReleaseInputs() {
    for (Value& value : inputs) value.Release();
  }
  // Releases what it holds, and keeps its memory for another kernel.
  void Clear() {
    ReleaseInputs();
    for (Value& value : outputs) value.Release();
    inputs.clear();
    outputs.clear();
    status = absl::OkStatus();
    nanoseconds = 0;
    next.reset();
    arrival = 0;
    is_handed_on = false;
  }
};

struct Message {
  enum class Kind {
    kOpenCall,    // open the call at `op` of `frame`, which its owner gives away, with `values` as arguments
    kArgument,    // argument `index` of `frame`, already open, is values[0]
    kResult,      // result `index` of the call at `op` of `frame` is values[0]
    kChildEnded,  // a child of `frame` has ended
    kKernelDone,  // `kernel` of `op` of `frame` has ended
    kFork,        // run `fork`
    kForkEnded,   // `fork`, which the worker has split off, has ended
  };
  Message(Kind kind, Frame* frame, OpId op = kNone, uint32_t index = 0)
      : kind(kind), frame(frame), op(op), index(index) {}

  void ReleaseValues() {
    for (Value& value : values) value.Release();
  }

  Kind kind;
  Frame* frame;
  OpId op;
  uint32_t index;
  std::vector<Value> values;
  std::unique_ptr<KernelInFlight> kernel;
  std::shared_ptr<Fork> fork;
};

// A worker's messages, and whether the worker is awake to read them. A frame belongs to one worker, so whatever crosses
// workers (arguments to a call given away, its results, kernels that end on other threads) is a message to the frame's
// owner: this is the one place where threads meet while a run is under way.
//
// A worker is awake while a thread is in Worker::Work(). A message to one that sleeps schedules `wake` on another
// thread and begins an activity of the run for it.
class Inbox {
 public:
  Inbox(RunState* run, std::function<void()> wake) : run_(run), wake_(std::move(wake)) {}

  // Any thread. Once the run has failed nobody reads messages: they are dropped, and their values released.
  void Post(Message message);
  // The same, by a thread that can work for the worker: instead of having another thread wake it, returns whether it
  // sleeps. Then the caller's activity goes on as the worker's, and the caller has to call Wake().
  bool PostHere(Message message);
  void Wake() { wake_(); }

  // The worker's own thread only, from here on.

  // Whether messages may have come: without the lock, so it may say so a moment late.
  bool MayHaveMail() const { return has_mail_.load(std::memory_order_relaxed); }
  // All messages that have come, oldest first. The memory of `empty`, which has none, serves for those to come.
  std::vector<Message> Take(std::vector<Message> empty = {});

  // The worker is awake, without a message: the run starts with it.
  void Open();
  // The worker goes to sleep and returns true, unless there are messages.
  bool Close();

 private:
  RunState* const run_;
  const std::function<void()> wake_;

  std::mutex mutex_;  // any thread may post
  std::vector<Message> messages_ ABSL_GUARDED_BY(mutex_);
  bool is_awake_ ABSL_GUARDED_BY(mutex_) = false;
  // Set with the messages; lets the worker skip the lock when no other thread has written.
  std::atomic<bool> has_mail_{false};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_INBOX_H_
