// Turns a partition graph with calls into one Recursion>Run node between its _Args and _Retvals.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_MAKE_COMPOSITE_H_
#define TENSORFLOW_RECURSION_CC_PASSES_MAKE_COMPOSITE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Whether only our executor can run the partition.
bool NeedsOurExecutor(const tensorflow::Graph& partition);

// Whether the partition is a part of a function with calls that are to be made static where they run, all with the same
// settings. False if it exchanges values with other devices, itself or in a function of `library` that an operator
// runs: its calls are then made static one by one.
bool HoldsCallsToMakeStatic(const tensorflow::Graph& partition, const tensorflow::FunctionLibraryDefinition& library);

// Replaces *graph. `name` is that of the Run node, which must be unique in the process, because sessions cache the
// node's kernel under it. `library` has the functions that the partition runs.
absl::Status MakeComposite(const std::string& device, const std::string& name, bool is_of_function,
                           const tensorflow::FunctionLibraryDefinition& library,
                           std::unique_ptr<tensorflow::Graph>* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_MAKE_COMPOSITE_H_
