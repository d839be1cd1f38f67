// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/neutral_nodes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cc/analysis/superfluous_waits.h"
#include "cc/bytecode/compiler.h"
#include "cc/bytecode/disassembler.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_VARIANT;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class NeutralNodesTest : public ::testing::Test {
 protected:
  // F(x, y), of which the tests add the rest.
  NeutralNodesTest() { graph_.Function("F", {"x", "y"}); }

  StaticGraph& Shape(const std::string& name, const std::string& of) {
    return graph_.Node(name, "Shape", {of}, {{"T", kInt}, {"out_type", kInt}});
  }
  StaticGraph& Reduce(const std::string& name, const std::string& of, const std::string& axes) {
    return graph_.Node(name, "Sum", {of, axes}, {{"T", kInt}, {"Tidx", kInt}, {"keep_dims", false}});
  }
  StaticGraph& Reshape(const std::string& name, const std::string& of, const std::string& shape) {
    return graph_.Node(name, "Reshape", {of, shape}, {{"T", kInt}, {"Tshape", kInt}});
  }
  StaticGraph& Vector(const std::string& name, int size) {
    return graph_.Node(name, "Const", {"^F/frame_start"},
                       {{"dtype", kInt}, {"value", Tensor(kInt, TensorShape({size}))}});
  }

  void Build() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    const absl::Status status = DropSuperfluousWaits(&built_->flow);
    ASSERT_TRUE(status.ok()) << status;
    compiled_ = CompileFunctions(built_->flow);
  }

  // What F is compiled to; "" if it is not.
  std::string Listing() {
    const auto function = compiled_.functions.find(built_->flow.regions.FindFunction("F"));
    if (function == compiled_.functions.end()) return "";
    return Disassemble(*compiled_.code, compiled_.code->functions[function->second]);
  }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  CompiledFunctions compiled_;
};

TEST_F(NeutralNodesTest, TheGradientOfAProductIsAProduct) {
  Shape("F/shape_x", "F/x");
  Shape("F/shape_y", "F/y");
  graph_.Node("F/axes", "BroadcastGradientArgs", {"F/shape_x", "F/shape_y"}, {{"T", kInt}});
  graph_.Op("F/product", "Mul", {"F/x", "F/y"});
  Reduce("F/sum", "F/product", "F/axes:1");
  Reshape("F/gradient", "F/sum", "F/shape_y");
  graph_.Result("F", "F/gradient");
  Build();
  EXPECT_EQ(Listing(),
            "F(int32, int32) -> int32\n"
            "    0  ReturnMulInt32           r0, r1\n");
}

TEST_F(NeutralNodesTest, AFilledShapeIsTheNumber) {
  Shape("F/shape", "F/x");
  graph_.Node("F/filled", "Fill", {"F/shape", "F/y"}, {{"T", kInt}, {"index_type", kInt}}).Result("F", "F/filled");
  Build();
  EXPECT_EQ(Listing(),
            "F(int32, int32) -> int32\n"
            "    0  Return                   r1\n");
}

TEST_F(NeutralNodesTest, ANumberBroadcastToAConstantShape) {
  Vector("F/shape", 0);
  graph_.Node("F/wide", "BroadcastTo", {"F/x", "F/shape"}, {{"T", kInt}, {"Tidx", kInt}}).Result("F", "F/wide");
  Build();
  EXPECT_NE(Listing(), "");
}

TEST_F(NeutralNodesTest, ANumberThatBecomesAVectorIsNotNeutral) {
  Vector("F/shape", 1);
  Reshape("F/vector", "F/x", "F/shape").Result("F", "F/vector");
  Build();
  EXPECT_EQ(Listing(), "");
}

TEST_F(NeutralNodesTest, AShapeThatIsReturnedIsAVector) {
  Shape("F/shape", "F/x").Result("F", "F/shape");
  Build();
  EXPECT_EQ(Listing(), "");
}

TEST_F(NeutralNodesTest, AShapeThatIsComputedWithIsAVector) {
  Shape("F/shape", "F/x");
  graph_.Op("F/more", "AddV2", {"F/shape", "F/y"}).Result("F", "F/more");
  Build();
  EXPECT_EQ(Listing(), "");
}

TEST_F(NeutralNodesTest, ZerosLikeARecordAreOne) {
  graph_.Entry("F", "record", 2, DT_VARIANT).Op("F/zeros", "ZerosLike", {"F/record"}, DT_VARIANT);
  graph_.Result("F", "F/zeros", 0, DT_VARIANT);
  Build();
  EXPECT_NE(Listing().find("F(int32, int32, variant) -> variant"), std::string::npos) << Listing();
}

}  // namespace
}  // namespace tensorflow_recursion
