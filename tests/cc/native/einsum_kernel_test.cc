// Which equations of tf.einsum have a native kernel; native_kernel_test.cc says what it computes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tensorflow/core/framework/node_def_builder.h"
#include "tests/cc/native/stock_kernel.h"

namespace tensorflow_recursion {
namespace {

TEST(EinsumKernelTest, EquationsOfOtherProductsAreLeftToTheStockKernel) {
  for (const char* equation : {"ij,jk->ki", "ij,jk->jk", "ij,kl->ik", "ii,ij->ij", "ij,ji->ij", "ij,jk->i", "i,ijk->jk",
                               "...i,ij->...j", "ij,jj->ij"}) {
    const int inputs = std::count(equation, equation + std::strlen(equation), ',') + 1;
    const OneOperator op("Einsum", tensorflow::DataTypeVector(inputs, tensorflow::DT_FLOAT), inputs,
                         [&](tensorflow::NodeDefBuilder* node) { node->Attr("equation", equation); });
    EXPECT_FALSE(op.is_native()) << equation;
  }
}

}  // namespace
}  // namespace tensorflow_recursion
