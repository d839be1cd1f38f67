// Handles records where TensorFlow's own executor runs a body, by kernels of Retain and Recall.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_RECORD_OPS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_RECORD_OPS_H_

#include "cc/base/status.h"
#include "cc/values/record.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Packs its inputs into a record. Shares their buffers.
class RetainOp : public tensorflow::OpKernel {
 public:
  explicit RetainOp(tensorflow::OpKernelConstruction* construction)
      : OpKernel(construction), device_type_(construction->device_type()) {
    OP_REQUIRES(construction, num_inputs() <= Record::kMaxSize,
                InvalidArgument("A record of ", num_inputs(), " values; it holds at most ", Record::kMaxSize));
  }

  bool IsExpensive() override { return false; }
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  const tensorflow::DeviceType device_type_;
};

// Unpacks a record, which stays as it is.
class RecallOp : public tensorflow::OpKernel {
 public:
  explicit RecallOp(tensorflow::OpKernelConstruction* construction);

  bool IsExpensive() override { return false; }
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  RecordType type_;
};

// Hands on a list that the gradient of a gradient reads from a record. If there is only an empty record in its place,
// which stands for zeros of anything, makes zeros like another list: the operators of lists know no records.
class ListOrZerosOp : public tensorflow::OpKernel {
 public:
  explicit ListOrZerosOp(tensorflow::OpKernelConstruction* construction)
      : OpKernel(construction), device_type_(construction->device_type()) {}

  bool IsExpensive() override { return false; }
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  const tensorflow::DeviceType device_type_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_RECORD_OPS_H_
