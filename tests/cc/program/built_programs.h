// Builds programs from small static graphs, and finds their regions and operators.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_PROGRAM_BUILT_PROGRAMS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_PROGRAM_BUILT_PROGRAMS_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cc/base/names.h"
#include "cc/program/program.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {

// A program and the graph it points into.
struct BuiltProgram {
  std::unique_ptr<tensorflow::Graph> graph;
  std::unique_ptr<Program> program;
  absl::Status status;

  const Program* operator->() const { return program.get(); }
};

inline BuiltProgram Build(const StaticGraph& graph) {
  BuiltProgram built;
  built.status = Construct(graph.graph(), &built.graph);
  if (built.status.ok()) {
    built.status = BuildProgram(*built.graph, DeviceMemory(), VariableReads::kInEveryFrame, &built.program);
  }
  return built;
}

inline BuiltProgram BuildOrFail(const StaticGraph& graph) {
  BuiltProgram built = Build(graph);
  EXPECT_TRUE(built.status.ok()) << built.status;
  return built;
}

// Builds a program with functions and pieces compiled. Tests of the executor run them operator by operator unless they
// say so.
inline BuiltProgram BuildCompiled(const StaticGraph& graph) {
  tensorflow::GraphDef compiled = graph.graph();
  for (tensorflow::NodeDef& node : *compiled.mutable_node()) {
    if (node.op() == kFrameStartOp) tensorflow::AddNodeAttr(kCompileAttr, true, &node);
  }
  BuiltProgram built;
  built.status = Construct(compiled, &built.graph);
  if (built.status.ok()) {
    built.status = BuildProgram(*built.graph, DeviceMemory(), VariableReads::kInEveryFrame, &built.program);
  }
  EXPECT_TRUE(built.status.ok()) << built.status;
  return built;
}

inline const Region& RegionOf(const BuiltProgram& built, const std::string& name) {
  for (const Region& region : built->regions) {
    if (region.name == name) return region;
  }
  ADD_FAILURE() << "no region " << name;
  return built->regions[0];
}

inline std::vector<const Op*> OpsOf(const Region& region, OpKind kind) {
  std::vector<const Op*> ops;
  for (const Op& op : region.ops) {
    if (op.kind == kind) ops.push_back(&op);
  }
  return ops;
}

inline const Op& OnlyOp(const Region& region, OpKind kind) {
  const std::vector<const Op*> ops = OpsOf(region, kind);
  EXPECT_EQ(ops.size(), 1);
  return *ops.at(0);
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_PROGRAM_BUILT_PROGRAMS_H_
