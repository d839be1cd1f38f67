// SPDX-License-Identifier: Apache-2.0
#include "cc/values/scattered_bytes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

std::string Copied(const std::vector<std::string>& pieces) {
  std::string whole;
  for (const std::string& piece : pieces) whole += piece;
  std::string copy(whole.size(), '\0');
  CopyPieces(std::vector<absl::string_view>(pieces.begin(), pieces.end()), copy.data());
  EXPECT_EQ(copy, whole);
  return copy;
}

TEST(CopyPiecesTest, WritesNothingWithoutPieces) {
  CopyPieces({}, nullptr);
  CopyPieces({absl::string_view(), absl::string_view()}, nullptr);
}

TEST(CopyPiecesTest, JoinsPiecesInOrder) { EXPECT_EQ(Copied({"ab", "", "c", "def", ""}), "abcdef"); }

// Sizes around those by which the copy decides how far to look ahead.
TEST(CopyPiecesTest, JoinsPiecesOfAnySizes) {
  const std::vector<size_t> sizes = {0, 1, 63, 64, 65, 1200, 2047, 2048, 2049, 5000, 100000};
  for (size_t step = 1; step < sizes.size(); ++step) {  // each step takes them in another order
    std::vector<std::string> pieces(2 * sizes.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].resize(sizes[i * step % sizes.size()]);
      std::iota(pieces[i].begin(), pieces[i].end(), static_cast<char>(i));
    }
    Copied(pieces);
  }
}

TEST(TensorBytesTest, AreItsNumbers) {
  Tensor tensor(tensorflow::DT_INT16, TensorShape({3}));
  tensor.flat<int16_t>().setConstant(0x4141);
  EXPECT_EQ(TensorBytes(tensor), "AAAAAA");
  EXPECT_TRUE(TensorBytes(Tensor(tensorflow::DT_INT16, TensorShape({0, 3}))).empty());
}

}  // namespace
}  // namespace tensorflow_recursion
