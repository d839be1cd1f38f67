// Parts of tensors that share the memory of the whole, and those that are copied.
// SPDX-License-Identifier: Apache-2.0
#include "cc/native/views.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cc/values/rope.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDefBuilder;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Matrices of 64 x 64 floats lie at multiples of 64 bytes, those of 33 x 33 do not; both are as large as a rope.
constexpr int64_t kAligned = 64, kUnaligned = 33;

Tensor Stack(int64_t count, int64_t size) {
  Tensor stack(tensorflow::DT_FLOAT, TensorShape({count, size, size}));
  for (int64_t i = 0; i < stack.NumElements(); ++i) stack.flat<float>()(i) = static_cast<float>(i % 1013);
  return stack;
}

tensorflow::GraphDef Placeholders() {
  tensorflow::GraphDef def;
  for (const char* name : {"x", "row"}) {
    TF_CHECK_OK(NodeDefBuilder(name, "Placeholder").Attr("dtype", tensorflow::DT_FLOAT).Finalize(def.add_node()));
  }
  for (const char* name : {"i", "begin", "end", "strides"}) {
    TF_CHECK_OK(NodeDefBuilder(name, "Placeholder").Attr("dtype", tensorflow::DT_INT32).Finalize(def.add_node()));
  }
  return def;
}

// An operator that takes a part of x, and one that reads the part.
class ReadPart {
 public:
  ReadPart(NodeDefBuilder op, NodeDefBuilder reader) : graph_(tensorflow::OpRegistry::Global()) {
    tensorflow::GraphDef def = Placeholders();
    TF_CHECK_OK(op.Finalize(def.add_node()));
    TF_CHECK_OK(reader.Finalize(def.add_node()));
    TF_CHECK_OK(tensorflow::ConvertGraphDefToGraph({}, def, &graph_));
    for (const tensorflow::Node* node : graph_.op_nodes()) {
      if (node->name() == "op") kernel = FindNativeKernel(*node);
      if (node->name() == "reader") reader_kernel = FindNativeKernel(*node);
    }
  }

  // The part; empty if the kernel leaves the inputs to TensorFlow's. Takes the inputs over.
  Value Run(std::vector<Value> inputs) const {
    Value output = Value::Empty();
    kernel.run(kernel, NativeContext(), inputs.data(), &output);
    for (Value& input : inputs) input.Release();
    return output;
  }

  NativeKernel kernel, reader_kernel;

 private:
  tensorflow::Graph graph_;
};

NodeDefBuilder GatherOp() {
  NodeDefBuilder builder("op", "GatherV2");
  return builder.Input("x", 0, tensorflow::DT_FLOAT)
      .Input("i", 0, tensorflow::DT_INT32)
      .Input("i", 0, tensorflow::DT_INT32);
}

NodeDefBuilder SliceOp(int shrunk) {
  NodeDefBuilder builder("op", "StridedSlice");
  builder.Input("x", 0, tensorflow::DT_FLOAT);
  for (const char* name : {"begin", "end", "strides"}) builder.Input(name, 0, tensorflow::DT_INT32);
  return builder.Attr("shrink_axis_mask", shrunk);
}

NodeDefBuilder Reader(const std::string& op) {
  return NodeDefBuilder("reader", op).Input("op", 0, tensorflow::DT_FLOAT);
}

NodeDefBuilder ReaderThatMultipliesWithIt() {
  NodeDefBuilder builder("reader", "MatMul");
  return builder.Input("row", 0, tensorflow::DT_FLOAT).Input("op", 0, tensorflow::DT_FLOAT);
}

NodeDefBuilder ReaderThatMultipliesItsRows() {
  NodeDefBuilder builder("reader", "MatMul");
  return builder.Input("op", 0, tensorflow::DT_FLOAT).Input("row", 0, tensorflow::DT_FLOAT);
}

Value Number(int32_t number) { return Value::Scalar(static_cast<uint32_t>(number)); }

Value Numbers(const std::vector<int32_t>& numbers) {
  Tensor vector(tensorflow::DT_INT32, TensorShape({static_cast<int64_t>(numbers.size())}));
  std::memcpy(vector.data(), numbers.data(), numbers.size() * sizeof(int32_t));
  return Value::Own(NewTensor(vector));
}

// Matrix i of a stack that somebody else has, too, such as a variable.
Value Matrix(const ReadPart& part, const Tensor& stack, int32_t i) {
  const Tensor held = stack;  // NOLINT(performance-unnecessary-copy-initialization): a reference more
  return part.Run({Value::Borrow(&stack), Number(i), Number(0)});
}

bool Shares(const Value& value, const Tensor& stack) {
  if (value.kind == Value::Kind::kRope) return value.rope->View().SharesBufferWith(stack);
  return value.tensor_or_null() != nullptr && value.tensor_or_null()->SharesBufferWith(stack);
}

// Expects the numbers of matrix i, in aligned memory once they are read, and releases the value.
void ExpectMatrix(Value value, const Tensor& stack, int64_t i) {
  const int64_t size = stack.dim_size(1);
  const Tensor got = TensorFromValue(value, tensorflow::DT_FLOAT);
  ASSERT_EQ(got.shape(), TensorShape({size, size}));
  EXPECT_TRUE(got.IsAligned());
  const float* const want = stack.flat<float>().data() + i * size * size;
  EXPECT_EQ(std::memcmp(got.data(), want, size * size * sizeof(float)), 0);
  value.Release();
}

TEST(ViewsTest, AlignedMatricesAreSharedWhoeverReadsThem) {
  const Tensor stack = Stack(10, kAligned);
  for (const NodeDefBuilder& reader : {Reader("Relu"), ReaderThatMultipliesWithIt(), ReaderThatMultipliesItsRows()}) {
    const Value matrix = Matrix({GatherOp(), reader}, stack, 3);
    EXPECT_EQ(matrix.kind, Value::Kind::kTensor);
    EXPECT_TRUE(Shares(matrix, stack));
    ExpectMatrix(matrix, stack, 3);
  }
}

TEST(ViewsTest, OtherMatricesAreSharedIfTheyAreOnlyMultipliedWith) {
  const Tensor stack = Stack(10, kUnaligned);
  const Value shared = Matrix({GatherOp(), ReaderThatMultipliesWithIt()}, stack, 3);
  EXPECT_EQ(shared.kind, Value::Kind::kRope);
  EXPECT_TRUE(Shares(shared, stack));
  ExpectMatrix(shared, stack, 3);
  for (const NodeDefBuilder& reader : {Reader("Relu"), ReaderThatMultipliesItsRows()}) {
    const Value copied = Matrix({GatherOp(), reader}, stack, 3);
    EXPECT_FALSE(Shares(copied, stack));
    ExpectMatrix(copied, stack, 3);
  }
}

TEST(ViewsTest, ProductsWithSharedMatricesAreThoseWithTensors) {
  const Tensor stack = Stack(4, kUnaligned);
  const ReadPart part(GatherOp(), ReaderThatMultipliesWithIt());
  Tensor row(tensorflow::DT_FLOAT, TensorShape({2, kUnaligned}));
  for (int64_t i = 0; i < row.NumElements(); ++i) row.flat<float>()(i) = 0.5F * static_cast<float>(i);
  Tensor products[2];
  for (const bool is_copied : {false, true}) {
    Value inputs[] = {Value::Borrow(&row), Matrix(part, stack, 1)};
    if (is_copied) inputs[1].Flatten();
    Value output = Value::Empty();
    ASSERT_TRUE(part.reader_kernel.run(part.reader_kernel, NativeContext(), inputs, &output));
    products[is_copied ? 1 : 0] = TensorFromValue(output, tensorflow::DT_FLOAT);
    output.Release();
    inputs[1].Release();
  }
  ASSERT_EQ(products[0].shape(), TensorShape({2, kUnaligned}));
  EXPECT_EQ(std::memcmp(products[0].data(), products[1].data(), products[0].TotalBytes()), 0);
}

TEST(ViewsTest, APartOfWhatIsGivenUpIsSharedOnlyIfItIsLarge) {
  const ReadPart part(GatherOp(), Reader("Relu"));
  for (const int64_t count : {4, 40}) {
    const Tensor stack = Stack(count, kAligned);
    const Value matrix = part.Run({Value::Own(NewTensor(stack)), Number(2), Number(0)});
    EXPECT_EQ(Shares(matrix, stack), count == 4);
    ExpectMatrix(matrix, stack, 2);
  }
}

TEST(ViewsTest, APartOfWhatAFrameLendsIsSharedOnlyIfItIsLarge) {
  const ReadPart part(GatherOp(), Reader("Relu"));
  const Tensor stack = Stack(40, kAligned);
  const Tensor alone = tensorflow::tensor::DeepCopy(stack);  // the frame's temporary
  const Value matrix = part.Run({Value::Borrow(&alone), Number(2), Number(0)});
  EXPECT_FALSE(Shares(matrix, alone));
  ExpectMatrix(matrix, alone, 2);
}

// To look for the kernel of a Gather that reads indices would be to look for those of all that come behind it.
TEST(ViewsTest, LongChainsOfGathersAreBound) {
  tensorflow::GraphDef def = Placeholders();
  std::string last = "i";
  for (int n = 0; n < 20000; ++n) {
    const std::string name = absl::StrCat("gather", n);
    TF_CHECK_OK(NodeDefBuilder(name, "Gather")
                    .Input("begin", 0, tensorflow::DT_INT32)
                    .Input(last, 0, tensorflow::DT_INT32)
                    .Finalize(def.add_node()));
    last = name;
  }
  tensorflow::Graph graph(tensorflow::OpRegistry::Global());
  TF_CHECK_OK(tensorflow::ConvertGraphDefToGraph({}, def, &graph));
  int bound = 0;
  for (const tensorflow::Node* node : graph.op_nodes()) bound += FindNativeKernel(*node).run != nullptr ? 1 : 0;
  EXPECT_EQ(bound, 20000);
}

TEST(ViewsTest, APartOfAPartCountsAsOneOfTheWhole) {
  const ReadPart part(GatherOp(), Reader("Relu"));
  const Tensor stack = Stack(40, kAligned);
  const Value matrix = part.Run({Value::Own(NewTensor(stack.Slice(4, 8))), Number(2), Number(0)});
  EXPECT_FALSE(Shares(matrix, stack));
  ExpectMatrix(matrix, stack, 6);
}

TEST(ViewsTest, PartsAreCopiedWhereTensorsMayChange) {
  const Tensor stack = Stack(4, kAligned);
  ReadPart part(GatherOp(), Reader("Relu"));
  part.kernel.may_share = false;
  const Value matrix = Matrix(part, stack, 2);
  EXPECT_FALSE(Shares(matrix, stack));
  ExpectMatrix(matrix, stack, 2);
}

TEST(ViewsTest, SmallPartsAreCopied) {
  const Tensor stack = Stack(4, 16);
  const Value matrix = Matrix({GatherOp(), Reader("Relu")}, stack, 2);
  EXPECT_FALSE(Shares(matrix, stack));
  ExpectMatrix(matrix, stack, 2);
}

TEST(ViewsTest, IndicesOutsideAreLeftToTheStockKernel) {
  const Tensor stack = Stack(4, kAligned);
  const ReadPart part(GatherOp(), Reader("Relu"));
  for (const int32_t i : {-1, 4}) EXPECT_TRUE(Matrix(part, stack, i).is_empty());
}

TEST(ViewsTest, SlicesInOnePieceAreShared) {
  const Tensor stack = Stack(10, kAligned);  // together more numbers than native kernels copy
  const Tensor held = stack;                 // NOLINT(performance-unnecessary-copy-initialization): a reference more
  const ReadPart one(SliceOp(/*shrunk=*/1), Reader("Relu"));
  const Value matrix = one.Run({Value::Borrow(&stack), Numbers({-2}), Numbers({0}), Numbers({1})});
  EXPECT_TRUE(Shares(matrix, stack));
  ExpectMatrix(matrix, stack, 8);
  const ReadPart several(SliceOp(/*shrunk=*/0), Reader("Relu"));
  Value matrices = several.Run({Value::Borrow(&stack), Numbers({1, 0}), Numbers({3, 64}), Numbers({1, 1})});
  EXPECT_TRUE(Shares(matrices, stack));
  EXPECT_EQ(matrices.tensor->shape(), TensorShape({2, kAligned, kAligned}));
  EXPECT_EQ(matrices.tensor->flat<float>()(0), stack.flat<float>()(kAligned * kAligned));
  matrices.Release();
  Value columns = several.Run({Value::Borrow(&stack), Numbers({1, 0}), Numbers({3, 63}), Numbers({1, 1})});
  EXPECT_FALSE(Shares(columns, stack));
  EXPECT_EQ(columns.tensor->shape(), TensorShape({2, kAligned - 1, kAligned}));
  columns.Release();
}

}  // namespace
}  // namespace tensorflow_recursion
