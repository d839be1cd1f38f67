// Static facts of the nodes that run by kernels, and the constants of a graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_KERNEL_NODE_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_KERNEL_NODE_H_

#include <cstdint>
#include <string>

#include "cc/base/ids.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Static facts of a node that runs by its kernel; MakeNodes adds one to the flow graph. The kernel runner indexes its
// kernels by `id`.
struct KernelNode {
  int id = 0;
  // All that the kernel reads and makes is in the host's memory.
  bool is_on_host = true;
  // How much memory an asynchronous kernel holds, apart from its tensors, until it is done.
  int64_t in_flight_bytes = 0;
  const tensorflow::Node* node = nullptr;
  std::string name;
  std::string op;
  tensorflow::DataTypeVector inputs;
  tensorflow::DataTypeVector outputs;
  // The kernel changes a tensor that it is given, whoever else has that.
  bool changes_input = false;
  // Where its results are among those that the frames of its recursion share; kNone if it does not share them.
  uint32_t kept_results = kNone;
};

// The value of a constant of the graph, which ConstantOf reads into the flow graph.
struct ConstantTensor {
  // Whether it is a single number, with which the executor and compiled code compute as bits, without a tensor.
  bool is_number() const { return is_on_host && tensor.dims() == 0 && IsUnboxed(tensor.dtype()); }

  tensorflow::Tensor tensor;
  bool is_on_host = true;
};

// A variable that is read once for all frames of a recursion. Its handle is the invariant number `handle`, and the
// `kernel`th of the graph's KernelNodes reads it.
struct InvariantRead {
  uint32_t handle = 0;
  uint32_t kernel = 0;
};

// A variable that has to be readable before a run begins. The program gets its handle as argument number `argument`.
struct ArgumentRead {
  int argument = 0;
  uint32_t kernel = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_KERNEL_NODE_H_
