// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/record_ops.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/kernels/run_graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_STRING;
using tensorflow::DT_VARIANT;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class RecordOpsTest : public ::testing::Test {
 protected:
  ~RecordOpsTest() override { EXPECT_EQ(Record::LiveCount(), 0); }

  RecordOpsTest& Retain(const std::string& name, const Inputs& values, const Types& types) {
    graph_.Node(name, kRetainOp, values, {{kTypeAttr, Slice(types)}, {kFunctionAttr, "F"}});
    return *this;
  }
  RecordOpsTest& Recall(const std::string& name, const Inputs& inputs, const Types& types) {
    graph_.Node(name, kRecallOp, inputs, {{kTypeAttr, Slice(types)}, {kFunctionAttr, "F__fn"}});
    return *this;
  }
  void Const(const std::string& name, const Tensor& value) {
    graph_.Node(name, "Const", {}, {{"dtype", value.dtype()}, {"value", value}});
  }

  absl::Status Run(const std::vector<std::string>& fetches, std::vector<Tensor>* outputs) {
    return RunGraph(graph_.graph(), fetches, outputs);
  }

  void ExpectError(const std::string& text) {
    std::vector<Tensor> outputs;
    const absl::Status status = Run({"recall"}, &outputs);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "recall")) << status;
  }

  GraphBuilder graph_;

 private:
  static tensorflow::DataTypeSlice Slice(const Types& types) { return tensorflow::DataTypeSlice(types); }
};

TEST_F(RecordOpsTest, GiveBackWhatTheyGot) {
  Tensor matrix(DT_FLOAT, TensorShape({2, 0}));
  Const("number", Tensor(3));
  Const("text", Tensor(tensorflow::tstring("text")));
  Const("matrix", matrix);
  Retain("inner", {"number"}, {kInt});
  Retain("record", {"number", "text", "matrix", "inner"}, {kInt, DT_STRING, DT_FLOAT, DT_VARIANT});
  Recall("recall", {"record"}, {kInt, DT_STRING, DT_FLOAT, DT_VARIANT});
  Recall("again", {"recall:3"}, {kInt});
  std::vector<Tensor> outputs;
  ASSERT_TRUE(Run({"recall", "recall:1", "recall:2", "again"}, &outputs).ok());
  EXPECT_EQ(outputs[0].scalar<int32_t>()(), 3);
  EXPECT_EQ(outputs[1].scalar<tensorflow::tstring>()(), "text");
  EXPECT_EQ(outputs[2].dtype(), DT_FLOAT);
  EXPECT_EQ(outputs[2].shape(), matrix.shape());
  EXPECT_EQ(outputs[3].scalar<int32_t>()(), 3);
}

TEST_F(RecordOpsTest, MayBeEmpty) {
  Const("number", Tensor(3));
  Retain("record", {}, {});
  Recall("recall", {"record"}, {});
  graph_.Node("after", "Identity", {"number", "^recall"}, {{"T", kInt}});
  std::vector<Tensor> outputs;
  ASSERT_TRUE(Run({"after"}, &outputs).ok());
  EXPECT_EQ(outputs[0].scalar<int32_t>()(), 3);
}

TEST_F(RecordOpsTest, NameTheFunctionWhenTheRecordIsNone) {
  Const("shape", Tensor(-1));
  graph_.Node("list", "EmptyTensorList", {"shape", "shape"}, {{"element_dtype", kInt}, {"shape_type", kInt}});
  Recall("recall", {"list"}, {kInt});
  ExpectError(
      "Gradient of 'F': its input is not the record of a forward call but a variant of type tensorflow::TensorList");
}

TEST_F(RecordOpsTest, NameTheFunctionWhenTheRecordDoesNotFit) {
  Const("number", Tensor(3));
  Retain("record", {"number"}, {kInt});
  Recall("recall", {"record"}, {DT_FLOAT});
  ExpectError("Gradient of 'F': value 0 of the record of its forward call is int32, expected float");
}

}  // namespace
}  // namespace tensorflow_recursion
