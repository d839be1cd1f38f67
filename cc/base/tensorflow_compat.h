// Everything that depends on one version of TensorFlow, or on members that it keeps private, under one name for all.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_TENSORFLOW_COMPAT_H_
#define TENSORFLOW_RECURSION_CC_BASE_TENSORFLOW_COMPAT_H_

#include <string>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/op_segment.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow_recursion {
namespace internal {

// Of each pair of overloads the first is called where it compiles, because callers pass 0, which fits `int` better than
// `long`. Where this TensorFlow lacks what the first one uses, the second is called.

template <typename Context>
auto InterOpThreads(const Context& context, int) -> decltype(context.session_config()->inter_op_parallelism_threads()) {
  return context.session_config() == nullptr ? 0 : context.session_config()->inter_op_parallelism_threads();
}
template <typename Context>
int InterOpThreads(const Context& /*context*/, long /*worse_match*/) {
  return 0;
}

template <typename Library>
auto ReachableFunctions(const Library& library, const tensorflow::Graph& graph, int)
    -> decltype(library.ReachableDefinitions(graph)) {
  return library.ReachableDefinitions(graph);
}
template <typename Library>
Library ReachableFunctions(const Library& library, const tensorflow::Graph& graph, long /*worse_match*/) {
  tensorflow::GraphDef nodes;
  graph.ToGraphDef(&nodes, /*include_flib_def=*/false);
  return library.ReachableDefinitions(nodes);
}

}  // namespace internal

// How many threads the session's configuration asks for. 0 if it says nothing, or if the context can't tell
// (TensorFlow 2.16).
inline int InterOpThreads(const tensorflow::OpKernelContext& context) { return internal::InterOpThreads(context, 0); }

// The functions of `library` that `graph` calls, and those that they call.
inline tensorflow::FunctionLibraryDefinition ReachableFunctions(const tensorflow::FunctionLibraryDefinition& library,
                                                                const tensorflow::Graph& graph) {
  return internal::ReachableFunctions(library, graph, 0);
}

// The handle of the session under which `segment` keeps `kernel`; empty if no session of the segment has the kernel.
// A gRPC worker tells executors, kernels and graph passes nothing of the handle. So a kernel that wants to share state
// with the other kernels of its session looks for the session that holds itself. Reads private members of OpSegment.
std::string SessionHandleOf(tensorflow::OpSegment* segment, const tensorflow::OpKernel& kernel);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_TENSORFLOW_COMPAT_H_
