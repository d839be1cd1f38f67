// SPDX-License-Identifier: Apache-2.0
#include "cc/base/names.h"

#include <gtest/gtest.h>

namespace tensorflow_recursion {
namespace {

TEST(CallOfNodeTest, LeavesOutTheNodesOwnPart) {
  EXPECT_EQ(CallOfNode("call/call_0"), "call");
  EXPECT_EQ(CallOfNode("Fib/left/return_1"), "Fib/left");
}

TEST(UserNameTest, IsTheNameItself) { EXPECT_EQ(UserName("F"), "F"); }

TEST(UserNameTest, LeavesOutTheMarkOfANameLikeAnOperators) {
  EXPECT_EQ(UserName("F__fn"), "F");
  EXPECT_EQ(UserName("__fn"), "");
}

TEST(UserNameTest, OfAForwardFunctionIsThatOfItsFunction) {
  EXPECT_EQ(UserName("F__forward1"), "F");
  EXPECT_EQ(UserName("F__forward"), "F");
  EXPECT_EQ(UserName("F__fn__forward12"), "F");
}

TEST(UserNameTest, OfATraceIsThatOfItsFunction) {
  EXPECT_EQ(UserName("F__trace1"), "F");
  EXPECT_EQ(UserName("F__trace12__forward1"), "F");
  EXPECT_EQ(UserName("F__trace1__gradient__trace2__backward3"), "gradient of gradient of F");
  EXPECT_EQ(UserName("F__trace"), "F__trace");
}

TEST(UserNameTest, OfACopyIsThatOfItsFunction) {
  EXPECT_EQ(UserName("F__copy1"), "F");
  EXPECT_EQ(UserName("F__fn__copy12"), "F");
  EXPECT_EQ(UserName("F__fn__forward1__copy2"), "F");
  EXPECT_EQ(UserName("F__backward1__copy2"), "gradient of F");
  EXPECT_EQ(UserName("F__copy"), "F__copy");
}

TEST(UserNameTest, SaysThatAFunctionIsAGradient) {
  EXPECT_EQ(UserName("F__backward1"), "gradient of F");
  EXPECT_EQ(UserName("F__fn__backward12"), "gradient of F");
  EXPECT_EQ(UserName("F__gradient"), "gradient of F");
}

TEST(UserNameTest, SaysHowOftenAFunctionWasDifferentiated) {
  EXPECT_EQ(UserName("F__gradient__forward2"), "gradient of F");
  EXPECT_EQ(UserName("F__gradient__backward2"), "gradient of gradient of F");
  EXPECT_EQ(UserName("F__fn__gradient__gradient__backward1"), "gradient of gradient of gradient of F");
}

TEST(UserNameTest, KeepsDigitsThatAreTheUsers) {
  EXPECT_EQ(UserName("conv2"), "conv2");
  EXPECT_EQ(UserName("conv2__fn"), "conv2");
  EXPECT_EQ(UserName("conv2__forward1"), "conv2");
  EXPECT_EQ(UserName("conv2__backward1"), "gradient of conv2");
  EXPECT_EQ(UserName("F__fn2"), "F__fn2");
  EXPECT_EQ(UserName("42"), "42");
}

TEST(UserNameTest, KeepsWhatOnlyLooksLikeASuffix) {
  EXPECT_EQ(UserName("forward1"), "forward1");
  EXPECT_EQ(UserName("F_backward1"), "F_backward1");
  EXPECT_EQ(UserName("F__forward1_"), "F__forward1_");
  EXPECT_EQ(UserName("F__backward1/while"), "F__backward1/while");
}

TEST(UserNameTest, MayBeEmpty) {
  EXPECT_EQ(UserName(""), "");
  EXPECT_EQ(UserName("__backward1"), "gradient of ");
}

}  // namespace
}  // namespace tensorflow_recursion
