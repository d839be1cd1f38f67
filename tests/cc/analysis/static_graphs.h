// Builds graphs as the transformation leaves them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_STATIC_GRAPHS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_STATIC_GRAPHS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "tensorflow/core/framework/tensor.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {

// Fluent: each call adds the nodes of one thing. Numbers are int32 unless a dtype is given.
class StaticGraph {
 public:
  StaticGraph& Node(const std::string& name, const std::string& op, const Inputs& inputs = {},
                    const Attrs& attrs = {}) {
    builder_.Node(name, op, inputs, attrs);
    return *this;
  }

  // An operator with the one attribute T.
  StaticGraph& Op(const std::string& name, const std::string& op, const Inputs& inputs,
                  tensorflow::DataType dtype = kInt) {
    return Node(name, op, inputs, {{"T", dtype}});
  }

  // An operator that runs by a kernel, which the tests name by the node.
  StaticGraph& Kernel(const std::string& name, const Inputs& inputs, int num_outputs = 1, bool is_stateful = false) {
    int num_inputs = 0;
    for (const std::string& input : inputs) num_inputs += input[0] != '^';
    return Node(name, is_stateful ? "PyFunc" : "PyFuncStateless", inputs,
                {{"Tin", Types(num_inputs, kInt)}, {"Tout", Types(num_outputs, kInt)}, {"token", name}});
  }

  template <typename T>
  StaticGraph& Const(const std::string& name, const T& value, const Inputs& controls = {}) {
    const tensorflow::Tensor tensor(value);
    return Node(name, "Const", controls, {{"dtype", tensor.dtype()}, {"value", tensor}});
  }

  StaticGraph& Arg(const std::string& name, int index = 0, tensorflow::DataType dtype = kInt) {
    return Node(name, "_Arg", {}, {{"T", dtype}, {"index", index}});
  }

  StaticGraph& Retval(const std::string& input, int index = 0, tensorflow::DataType dtype = kInt) {
    return Node(absl::StrCat("retval_", index), "_Retval", {input}, {{"T", dtype}, {"index", index}});
  }

  // The body of a function: its frame_start "F/frame_start" and an entry "F/<argument>" per argument.
  StaticGraph& Function(const std::string& name, const std::vector<std::string>& arguments, int64_t max_depth = 1000,
                        tensorflow::DataType dtype = kInt) {
    Node(name + "/frame_start", kFrameStartOp, {},
         {{kFunctionAttr, name}, {kMaxDepthAttr, max_depth}, {kWorkersAttr, 0}});
    for (size_t i = 0; i < arguments.size(); ++i) Entry(name, arguments[i], static_cast<int>(i), dtype);
    return *this;
  }

  StaticGraph& Entry(const std::string& function, const std::string& argument, int index,
                     tensorflow::DataType dtype = kInt) {
    return Node(absl::StrCat(function, "/", argument), kEntryOp, {},
                {{kTypeAttr, dtype}, {kFunctionAttr, function}, {kIndexAttr, index}});
  }

  StaticGraph& Result(const std::string& function, const std::string& input, int index = 0,
                      tensorflow::DataType dtype = kInt, const Inputs& controls = {}) {
    Inputs inputs = {input};
    inputs.insert(inputs.end(), controls.begin(), controls.end());
    return Node(absl::StrCat(function, "/result_", index), kResultOp, inputs,
                {{kTypeAttr, dtype}, {kFunctionAttr, function}, {kIndexAttr, index}});
  }

  // A call site: nodes "<site>/call_<i>" and "<site>/return_<i>". Control inputs go to every Call.
  StaticGraph& Call(const std::string& site, const std::string& function, int call_id, const Inputs& inputs,
                    int num_returns = 1, tensorflow::DataType dtype = kInt) {
    Inputs controls;
    for (const std::string& input : inputs) {
      if (input[0] == '^') controls.push_back(input);
    }
    Inputs calls;
    for (const std::string& input : inputs) {
      if (input[0] == '^') continue;
      const int index = static_cast<int>(calls.size());
      const std::string name = absl::StrCat(site, "/call_", index);
      Inputs all = {input};
      all.insert(all.end(), controls.begin(), controls.end());
      Node(name, kCallOp, all, SiteAttrs(function, call_id, index, dtype));
      calls.push_back("^" + name);
    }
    for (int i = 0; i < num_returns; ++i) Return(site, function, call_id, i, calls, dtype);
    return *this;
  }

  StaticGraph& Return(const std::string& site, const std::string& function, int call_id, int index,
                      const Inputs& inputs, tensorflow::DataType dtype = kInt) {
    int num_keep_alives = 0;
    for (const std::string& input : inputs) num_keep_alives += input[0] != '^';
    Attrs attrs = SiteAttrs(function, call_id, index, dtype);
    attrs.emplace_back("N", num_keep_alives);
    return Node(absl::StrCat(site, "/return_", index), kReturnOp, inputs, attrs);
  }

  StaticGraph& Enter(const std::string& name, const std::string& input, const std::string& loop,
                     bool is_constant = false) {
    return Node(name, "Enter", {input},
                {{"T", kInt}, {"frame_name", loop}, {"is_constant", is_constant}, {"parallel_iterations", 10}});
  }

  static Attrs SiteAttrs(const std::string& function, int call_id, int index, tensorflow::DataType dtype = kInt) {
    return {{kTypeAttr, dtype}, {kFunctionAttr, function}, {kIndexAttr, index}, {kCallIdAttr, call_id}};
  }

  const tensorflow::GraphDef& graph() const { return builder_.graph(); }

 private:
  GraphBuilder builder_;
};

// fib(n) = n if n < 2 else fib(n - 1) + fib(n - 2); call_ids `first_id` and the next.
inline void AddFib(StaticGraph* graph, int first_id, const std::string& name = "Fib") {
  auto in = [&](const char* node) { return absl::StrCat(name, "/", node); };
  const Inputs frame_start = {"^" + in("frame_start")};
  graph->Function(name, {"n"}).Const(in("one"), 1, frame_start).Const(in("two"), 2, frame_start);
  graph->Op(in("less"), "Less", {in("n"), in("two")}).Op(in("switch"), "Switch", {in("n"), in("less")});
  graph->Op(in("n1"), "Sub", {in("switch"), in("one")}).Op(in("n2"), "Sub", {in("switch"), in("two")});
  graph->Call(in("f1"), name, first_id, {in("n1")}).Call(in("f2"), name, first_id + 1, {in("n2")});
  graph->Op(in("sum"), "AddV2", {in("f1/return_0"), in("f2/return_0")});
  graph->Node(in("merge"), "Merge", {in("sum"), in("switch:1")}, {{"T", kInt}, {"N", 2}}).Result(name, in("merge"));
}

inline StaticGraph& Merge(StaticGraph* graph, const std::string& name, const Inputs& inputs,
                          tensorflow::DataType dtype = kInt) {
  const auto count = std::count_if(inputs.begin(), inputs.end(), [](const auto& input) { return input[0] != '^'; });
  return graph->Node(name, "Merge", inputs, {{"T", dtype}, {"N", static_cast<int>(count)}});
}

// sum of fib(i) for i < n, by a loop whose body calls.
inline StaticGraph& AddSumOfFibs(StaticGraph* graph, const std::string& prefix, const std::string& n,
                                 const Inputs& start, int call_id) {
  auto in = [&](const std::string& node) { return prefix + node; };
  const std::string loop = in("loop");
  graph->Const(in("zero"), 0, start).Enter(in("enter_i"), in("zero"), loop).Enter(in("enter_s"), in("zero"), loop);
  graph->Enter(in("enter_n"), n, loop, true);
  Merge(graph, in("i"), {in("enter_i"), in("next_i")});
  Merge(graph, in("s"), {in("enter_s"), in("next_s")});
  graph->Op(in("less"), "Less", {in("i"), in("enter_n")}).Node(in("cond"), "LoopCond", {in("less")});
  graph->Op(in("switch_i"), "Switch", {in("i"), in("cond")}).Op(in("switch_s"), "Switch", {in("s"), in("cond")});
  graph->Op(in("body"), "Identity", {in("switch_i:1")}).Const(in("one"), 1, {"^" + in("body")});
  graph->Call(in("fib"), "Fib", call_id, {in("body")});
  graph->Op(in("add_i"), "AddV2", {in("body"), in("one")}).Op(in("next_i"), "NextIteration", {in("add_i")});
  graph->Op(in("add_s"), "AddV2", {in("switch_s:1"), in("fib/return_0")});
  graph->Op(in("next_s"), "NextIteration", {in("add_s")});
  return graph->Op(in("exit"), "Exit", {in("switch_s")});
}

// The main graph: F(arguments...) with call_id 1, each result a retval.
inline void AddMain(StaticGraph* graph, const std::string& function, int num_arguments, int num_results = 1) {
  Inputs arguments;
  for (int i = 0; i < num_arguments; ++i) {
    arguments.push_back(absl::StrCat("x", i));
    graph->Arg(arguments.back(), i);
  }
  graph->Call("main", function, 1, arguments, num_results);
  for (int i = 0; i < num_results; ++i) graph->Retval(absl::StrCat("main/return_", i), i);
}

// A main graph that calls Fib once, at site 1.
inline StaticGraph FibGraph() {
  StaticGraph graph;
  AddMain(&graph, "Fib", 1);
  AddFib(&graph, 2);
  return graph;
}

// F(x) = x where its predicate says so, else the loop's or call's result: both sides may be dead.
inline StaticGraph& BeginChoice(StaticGraph* graph) {
  AddMain(graph, "F", 1);
  graph->Function("F", {"x"}).Const("F/zero", 0, {"^F/frame_start"}).Op("F/less", "Less", {"F/x", "F/zero"});
  return graph->Op("F/switch", "Switch", {"F/x", "F/less"});
}

inline StaticGraph& EndChoice(StaticGraph* graph, const std::string& computed) {
  graph->Op("F/neg", "Neg", {"F/switch:1"});
  return Merge(graph, "F/merge", {computed, "F/neg"}).Result("F", "F/merge");
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_STATIC_GRAPHS_H_
