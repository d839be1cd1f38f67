// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_call_sites.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

absl::Status VerifyFirst(const GraphBuilder& builder) {
  const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), builder.graph().library());
  return VerifyCallSite(builder.graph().node(0), library);
}

TEST(VerifyCallSiteTest, AcceptsACallThatFits) {
  GraphBuilder builder;
  EXPECT_TRUE(VerifyFirst(builder.Call("c", "F", {"x"}).Function(Endless("F", "F"))).ok());
}

TEST(VerifyCallSiteTest, NamesAFunctionWithoutDefinition) {
  GraphBuilder builder;
  ExpectFault(VerifyFirst(builder.Call("c", "F", {"x"})),
              "Call of 'F' (node 'c'): the function is declared but has no definition in the graph");
}

TEST(VerifyCallSiteTest, CallsAFunctionAsItsUserDoes) {
  GraphBuilder operation, derivative;
  ExpectFault(VerifyFirst(operation.Call("c", "Pow__fn", {"x"})), "Call of 'Pow' (node 'c'): the function is declared");
  ExpectFault(VerifyFirst(derivative.Call("c", "F__backward2", {"x"})), "Call of 'gradient of F' (node 'c')");
}

TEST(VerifyCallSiteTest, CountsArguments) {
  GraphBuilder builder;
  builder.Call("c", "F", {"x", "x"}, {kInt, kInt}).Function(Endless("F", "F"));
  ExpectFault(VerifyFirst(builder), "the call has 2 arguments, the function takes 1");
}

TEST(VerifyCallSiteTest, ComparesArgumentTypes) {
  GraphBuilder builder;
  builder.Call("c", "F", {"x"}, {tensorflow::DT_FLOAT}).Function(Endless("F", "F"));
  ExpectFault(VerifyFirst(builder), "argument 0 ('n') is float, the function takes int32");
}

TEST(VerifyCallSiteTest, ComparesOutputTypes) {
  GraphBuilder builder;
  builder.Call("c", "F", {"x"}, {kInt}, {tensorflow::DT_BOOL}).Function(Endless("F", "F"));
  ExpectFault(VerifyFirst(builder), "output 0 ('r') is bool, the function returns int32");
}

TEST(VerifyCallSiteTest, RefusesPolymorphicFunctions) {
  GraphBuilder builder;
  builder.Call("c", "F", {"x"});
  builder.Function(tensorflow::FunctionDefHelper::Create("F", {"n: T"}, {"r: T"}, {"T: type"}, {}, {{"r", "n"}}));
  ExpectFault(VerifyFirst(builder), "takes attributes");
}

TEST(VerifyCallSiteTest, SurvivesMissingAttributes) {
  GraphBuilder builder;
  ExpectFault(VerifyFirst(builder.Node("c", kInvokeOp)), "attribute f names no function");
  GraphBuilder typeless;
  typeless.Node("c", kInvokeOp, {}, {{"f", tensorflow::FunctionDefHelper::FunctionRef("F")}});
  ExpectFault(VerifyFirst(typeless.Function(Endless("F", "F"))), "attribute Tin or Tout is missing");
}

}  // namespace
}  // namespace tensorflow_recursion
