// Which values of a partition the host can read.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_DEVICE_MEMORY_H_
#define TENSORFLOW_RECURSION_CC_VALUES_DEVICE_MEMORY_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Whether the host can read what a kernel on a device of this type has in `memory`.
inline bool IsOnHost(const tensorflow::DeviceType& device, tensorflow::MemoryType memory) {
  return memory == tensorflow::HOST_MEMORY || device == tensorflow::DeviceType(tensorflow::DEVICE_CPU);
}

// The memory of the device that a partition runs on. A CPU's memory is the host's. On another device each kernel says,
// for each input and output, whether it is in the host's memory or in the device's, which only kernels and copies of
// that device may touch. TensorFlow's partitioning has put copies between outputs and inputs that differ.
class DeviceMemory {
 public:
  using MakeTensor = std::function<absl::Status(const tensorflow::TensorProto&, tensorflow::Tensor*)>;

  DeviceMemory() : DeviceMemory(tensorflow::DEVICE_CPU, nullptr) {}
  // `make_tensor` makes constants in the device's memory.
  DeviceMemory(const std::string& device_type, MakeTensor make_tensor)
      : device_(device_type), is_apart_(device_type != tensorflow::DEVICE_CPU), make_tensor_(std::move(make_tensor)) {}

  // Whether `node` puts its output number `output` into the host's memory.
  bool IsOnHost(const tensorflow::Node& node, int output) const;
  // Whether all inputs and outputs of `node` are in the host's memory.
  bool IsOnHost(const tensorflow::Node& node) const;

  // InvalidArgument if a node would read on the host what is in the device's memory, or the other way round.
  absl::Status Verify(const tensorflow::Graph& graph) const;

  // Makes the constant `proto` in the device's memory. Only for devices that were given a MakeTensor.
  absl::Status Make(const tensorflow::TensorProto& proto, tensorflow::Tensor* tensor) const {
    return make_tensor_(proto, tensor);
  }

 private:
  absl::Status TypesOf(const tensorflow::Node& node, tensorflow::MemoryTypeVector* inputs,
                       tensorflow::MemoryTypeVector* outputs) const;

  tensorflow::DeviceType device_;
  bool is_apart_;  // the host can't touch it
  MakeTensor make_tensor_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_DEVICE_MEMORY_H_
