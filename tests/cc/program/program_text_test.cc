// SPDX-License-Identifier: Apache-2.0
#include "cc/program/program_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cc/program/built_programs.h"

namespace tensorflow_recursion {
namespace {

void ExpectLines(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) EXPECT_TRUE(absl::StrContains(text, line + "\n")) << line << "\nin:\n" << text;
}

TEST(ProgramTextTest, NamesRegionsOperatorsAndEdges) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  const BuiltProgram built = BuildOrFail(graph);
  const std::string text = ProgramText(*built.program);
  EXPECT_TRUE(absl::StartsWith(text, "region 0 root : ")) << text;
  const Region& root = built->regions[0];
  const Region& f = RegionOf(built, "F");
  const std::string op = "  op " + std::to_string(&OnlyOp(root, OpKind::kCallSite) - root.ops.data());
  ExpectLines(text, {op + " site main (call 1 of F) waits for 2"});
  const auto kernel = &OnlyOp(f, OpKind::kKernel) - f.ops.data();
  ExpectLines(text, {"  op " + std::to_string(kernel) + " kernel F/k (PyFuncStateless) waits for 2"});
  for (uint32_t argument : {0, 1}) {
    const Op& entry = f.ops[f.entries[argument]];
    const uint32_t slot = f.edges[f.ports[entry.port].begin].slot;
    ExpectLines(text, {"    port 0 -> op " + std::to_string(kernel) + " data slot " + std::to_string(slot)});
  }
  EXPECT_TRUE(absl::StrContains(text, " function F: ")) << text;
}

TEST(ProgramTextTest, SaysWhatLearnsOfADeath) {
  StaticGraph graph;
  AddFib(&graph, 1);
  const BuiltProgram built = BuildOrFail(graph);
  const Region& fib = RegionOf(built, "Fib");
  const std::string merge = std::to_string(&OnlyOp(fib, OpKind::kMerge) - fib.ops.data());
  ExpectLines(ProgramText(*built.program), {
                                               "    dead 0 -> op " + merge + " merge input 0",
                                               "    dead 1 -> op " + merge + " merge input 1",
                                           });
}

TEST(ProgramTextTest, NamesLoops) {
  StaticGraph graph;
  graph.Arg("n");
  AddSumOfFibs(&graph, "", "n", {}, 1).Retval("exit");
  AddFib(&graph, 2);
  const std::string text = ProgramText(*BuildOrFail(graph).program);
  EXPECT_TRUE(absl::StrContains(text, " loop loop: ")) << text;
  EXPECT_TRUE(absl::StrContains(text, " loop_start loop waits for ")) << text;
}

}  // namespace
}  // namespace tensorflow_recursion
