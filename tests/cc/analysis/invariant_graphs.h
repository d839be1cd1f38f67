// Recursions that pass some arguments on unchanged.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_INVARIANT_GRAPHS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_INVARIANT_GRAPHS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {

// F(n, w) = w if n < 1 else callee(n - 1, w) + w, of which the call has the numbers `call_id`. The arguments are
// `arguments[0]` and `[1]` in the order in which the function takes them, those of the call as `passed` says.
inline void AddWeighted(StaticGraph* graph, const std::string& name, const std::string& callee, int call_id,
                        const Inputs& arguments = {"n", "w"}, const Inputs& passed = {"n1", "sw"}) {
  auto in = [&](const std::string& node) { return absl::StrCat(name, "/", node); };
  graph->Function(name, {arguments[0], arguments[1]}).Const(in("one"), 1, {"^" + in("frame_start")});
  graph->Op(in("less"), "Less", {in("n"), in("one")});
  graph->Op(in("sn"), "Switch", {in("n"), in("less")}).Op(in("sw"), "Switch", {in("w"), in("less")});
  graph->Op(in("n1"), "Sub", {in("sn"), in("one")});
  graph->Call(in("call"), callee, call_id, {in(passed[0]), in(passed[1])});
  graph->Op(in("sum"), "AddV2", {in("call/return_0"), in("sw")}).Kernel(in("base"), {in("sw:1")});
  Merge(graph, in("merge"), {in("sum"), in("base")}).Result(name, in("merge"));
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_INVARIANT_GRAPHS_H_
