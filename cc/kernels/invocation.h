// One dynamic call under way, and what the calls of one recursion share.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_INVOCATION_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_INVOCATION_H_

#include <atomic>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/rendezvous.h"

namespace tensorflow_recursion {

class InvokeOp;

// What a recursion shares, from the outermost call down.
struct Recursion {
  explicit Recursion(tensorflow::RendezvousInterface* rendezvous) : rendezvous(rendezvous) {}

  tensorflow::RendezvousInterface* const rendezvous;  // the real one; may be null
  std::atomic<bool> aborted{false};                   // the rendezvous knows of an error
  absl::Mutex mu;                                     // calls in different branches run on different threads
  absl::Status first_error ABSL_GUARDED_BY(mu);
  // Handles by InvokeOp::key. In tf.data's functions every instance of a function gets a function
  // library of its own, in which its callees would be instantiated anew: at every depth once more.
  absl::flat_hash_map<std::string, tensorflow::FunctionLibraryRuntime::Handle> handles ABSL_GUARDED_BY(mu);
};

// Runs the callee of `kernel` with the kernel's inputs and outputs, and calls `done` when it has ended.
void StartInvocation(InvokeOp& kernel, tensorflow::OpKernelContext* ctx, tensorflow::AsyncOpKernel::DoneCallback done);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_INVOCATION_H_
