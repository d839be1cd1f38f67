// Runs a graph as it is: no optimizer sees it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_KERNELS_RUN_GRAPH_H_
#define TENSORFLOW_RECURSION_TESTS_CC_KERNELS_RUN_GRAPH_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow_recursion {

inline absl::Status RunGraph(const tensorflow::GraphDef& graph, const std::vector<std::string>& fetches,
                             std::vector<tensorflow::Tensor>* outputs,
                             const std::vector<std::pair<std::string, tensorflow::Tensor>>& feeds = {}) {
  tensorflow::SessionOptions options;
  options.config.mutable_graph_options()->mutable_rewrite_options()->set_disable_meta_optimizer(true);
  const std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession(options));
  TFR_RETURN_IF_ERROR(session->Create(graph));
  return session->Run(feeds, fetches, {}, outputs);
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_KERNELS_RUN_GRAPH_H_
