// Brings a worker the messages of other threads.
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

// A kernel that runs beside its worker. It owns its inputs and outputs until the frame's owner takes them.
struct KernelInFlight {
  // How a kernel runs beside the worker. kAsynchronous: by itself, once it is started. kOffloaded: on another thread, a
  // kernel of a body of which the run may have as many as further workers (RunState::BeginOffload). kSpread: on another
  // thread, a kernel of the main graph, of which there may be as many as the pool has threads.
  enum class Way { kAsynchronous, kOffloaded, kSpread };

  Way way = Way::kAsynchronous;
  OpId op;
  const KernelNode* node = nullptr;
  KernelCall call;
  absl::InlinedVector<Value, 4> inputs;
  absl::InlinedVector<Value, 2> outputs;
  absl::Status status;
  // How long a thread was busy with the kernel, if the run is profiled.
  int64_t nanoseconds = 0;

  // A kernel that waits for this one's output and nothing else, and runs on the same thread right after it. The output
  // becomes its input `next->arrival`.
  std::unique_ptr<KernelInFlight> next;
  uint32_t arrival = 0;
  // The output was given to `next`.
  bool is_handed_on = false;

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

// What a thread tells a worker. Its kind says which members are set.
struct Message {
  // What the message says, and which members it uses for that.
  enum class Kind {
    // The worker shall open the call at `op` of `frame`, which the frame's owner gives away, with `values` as
    // arguments.
    kOpenCall,
    // Argument `index` of `frame`, which is open already, is values[0].
    kArgument,
    // Result `index` of the call at `op` of `frame` is values[0].
    kResult,
    // A child of `frame` has ended.
    kChildEnded,
    // `kernel` of `frame` has ended.
    kKernelDone,
    // The worker shall run `fork`.
    kFork,
    // `fork`, which the worker has split off, has ended.
    kForkEnded,
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

  // May be called by any thread. Once the run has failed nobody reads messages: they are dropped, and their values
  // released.
  void Post(Message message);
  // The same for a thread that can itself go on as the worker. Returns whether the worker sleeps: then the caller's
  // activity becomes the worker's, and the caller has to call Wake(). No other thread wakes it.
  bool PostHere(Message message);
  void Wake() { wake_(); }

  // Only the worker's own thread may call what follows.

  // Whether messages may have come. It takes no lock, so it may say so a moment late.
  bool MayHaveMail() const { return has_mail_.load(std::memory_order_relaxed); }
  // Takes all messages that have come, the oldest first. `empty` has none, and its memory serves for further ones.
  std::vector<Message> Take(std::vector<Message> empty = {});

  // Marks the worker as awake although no message has come. The first worker of a run starts so.
  void Open();
  // Marks the worker as asleep and returns true, unless there are messages.
  bool Close();

 private:
  RunState* const run_;
  const std::function<void()> wake_;

  // Needed because any thread may post.
  std::mutex mutex_;
  std::vector<Message> messages_ ABSL_GUARDED_BY(mutex_);
  bool is_awake_ ABSL_GUARDED_BY(mutex_) = false;
  // Set with the messages; lets the worker skip the lock when no other thread has written.
  std::atomic<bool> has_mail_{false};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_INBOX_H_
