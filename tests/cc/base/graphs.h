// Builds and inspects the small graphs that the tests of the transformation are about.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_BASE_GRAPHS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_BASE_GRAPHS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/versions.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow_recursion {

using Attrs = std::vector<std::pair<std::string, tensorflow::FunctionDefHelper::AttrValueWrapper>>;
using Inputs = std::vector<std::string>;
using Types = std::vector<tensorflow::DataType>;

inline constexpr tensorflow::DataType kInt = tensorflow::DT_INT32;

// Fluent: each call adds one node or function.
class GraphBuilder {
 public:
  GraphBuilder() { graph_.mutable_versions()->set_producer(TF_GRAPH_DEF_VERSION); }

  GraphBuilder& Node(const std::string& name, const std::string& op, const Inputs& inputs = {},
                     const Attrs& attrs = {}) {
    tensorflow::NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op(op);
    for (const std::string& input : inputs) node->add_input(input);
    for (const auto& [key, value] : attrs) (*node->mutable_attr())[key] = value.proto;
    return *this;
  }

  GraphBuilder& Const(const std::string& name, int value = 1, const Inputs& controls = {}) {
    return Node(name, "Const", controls, {{"dtype", kInt}, {"value", tensorflow::Tensor(value)}});
  }

  GraphBuilder& Call(const std::string& name, const std::string& function, const Inputs& inputs,
                     const Types& in = {kInt}, const Types& out = {kInt}) {
    return Node(name, kInvokeOp, inputs, CallAttrs(function, in, out));
  }

  GraphBuilder& Function(const tensorflow::FunctionDef& function) {
    *graph_.mutable_library()->add_function() = function;
    return *this;
  }

  static Attrs CallAttrs(const std::string& function, const Types& in, const Types& out) {
    return {{"f", tensorflow::FunctionDefHelper::FunctionRef(function)},
            {"Tin", tensorflow::DataTypeSlice(in)},
            {"Tout", tensorflow::DataTypeSlice(out)}};
  }

  const tensorflow::GraphDef& graph() const { return graph_; }

 private:
  tensorflow::GraphDef graph_;
};

// Nodes of a function's body. Inputs are arguments ("n") or outputs of nodes ("add:z:0").
using BodyNode = tensorflow::FunctionDefHelper::Node;

inline BodyNode MakeBodyNode(const std::string& name, const std::string& op, const Inputs& inputs,
                             const Attrs& attrs = {}) {
  BodyNode node;
  node.ret = {name};
  node.op = op;
  node.arg = inputs;
  node.attr = attrs;
  return node;
}

inline BodyNode BodyCall(const std::string& name, const std::string& function, const Inputs& inputs,
                         const Types& in = {kInt}, const Types& out = {kInt}) {
  return MakeBodyNode(name, kInvokeOp, inputs, GraphBuilder::CallAttrs(function, in, out));
}

inline BodyNode BodyConst(const std::string& name, int value = 1) {
  return MakeBodyNode(name, "Const", {}, {{"dtype", kInt}, {"value", tensorflow::Tensor(value)}});
}

inline BodyNode BodyTrue(const std::string& name) {
  return MakeBodyNode(name, "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
}

// A conditional from and to one int32; reads argument "n" and, as its predicate, node "p".
inline BodyNode BodyIf(const std::string& name, const std::string& then_branch, const std::string& else_branch) {
  const Types types = {kInt};
  return MakeBodyNode(name, "If", {"p:output:0", "n"},
                      {{"Tcond", tensorflow::DT_BOOL},
                       {"Tin", tensorflow::DataTypeSlice(types)},
                       {"Tout", tensorflow::DataTypeSlice(types)},
                       {"then_branch", tensorflow::FunctionDefHelper::FunctionRef(then_branch)},
                       {"else_branch", tensorflow::FunctionDefHelper::FunctionRef(else_branch)}});
}

// F(n) = F(n) + 1: all that the transformation looks at, although it never ends.
inline tensorflow::FunctionDef Endless(const std::string& name, const std::string& callee) {
  return tensorflow::FunctionDefHelper::Create(
      name, {"n: int32"}, {"r: int32"}, {},
      {BodyConst("one"), BodyCall("call", callee, {"n"}),
       MakeBodyNode("add", "AddV2", {"call:results:0", "one:output:0"}, {{"T", kInt}})},
      {{"r", "add:z:0"}});
}

// What tests ask of a graph.

inline const tensorflow::NodeDef* Find(const tensorflow::GraphDef& graph, const std::string& name) {
  for (const tensorflow::NodeDef& node : graph.node()) {
    if (node.name() == name) return &node;
  }
  return nullptr;
}

inline std::vector<const tensorflow::NodeDef*> NodesOf(const tensorflow::GraphDef& graph, const std::string& op) {
  std::vector<const tensorflow::NodeDef*> nodes;
  for (const tensorflow::NodeDef& node : graph.node()) {
    if (node.op() == op) nodes.push_back(&node);
  }
  return nodes;
}

inline std::set<std::string> Names(const std::vector<const tensorflow::NodeDef*>& nodes) {
  std::set<std::string> names;
  for (const tensorflow::NodeDef* node : nodes) names.insert(node->name());
  return names;
}

inline Inputs InputsOf(const tensorflow::GraphDef& graph, const std::string& name) {
  const tensorflow::NodeDef* node = Find(graph, name);
  if (node == nullptr) return {"no node " + name};
  return {node->input().begin(), node->input().end()};
}

inline bool HasInput(const tensorflow::GraphDef& graph, const std::string& name, const std::string& input) {
  const Inputs inputs = InputsOf(graph, name);
  return std::count(inputs.begin(), inputs.end(), input) > 0;
}

// Builds a Graph, as a session does: every node is checked against its operator.
inline absl::Status Construct(const tensorflow::GraphDef& graph, std::unique_ptr<tensorflow::Graph>* result = nullptr) {
  auto built = std::make_unique<tensorflow::Graph>(tensorflow::OpRegistry::Global());
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  absl::Status status = tensorflow::ConvertGraphDefToGraph(options, graph, built.get());
  if (result != nullptr) *result = std::move(built);
  return status;
}

// The same, for graphs without a fault.
inline std::unique_ptr<tensorflow::Graph> MakeGraph(const tensorflow::GraphDef& graph) {
  std::unique_ptr<tensorflow::Graph> built;
  const absl::Status status = Construct(graph, &built);
  EXPECT_TRUE(status.ok()) << status;
  return built;
}
inline std::unique_ptr<tensorflow::Graph> MakeGraph(const GraphBuilder& builder) { return MakeGraph(builder.graph()); }

// nullptr if there is none.
inline tensorflow::Node* FindNode(const tensorflow::Graph& graph, const std::string& name) {
  for (tensorflow::Node* node : graph.op_nodes()) {
    if (node->name() == name) return node;
  }
  return nullptr;
}

// The main graph y = F(x), where F only calls itself.
inline GraphBuilder OneCall() {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Function(Endless("F", "F"));
  return builder;
}

// Devices by the names of nodes: the longest key that a name starts with counts.
using Devices = std::map<std::string, std::string>;

inline constexpr char kDeviceA[] = "/job:localhost/replica:0/task:0/device:CPU:0";
inline constexpr char kDeviceB[] = "/job:localhost/replica:0/task:0/device:CPU:1";
inline constexpr char kDeviceC[] = "/job:localhost/replica:0/task:0/device:CPU:2";

inline void Assign(const Devices& devices, tensorflow::Graph* graph) {
  for (tensorflow::Node* node : graph->op_nodes()) {
    for (const auto& [prefix, device] : devices) {  // longer ones come after their beginnings
      if (node->name().compare(0, prefix.size(), prefix) == 0) node->set_assigned_device_name(device);
    }
  }
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_BASE_GRAPHS_H_
