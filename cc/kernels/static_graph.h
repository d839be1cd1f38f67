// Makes the static graph of one call, without a session: what the optimizer and the passes make of a session's graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_STATIC_GRAPH_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_STATIC_GRAPH_H_

#include <memory>

#include "absl/status/status.h"
#include "cc/base/options.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// A graph of `_Arg`s, the bodies that an Invoke runs, and `_Retval`s, transformed, optimized by TensorFlow and placed:
// the boundary on the device of `library`, whose functions it calls, and bodies where they ask to be. An error says why
// there is none.
absl::Status MakeStaticGraph(const tensorflow::NodeDef& call, tensorflow::FunctionLibraryRuntime* library,
                             const Options& options, std::unique_ptr<tensorflow::Graph>* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STATIC_GRAPH_H_
