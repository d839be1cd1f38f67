// A function with its gradient, as the tests of records and of waits for gradients use it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_EXPAND_DIFFERENTIATED_H_
#define TENSORFLOW_RECURSION_TESTS_CC_EXPAND_DIFFERENTIATED_H_

#include <string>
#include <vector>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {

inline Attrs RecordAttrs(const std::string& function, const Types& types) {
  return {{"T", tensorflow::DataTypeSlice(types)}, {"function", function}};
}

// A call of F that can be differentiated.
inline Attrs ForwardAttrs() {
  Attrs attrs = GraphBuilder::CallAttrs("F", kInts, kInts);
  attrs.emplace_back("forward", "F__forward1");
  return attrs;
}

// F(n) = F(n) + 1 retains n, its result, the record of its call, and the 1.
inline tensorflow::FunctionDef Forward() {
  return tensorflow::FunctionDefHelper::Create(
      "F__forward1", {"n: int32"}, {"r: int32", "record: variant"}, {},
      {BodyConst("one"), MakeBodyNode("call", kInvokeOp, {"n"}, ForwardAttrs()),
       MakeBodyNode("add", "AddV2", {"call:results:0", "one:output:0"}, {{"T", kInt}}),
       MakeBodyNode("retain", kRetainOp, {"n", "add:z:0", "call:record:0", "one:output:0"},
                    RecordAttrs("F", {kInt, kInt, tensorflow::DT_VARIANT, kInt}))},
      {{"r", "add:z:0"}, {"record", "retain:record:0"}});
}

// x, y = F(x), and g, two gradients of y, of which `backward` computes (a, b).
inline GraphBuilder DifferentiatedBy(const std::vector<BodyNode>& backward, const std::string& a,
                                     const std::string& b) {
  GraphBuilder builder;
  builder.Const("x").Const("dy").Node("y", kInvokeOp, {"x"}, ForwardAttrs());
  builder.Call("g", "F__backward1", {"y:1", "dy"}, {tensorflow::DT_VARIANT, kInt}, {kInt, kInt});
  builder.Function(Endless("F", "F")).Function(Forward());
  return builder.Function(tensorflow::FunctionDefHelper::Create(
      "F__backward1", {"record: variant", "dy: int32"}, {"a: int32", "b: int32"}, {}, backward, {{"a", a}, {"b", b}}));
}

inline BodyNode RecallAll() {
  return MakeBodyNode("recall", kRecallOp, {"record"}, RecordAttrs("F", {kInt, kInt, tensorflow::DT_VARIANT, kInt}));
}

inline BodyNode GradientCall(const Inputs& inputs = {"recall:values:2", "dy"}) {
  return BodyCall("inner", "F__backward1", inputs, {tensorflow::DT_VARIANT, kInt}, {kInt, kInt});
}

// `a` comes from the gradient of the inner call and n; `b` needs the result, and waits for an assertion.
inline GraphBuilder Differentiated() {
  return DifferentiatedBy(
      {RecallAll(), GradientCall(), MakeBodyNode("sum", "AddV2", {"inner:results:0", "recall:values:0"}, {{"T", kInt}}),
       BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "dy"}, {{"T", tensorflow::DataTypeSlice(kInts)}}),
       MakeBodyNode("product", "Mul", {"dy", "recall:values:1", "^assert"}, {{"T", kInt}})},
      "sum:z:0", "product:z:0");
}

inline Types TypesOf(const tensorflow::GraphDef& graph, const std::string& node) {
  Types types;
  if (Find(graph, node) == nullptr) return types;
  for (int type : Find(graph, node)->attr().at("T").list().type()) types.push_back(tensorflow::DataType(type));
  return types;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_EXPAND_DIFFERENTIATED_H_
