// Holds what the dynamic calls of one recursion share.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_RECURSION_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_RECURSION_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/rendezvous.h"

namespace tensorflow_recursion {

// The outermost call and all calls below it share this. Thread-safe, because calls in different branches run on
// different threads.
struct Recursion {
  explicit Recursion(tensorflow::RendezvousInterface* rendezvous) : rendezvous(rendezvous) {}

  // Keeps the first error of the whole recursion, with the function in whose body it happened, written as TensorFlow
  // writes it (`{{function_node F}}`, which Python does not show), and the path of calls. `path` is only called if the
  // error is kept, because to write the path takes time in proportion to the depth.
  void Record(const absl::Status& status, absl::string_view function, const std::function<std::string()>& path);
  absl::Status FirstError();

  // The real rendezvous, which may be null.
  tensorflow::RendezvousInterface* const rendezvous;
  // The rendezvous has been told of an error.
  std::atomic<bool> aborted{false};
  std::mutex mu;
  absl::Status first_error ABSL_GUARDED_BY(mu);
  // The handles of callees, by InvokeOp::key_. In functions of tf.data every instance of a function gets a function
  // library of its own, in which its callees would be instantiated anew, once more at every depth.
  absl::flat_hash_map<std::string, tensorflow::FunctionLibraryRuntime::Handle> handles ABSL_GUARDED_BY(mu);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_RECURSION_H_
