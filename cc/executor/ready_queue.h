// Decides which operator or call comes next.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_READY_QUEUE_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_READY_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "cc/base/ids.h"
#include "cc/executor/frame.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

// An operator that has all its inputs, and the value that was the last to come if that lies in no slot.
struct ReadyOperator {
  Frame* frame;
  OpId op;
  Value value;
};

// A call that has all its arguments.
struct ReadyCall {
  Frame* frame;
  OpId op;
};

// A vector whose push is a store and an increment, because no other work is done as often.
template <typename Item>
class FastStack {
 public:
  bool empty() const { return top_ == items_.get(); }
  size_t size() const { return static_cast<size_t>(top_ - items_.get()); }
  Item& operator[](size_t i) { return items_[i]; }
  const Item& operator[](size_t i) const { return items_[i]; }
  void clear() { top_ = items_.get(); }
  // The item stays valid until the next push.
  Item* pop() { return --top_; }
  // Returns the new item, for the caller to fill in.
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

// A worker's operators and calls that are ready. Operators come before calls, and of each kind the newest comes first.
// So a frame does all it can before it calls, and calls go depth first: in fib(24), never more than some 24 frames are
// open. If the oldest call came first, calls would go breadth first, and thousands of frames would be open. But the
// oldest call promises the most work, so it is the one to give to another worker.
//
// What is queued counts in its frame's `live`; whoever takes it out takes that count over. Not thread-safe.
class ReadyQueue {
 public:
  // Tests give a seed other than 0: then the next operator is any of those that are ready.
  explicit ReadyQueue(uint64_t shuffle_seed = 0)
      : shuffles_(shuffle_seed != 0), random_(static_cast<unsigned>(shuffle_seed)) {}

  void Push(Frame* frame, OpId op, Value value = Value::Empty()) {
    ++frame->live;
    ReadyOperator* const item = operators_.push();
    item->frame = frame;
    item->op = op;
    value.CopyTo(&item->value);
  }

  void PushCall(Frame* frame, OpId op) {
    ++frame->live;
    ReadyCall* const call = calls_.push();
    call->frame = frame;
    call->op = op;
  }

  bool has_operators() const { return !operators_.empty(); }
  size_t num_operators() const { return operators_.size(); }
  bool has_calls() const { return num_calls() > 0; }
  size_t num_calls() const { return calls_.size() - calls_begin_; }
  bool empty() const { return !has_operators() && !has_calls(); }

  // Stays valid until the next push.
  ReadyOperator* PopOperator() {
    if (ABSL_PREDICT_FALSE(shuffles_)) std::swap(operators_[random_() % operators_.size()], newest_operator());
    return operators_.pop();
  }
  ReadyCall PopCall() { return *calls_.pop(); }

  const ReadyCall& oldest_call() const { return calls_[calls_begin_]; }
  void RemoveOldestCall();

  // Forgets everything and releases its values. The frames keep their counts: after an error nobody looks at them.
  void Clear();

 private:
  ReadyOperator& newest_operator() { return operators_[operators_.size() - 1]; }

  FastStack<ReadyOperator> operators_;
  FastStack<ReadyCall> calls_;
  // Where the calls begin in `calls_`. Those before were the oldest, and have been removed.
  size_t calls_begin_ = 0;
  const bool shuffles_;
  std::minstd_rand random_;
};

inline void ReadyQueue::RemoveOldestCall() {
  ++calls_begin_;
  if (calls_begin_ <= calls_.size() / 2) return;
  calls_.erase_front(calls_begin_);
  calls_begin_ = 0;
}

inline void ReadyQueue::Clear() {
  while (!operators_.empty()) operators_.pop()->value.Release();
  calls_.clear();
  calls_begin_ = 0;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_READY_QUEUE_H_
