// A session that runs a graph as it is, for tests that ask what stock kernels say.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_VALUES_STOCK_SESSION_H_
#define TENSORFLOW_RECURSION_TESTS_CC_VALUES_STOCK_SESSION_H_

#include <memory>

#include "tensorflow/core/public/session.h"

namespace tensorflow_recursion {

// Optimizes nothing, and runs everything in the caller's thread: operators, and the parts of one, which oneDNN's
// kernels else share out among threads. The thread sanitizer does not see how TensorFlow's queues hand closures from
// thread to thread.
inline std::unique_ptr<tensorflow::Session> NewStockSession() {
  tensorflow::SessionOptions options;
  options.config.mutable_graph_options()->mutable_rewrite_options()->set_disable_meta_optimizer(true);
  options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(tensorflow::OptimizerOptions::L0);
  options.config.set_inter_op_parallelism_threads(-1);
  options.config.set_intra_op_parallelism_threads(1);
  return std::unique_ptr<tensorflow::Session>(tensorflow::NewSession(options));
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_VALUES_STOCK_SESSION_H_
