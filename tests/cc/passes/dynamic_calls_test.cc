// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/dynamic_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tensorflow_recursion {
namespace {

// What TensorFlow says of an operator that no kernel serves.
std::string NoKernel(const std::string& op, const std::string& attributes) {
  return absl::StrCat("Function 'F__trace1': No OpKernel was registered to support Op '", op,
                      "' used by {{node cond/x}} with these attrs: [", attributes,
                      "]\nRegistered devices: [CPU]\nRegistered kernels:\n  device='GPU'; T in [DT_INT32]\n"
                      "  device='CPU'; T in [DT_INT32]\n\n\t [[cond/x]]");
}

std::string Text(const std::string& failure) {
  return FallbackText("F", absl::InvalidArgumentError(failure), /*is_of_session=*/false);
}

TEST(FallbackTextTest, NamesTheTypeThatConditionalsHaveNoKernelFor) {
  const std::string floats = Text(NoKernel("Switch", "_class=[\"loc:@x\"], T=DT_FLOAT8_E5M2"));
  EXPECT_TRUE(absl::StrContains(floats, "values of float8_e5m2, for which TensorFlow's operator Switch has no kernel"))
      << floats;
  EXPECT_TRUE(absl::StrContains(floats, "to bfloat16 or float32.")) << floats;
  EXPECT_FALSE(absl::StrContains(floats, "\n")) << floats;
  const std::string integers = Text(NoKernel("Merge", "T=DT_INT4, N=2"));
  EXPECT_TRUE(absl::StrContains(integers, "values of int4, for which TensorFlow's operator Merge")) << integers;
  EXPECT_TRUE(absl::StrContains(integers, "to int32.")) << integers;
}

TEST(FallbackTextTest, LeavesOutListsOfKernels) {
  const std::string text = Text(NoKernel("Sort", "T=DT_INT4"));
  EXPECT_TRUE(absl::StrContains(text, "support Op 'Sort' used by {{node cond/x}} with these attrs: [T=DT_INT4]. "))
      << text;
  EXPECT_FALSE(absl::StrContains(text, "\n")) << text;
}

TEST(FallbackTextTest, SaysAllOfOtherCauses) {
  EXPECT_TRUE(absl::StrContains(Text("one\nand two"), "because one\nand two. Change what this message names"));
}

}  // namespace
}  // namespace tensorflow_recursion
