// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_expanded_calls.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

Attrs Port(const std::string& function, int index, tensorflow::DataType type = kInt) {
  return {{"function", function}, {"index", index}, {"T", type}};
}

Attrs Use(const std::string& function, int index, int call_id, tensorflow::DataType type = kInt) {
  Attrs attrs = Port(function, index, type);
  attrs.emplace_back("call_id", call_id);
  return attrs;
}

// One function of one argument and one output, called once.
GraphBuilder Expanded() {
  GraphBuilder builder;
  builder.Node("F/n", kEntryOp, {}, Port("F", 0)).Node("F/r", kResultOp, {"F/n"}, Port("F", 0));
  builder.Node("call", kCallOp, {"x"}, Use("F", 0, 1)).Node("return", kReturnOp, {"^call"}, Use("F", 0, 1));
  return builder;
}

TEST(VerifyExpandedCallsTest, AcceptsWhatFits) { EXPECT_TRUE(VerifyExpandedCalls(Expanded().graph()).ok()); }

TEST(VerifyExpandedCallsTest, RefusesTwoEntriesForOneArgument) {
  ExpectFault(VerifyExpandedCalls(Expanded().Node("again", kEntryOp, {}, Port("F", 0)).graph()),
              "Nodes 'F/n' and 'again': both are Recursion>Entry 0 of function 'F'");
}

TEST(VerifyExpandedCallsTest, RefusesTwoReturnsForOneOutput) {
  ExpectFault(VerifyExpandedCalls(Expanded().Node("again", kReturnOp, {"^call"}, Use("F", 0, 1)).graph()),
              "both are Recursion>Return 0 of call_id 1");
}

TEST(VerifyExpandedCallsTest, RefusesUnknownFunctions) {
  ExpectFault(VerifyExpandedCalls(Expanded().Node("forged", kCallOp, {"x"}, Use("G", 0, 2)).graph()),
              "Node 'forged': function 'G' has no argument 0 in this graph");
}

TEST(VerifyExpandedCallsTest, RefusesIndicesOutOfRange) {
  ExpectFault(VerifyExpandedCalls(Expanded().Node("forged", kReturnOp, {"^call"}, Use("F", 7, 1)).graph()),
              "function 'F' has no output 7 in this graph");
  ExpectFault(VerifyExpandedCalls(Expanded().Node("forged", kReturnOp, {"^call"}, Use("F", -1, 1)).graph()),
              "index is -1");
}

TEST(VerifyExpandedCallsTest, RefusesASiteOfTwoFunctions) {
  GraphBuilder builder = Expanded();
  builder.Node("G/n", kEntryOp, {}, Port("G", 1)).Node("forged", kCallOp, {"x"}, Use("G", 1, 1));
  ExpectFault(VerifyExpandedCalls(builder.graph()), "call_id 1 calls 'F', not 'G'");
}

TEST(VerifyExpandedCallsTest, RefusesOtherTypes) {
  GraphBuilder builder = Expanded();
  builder.Node("forged", kCallOp, {"x"}, Use("F", 0, 2, tensorflow::DT_FLOAT));
  ExpectFault(VerifyExpandedCalls(builder.graph()), "argument 0 of 'F' is int32, not float");
}

TEST(VerifyExpandedCallsTest, RefusesMissingAttributes) {
  ExpectFault(VerifyExpandedCalls(Expanded().Node("forged", kCallOp, {"x"}).graph()), "an attribute is missing");
}

TEST(VerifyExpandedCallsTest, RefusesTwoFrameStarts) {
  GraphBuilder builder;
  builder.Node("a", kFrameStartOp, {}, {{"function", "F"}}).Node("b", kFrameStartOp, {}, {{"function", "F"}});
  ExpectFault(VerifyExpandedCalls(builder.graph()), "Nodes 'a' and 'b': both are Recursion>FrameStart of function 'F'");
}

}  // namespace
}  // namespace tensorflow_recursion
