// Lets a call be made once more with the variables as they were when it was made first.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_SNAPSHOT_OPS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_SNAPSHOT_OPS_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// A second derivative runs the function that is differentiated once more. In the meantime its variables may have been
// assigned, by that function itself, for example. So a call takes a snapshot of them, and the second run gets copies.

// Packs the values of variables into a record. Shares their buffers: whoever updates a variable in place copies it
// first if somebody else has its buffer. Has no value for a variable that is not initialized, or not on this device.
// TensorFlow updates rows of a table in place, whoever has the buffer: such a table is copied if the call assigns to
// it, and has no value otherwise, because it may be large.
class SnapshotOp : public tensorflow::OpKernel {
 public:
  explicit SnapshotOp(tensorflow::OpKernelConstruction* construction);

  bool IsExpensive() override { return false; }
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  // Where the value of each input is in the record: at the position that the variable has among the inputs of the call.
  std::vector<int32_t> positions_;
  // The positions of those variables that the call may assign to.
  std::vector<int32_t> assigned_;
  uint32_t size_ = 0;
};

// Makes variables of the values in a snapshot. They end with the last reference to their handles. Where the snapshot
// has no value, and where it is not there at all, the copy is the variable itself.
class VariablesOfOp : public tensorflow::OpKernel {
 public:
  explicit VariablesOfOp(tensorflow::OpKernelConstruction* construction);

  bool IsExpensive() override { return false; }
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  std::vector<int32_t> positions_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_SNAPSHOT_OPS_H_
