// SPDX-License-Identifier: Apache-2.0
#include "cc/values/device_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cc/base/names.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_BOOL;
using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::DT_RESOURCE;
using tensorflow::DT_STRING;
using tensorflow::DT_VARIANT;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeBuilder;
using tensorflow::Tensor;

class DeviceMemoryTest : public ::testing::Test {
 protected:
  Node* Add(NodeBuilder builder) {
    Node* node = nullptr;
    const absl::Status status = builder.Finalize(&graph_, &node);
    EXPECT_TRUE(status.ok()) << status;
    return node;
  }
  Node* Constant(const std::string& name, const Tensor& value) {
    return Add(NodeBuilder(name, "Const").Attr("dtype", value.dtype()).Attr("value", value));
  }
  Node* Entry(const std::string& name, tensorflow::DataType type) {
    return Add(NodeBuilder(name, kEntryOp).Attr("T", type).Attr("function", "F").Attr("index", 0));
  }
  void Finish() { tensorflow::FixupSourceAndSinkEdges(&graph_); }

  Graph graph_{tensorflow::OpRegistry::Global()};
  // Its constants are made on the host, for all that these tests look at.
  const DeviceMemory gpu_{tensorflow::DEVICE_GPU, [](const tensorflow::TensorProto& proto, Tensor* tensor) {
                            return tensor->FromProto(proto) ? absl::OkStatus() : absl::InternalError("no tensor");
                          }};
};

TEST_F(DeviceMemoryTest, EverythingIsOnTheHostOnACpu) {
  EXPECT_TRUE(DeviceMemory().IsOnHost(*Entry("x", DT_FLOAT), 0));
  EXPECT_TRUE(DeviceMemory().IsOnHost(*Constant("c", Tensor(1.5f))));
}

TEST_F(DeviceMemoryTest, CarriersHoldIntegersAndWhatHasNoBytesOnTheHost) {
  for (const auto type : {DT_INT32, DT_STRING, DT_RESOURCE}) {
    EXPECT_TRUE(gpu_.IsOnHost(*Entry("host", type), 0)) << tensorflow::DataTypeString(type);
  }
  for (const auto type : {DT_FLOAT, DT_BOOL, DT_VARIANT}) {
    EXPECT_FALSE(gpu_.IsOnHost(*Entry("device", type), 0)) << tensorflow::DataTypeString(type);
  }
}

TEST_F(DeviceMemoryTest, RecordsHoldOnTheHostWhatTheirAttributeSays) {
  Node* f = Constant("f", Tensor(1.5f));
  Node* i = Constant("i", Tensor(2));
  Node* retain = Add(NodeBuilder("retain", kRetainOp)
                         .Input(std::vector<NodeBuilder::NodeOut>{f, i})
                         .Attr("function", "F")
                         .Attr("_input_hostmem", std::vector<int>{1}));
  Finish();
  EXPECT_FALSE(gpu_.IsOnHost(*retain, 0));
  EXPECT_TRUE(gpu_.Verify(graph_).ok());
}

TEST_F(DeviceMemoryTest, GraphThatReadsTheDevicesMemoryOnTheHostIsRefused) {
  Node* predicate = Constant("predicate", Tensor(true));
  Add(NodeBuilder("switch", "Switch").Input(Constant("data", Tensor(1.5f))).Input(predicate));
  Finish();
  const absl::Status status = gpu_.Verify(graph_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(
      absl::StrContains(status.message(), "Node 'switch' reads input 1 in the host's memory, where 'predicate'"))
      << status;
  EXPECT_TRUE(DeviceMemory().Verify(graph_).ok());
}

}  // namespace
}  // namespace tensorflow_recursion
