// Registers kernels with TensorFlow when the library is loaded.
// SPDX-License-Identifier: Apache-2.0
#include "cc/base/names.h"
#include "cc/kernels/concat_gradient_op.h"
#include "cc/kernels/contribution_ops.h"
#include "cc/kernels/has_run_op.h"
#include "cc/kernels/import_op.h"
#include "cc/kernels/invoke_op.h"
#include "cc/kernels/record_ops.h"
#include "cc/kernels/run_op.h"
#include "cc/kernels/snapshot_ops.h"
#include "cc/kernels/stray_kernels.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataTypeVector;
using tensorflow::DEVICE_CPU;
using tensorflow::DEVICE_DEFAULT;

// The types of values that may be in a device's own memory. TensorFlow keeps int32, of which sizes and indices are
// made, in the host's memory for any device. It does so by itself for values that are no plain bytes (strings,
// resources).
const DataTypeVector& TypesOnDevice() {
  static const auto* const types = [] {
    auto* all = new DataTypeVector;
    for (const tensorflow::DataType type : tensorflow::kAllTypes) {
      if (type != tensorflow::DT_INT32) all->push_back(type);
    }
    return all;
  }();
  return *types;
}

// DEVICE_DEFAULT stands for any device that is no CPU.
#define REGISTER_KERNEL(op, kernel, ...)                        \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_CPU), kernel); \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_DEFAULT) __VA_ARGS__, kernel)
// For operators that carry a `value` of type T.
#define REGISTER_CARRIER(op, ...)                                                  \
  REGISTER_KERNEL(op, StrayOp, .TypeConstraint("T", TypesOnDevice()) __VA_ARGS__); \
  REGISTER_KERNEL_BUILDER(                                                         \
      Name(op).Device(DEVICE_DEFAULT).TypeConstraint<int32_t>("T").HostMemory("value") __VA_ARGS__, StrayOp)

// A call for which no device was asked is on a CPU, because dynamic execution needs a kernel of everything in the body
// on the device of the call. In static execution the operators of the body have devices of their own.
REGISTER_KERNEL_BUILDER(Name(kInvokeOp).Device(DEVICE_CPU).Priority(1), InvokeOp);
REGISTER_KERNEL_BUILDER(Name(kInvokeOp).Device(DEVICE_DEFAULT), InvokeOp);
REGISTER_KERNEL(kRetainOp, RetainOp);
REGISTER_KERNEL(kRecallOp, RecallOp);
REGISTER_KERNEL(kListOrZerosOp, ListOrZerosOp);
REGISTER_KERNEL(kBranchInputOp, FirstInputOp, .TypeConstraint("T", TypesOnDevice()));
REGISTER_KERNEL_BUILDER(
    Name(kBranchInputOp).Device(DEVICE_DEFAULT).TypeConstraint<int32_t>("T").HostMemory("value").HostMemory("inside"),
    FirstInputOp);
REGISTER_KERNEL(kSnapshotOp, SnapshotOp, .HostMemory("variables"));
REGISTER_KERNEL(kVariablesOfOp, VariablesOfOp, .HostMemory("variables").HostMemory("copies"));
REGISTER_KERNEL(kHasRunOp, HasRunOp, .HostMemory("after").HostMemory("token"));
REGISTER_KERNEL(kImportOp, ImportOp);
REGISTER_CARRIER(kEntryOp);
REGISTER_CARRIER(kResultOp);
REGISTER_CARRIER(kCallOp);
REGISTER_CARRIER(kReturnOp, .HostMemory("keep_alives"));
REGISTER_KERNEL(kFrameStartOp, StrayOp);
REGISTER_KERNEL(kAnnounceCallOp, StrayOp, .HostMemory("announcement"));
REGISTER_KERNEL(kJoinCallOp, StrayOp, .HostMemory("announcement"));
REGISTER_KERNEL(kKeepAliveOp, StrayOp, .HostMemory("token"));
REGISTER_KERNEL(kRunOp, RunOp);
REGISTER_KERNEL_BUILDER(Name(kConcatGradientOp).Device(DEVICE_CPU), ConcatGradientOp);
REGISTER_KERNEL(kContributeOp, ContributeOp);
REGISTER_KERNEL(kContributeNoneOp, ContributeNoneOp);
REGISTER_KERNEL(kCollectOp, CollectOp);
REGISTER_KERNEL(kContributeViewOp, FirstInputOp);
REGISTER_KERNEL(kTotalOp, FirstInputOp);

}  // namespace
}  // namespace tensorflow_recursion
