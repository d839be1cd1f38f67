// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/concat_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::Graph;
using tensorflow::Node;

// In the body of F: the gradient of concat([x, y], axis), from gradient g.
class ConcatGradientsTest : public ::testing::Test {
 protected:
  ConcatGradientsTest() : graph_(tensorflow::OpRegistry::Global()) { AddEntries(); }

  void AddEntries() {
    AddEntry("axis", kInt, 0);
    AddEntry("g", DT_FLOAT, 1);
    AddEntry("x", DT_FLOAT, 2);
    AddEntry("y", DT_FLOAT, 3);
  }

  void AddEntry(const std::string& name, tensorflow::DataType type, int index) {
    builder_.Node(name, kEntryOp, {}, {{"T", type}, {"function", "F"}, {"index", index}});
  }

  void AddShapes() { builder_.Node("shapes", "ShapeN", {"x", "y"}, {{"T", DT_FLOAT}, {"N", 2}}); }

  void AddOffset(const Inputs& shapes) {
    Inputs inputs = {"axis"};
    inputs.insert(inputs.end(), shapes.begin(), shapes.end());
    builder_.Node("offset", "ConcatOffset", inputs, {{"N", static_cast<int>(shapes.size())}});
  }

  void AddSlice(int part, const std::string& shape, const std::string& gradient = "g") {
    const std::string name = absl::StrCat("d", part), begin = absl::StrCat("offset:", part);
    builder_.Node(name, "Slice", {gradient, begin, shape}, {{"T", DT_FLOAT}, {"Index", kInt}});
    builder_.Node(absl::StrCat("read", part), "Identity", {name}, {{"T", DT_FLOAT}});
  }

  void AddGradient() {
    AddShapes();
    AddOffset({"shapes:0", "shapes:1"});
    AddSlice(0, "shapes:0");
    AddSlice(1, "shapes:1");
  }

  void Merge() {
    tensorflow::GraphDef body = builder_.graph();
    for (tensorflow::NodeDef& node : *body.mutable_node()) tensorflow::AddNodeAttr(kBodyAttr, "F", &node);
    ASSERT_TRUE(tensorflow::ConvertGraphDefToGraph({}, body, &graph_).ok());
    const absl::Status status = MergeConcatGradients(&graph_);
    ASSERT_TRUE(status.ok()) << status;
  }

  const Node* Find(const std::string& name) const {
    for (const Node* node : graph_.op_nodes()) {
      if (node->name() == name) return node;
    }
    return nullptr;
  }

  // What makes the inputs of a node: "g:0".
  Inputs InputsOf(const std::string& name) const {
    Inputs inputs;
    for (int i = 0; i < Find(name)->num_inputs(); ++i) {
      const tensorflow::Edge* edge = nullptr;
      EXPECT_TRUE(Find(name)->input_edge(i, &edge).ok());
      inputs.push_back(absl::StrCat(edge->src()->name(), ":", edge->src_output()));
    }
    return inputs;
  }

  std::vector<bool> AreShapes() const {
    std::vector<bool> are_shapes;
    EXPECT_TRUE(tensorflow::GetNodeAttr(Find("offset")->attrs(), "are_shapes", &are_shapes).ok());
    return are_shapes;
  }

  bool IsMerged() const { return Find("offset")->type_string() == kConcatGradientOp; }

  GraphBuilder builder_;
  Graph graph_;
};

TEST_F(ConcatGradientsTest, ShapesOffsetsAndSlicesBecomeOneOperator) {
  AddGradient();
  Merge();
  ASSERT_TRUE(IsMerged());
  EXPECT_EQ(InputsOf("offset"), (Inputs{"axis:0", "g:0", "x:0", "y:0"}));
  EXPECT_EQ(AreShapes(), (std::vector<bool>{false, false}));
  EXPECT_EQ(InputsOf("read0"), Inputs{"offset:0"});
  EXPECT_EQ(InputsOf("read1"), Inputs{"offset:1"});
  for (const char* gone : {"shapes", "d0", "d1"}) EXPECT_EQ(Find(gone), nullptr) << gone;
}

TEST_F(ConcatGradientsTest, ReadersByControlEdgesWaitForTheNewOperatorAndItForWhatTheOldOnesDid) {
  builder_.Node("first", "NoOp", {"^x"});
  builder_.Node("shapes", "ShapeN", {"x", "y", "^first"}, {{"T", DT_FLOAT}, {"N", 2}});
  AddOffset({"shapes:0", "shapes:1"});
  AddSlice(0, "shapes:0");
  AddSlice(1, "shapes:1");
  builder_.Node("last", "NoOp", {"^d1"});
  Merge();
  ASSERT_TRUE(IsMerged());
  std::map<std::string, std::string> controls;
  for (const tensorflow::Edge* edge : graph_.edges()) {
    if (edge->IsControlEdge() && edge->src()->IsOp() && edge->dst()->IsOp()) {
      controls[edge->dst()->name()] = edge->src()->name();
    }
  }
  EXPECT_EQ(controls["offset"], "first");
  EXPECT_EQ(controls["last"], "offset");
}

TEST_F(ConcatGradientsTest, AConstantShapeIsTakenAsItIsAndTheValueIsStillWaitedFor) {
  tensorflow::Tensor sizes(kInt, tensorflow::TensorShape({2}));
  sizes.vec<int32_t>().setValues({1, 50});
  AddShapes();
  builder_.Node("one", "Const", {"^x"}, {{"dtype", kInt}, {"value", sizes}});
  AddOffset({"shapes:0", "one"});
  AddSlice(0, "shapes:0");
  AddSlice(1, "one");
  Merge();
  ASSERT_TRUE(IsMerged());
  EXPECT_EQ(InputsOf("offset"), (Inputs{"axis:0", "g:0", "x:0", "one:0", "y:0"}));
  EXPECT_EQ(AreShapes(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(Find("shapes"), nullptr);
}

// What Grappler makes of a ShapeN of which it knows one output.
TEST_F(ConcatGradientsTest, AReplacedShapeIsTakenForTheShapeAgain) {
  tensorflow::Tensor sizes(kInt, tensorflow::TensorShape({2}));
  sizes.vec<int32_t>().setValues({1, 50});
  const std::string replaced = "ConstantFolding/shapes-matshapes-1";
  for (const bool is_read_by_others : {false, true}) {
    builder_ = GraphBuilder();
    AddEntries();
    AddShapes();
    builder_.Node(replaced, "Const", {"^shapes"}, {{"dtype", kInt}, {"value", sizes}});
    AddOffset({"shapes:0", replaced});
    AddSlice(0, "shapes:0");
    AddSlice(1, replaced);
    if (is_read_by_others) builder_.Node("reader", "Identity", {replaced}, {{"T", kInt}});
    graph_.Clear();
    Merge();
    ASSERT_TRUE(IsMerged());
    EXPECT_EQ(Find("shapes") != nullptr, is_read_by_others);
    EXPECT_EQ(Find(replaced) != nullptr, is_read_by_others);
    EXPECT_EQ(AreShapes(), (std::vector<bool>{is_read_by_others, is_read_by_others}));
  }
}

TEST_F(ConcatGradientsTest, AShapeThatOthersReadStays) {
  AddGradient();
  builder_.Node("reader", "Identity", {"shapes:1"}, {{"T", kInt}});
  Merge();
  ASSERT_TRUE(IsMerged());
  EXPECT_EQ(InputsOf("offset"), (Inputs{"axis:0", "g:0", "shapes:0", "shapes:1"}));
  EXPECT_EQ(AreShapes(), (std::vector<bool>{true, true}));
  EXPECT_EQ(InputsOf("reader"), Inputs{"shapes:1"});
}

TEST_F(ConcatGradientsTest, AShapeThatIsCutItselfStays) {
  AddEntry("v", DT_FLOAT, 4);
  builder_.Node("cut", "Shape", {"v"}, {{"T", DT_FLOAT}});
  builder_.Node("other", "Shape", {"y"}, {{"T", DT_FLOAT}});
  AddOffset({"cut", "other"});
  builder_.Node("d0", "Slice", {"cut", "offset:0", "cut"}, {{"T", kInt}, {"Index", kInt}});
  builder_.Node("d1", "Slice", {"cut", "offset:1", "other"}, {{"T", kInt}, {"Index", kInt}});
  Merge();
  ASSERT_TRUE(IsMerged());
  EXPECT_EQ(InputsOf("offset"), (Inputs{"axis:0", "cut:0", "cut:0", "y:0"}));
  EXPECT_EQ(AreShapes(), (std::vector<bool>{true, false}));
}

TEST_F(ConcatGradientsTest, OthersStayAsTheyAre) {
  AddShapes();
  AddOffset({"shapes:0", "shapes:1"});
  AddSlice(0, "shapes:0");  // y has no gradient
  Merge();
  EXPECT_FALSE(IsMerged());
}

TEST_F(ConcatGradientsTest, SlicesOfTwoTensorsStayAsTheyAre) {
  AddEntry("h", DT_FLOAT, 4);
  AddShapes();
  AddOffset({"shapes:0", "shapes:1"});
  AddSlice(0, "shapes:0");
  AddSlice(1, "shapes:1", "h");
  Merge();
  EXPECT_FALSE(IsMerged());
}

TEST_F(ConcatGradientsTest, SlicesOfOtherSizesStayAsTheyAre) {
  AddShapes();
  AddOffset({"shapes:0", "shapes:1"});
  AddSlice(0, "shapes:1");
  AddSlice(1, "shapes:0");
  Merge();
  EXPECT_FALSE(IsMerged());
}

TEST_F(ConcatGradientsTest, OffsetsThatAreReadOtherwiseStayAsTheyAre) {
  AddGradient();
  builder_.Node("reader", "Identity", {"offset:1"}, {{"T", kInt}});
  Merge();
  EXPECT_FALSE(IsMerged());
}

TEST_F(ConcatGradientsTest, ASliceThatWaitsForTheOthersReaderStaysAsItIs) {
  AddShapes();
  AddOffset({"shapes:0", "shapes:1"});
  AddSlice(0, "shapes:0");
  builder_.Node("d1", "Slice", {"g", "offset:1", "shapes:1", "^read0"}, {{"T", DT_FLOAT}, {"Index", kInt}});
  Merge();
  EXPECT_FALSE(IsMerged());
}

// Slices of g, [rows, 7], from and of the size that constants say.
class ConstantSlicesTest : public ConcatGradientsTest {
 protected:
  ConstantSlicesTest() { AddStart(); }

  void AddStart() { builder_.Node("start", kFrameStartOp, {}, {{"function", "F"}, {"max_depth", 9}, {"workers", 1}}); }

  void AddVector(const std::string& name, const std::vector<int32_t>& numbers, const std::string& wait) {
    tensorflow::Tensor value(kInt, tensorflow::TensorShape({static_cast<int64_t>(numbers.size())}));
    std::copy(numbers.begin(), numbers.end(), value.vec<int32_t>().data());
    builder_.Node(name, "Const", {wait}, {{"dtype", kInt}, {"value", value}});
  }

  void AddConstantSlice(const std::string& name, const std::vector<int32_t>& begin, const std::vector<int32_t>& size,
                        const std::string& wait = "^start") {
    AddVector(name + "_begin", begin, wait);
    AddVector(name + "_size", size, "^start");
    builder_.Node(name, "Slice", {"g", name + "_begin", name + "_size"}, {{"T", DT_FLOAT}, {"Index", kInt}});
    builder_.Node("read_" + name, "Identity", {name}, {{"T", DT_FLOAT}});
  }

  // The operator of the node that has the first slice's name.
  std::string OpOf(const std::string& name) const { return Find(name) == nullptr ? "" : Find(name)->type_string(); }
};

TEST_F(ConstantSlicesTest, OneBehindTheOtherBecomeOneOperator) {
  AddConstantSlice("right", {0, 3}, {2, 4});
  AddConstantSlice("left", {0, 0}, {2, 3});
  Merge();
  ASSERT_EQ(OpOf("left"), kConcatGradientOp);
  EXPECT_EQ(OpOf("right"), "");
  const Inputs inputs = InputsOf("left");
  EXPECT_EQ(Inputs(inputs.begin() + 1, inputs.end()), (Inputs{"g:0", "left_size:0", "right_size:0"}));
  const std::string axis_name = inputs[0].substr(0, inputs[0].rfind(':'));
  EXPECT_EQ(InputsOf("read_left"), Inputs{"left:0"});
  EXPECT_EQ(InputsOf("read_right"), Inputs{"left:1"});
  tensorflow::Tensor axis;
  ASSERT_TRUE(tensorflow::GetNodeAttr(Find(axis_name)->attrs(), "value", &axis).ok());
  EXPECT_EQ(axis.scalar<int32_t>()(), 1);
  std::map<std::string, std::vector<std::string>> controls;
  for (const tensorflow::Edge* edge : graph_.edges()) {
    if (edge->IsControlEdge() && edge->src()->IsOp()) controls[edge->dst()->name()].push_back(edge->src()->name());
  }
  EXPECT_EQ(controls[axis_name], std::vector<std::string>{"start"});
  EXPECT_EQ(controls["left"].size(), 2);  // the constants of where they began
}

TEST_F(ConstantSlicesTest, OthersStayAsTheyAre) {
  const std::vector<std::vector<std::vector<int32_t>>> others = {
      {{0, 0}, {2, 3}, {0, 4}, {2, 3}},   // a gap
      {{0, 0}, {2, 3}, {0, 2}, {2, 3}},   // one over the other
      {{0, 1}, {2, 3}, {0, 4}, {2, 3}},   // not from 0 on
      {{0, 0}, {2, 3}, {0, 3}, {1, 3}},   // of unequal height
      {{0, 0}, {2, 3}, {2, 3}, {2, 3}},   // along two dimensions
      {{0, 0}, {2, 3}, {0, 3}, {2, -1}},  // of a size that is not said
  };
  for (const std::vector<std::vector<int32_t>>& other : others) {
    builder_ = GraphBuilder();
    AddEntries();
    AddStart();
    AddConstantSlice("left", other[0], other[1]);
    AddConstantSlice("right", other[2], other[3]);
    graph_.Clear();
    Merge();
    EXPECT_EQ(OpOf("left"), "Slice");
    EXPECT_EQ(OpOf("right"), "Slice");
  }
}

TEST_F(ConstantSlicesTest, OneThatWaitsForTheOthersReaderStaysAsItIs) {
  AddConstantSlice("left", {0, 0}, {2, 3});
  AddConstantSlice("right", {0, 3}, {2, 4}, "^read_left");
  Merge();
  EXPECT_EQ(OpOf("left"), "Slice");
}

TEST(ConcatGradientsInMainGraphTest, StayAsTheyAre) {
  GraphBuilder builder;
  builder.Node("g", "Placeholder", {}, {{"dtype", DT_FLOAT}}).Node("x", "Placeholder", {}, {{"dtype", DT_FLOAT}});
  builder.Const("axis", 0).Node("shapes", "ShapeN", {"x", "x"}, {{"T", DT_FLOAT}, {"N", 2}});
  builder.Node("offset", "ConcatOffset", {"axis", "shapes:0", "shapes:1"}, {{"N", 2}});
  for (const char* part : {"0", "1"}) {
    builder.Node(absl::StrCat("d", part), "Slice", {"g", absl::StrCat("offset:", part), absl::StrCat("shapes:", part)},
                 {{"T", DT_FLOAT}, {"Index", kInt}});
  }
  Graph graph(tensorflow::OpRegistry::Global());
  ASSERT_TRUE(tensorflow::ConvertGraphDefToGraph({}, builder.graph(), &graph).ok());
  const int before = graph.num_op_nodes();
  ASSERT_TRUE(MergeConcatGradients(&graph).ok());
  EXPECT_EQ(graph.num_op_nodes(), before);
}

}  // namespace
}  // namespace tensorflow_recursion
