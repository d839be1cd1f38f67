// Which products of tf.einsum and BatchMatMul have a native kernel, and that it computes them as the stock one does.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/node_def_builder.h"
#include "tests/cc/native/stock_kernel.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// Small integers: sums of their products are exact in any order.
template <typename T>
Tensor SmallIntegers(const std::vector<int64_t>& sizes, int64_t seed) {
  Tensor tensor(tensorflow::DataTypeToEnum<T>::value, TensorShape(sizes));
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    tensor.flat<T>()(i) = static_cast<T>((i * 7 + seed + i / 5) % 7 - 3);
  }
  return tensor;
}

OneOperator EinsumOf(const std::string& equation, tensorflow::DataType dtype) {
  const int inputs = static_cast<int>(std::count(equation.begin(), equation.end(), ',')) + 1;
  return {"Einsum", tensorflow::DataTypeVector(inputs, dtype), inputs,
          [&](tensorflow::NodeDefBuilder* node) { node->Attr("equation", equation); }};
}

// Expects the native kernel to serve these inputs, or not to, and to make what the stock one makes.
void ExpectServed(OneOperator* op, const std::vector<Tensor>& inputs, bool is_served, const std::string& what) {
  ASSERT_TRUE(op->is_native()) << what;
  std::vector<Tensor> got, want;
  ASSERT_EQ(op->RunNative(inputs, /*are_owned=*/false, &got), is_served) << what;
  if (!is_served) return;
  ASSERT_TRUE(op->RunStock(inputs, &want).ok()) << what;
  ASSERT_EQ(got[0].shape(), want[0].shape()) << what;
  EXPECT_EQ(got[0].tensor_data(), want[0].tensor_data()) << what;
}

struct Example {
  std::string equation;
  std::vector<int64_t> x, y;
};

template <typename T>
void ExpectEinsum(const Example& example, bool is_served) {
  const auto dtype = tensorflow::DataTypeToEnum<T>::value;
  OneOperator op = EinsumOf(example.equation, dtype);
  ExpectServed(&op, {SmallIntegers<T>(example.x, 1), SmallIntegers<T>(example.y, 2)}, is_served, example.equation);
}

TEST(EinsumKernelTest, EquationsOfOtherKindsAreLeftToTheStockKernel) {
  for (const char* equation : {"ij,jk->jk", "ij,kl->ik", "ii,ij->ij", "ij,jk->i", "...i,ij->...j", "ij,jj->ij",
                               "ij->ji", "abcdefghi,i->abcdefgh"}) {
    EXPECT_FALSE(EinsumOf(equation, tensorflow::DT_FLOAT).is_native()) << equation;
  }
  EXPECT_FALSE(EinsumOf("ij,jk->ik", tensorflow::DT_INT32).is_native());
}

TEST(EinsumKernelTest, ProductsAreThoseOfTheStockKernel) {
  const std::vector<Example> examples = {
      {"ij,jk->ik", {3, 20}, {20, 33}},
      {"ij,kj->ik", {3, 20}, {33, 20}},
      {"ij,jk->ik", {50, 20}, {20, 1}},                   // many rows: the other operand is the row
      {"ij,j->i", {33, 20}, {20}},                        // a weight and a vector
      {"i,ijk->jk", {20}, {20, 4, 5}},                    // several dimensions of a weight
      {"bi,ijk->bjk", {2, 20}, {20, 4, 5}},               //
      {"abc,cd->abd", {2, 3, 20}, {20, 9}},               // several dimensions of rows
      {"abc,bcd->ad", {2, 3, 20}, {3, 20, 9}},            // and of sums
      {"abc,dbc->ad", {2, 3, 20}, {9, 3, 20}},            //
      {"bjk,bj->bk", {6, 20, 9}, {6, 20}},                // batches
      {"bjk,bk->bj", {6, 20, 9}, {6, 9}},                 //
      {"bhqd,bhkd->bhqk", {2, 3, 4, 20}, {2, 3, 5, 20}},  // attention
      {"bhqk,bhkd->bhqd", {2, 3, 4, 5}, {2, 3, 5, 20}},   //
      {"bi,bj->bij", {2, 20}, {2, 33}},                   // outer products, of more rows than a product has
      {"i,j->ij", {20}, {33}},                            //
      {"bi,bj->bji", {2, 20}, {2, 33}},                   //
      {"bi,bi->b", {6, 20}, {6, 20}},                     // sums alone
      {"bij,bij->b", {6, 4, 5}, {6, 4, 5}},               //
      {"ijk,bi->jkb", {20, 4, 5}, {1, 20}},               // a dimension of one element may lie anywhere
      {"jkb,bj->bk", {20, 9, 1}, {1, 20}},                //
      {"bk,bj->jkb", {1, 9}, {1, 20}},                    //
      {"ij,jk->ki", {1, 20}, {20, 9}},                    //
      {"ji,jk->ik", {20, 1}, {20, 9}},                    //
  };
  for (const Example& example : examples) {
    ExpectEinsum<float>(example, true);
    ExpectEinsum<double>(example, true);
  }
}

TEST(EinsumKernelTest, OtherLayoutsAndSizesAreLeftToTheStockKernel) {
  const std::vector<Example> examples = {
      {"ij,jk->ki", {3, 20}, {20, 9}},                    // rows would not lie together in the result
      {"ji,jk->ik", {20, 3}, {20, 9}},                    // nor in x
      {"ji,jk->ik", {20, 40}, {20, 3}},                   //
      {"jkb,bj->bk", {20, 9, 2}, {2, 20}},                // the batch does not come first
      {"bqhd,bkhd->bhqk", {2, 4, 3, 20}, {2, 5, 3, 20}},  //
      {"ij,jk->ik", {20, 5}, {5, 20}},                    // too many rows
      {"bi,bi->bi", {6, 20}, {6, 20}},                    // no sums
      {"ij,ji->ij", {1, 20}, {20, 1}},                    //
      {"ij,jk->ik", {2, 0}, {0, 3}},                      // nothing
      {"ij,jk->ik", {1, 3000}, {3000, 2000}},             // too much
      {"ij,jk->ik", {2, 20}, {21, 3}},                    // what does not fit is an error
      {"ij,jk->ik", {2, 20, 1}, {20, 3}},                 //
  };
  for (const Example& example : examples) ExpectEinsum<float>(example, false);
}

TEST(EinsumKernelTest, BatchesOfMatricesAreMultipliedAsByTheStockKernel) {
  for (const bool is_x_transposed : {false, true}) {
    for (const bool is_y_transposed : {false, true}) {
      OneOperator op("BatchMatMulV2", {tensorflow::DT_FLOAT, tensorflow::DT_FLOAT}, 0,
                     [&](tensorflow::NodeDefBuilder* node) {
                       node->Attr("adj_x", is_x_transposed).Attr("adj_y", is_y_transposed);
                     });
      const auto run = [&](std::vector<int64_t> batch, int64_t rows, std::vector<int64_t> other_batch, bool is_served) {
        std::vector<int64_t> x = std::move(batch), y = std::move(other_batch);
        x.insert(x.end(), {is_x_transposed ? 20 : rows, is_x_transposed ? rows : 20});
        y.insert(y.end(), {is_y_transposed ? 9 : 20, is_y_transposed ? 20 : 9});
        ExpectServed(&op, {SmallIntegers<float>(x, 1), SmallIntegers<float>(y, 2)}, is_served, absl::StrCat(rows));
      };
      run({3}, 1, {3}, true);
      run({2, 3}, 4, {2, 3}, !is_x_transposed);
      run({}, 4, {}, !is_x_transposed);
      run({3}, 4, {}, false);
      run({3}, 4, {1}, false);
    }
  }
}

}  // namespace
}  // namespace tensorflow_recursion
