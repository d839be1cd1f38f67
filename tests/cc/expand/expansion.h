// Transforms the small graphs of the tests, and checks that a session could run the result.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_EXPAND_EXPANSION_H_
#define TENSORFLOW_RECURSION_TESTS_CC_EXPAND_EXPANSION_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cc/expand/expand_calls.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {

// Attributes of a variable that holds one int32.
inline const Attrs kOfInts = {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}};

inline const Types kInts = {kInt};

// Transforms, and checks that a session could build the result and tell its loops.
inline tensorflow::GraphDef Expand(const tensorflow::GraphDef& graph, const Inputs& fetches, const Inputs& feeds = {}) {
  ExpandOptions options;
  options.fetches = fetches;
  options.feeds = feeds;
  tensorflow::GraphDef expanded;
  const absl::Status status = ExpandCalls(graph, options, &expanded);
  EXPECT_TRUE(status.ok()) << status;
  std::unique_ptr<tensorflow::Graph> built;
  const absl::Status construction = Construct(expanded, &built);
  EXPECT_TRUE(construction.ok()) << construction;
  std::vector<tensorflow::ControlFlowInfo> info;
  const absl::Status frames = tensorflow::BuildControlFlowInfo(built.get(), &info);
  EXPECT_TRUE(frames.ok()) << frames;
  return expanded;
}

inline void ExpectFault(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
}

inline void ExpectFault(const tensorflow::GraphDef& graph, const Inputs& fetches, const std::string& text) {
  ExpandOptions options;
  options.fetches = fetches;
  tensorflow::GraphDef expanded;
  ExpectFault(ExpandCalls(graph, options, &expanded), text);
}

inline void ExpectFault(const GraphBuilder& builder, const Inputs& fetches, const std::string& text) {
  ExpectFault(builder.graph(), fetches, text);
}

// The main graph z = y = F(x), where F only calls itself.
inline GraphBuilder CallAndReader() {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Node("z", "Identity", {"y"}, {{"T", kInt}}).Function(Endless("F", "F"));
  return builder;
}

inline int64_t CallId(const tensorflow::GraphDef& graph, const std::string& node) {
  return Find(graph, node)->attr().at("call_id").i();
}

// A while loop in v1 form around `call`, which reads "<loop>/next" and is in its frame.
inline void AddLoop(GraphBuilder* builder, const std::string& name, const std::string& init) {
  const Attrs type = {{"T", kInt}};
  builder->Node(name + "/enter", "Enter", {init}, {{"T", kInt}, {"frame_name", name + "_frame"}});
  builder->Node(name + "/merge", "Merge", {name + "/enter", name + "/iterate"}, {{"T", kInt}, {"N", 2}});
  builder->Const(name + "/limit", 3, {"^" + name + "/merge"});
  builder->Node(name + "/less", "Less", {name + "/merge", name + "/limit"}, type);
  builder->Node(name + "/cond", "LoopCond", {name + "/less"});
  builder->Node(name + "/switch", "Switch", {name + "/merge", name + "/cond"}, type);
  builder->Node(name + "/next", "Identity", {name + "/switch:1"}, type);
  builder->Node(name + "/exit", "Exit", {name + "/switch"}, type);
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_EXPAND_EXPANSION_H_
