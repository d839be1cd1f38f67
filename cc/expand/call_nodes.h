// Tells which nodes of a graph are calls and records, and which functions these name.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_CALL_NODES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_CALL_NODES_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Whether the node is a call of a recursive function, as users' graphs have them.
bool IsInvoke(const tensorflow::NodeDef& node);
bool HasInvoke(const tensorflow::GraphDef& graph);
std::vector<tensorflow::Node*> FindInvokes(const tensorflow::Graph& graph);

// Whether the graph is that of a function, which has arguments or results. Nothing in it is fetched by its name.
bool IsFunctionGraph(const tensorflow::Graph& graph);

// Whether the node writes, or reads, the record of an invocation.
bool IsRetain(const tensorflow::NodeDef& node);
bool IsRecall(const tensorflow::NodeDef& node);
// Whether it is an operator of gradients that is stateful only so that stock passes leave it alone. Only those that
// read its outputs, and side effects, have to wait for it.
bool IsPureGradientOp(const std::string& op);
// The function whose record a Retain or Recall handles; empty if the attribute is missing.
const std::string& RecordOwner(const tensorflow::NodeDef& node);

// The function that an Invoke calls; empty if the attribute is missing.
const std::string& CalleeOf(const tensorflow::NodeDef& invoke);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_CALL_NODES_H_
