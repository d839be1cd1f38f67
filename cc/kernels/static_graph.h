// Makes static graphs without a session: what the optimizer and the passes make of a session's graph.
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
  tensorflow::GraphDef graph;          // without functions
  std::vector<std::string> arguments;  // names of nodes
  std::vector<std::string> fetches;    // names of nodes; all are computed, read or not
};

// Makes the main graph of one Invoke, which takes all arguments and makes all results.
absl::Status MakeMainGraph(const tensorflow::NodeDef& call, const std::string& device, MainGraph* main);

// Makes the main graph of the part of a function's graph that is on one device. The names of its nodes are those of the
// part.
void MakeMainGraph(tensorflow::GraphDef partition, MainGraph* main);

// `main` with the bodies that its calls run, transformed, optimized by TensorFlow and placed: `main` on the device of
// `library`, whose functions it calls, and bodies where they ask to be. An error says why there is none.
absl::Status MakeStaticGraph(MainGraph main, tensorflow::FunctionLibraryRuntime* library, const Options& options,
                             bool allow_soft_placement, std::unique_ptr<tensorflow::Graph>* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STATIC_GRAPH_H_
