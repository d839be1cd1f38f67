// Makes a graph of plain operators and calls of the part of the main graph that the fetches need.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_MAIN_GRAPH_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_MAIN_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/expand/body_factory.h"
#include "cc/expand/call_program.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Builds `*main`, and fills in `program`'s fetches, feeds and loops. Every call in it names the function that it runs.
// InvalidArgument if the graph is malformed or a fetch is not in it.
absl::Status LoadMainGraph(const tensorflow::GraphDef& graph, const std::vector<std::string>& fetches,
                           const std::vector<std::string>& feeds, BodyFactory* bodies, CallProgram* program,
                           std::unique_ptr<tensorflow::Graph>* main);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_MAIN_GRAPH_H_
