// Keeps what is known of partial calls: those opened before all their arguments had come, or with dead arguments.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_PARTIAL_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_PARTIAL_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "cc/base/ids.h"
#include "cc/executor/frame.h"

namespace tensorflow_recursion {

// What is known of one such call.
struct PartialCall {
  // The callee's frame, if it is open.
  Frame* child = nullptr;
  // The indices of the arguments that had died before the frame was opened.
  std::vector<uint32_t> dead_arguments;

  bool is_dead(uint32_t argument) const {
    return std::find(dead_arguments.begin(), dead_arguments.end(), argument) != dead_arguments.end();
  }
};

// The partial calls of a worker's frames, by caller and operator. They are rare, so frames have no room for them, but
// only a flag that says whether to look here.
class PartialCalls {
 public:
  // Returns nullptr if it is no partial call.
  const PartialCall* Find(const Frame* caller, OpId op) const {
    if (ABSL_PREDICT_TRUE(!caller->has_partial_calls)) return nullptr;
    const auto position = calls_.find({caller, op});
    return position == calls_.end() ? nullptr : &position->second;
  }

  // To be called when the call has been opened while some of its arguments are still to come, which go to `child`.
  void SetChild(Frame* caller, OpId op, Frame* child) { Make(caller, op).child = child; }
  // Returns false if it was known that the argument is dead, because the same death may be told twice.
  bool AddDeadArgument(Frame* caller, OpId op, uint32_t argument);

  void Erase(const Frame* caller, OpId op) { calls_.erase({caller, op}); }
  // Erases all calls of a frame that ends.
  void EraseAll(const Frame* caller);
  void Clear() { calls_.clear(); }
  bool empty() const { return calls_.empty(); }

 private:
  PartialCall& Make(Frame* caller, OpId op) {
    caller->has_partial_calls = 1;
    return calls_[{caller, op}];
  }

  absl::flat_hash_map<std::pair<const Frame*, uint32_t>, PartialCall> calls_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_PARTIAL_CALLS_H_
