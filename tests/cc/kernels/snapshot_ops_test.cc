// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/snapshot_ops.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "cc/base/status.h"
#include "cc/values/record.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/public/session.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_RESOURCE;
using tensorflow::ResourceHandle;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Builds a graph step by step, and runs it in one session.
class SnapshotOpsTest : public ::testing::Test {
 protected:
  SnapshotOpsTest() {
    tensorflow::SessionOptions options;
    options.config.mutable_graph_options()->mutable_rewrite_options()->set_disable_meta_optimizer(true);
    options.config.mutable_experimental()->set_disable_optimize_for_static_graph(true);  // the graph grows
    session_.reset(tensorflow::NewSession(options));
  }
  ~SnapshotOpsTest() override {
    session_.reset();
    EXPECT_EQ(Record::LiveCount(), 0);
  }

  void Variable(const std::string& name) { Handle(name, "", name); }
  void VariableThatIsOne(const std::string& name) {
    Variable(name);
    Assign(name + "_first", name, 1);
    Do(name + "_first");
  }
  void Handle(const std::string& node, const std::string& container, const std::string& name) {
    graph_.Node(node, "VarHandleOp", {},
                {{"container", container}, {"shared_name", name}, {"dtype", DT_FLOAT}, {"shape", TensorShape({})}});
  }
  void Assign(const std::string& node, const std::string& handle, float value, Inputs after = {}) {
    const std::string constant = node + "_value";
    graph_.Node(constant, "Const", {}, {{"dtype", DT_FLOAT}, {"value", Tensor(value)}});
    after.insert(after.begin(), {handle, constant});
    graph_.Node(node, "AssignVariableOp", after, {{"dtype", DT_FLOAT}});
  }
  void Read(const std::string& node, const std::string& handle, Inputs after = {}) {
    after.insert(after.begin(), handle);
    graph_.Node(node, "ReadVariableOp", after, {{"dtype", DT_FLOAT}});
  }
  // Of each variable, its position is its place in the list.
  void Snapshot(const std::string& node, const Inputs& variables) {
    graph_.Node(node, kSnapshotOp, variables, AttrsOf(Positions(variables.size())));
  }
  void VariablesOf(const std::string& node, const std::string& snapshot, const Inputs& variables) {
    Inputs inputs = variables;
    inputs.insert(inputs.begin(), snapshot);
    graph_.Node(node, kVariablesOfOp, inputs, AttrsOf(Positions(variables.size())));
  }
  static Attrs AttrsOf(const std::vector<int>& positions) {
    const Types types(positions.size(), DT_RESOURCE);
    return {{kTypeAttr, tensorflow::DataTypeSlice(types)}, {kPositionsAttr, absl::Span<const int>(positions)}};
  }
  static std::vector<int> Positions(size_t count) {
    std::vector<int> positions(count);
    for (size_t i = 0; i < count; ++i) positions[i] = static_cast<int>(i);
    return positions;
  }

  absl::Status Run(const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
                   std::vector<Tensor>* outputs) {
    TFR_RETURN_IF_ERROR(session_->Extend(std::exchange(graph_, GraphBuilder()).graph()));
    return session_->Run({}, fetches, targets, outputs);
  }
  void Do(const std::string& target) { EXPECT_TRUE(Run({}, {target}, nullptr).ok()) << target; }
  float Value(const std::string& fetch) {
    std::vector<Tensor> outputs;
    const absl::Status status = Run({fetch}, {}, &outputs);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? outputs[0].scalar<float>()() : -1;
  }

  std::unique_ptr<tensorflow::Session> session_;
  GraphBuilder graph_;
};

TEST_F(SnapshotOpsTest, CopiesHaveTheValuesOfThen) {
  VariableThatIsOne("v");
  Snapshot("snapshot", {"v"});
  Assign("second", "v", 2, {"^snapshot"});
  VariablesOf("copy", "snapshot", {"v"});
  Read("old", "copy", {"^second"});
  EXPECT_EQ(Value("old"), 1);
  Read("new", "v");
  EXPECT_EQ(Value("new"), 2);
}

TEST_F(SnapshotOpsTest, WhatIsAssignedToACopyIsReadFromItAlone) {
  VariableThatIsOne("v");
  Snapshot("snapshot", {"v", "v"});
  VariablesOf("copies", "snapshot", {"v", "v"});
  Assign("write", "copies", 5);
  Read("same", "copies:1", {"^write"});  // both are handles of one variable
  EXPECT_EQ(Value("same"), 5);
  Read("original", "v");
  EXPECT_EQ(Value("original"), 1);
}

TEST_F(SnapshotOpsTest, VariableWithoutAValueStandsForItself) {
  VariableThatIsOne("v");
  Variable("none");
  Snapshot("snapshot", {"none", "v"});
  VariablesOf("copies", "snapshot", {"none", "v"});
  Assign("write", "copies:0", 7);
  Do("write");
  Read("written", "none");
  EXPECT_EQ(Value("written"), 7);
}

TEST_F(SnapshotOpsTest, CopiesEndWithTheirHandles) {
  VariableThatIsOne("v");
  Snapshot("snapshot", {"v"});
  VariablesOf("copy", "snapshot", {"v"});
  std::vector<Tensor> handles, found;
  ASSERT_TRUE(Run({"copy"}, {}, &handles).ok());
  const ResourceHandle& handle = handles[0].scalar<ResourceHandle>()();
  Handle("by_name", handle.container(), handle.name());
  graph_.Node("is_there", "VarIsInitializedOp", {"by_name"}, {});
  ASSERT_TRUE(Run({"is_there"}, {}, &found).ok());
  EXPECT_TRUE(found[0].scalar<bool>()());
  handles.clear();
  ASSERT_TRUE(Run({"is_there"}, {}, &found).ok());
  EXPECT_FALSE(found[0].scalar<bool>()());
}

TEST_F(SnapshotOpsTest, HandlesMayOutliveTheSession) {
  VariableThatIsOne("v");
  Snapshot("snapshot", {"v"});
  VariablesOf("copy", "snapshot", {"v"});
  std::vector<Tensor> handles;
  ASSERT_TRUE(Run({"copy"}, {}, &handles).ok());
  session_.reset();
  handles.clear();
}

TEST_F(SnapshotOpsTest, PositionsAreChecked) {
  Variable("v");
  graph_.Node("snapshot", kSnapshotOp, {"v"}, AttrsOf({-1}));
  const absl::Status status = Run({}, {"snapshot"}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "'snapshot': expected 1 positions of variables between 0 and"))
      << status;
}

}  // namespace
}  // namespace tensorflow_recursion
