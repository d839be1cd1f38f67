// Kernels for the small operators of nets, which take values as they lie in frames.
//
// A stock kernel for a row of fifty numbers spends most of its time on what is around the fifty additions: a context,
// an allocation by malloc, checks of shapes. These go from values to values, and serve only what function bodies are
// full of: few rows, plain numbers, on a CPU.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_NATIVE_NATIVE_KERNEL_H_
#define TENSORFLOW_RECURSION_CC_NATIVE_NATIVE_KERNEL_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

struct NativeKernel;

// The run in which a kernel computes.
struct NativeContext {
  tensorflow::ResourceMgr* resources = nullptr;
  const std::string* device = nullptr;  // whose resources these are
};

// A result that is only handed on becomes a rope if it has at least so many bytes. Smaller ones are copied at once,
// which is faster for them.
inline constexpr int64_t kSmallestRope = 4 << 10;

// Computes the outputs, or returns false and leaves inputs and outputs as they were: then the stock kernel has to do
// it, which also reports what is wrong. It may move a tensor out of the inputs to reuse its memory.
using NativeFunction = bool (*)(const NativeKernel& kernel, const NativeContext& context, Value* inputs,
                                Value* outputs);

// One of several calls of a node.
struct NativeCall {
  Value* inputs;
  Value* outputs;
};

// What calls must have in common to be computed together, a weight for instance, and how many rows a call has of its
// own. No operand: the call gains nothing from others.
struct NativeShare {
  const void* operand = nullptr;
  int rows = 0;
};

// With so many rows together nothing more is gained by waiting for others.
inline constexpr int kRowsOfWave = 8;

// A node's kernel, bound by operator, dtypes and attributes when a program is built. What the fields mean is up to the
// function.
struct NativeKernel {
  NativeFunction run = nullptr;  // nullptr: there is none
  int num_inputs = 0;
  int num_outputs = 0;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;  // of the numbers that it is about
  int64_t numbers[5] = {0, 0, 0, 0, 0};
  uint32_t ropes = 0;  // bit i: output i may be a rope, of which somebody copies the numbers later
  // Kernels for which it takes less to compute several calls at once have these two, others nullptr. `run_together`
  // takes calls that share an operand, of fewer than 2 * kRowsOfWave rows in all, and returns what `run` does; so do
  // the results.
  NativeShare (*share)(const NativeKernel& kernel, const Value* inputs) = nullptr;
  bool (*run_together)(const NativeKernel& kernel, absl::Span<const NativeCall> calls) = nullptr;
};

// The kernel for `node`, if there is one.
NativeKernel FindNativeKernel(const tensorflow::Node& node);

// 0 leaves everything to stock kernels, in programs that are built while it is set: for comparisons.
inline constexpr char kNativeKernelsVariable[] = "TENSORFLOW_RECURSION_NATIVE_KERNELS";
bool NativeKernelsAreOn();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_NATIVE_KERNEL_H_
