// Keeps the kernel calls of a node, in several frames, that wait to be run together.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_WAVES_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_WAVES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/base/ids.h"
#include "cc/executor/frame.h"
#include "cc/executor/kernel_runner.h"
#include "cc/program/program.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

inline constexpr size_t kMostInputsOfWave = 4;

// A call that waits in a wave. It counts in its frame's `live`; whoever takes it out takes that count over.
struct WaitingCall {
  Frame* frame;
  OpId op;
  std::array<Value, kMostInputsOfWave> inputs;
};

// The calls of one node that wait together. The wave is full when they have kFullWave rows together.
struct Wave {
  const KernelNode* node;
  // The memory of the weight that all calls share.
  const void* operand;
  int rows = 0;
  std::vector<WaitingCall> calls;

  bool is_full() const { return rows >= KernelRunner::kFullWave; }
};

// An example: each frame of a net over a tree multiplies its row with a weight too large for the cache. The product of
// one frame waits while the worker opens the next calls; when eight rows have come together, the weight is read once
// for all of them. A worker that has nothing else to do runs what has come until then. So at most kFullWave calls wait
// at a node, and the memory of a recursion that goes depth first stays within that many times its depth.
//
// Not thread-safe: they are the worker's own.
class Waves {
 public:
  // Takes the call of `node` over, with its inputs, and returns the wave that it waits in. Returns nullptr if the call
  // has to run by itself, because calls with another operand wait at this node, or because there are too many waves.
  Wave* Add(const KernelNode& node, const KernelRunner::Share& share, Frame* frame, OpId op, const Op& shape,
            Value* inputs);

  bool empty() const { return waves_.empty(); }
  // The wave with the most rows. There must be one.
  Wave* fullest();

  // Takes the wave out; it is the caller's.
  Wave Take(Wave* wave);
  // Gives a wave's memory back for others to come.
  void Recycle(Wave wave);

  // Forgets everything and releases its values. The frames keep their counts: after an error nobody looks at them.
  void Clear();

 private:
  static constexpr size_t kMostWaves = 16;

  Wave* Find(const KernelNode& node);

  // None of these is empty.
  std::vector<Wave> waves_;
  // The memory of waves that have run.
  std::vector<std::vector<WaitingCall>> spare_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WAVES_H_
