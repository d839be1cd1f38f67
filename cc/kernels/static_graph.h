// Makes static graphs without a session, as the optimizer and the passes make them of a session's graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_STATIC_GRAPH_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_STATIC_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/base/options.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// A graph with calls in it, between `_Arg`s and `_Retval`s. All of it is on one device.
struct MainGraph {
  // Has no function library.
  tensorflow::GraphDef graph;
  // The names of the nodes of arguments, and of nodes that are always computed.
  std::vector<std::string> arguments;
  std::vector<std::string> fetches;
};

// Makes the main graph of one Invoke, which takes all arguments and makes all results.
absl::Status MakeMainGraph(const tensorflow::NodeDef& call, const std::string& device, MainGraph* main);

// Makes the main graph of the part of a function's graph that is on one device. The names of its nodes are those of the
// part.
void MakeMainGraph(tensorflow::GraphDef partition, MainGraph* main);

// Makes the static graph of `main`, with the bodies that its calls run: transformed, optimized by TensorFlow, and
// placed. `main` is on the device of `library`, whose functions it calls, and bodies are where they ask to be. An error
// says why there is no such graph.
absl::Status MakeStaticGraph(MainGraph main, tensorflow::FunctionLibraryRuntime* library, const Options& options,
                             bool allow_soft_placement, std::unique_ptr<tensorflow::Graph>* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STATIC_GRAPH_H_
