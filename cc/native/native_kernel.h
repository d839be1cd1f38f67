// Kernels for the small operators of nets, which take values as they lie in frames.
//
// A stock kernel that adds rows of fifty numbers spends most of its time on other things than the fifty additions: a
// context, an allocation by malloc, checks of shapes. Native kernels go from values to values, and serve only what
// function bodies are full of: few rows of plain numbers, on a CPU.
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

// What a kernel has to know of the run and its device; the kernel runner of cc/kernels fills it in.
struct NativeContext {
  tensorflow::ResourceMgr* resources = nullptr;
  const std::string* device = nullptr;  // the name of the device that the resources belong to
};

// A result that is only handed on becomes a rope if it has at least this many bytes. A smaller one is copied at once,
// because that takes less time than to keep a rope.
inline constexpr int64_t kSmallestRope = 4 << 10;

// Computes the outputs; or returns false and leaves inputs and outputs as they were. Then the stock kernel has to
// compute them, which also reports what is wrong. The function may move a tensor out of the inputs to reuse its memory.
using NativeFunction = bool (*)(const NativeKernel& kernel, const NativeContext& context, Value* inputs,
                                Value* outputs);

// The inputs and outputs of one of the calls that run_together computes at once.
struct NativeCall {
  Value* inputs;
  Value* outputs;
};

// What a call can share with other calls of its node: `operand` is what they must have in common to be computed
// together, for example the numbers of a weight; `rows` is how many rows the call itself has. If `operand` is nullptr,
// the call gains nothing by being computed together with others.
struct NativeShare {
  const void* operand = nullptr;
  int rows = 0;
};

// A wave runs once it has this many rows, because waiting for more would gain nothing.
inline constexpr int kRowsOfWave = 8;

// Which input of a product is the weight.
inline constexpr int kWeightOfProduct = 1;

// A node's kernel, which FindNativeKernel chooses by operator, dtypes and attributes when a program is built.
struct NativeKernel {
  NativeFunction run = nullptr;  // nullptr: there is none
  int num_inputs = 0;
  int num_outputs = 0;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;  // the node's attribute T, else the dtype of its first output
  int64_t numbers[7] = {};  // what `run` needs of the attributes; each `run` says what is where
  uint32_t ropes = 0;       // bit i: output i may be a rope, because nobody in the body reads its numbers one by one
  bool may_share = true;    // an output may share the memory of an input, which nobody changes meanwhile
  // These two are set for kernels that compute several calls at once in less time than one by one, else nullptr.
  // `run_together` takes calls that share an operand, which have fewer than 2 * kRowsOfWave rows in all. It computes
  // exactly the results of `run`, or returns false and leaves inputs and outputs as they were.
  NativeShare (*share)(const NativeKernel& kernel, const Value* inputs) = nullptr;
  bool (*run_together)(const NativeKernel& kernel, absl::Span<const NativeCall> calls) = nullptr;
};

// The kernel for `node`, if there is one.
NativeKernel FindNativeKernel(const tensorflow::Node& node);

// The environment variable that turns native kernels off if it is "0", for comparisons. It is read when a program is
// built.
inline constexpr char kNativeKernelsVariable[] = "TENSORFLOW_RECURSION_NATIVE_KERNELS";
bool NativeKernelsAreOn();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_NATIVE_KERNEL_H_
