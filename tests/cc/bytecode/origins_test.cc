// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/origins.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

// All scalar operators count as arithmetic.
class OriginsTest : public ::testing::Test {
 protected:
  const Condition& Of(const std::string& name, OpKind kind = OpKind::kScalar) {
    if (built_ == nullptr) {
      built_ = std::make_unique<BuiltFlow>(graph_);
      EXPECT_TRUE(built_->status.ok()) << built_->status;
      IdVector<NodeId, bool> is_arithmetic;
      for (const FlowNode& node : built_->flow.nodes) is_arithmetic.Add(node.kind == OpKind::kScalar);
      order_ = built_->Order();
      origins_ = std::make_unique<Origins>(built_->flow, order_, std::move(is_arithmetic));
    }
    return origins_->Of(built_->Find(name, kind));
  }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  std::vector<NodeId> order_;
  std::unique_ptr<Origins> origins_;
};

TEST_F(OriginsTest, ArithmeticAddsNothing) {
  graph_.Function("F", {"n"}).Op("F/a", "AddV2", {"F/n", "F/n"}).Op("F/b", "Mul", {"F/a", "F/n"});
  graph_.Kernel("F/k", {"F/b"}).Op("F/c", "Mul", {"F/k", "F/n"}).Result("F", "F/c");
  EXPECT_EQ(Of("F/a"), Of("F/n", OpKind::kEntry));
  EXPECT_EQ(Of("F/b"), Of("F/a"));
  EXPECT_NE(Of("F/c"), Of("F/a"));
  EXPECT_TRUE(Of("F/c").Implies(Of("F/a")));
}

TEST_F(OriginsTest, ArgumentsOfOneOriginInEveryCallComeTogether) {
  AddMain(&graph_, "F", 3);
  graph_.Function("F", {"n", "m", "x"}).Op("F/a", "AddV2", {"F/n", "F/m"}).Kernel("F/k", {"F/x"});
  graph_.Call("F/call", "F", 2, {"F/a", "F/m", "F/k"}).Result("F", "F/call/return_0");
  EXPECT_EQ(Of("F/n", OpKind::kEntry), Of("F/m", OpKind::kEntry));
  EXPECT_NE(Of("F/n", OpKind::kEntry), Of("F/x", OpKind::kEntry));
}

// m is apart from n because of x, of which it is made in the second call.
TEST_F(OriginsTest, WhatIsMadeOfALateArgumentIsLate) {
  AddMain(&graph_, "F", 3);
  graph_.Function("F", {"n", "m", "x"}).Op("F/a", "AddV2", {"F/m", "F/x"}).Kernel("F/k", {"F/x"});
  graph_.Call("F/call", "F", 2, {"F/n", "F/a", "F/k"}).Result("F", "F/call/return_0");
  EXPECT_NE(Of("F/n", OpKind::kEntry), Of("F/m", OpKind::kEntry));
  EXPECT_NE(Of("F/m", OpKind::kEntry), Of("F/x", OpKind::kEntry));
}

TEST_F(OriginsTest, TheMainGraphGivesAllAtOnceButWhatMayWait) {
  graph_.Arg("i").Kernel("ready", {"i"}).Kernel("queue", {"i"}, 1, /*is_stateful=*/true);
  graph_.Kernel("stage", {}, 1, /*is_stateful=*/true).Call("main", "F", 1, {"i", "ready", "queue", "stage"});
  graph_.Retval("main/return_0").Function("F", {"n", "m", "x", "y"}).Kernel("F/p", {"F/y"}).Result("F", "F/p", 3);
  graph_.Kernel("F/k", {"F/n"}).Kernel("F/l", {"F/m"}).Kernel("F/o", {"F/x"});
  graph_.Result("F", "F/k").Result("F", "F/l", 1).Result("F", "F/o", 2);
  EXPECT_EQ(Of("F/n", OpKind::kEntry), Of("F/m", OpKind::kEntry));
  EXPECT_NE(Of("F/n", OpKind::kEntry), Of("F/x", OpKind::kEntry));
  EXPECT_NE(Of("F/n", OpKind::kEntry), Of("F/y", OpKind::kEntry));
}

}  // namespace
}  // namespace tensorflow_recursion
