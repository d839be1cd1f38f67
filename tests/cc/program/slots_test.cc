// SPDX-License-Identifier: Apache-2.0
#include "cc/program/slots.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/program/built_programs.h"

namespace tensorflow_recursion {
namespace {

// Looks at a function F of the arguments a, b and c.
class SlotsTest : public ::testing::Test {
 protected:
  SlotsTest() { graph_.Function("F", {"a", "b", "c"}); }

  void Build() {
    program_ = tensorflow_recursion::Build(graph_);
    ASSERT_TRUE(program_.status.ok()) << program_.status;
    for (const Region& region : program_->regions) {
      if (region.name == "F") f_ = &region;
    }
  }

  static uint32_t SlotOf(const Region& region, const Op& op, uint32_t input) {
    return op.inputs == InputsIn::kTable ? region.inputs[op.slot + input].position : op.slot + input;
  }
  const Op& KernelOp(const std::string& node) const {
    for (const Op& op : f_->ops) {
      const bool runs_kernel = op.kind == OpKind::kKernel || op.kind == OpKind::kScalar;
      if (runs_kernel && program_->kernels[op.index].name == node) return op;
    }
    ADD_FAILURE() << "no operator " << node;
    return f_->ops[0];
  }
  std::set<uint32_t> SlotsOf(const Op& op) const {
    std::set<uint32_t> slots;
    for (uint32_t i = 0; i < op.num_inputs; ++i) slots.insert(SlotOf(*f_, op, i));
    EXPECT_EQ(slots.size(), op.num_inputs);
    return slots;
  }
  const Op& CallSite() const {
    for (const Op& op : f_->ops) {
      if (op.kind == OpKind::kCallSite) return op;
    }
    ADD_FAILURE() << "no call";
    return f_->ops[0];
  }

  StaticGraph graph_;
  BuiltProgram program_;
  const Region* f_ = nullptr;
};

TEST_F(SlotsTest, OperatorsOneAfterTheOtherShare) {
  graph_.Kernel("F/k", {"F/a", "F/b"}, 2).Kernel("F/l", {"F/k", "F/k:1"}, 2).Kernel("F/m", {"F/l", "F/l:1"});
  graph_.Result("F", "F/m");
  Build();
  EXPECT_EQ(f_->num_slots, 2);
  EXPECT_EQ(KernelOp("F/m").inputs, InputsIn::kSlots);
}

TEST_F(SlotsTest, OperatorsInAnyOrderDoNot) {
  graph_.Kernel("F/k", {"F/a", "F/b"}).Kernel("F/l", {"F/b", "F/c"}).Kernel("F/m", {"F/k", "F/l"});
  graph_.Result("F", "F/m");
  Build();
  // m's input from k may come before l's have, and the other way round.
  EXPECT_EQ(f_->num_slots, 4);
  std::set<uint32_t> all = SlotsOf(KernelOp("F/k"));
  all.merge(SlotsOf(KernelOp("F/l")));
  EXPECT_EQ(all.size(), 4);
  EXPECT_EQ(SlotsOf(KernelOp("F/k")).count(SlotOf(*f_, KernelOp("F/m"), 0)), 1);
  EXPECT_EQ(SlotsOf(KernelOp("F/l")).count(SlotOf(*f_, KernelOp("F/m"), 1)), 1);
}

TEST_F(SlotsTest, ThePartsThatWaitForACallKeepTheirs) {
  graph_.Kernel("F/k", {"F/a", "F/b"})
      .Call("F/call", "F", 2, {"F/k", "F/a", "F/b"})
      .Kernel("F/l", {"F/c", "F/call/return_0"});
  graph_.Result("F", "F/l");
  Build();
  const uint32_t waits = SlotOf(*f_, KernelOp("F/l"), 0);
  EXPECT_EQ(SlotsOf(KernelOp("F/k")).count(waits), 0);
  EXPECT_EQ(SlotsOf(CallSite()).count(waits), 0);
  // What the call returns comes when its arguments have gone.
  EXPECT_EQ(SlotsOf(KernelOp("F/k")).count(SlotOf(*f_, KernelOp("F/l"), 1)) +
                SlotsOf(CallSite()).count(SlotOf(*f_, KernelOp("F/l"), 1)),
            1);
}

// A call may be opened when only some of its arguments have come: the slots of the others must be empty then.
TEST_F(SlotsTest, ArgumentsDoNotTakeTheSlotsOfWhatComesBetweenThem) {
  graph_.Kernel("F/k", {"F/a", "F/b"}).Call("F/call", "F", 2, {"F/c", "F/k", "F/k"}).Result("F", "F/call/return_0");
  Build();
  EXPECT_EQ(f_->num_slots, 5);
}

TEST_F(SlotsTest, ArgumentsTakeTheSlotsOfKernelsThatCameBefore) {
  graph_.Kernel("F/k", {"F/a", "F/b"}, 3).Call("F/call", "F", 2, {"F/k", "F/k:1", "F/k:2"});
  graph_.Result("F", "F/call/return_0");
  Build();
  EXPECT_EQ(f_->num_slots, 3);
}

TEST_F(SlotsTest, ArgumentsDoNotTakeTheSlotsThatArithmeticLeaves) {
  graph_.Op("F/sum", "AddV2", {"F/a", "F/b"}).Call("F/call", "F", 2, {"F/sum", "F/sum", "F/sum"});
  graph_.Result("F", "F/call/return_0");
  Build();
  EXPECT_EQ(f_->num_slots, 5);
}

// The branch looks whether anything waits, so it must not find what others have left to come.
TEST_F(SlotsTest, GatesDoNotTakeTheSlotsOfWhatMayFollowTheirBranch) {
  graph_.Kernel("F/k", {"F/a", "F/b"}, 3).Op("F/less", "Less", {"F/b", "F/c"});
  graph_.Op("F/s", "Switch", {"F/k", "F/less"}).Op("F/t", "Switch", {"F/k:1", "F/less"});
  graph_.Kernel("F/l", {"F/s", "F/t"}).Kernel("F/m", {"F/s:1", "F/t:1"});
  graph_.Node("F/merge", "Merge", {"F/l", "F/m"}, {{"T", kInt}, {"N", 2}}).Result("F", "F/merge");
  Build();
  std::set<uint32_t> gates;
  for (const Op& op : f_->ops) {
    if (op.kind == OpKind::kGate) gates.insert(op.slot);
  }
  EXPECT_EQ(gates.size(), 2);
  for (const char* other : {"F/k", "F/less"}) {
    for (const uint32_t slot : SlotsOf(KernelOp(other))) EXPECT_EQ(gates.count(slot), 0) << other;
  }
}

// A switch that waits for a control input may fire before the branch on its predicate has looked at its gates.
TEST_F(SlotsTest, WhatComesFromAWaitingSwitchDoesNotTakeTheSlotsOfGates) {
  graph_.Op("F/less", "Less", {"F/b", "F/c"}).Kernel("F/slow", {"F/a"}).Const("F/one", 1, {"^F/slow"});
  graph_.Op("F/waiting", "Switch", {"F/one", "F/less"}).Op("F/gate", "Switch", {"F/slow", "F/less"});
  graph_.Kernel("F/k", {"F/waiting", "F/gate"}).Result("F", "F/k");
  Build();
  for (const Op& op : f_->ops) {
    if (op.kind == OpKind::kGate) {
      EXPECT_NE(op.slot, SlotOf(*f_, KernelOp("F/k"), 0));
    }
  }
}

// It is opened on both sides of the branch, on one of them without its second argument.
TEST_F(SlotsTest, ArgumentsDoNotTakeTheSlotsOfWhatComesWhereTheyAreDead) {
  graph_.Op("F/less", "Less", {"F/b", "F/c"})
      .Op("F/s", "Switch", {"F/a", "F/less"})
      .Op("F/t", "Switch", {"F/c", "F/less"});
  graph_.Call("F/call", "F", 2, {"F/a", "F/s", "F/s"}, 1).Kernel("F/k", {"F/s:1", "F/t:1"});
  graph_.Node("F/merge", "Merge", {"F/call/return_0", "F/k"}, {{"T", kInt}, {"N", 2}}).Result("F", "F/merge");
  Build();
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(SlotsOf(KernelOp("F/k")).count(CallSite().slot + i), 0);
}

TEST_F(SlotsTest, SidesOfABranchShare) {
  for (const char* name : {"a", "b", "c"}) {
    graph_.Op(std::string("F/switch_") + name, "Switch", {std::string("F/") + name, "F/less"});
  }
  graph_.Op("F/less", "Less", {"F/a", "F/b"});
  graph_.Kernel("F/k", {"F/switch_a", "F/switch_b", "F/switch_c"});
  graph_.Kernel("F/l", {"F/switch_c:1", "F/switch_a:1", "F/switch_b:1"});
  graph_.Node("F/merge", "Merge", {"F/k", "F/l"}, {{"T", kInt}, {"N", 2}}).Result("F", "F/merge");
  Build();
  EXPECT_EQ(SlotsOf(KernelOp("F/k")), SlotsOf(KernelOp("F/l")));
}

TEST_F(SlotsTest, WhatOneSideOfABranchReadsAndTheOtherMergesShare) {
  graph_.Op("F/less", "Less", {"F/a", "F/b"}).Op("F/switch", "Switch", {"F/c", "F/less"});
  graph_.Call("F/call", "F", 2, {"F/switch", "F/switch", "F/switch"});
  graph_.Node("F/merge", "Merge", {"F/call/return_0", "F/switch:1"}, {{"T", kInt}, {"N", 2}});
  graph_.Kernel("F/k", {"F/a", "F/merge"}).Result("F", "F/k");
  Build();
  // The merged value comes when the arguments have gone, or where there never are any.
  const Op& k = KernelOp("F/k");
  EXPECT_EQ(SlotsOf(CallSite()).count(SlotOf(*f_, k, 1)) + SlotsOf(KernelOp("F/less")).count(SlotOf(*f_, k, 1)), 1);
}

TEST_F(SlotsTest, TheRootSharesNothing) {
  graph_.Result("F", "F/a").Arg("x").Arg("y", 1);
  graph_.Kernel("k", {"x", "y"}, 2).Kernel("l", {"k", "k:1"}).Retval("l");
  Build();
  EXPECT_EQ(program_->regions[0].num_slots, 4);
}

}  // namespace
}  // namespace tensorflow_recursion
