// What is known of nodes and constants of a graph before anything runs, apart from how values flow between them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_KERNEL_NODE_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_KERNEL_NODE_H_

#include <cstdint>
#include <string>

#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Static facts of a node that runs by its own kernel. The runner indexes its kernels by `id`.
struct KernelNode {
  int id = 0;
  bool is_on_host = true;       // all that it reads and makes is in the host's memory
  int64_t in_flight_bytes = 0;  // what it holds apart from its tensors while it is asynchronous
  const tensorflow::Node* node = nullptr;
  std::string name;
  std::string op;
  tensorflow::DataTypeVector inputs;
  tensorflow::DataTypeVector outputs;
};

struct ConstantTensor {
  // A single one, which executors and compiled code compute with as bits.
  bool is_number() const { return is_on_host && tensor.dims() == 0 && IsUnboxed(tensor.dtype()); }

  tensorflow::Tensor tensor;
  bool is_on_host = true;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_KERNEL_NODE_H_
