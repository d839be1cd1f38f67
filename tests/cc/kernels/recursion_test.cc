// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/recursion.h"

#include <gtest/gtest.h>

#include <string>

namespace tensorflow_recursion {
namespace {

std::string Path() { return "F > G"; }

TEST(RecursionTest, TheFirstErrorIsKeptWithItsPath) {
  Recursion recursion(nullptr);
  EXPECT_TRUE(recursion.FirstError().ok());
  recursion.Record(absl::InternalError("broken"), "G", Path);
  recursion.Record(absl::InternalError("broken too"), "G", [] {
    ADD_FAILURE() << "nobody reads this path";
    return std::string();
  });
  EXPECT_EQ(recursion.FirstError(), absl::InternalError("{{function_node G}} broken\n\t in call path F > G"));
}

TEST(RecursionTest, AnErrorTakesThePlaceOfItsConsequences) {
  Recursion recursion(nullptr);
  recursion.Record(absl::CancelledError(""), "G", Path);
  EXPECT_EQ(recursion.FirstError(),
            absl::CancelledError("{{function_node G}} The call was cancelled\n\t in call path F > G"));
  recursion.Record(absl::InvalidArgumentError("cause"), "G", Path);
  recursion.Record(absl::AbortedError("another consequence"), "G", Path);
  EXPECT_EQ(recursion.FirstError(), absl::InvalidArgumentError("{{function_node G}} cause\n\t in call path F > G"));
}

TEST(RecursionTest, PayloadsAreKept) {
  Recursion recursion(nullptr);
  absl::Status status = absl::InternalError("broken");
  status.SetPayload("type", absl::Cord("value"));
  recursion.Record(status, "G", Path);
  EXPECT_EQ(recursion.FirstError().GetPayload("type"), absl::Cord("value"));
}

}  // namespace
}  // namespace tensorflow_recursion
