// One thread's share of a run: its queues, its frames, and what it does with them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cc/executor/frame.h"
#include "cc/executor/frame_tag.h"
#include "cc/executor/kernel_runner.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

class Run;

// An operator that is ready, and the value that made it so if that lies in no slot.
struct Item {
  Frame* frame;
  uint32_t op;
  Value value;
};

// A call that was opened before all its arguments had come, or has lost some of them.
struct PartialCall {
  Frame* child = nullptr;      // if open
  std::vector<uint32_t> dead;  // arguments
};

// A call that has all its arguments.
struct Call {
  Frame* frame;
  uint32_t op;
};

// A vector whose push is a store and an increment: nothing else is on the hot path as often.
template <typename Item>
class ItemStack {
 public:
  bool empty() const { return top_ == items_.get(); }
  size_t size() const { return static_cast<size_t>(top_ - items_.get()); }
  Item& operator[](size_t i) { return items_[i]; }
  void clear() { top_ = items_.get(); }
  // Stays valid until the next push.
  Item* pop() { return --top_; }
  // The new item, to be filled in.
  Item* push() {
    if (ABSL_PREDICT_FALSE(top_ == end_)) Grow();
    return top_++;
  }
  void erase_front(size_t count) {
    std::copy(items_.get() + count, top_, items_.get());
    top_ -= count;
  }

 private:
  ABSL_ATTRIBUTE_NOINLINE void Grow() {
    const size_t used = size();
    const size_t capacity = used == 0 ? 64 : 2 * used;
    std::unique_ptr<Item[]> items(new Item[capacity]);
    std::copy(items_.get(), top_, items.get());
    items_ = std::move(items);
    top_ = items_.get() + used;
    end_ = items_.get() + capacity;
  }

  std::unique_ptr<Item[]> items_;
  Item* top_ = nullptr;
  Item* end_ = nullptr;
};

// An argument for a frame that was opened before it came. Handed on by a worklist: when it is passed
// down a chain of such frames, each of them hands it to the next.
struct LateArgument {
  Frame* callee;
  uint32_t index;
  Value value;
};

// A value that several operators read, one of which passes it straight on.
struct LatePort {
  Frame* frame;  // counted in its `live`
  const Port* port;
  Value value;
};

// A kernel that runs elsewhere. Owns its inputs and outputs until the owner of the frame takes them.
struct KernelInFlight {
  KernelCall call;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  absl::Status status;

  ~KernelInFlight() {
    for (Value& value : inputs) value.Release();
    for (Value& value : outputs) value.Release();
  }
};

struct Message {
  enum class Kind {
    kOpenSite,    // a call given away: `op` of `frame` with `values` as arguments
    kArgument,    // argument `index` of `frame`, already open, is values[0]
    kResult,      // result `index` of the call at `op` of `frame` is values[0]
    kChildEnded,  // a child of `frame` has ended
    kKernelDone,  // `kernel` of `op` of `frame` has ended
  };
  Message(Kind kind, Frame* frame, uint32_t op = 0, uint32_t index = 0)
      : kind(kind), frame(frame), op(op), index(index) {}

  Kind kind;
  Frame* frame;
  uint32_t op;
  uint32_t index;
  std::vector<Value> values;
  std::unique_ptr<KernelInFlight> kernel;
};

// Active while a thread is in Work(); mail wakes it. Its parts, a file each, call one another at every step: hidden, as
// calls through the library's symbol table would make fib take 4 % longer.
class [[gnu::visibility("hidden")]] Worker {
 public:
  Worker(Run* run, int index);

  // Owner only.
  void OpenRoot(std::vector<Value> arguments);
  void Work(bool on_own_thread = false);

  // Any thread.
  void Post(Message message);

 private:
  friend class Run;

  // The order of work, and mail between workers: worker.cc.
  void Push(Frame* frame, uint32_t op, Value value = Value::Empty());
  void PushCall(Frame* frame, uint32_t op);
  Item* PopReady();
  bool HasMoreWork() const { return !ready_.empty() || calls_.size() > calls_begin_; }
  bool Step();
  bool AwaitMail();
  bool Poll();
  void GiveAway();
  bool TakeMail();
  void Handle(Message* message);

  // Values on their way: worker_values.cc.
  void DeliverPort(Frame* frame, const Port* port, Value value);
  void DeliverControls(Frame* frame, const Port& port);
  void DeliverWholeOp(Frame* frame, const Op& op);
  void DeliverControl(Frame* frame, const Edge& edge);
  void DeliverCopy(Frame* frame, const Edge& edge, Value value);
  const Port* PassOn(Frame** frame, const Edge& edge, Value* value);
  void Store(Frame* frame, const Edge& edge, Value value);
  void StoreInMerge(Frame* frame, const Edge& edge, Value value);
  void DeliverEntry(Frame* frame, uint32_t entry, Value value);
  void DeliverArgument(Frame* callee, uint32_t index, Value value);
  void DeliverResult(Frame* caller, uint32_t op, uint32_t index, Value value);
  void CountDown(Frame* frame, uint32_t op);
  void MarkUnion(Frame* frame, uint32_t op, uint32_t index);

  // Operators: worker_operators.cc.
  void Fire(Item* item);
  Value* InputsOf(Item* item, const Op& op);
  Value* Gather(Frame* frame, const Op& op);
  void FireKernel(Frame* frame, uint32_t index, const Op& op, Value* inputs);
  void LaunchKernel(Frame* frame, uint32_t index, const Op& op, Value* inputs, const KernelNode& node,
                    KernelRunner::Cost cost);
  void FinishKernel(Frame* frame, const Op& op, const KernelNode& node, Value* outputs);
  void FirePass(Frame* frame, const Op& op, Value* inputs);
  bool ReadPredicate(Frame* frame, const Value& value, bool* result);
  void FireSwitch(Frame* frame, const Op& op, Value* inputs);
  void FireBranch(Frame* frame, const Op& op, Value* inputs);
  void FireSwitchN(Frame* frame, const Op& op, Value* inputs);
  void FireMerge(Frame* frame, const Op& op);
  void FireRetain(Frame* frame, const Op& op, Value* inputs);
  void FireRecall(Frame* frame, const Op& op, Value* inputs);

  // Frames, of calls and of loops: worker_frames.cc.
  Frame* NewFrame(const Region& region, Frame* parent, uint32_t site_op, uint32_t depth);
  void StartFrame(Frame* frame);
  void Unref(Frame* frame);
  FrameTag TagOf(Frame* frame) const;
  void SetTag(Frame* frame, const FrameTag& tag);
  bool CheckDepth(const Frame* caller, const CallSite& site);
  const Value* TakeArguments(Frame* caller, const Op& op);
  void OpenSite(Frame* caller, uint32_t op, const std::vector<Value>* given);
  Frame* NewIteration(const Loop& loop, Frame* parent, uint32_t iteration);
  void FireLoopStart(Frame* frame, const Op& op);
  void FireLoopNext(Frame* frame, const Op& op);
  bool EndsHere(Frame* frame, const Loop& loop, const Op& op);

  // Calls whose arguments come one by one: worker_sites.cc.
  bool IsOpened(Frame* frame, const Op& op);
  void DeliverSiteArgument(Frame* frame, const Edge& edge, Value value);
  PartialCall* FindPartialCall(Frame* caller, uint32_t op);
  PartialCall& MakePartialCall(Frame* caller, uint32_t op);
  void ForgetPartialCalls(Frame* caller);
  void LinkPartial(Frame* frame);
  void UnlinkPartial(Frame* frame);
  void ClosePartialGaps();
  void OpenPartialSites(Frame* frame);

  // Deaths: worker_deaths.cc.
  void Kill(Frame* frame, const DeathList& list);
  void Learn(Frame* frame, const DeathEvent& event);
  bool LearnDeadArgument(Frame* caller, const DeathEvent& event);

  Run* const run_;
  const int index_;
  const Program& program_;
  const bool traces_;  // every kernel shows: arithmetic is not done on unboxed scalars, frames are logged
  FramePool pool_;
  ItemStack<Item> ready_;
  ItemStack<Call> calls_;        // counts in the caller's `live`; the front is given away
  size_t calls_begin_ = 0;       // calls before this one have been given away
  std::vector<Frame*> partial_;  // frames with partial sites, newest last; each counts as one in its own `live`
  size_t partial_gaps_ = 0;      // nullptrs among them; the last is none
  std::vector<LateArgument> late_arguments_;
  std::vector<LatePort> late_ports_;
  std::vector<std::pair<Frame*, DeathList>> deaths_;
  bool killing_ = false;
  absl::flat_hash_map<std::pair<Frame*, uint32_t>, PartialCall> partial_calls_;  // by caller and operator
  std::vector<Value> inputs_;  // of the operator that fires, if they do not lie side by side
  std::vector<Value> outputs_;
  std::vector<std::pair<uint32_t, Value>> released_gates_;  // gates of the branch that fires, and what waited there
  int64_t num_in_flight_ = 0;                               // kernels of frames of this worker that run elsewhere
  int64_t in_flight_limit_;                                 // from which on calls wait for them
  absl::Time slice_end_ = absl::InfiniteFuture();           // when to leave this thread to others
  bool leaves_thread_ = false;
  int budget_;  // work until the next look at cancellation, mail and idle workers
  std::minstd_rand random_;

  absl::Mutex mutex_;
  std::vector<Message> inbox_ ABSL_GUARDED_BY(mutex_);
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  // Set with the inbox; lets the owner skip the lock when no other thread has written.
  std::atomic<bool> has_mail_{false};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_H_
