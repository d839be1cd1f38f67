// SPDX-License-Identifier: Apache-2.0
#include "cc/program/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cc/program/built_programs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;

void ExpectFault(const StaticGraph& graph, const std::vector<std::string>& texts) {
  const BuiltProgram built = Build(graph);
  EXPECT_EQ(built.status.code(), absl::StatusCode::kInvalidArgument) << built.status;
  for (const std::string& text : texts) EXPECT_TRUE(absl::StrContains(built.status.message(), text)) << built.status;
}

size_t CountOf(const Region& region, OpKind kind) { return OpsOf(region, kind).size(); }

const Op& KernelOp(const BuiltProgram& built, const Region& region, const std::string& node) {
  for (const Op& op : region.ops) {
    const bool runs_kernel = op.kind == OpKind::kKernel || op.kind == OpKind::kScalar;
    if (runs_kernel && built->kernels[op.index].name == node) return op;
  }
  ADD_FAILURE() << "no operator " << node;
  return region.ops[0];
}

Value TemplateSlot(const Region& region, uint32_t slot) {
  Value value = Value::Empty();
  std::memcpy(static_cast<void*>(&value), region.frame_template.data() + slot * sizeof(Value), sizeof(Value));
  return value;
}

uint16_t TemplatePending(const Region& region, const Op& op) {
  uint16_t pending = 0;
  const size_t index = &op - region.ops.data();
  std::memcpy(&pending, region.frame_template.data() + region.num_slots * sizeof(Value) + index * sizeof(pending),
              sizeof(pending));
  return pending;
}

size_t NumReaders(const Region& region, const Op& op, uint32_t port) {
  const Port& of = region.ports[op.port + port];
  return of.end - of.begin;
}

// Sources, constants, pending counts.

TEST(ProgramTest, NumbersArgumentsAndRetvals) {
  StaticGraph graph;
  graph.Arg("x", 0).Arg("y", 1, DT_FLOAT).Retval("y", 0, DT_FLOAT).Retval("x", 1);
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(built->argument_types.size(), 2);
  EXPECT_EQ(built->argument_types, (tensorflow::DataTypeVector{kInt, DT_FLOAT}));
  EXPECT_EQ(built->retval_types, (tensorflow::DataTypeVector{DT_FLOAT, kInt}));
}

TEST(ProgramTest, ConstantsStandInATable) {
  StaticGraph graph;
  const tensorflow::Tensor vector(kInt, tensorflow::TensorShape({3}));
  graph.Arg("x").Arg("y", 1).Const("one", 1).Node("vector", "Const", {}, {{"dtype", kInt}, {"value", vector}});
  graph.Kernel("k", {"x", "one", "y", "vector"}).Retval("k");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  const Op& op = KernelOp(built, root, "k");
  ASSERT_EQ(op.inputs, InputsIn::kTable);
  const Value* table = root.inputs.data() + op.slot;
  EXPECT_TRUE(table[0].is_empty());
  EXPECT_TRUE(table[2].is_empty());
  EXPECT_NE(table[0].position, table[2].position);
  ASSERT_TRUE(table[1].is_scalar());
  EXPECT_EQ(table[1].int32, 1);
  ASSERT_EQ(table[3].kind, Value::Kind::kConstant);
  EXPECT_EQ(table[3].constant->NumElements(), 3);
  EXPECT_EQ(root.num_slots, 2);
  EXPECT_EQ(op.num_tokens, 2);
  EXPECT_EQ(TemplatePending(root, op), 2);
}

TEST(ProgramTest, OperatorsThatWaitForOneThingNeedNoSlot) {
  StaticGraph graph;
  graph.Arg("x").Const("one", 1).Op("a", "Sub", {"one", "x"}).Kernel("k", {"a"}).Retval("k");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  const Op& sub = KernelOp(built, root, "a");
  EXPECT_EQ(sub.inputs, InputsIn::kTableAndArrival);
  EXPECT_EQ(sub.arriving_input, 1);
  EXPECT_EQ(KernelOp(built, root, "k").inputs, InputsIn::kArrival);
  EXPECT_EQ(root.num_slots, 0);
  EXPECT_EQ(root.num_counted, 0);
  EXPECT_TRUE(root.frame_template.empty());
}

TEST(ProgramTest, OneConstantServesAllItsReaders) {
  StaticGraph graph;
  graph.Arg("x").Const("one", 1).Op("a", "AddV2", {"x", "one"}).Op("b", "Sub", {"a", "one"}).Retval("b");
  EXPECT_EQ(BuildOrFail(graph)->constants.size(), 1);
}

TEST(ProgramTest, OperatorsWithoutTokensAreSources) {
  StaticGraph graph;
  graph.Const("one", 1).Kernel("k", {"one"}).Retval("k");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  EXPECT_EQ(root.sources, std::vector<OpId>{OpId(&KernelOp(built, root, "k") - root.ops.data())});
}

TEST(ProgramTest, ConstantsThatAreReturnedBecomeTokens) {
  StaticGraph graph;
  graph.Const("one", 1).Retval("one");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  EXPECT_EQ(OnlyOp(root, OpKind::kPass).num_tokens, 0);
  EXPECT_EQ(OnlyOp(root, OpKind::kRetval).num_tokens, 1);
}

TEST(ProgramTest, ArithmeticIsUnboxedAndKeepsItsKernel) {
  StaticGraph graph;
  graph.Arg("x").Op("y", "AddV2", {"x", "x"}).Retval("y");
  const BuiltProgram built = BuildOrFail(graph);
  const Op& op = OnlyOp(built->regions[0], OpKind::kScalar);
  EXPECT_NE(op.scalar, nullptr);
  EXPECT_EQ(built->kernels[op.index].name, "y");
  EXPECT_EQ(built->kernels[op.index].inputs, (tensorflow::DataTypeVector{kInt, kInt}));
}

// A Squeeze that names dimensions must fail on a scalar, which only its kernel does.
TEST(ProgramTest, SqueezesOfNamedDimensionsRunByTheirKernel) {
  StaticGraph graph;
  graph.Arg("x").Node("all", "Squeeze", {"x"}, {{"T", kInt}});
  graph.Node("first", "Squeeze", {"x"}, {{"T", kInt}, {"squeeze_dims", std::vector<int>{0}}});
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(KernelOp(built, built->regions[0], "all").kind, OpKind::kScalar);
  EXPECT_EQ(KernelOp(built, built->regions[0], "first").kind, OpKind::kKernel);
}

TEST(ProgramTest, ChecksOfOtherShapesThanScalarRunByTheirKernel) {
  StaticGraph graph;
  graph.Arg("x").Node("scalar", "EnsureShape", {"x"}, {{"T", kInt}, {"shape", tensorflow::TensorShape({})}});
  graph.Node("vector", "EnsureShape", {"x"}, {{"T", kInt}, {"shape", tensorflow::TensorShape({3})}});
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(KernelOp(built, built->regions[0], "scalar").kind, OpKind::kScalar);
  EXPECT_EQ(KernelOp(built, built->regions[0], "vector").kind, OpKind::kKernel);
}

TEST(ProgramTest, CastsThatTruncateRunByTheirKernel) {
  StaticGraph graph;
  graph.Arg("x", 0, tensorflow::DT_DOUBLE);
  for (const bool truncate : {false, true}) {
    graph.Node(truncate ? "truncated" : "rounded", "Cast", {"x"},
               {{"SrcT", tensorflow::DT_DOUBLE}, {"DstT", DT_FLOAT}, {"Truncate", truncate}});
  }
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(KernelOp(built, built->regions[0], "rounded").kind, OpKind::kScalar);
  EXPECT_EQ(KernelOp(built, built->regions[0], "truncated").kind, OpKind::kKernel);
}

// Call sites.

TEST(ProgramTest, CallersHaveAnOperatorForEachSiteThatKnowsItsCallee) {
  const StaticGraph graph = FibGraph();
  const BuiltProgram built = BuildOrFail(graph);
  const Region& fib = RegionOf(built, "Fib");
  ASSERT_EQ(built->sites.size(), 3);
  std::vector<std::string> called;
  for (const Region* caller : {&built->regions[0], &fib}) {
    for (const Op* op : OpsOf(*caller, OpKind::kCallSite)) {
      const CallSite& site = built->sites.at(op->index);
      EXPECT_EQ(site.callee, &fib);
      EXPECT_EQ(caller == &fib, site.call_id > 1) << site.name;
      EXPECT_EQ(site.name, site.call_id == 1 ? "main" : site.call_id == 2 ? "Fib/f1" : "Fib/f2");
      called.push_back(site.name);
    }
  }
  std::sort(called.begin(), called.end());
  EXPECT_EQ(called, (std::vector<std::string>{"Fib/f1", "Fib/f2", "main"}));
  EXPECT_EQ(fib.num_results, 1);
  EXPECT_EQ(fib.entries.size(), 1);
  EXPECT_EQ(fib.ops[fib.entries[0]].kind, OpKind::kEntry);
}

TEST(ProgramTest, OptionsComeFromFrameStarts) {
  StaticGraph graph;
  graph.Function("F", {"x"}, 17).Result("F", "F/x");
  EXPECT_EQ(BuildOrFail(graph)->options.max_depth, 17);
}

TEST(ProgramTest, ConstantArgumentsTravelWithTheOthers) {
  StaticGraph graph;
  graph.Arg("x").Const("c", 5).Call("main", "F", 1, {"x", "c"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Op("F/sum", "AddV2", {"F/a", "F/b"}).Result("F", "F/sum");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  const Op& site = OnlyOp(root, OpKind::kCallSite);
  EXPECT_EQ(site.num_inputs, 2);
  EXPECT_EQ(site.num_tokens, 1);
  EXPECT_EQ(TemplateSlot(root, site.slot + 1).int32, 5);
}

TEST(ProgramTest, CallsOfConstantsAloneGetTokens) {
  StaticGraph graph;
  graph.Const("c", 5).Call("main", "F", 1, {"c"}).Retval("main/return_0");
  graph.Function("F", {"a"}).Result("F", "F/a");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  EXPECT_EQ(OnlyOp(root, OpKind::kCallSite).num_tokens, 1);
  EXPECT_EQ(root.sources.size(), 1);
}

// What a recursion hands down and reads on the way stays with the frame that got it first.
TEST(ProgramTest, ArgumentsThatAreReadAndPassedOnHaveALendingSlot) {
  StaticGraph graph;
  graph.Function("F", {"kept", "moved"}).Kernel("F/k", {"F/kept"}).Call("F/call", "F", 2, {"F/moved", "F/kept"});
  graph.Op("F/sum", "AddV2", {"F/k", "F/call/return_0"}).Result("F", "F/sum");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& f = RegionOf(built, "F");
  EXPECT_NE(f.ops[f.entries[0]].lending_slot, kNone);
  EXPECT_LT(f.ops[f.entries[0]].lending_slot, f.num_slots);
  EXPECT_EQ(f.ops[f.entries[1]].lending_slot, kNone);
}

// F(n, w) = F(n - 1, w) * w: the frame has no slot for w, only one for where the invariants are.
TEST(ProgramTest, InvariantsHaveNoSlots) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "w"}).Kernel("F/n1", {"F/n"}).Call("F/call", "F", 2, {"F/n1", "F/w"});
  graph.Kernel("F/k", {"F/call/return_0", "F/w"}).Result("F", "F/k");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& f = RegionOf(built, "F");
  EXPECT_EQ(f.num_invariants, 1);
  EXPECT_EQ(f.num_slots, 2);  // n1 for the call, and the invariants
  EXPECT_EQ(OnlyOp(f, OpKind::kCallSite).num_inputs, 1);
  EXPECT_EQ(f.entries, (std::vector<OpId>{f.entries[0], OpId()}));
  EXPECT_TRUE(f.delivered_invariants.empty());
  const Op& outer = OnlyOp(built->regions[0], OpKind::kCallSite);
  EXPECT_EQ(outer.num_inputs, 2);
  EXPECT_EQ(built->sites[outer.index].num_invariants, 1);
  EXPECT_EQ(built->sites[OnlyOp(f, OpKind::kCallSite).index].num_invariants, 0);
}

// Passes, gates, controls.

TEST(ProgramTest, IdentitiesAreTakenOut) {
  StaticGraph graph;
  graph.Arg("x").Op("a", "Identity", {"x"}).Op("b", "Identity", {"a", "^x"}).Kernel("k", {"b", "^a"}).Retval("k");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  EXPECT_EQ(CountOf(root, OpKind::kPass), 0);
  EXPECT_EQ(KernelOp(built, root, "k").num_tokens, 1);
}

TEST(ProgramTest, IdentitiesThatWaitForEffectsStay) {
  StaticGraph graph;
  graph.Arg("x").Kernel("effect", {"x"}, 0, true).Op("late", "Identity", {"x", "^effect"}).Retval("late");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  EXPECT_EQ(OnlyOp(root, OpKind::kPass).num_tokens, 2);
}

TEST(ProgramTest, ControlsThatFollowAnywayAreDropped) {
  StaticGraph graph;
  graph.Arg("x").Op("y", "AddV2", {"x", "x"}).Kernel("k", {"x", "^y"}).Retval("k");
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(KernelOp(built, built->regions[0], "k").num_tokens, 1);
}

TEST(ProgramTest, ControlsOnEffectsStay) {
  StaticGraph graph;
  graph.Arg("x").Kernel("effect", {"x"}, 1, true).Kernel("k", {"x", "^effect"}).Retval("k");
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(KernelOp(built, built->regions[0], "k").num_tokens, 2);
}

TEST(ProgramTest, ControlsThatTellTheBranchStay) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("switch", "Switch", {"x", "p"});
  graph.Op("taken", "AddV2", {"switch:1", "switch:1"}).Const("one", 1, {"^taken"});
  graph.Kernel("in_branch", {"one"}).Kernel("beside", {"switch:1", "^taken"});
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(KernelOp(built, built->regions[0], "in_branch").num_tokens, 1);  // waits although it reads a constant
  EXPECT_EQ(KernelOp(built, built->regions[0], "beside").num_tokens, 1);
}

TEST(ProgramTest, SwitchesAreGatesOfTheBranchOnTheirPredicate) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Arg("p", 2, tensorflow::DT_BOOL);
  graph.Op("a", "Switch", {"x", "p"}).Op("b", "Switch", {"y", "p"});
  graph.Kernel("k", {"a:1", "b:1"}).Retval("k");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  const Op& branch = OnlyOp(root, OpKind::kBranch);
  EXPECT_EQ(branch.gates_end - branch.index, 2);
  for (const Op* gate : OpsOf(root, OpKind::kGate)) {
    EXPECT_EQ(gate->index, &branch - root.ops.data());  // where the gate looks for its predicate
    EXPECT_NE(std::find(root.gates.begin(), root.gates.end(), gate - root.ops.data()), root.gates.end());
  }
}

TEST(ProgramTest, SwitchesThatWaitForMoreAreNoGates) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Kernel("effect", {"x"}, 0, true);
  graph.Op("switch", "Switch", {"x", "p", "^effect"}).Retval("switch");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  EXPECT_EQ(CountOf(root, OpKind::kGate), 0);
  EXPECT_EQ(OnlyOp(root, OpKind::kSwitch).num_tokens, 3);
}

TEST(ProgramTest, MergesWithNothingElseToDoPassOn) {
  const StaticGraph graph = FibGraph();
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_TRUE(OnlyOp(RegionOf(built, "Fib"), OpKind::kMerge).lets_first_through);

  StaticGraph read;
  read.Arg("x").Node("merge", "Merge", {"x", "x"}, {{"T", kInt}, {"N", 2}}).Retval("merge").Retval("merge:1", 1);
  const BuiltProgram both = BuildOrFail(read);
  EXPECT_FALSE(OnlyOp(both->regions[0], OpKind::kMerge).lets_first_through);
}

TEST(ProgramTest, MergesWaitForControlsBehindAUnion) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"}).Kernel("effect", {"switch:1"}, 1, true);
  graph.Node("merge", "Merge", {"switch", "switch:1", "^effect"}, {{"T", kInt}, {"N", 2}}).Retval("merge");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  const Op& merge = OnlyOp(root, OpKind::kMerge);
  EXPECT_EQ(merge.num_tokens, 2);  // a value, and the union
  EXPECT_FALSE(merge.lets_first_through);
  EXPECT_EQ(OnlyOp(root, OpKind::kUnion).num_tokens, 1);
}

TEST(ProgramTest, ResultsWithControlsWaitForThem) {
  StaticGraph graph;
  graph.Function("F", {"x"}).Kernel("F/effect", {"F/x"}, 0, true).Result("F", "F/x", 0, kInt, {"^F/effect"});
  const BuiltProgram built = BuildOrFail(graph);
  EXPECT_EQ(OnlyOp(RegionOf(built, "F"), OpKind::kPass).num_tokens, 2);
}

// Loops.

TEST(ProgramTest, LoopsDeliverTheirVariables) {
  StaticGraph graph;
  graph.Arg("x").Const("zero", 0).Enter("i", "zero", "loop").Enter("n", "x", "loop", true);
  graph.Node("merge", "Merge", {"i", "next"}, {{"T", kInt}, {"N", 2}});
  graph.Op("less", "Less", {"merge", "n"}).Node("cond", "LoopCond", {"less"});
  graph.Op("switch", "Switch", {"merge", "cond"}).Op("exit", "Exit", {"switch"}).Retval("exit");
  graph.Const("one", 1, {"^switch"}).Op("add", "AddV2", {"switch:1", "one"}).Op("next", "NextIteration", {"add"});
  const BuiltProgram built = BuildOrFail(graph);
  ASSERT_EQ(built->loops.size(), 1);
  const Loop& loop = built->loops[0];
  EXPECT_EQ(loop.name, "loop");
  EXPECT_EQ(loop.parent, &built->regions[0]);
  EXPECT_EQ(loop.body, &RegionOf(built, "loop"));
  EXPECT_EQ(loop.starts.size(), 1);
  EXPECT_EQ(loop.constants.size(), 1);
  EXPECT_EQ(loop.nexts.size(), 1);
  EXPECT_EQ(loop.starts[0].entry, loop.nexts[0].entry);
  EXPECT_EQ(loop.parent->ops[loop.start_op].kind, OpKind::kLoopStart);
  EXPECT_EQ(OnlyOp(*loop.body, OpKind::kLoopNext).index, 0);
  EXPECT_EQ(NumReaders(*loop.parent, loop.parent->ops[loop.start_op], 0), 1);
}

TEST(ProgramTest, OnlyTheLastOfSeveralDeliveriesTakesTheValue) {
  StaticGraph graph;
  graph.Arg("x").Enter("enter", "x", "loop");
  graph.Node("a", "Merge", {"enter", "next"}, {{"T", kInt}, {"N", 2}});
  graph.Node("b", "Merge", {"enter", "next"}, {{"T", kInt}, {"N", 2}});
  graph.Op("less", "Less", {"a", "b"}).Node("cond", "LoopCond", {"less"});
  graph.Op("switch_a", "Switch", {"a", "cond"}).Op("switch_b", "Switch", {"b", "cond"});
  graph.Op("next", "NextIteration", {"switch_a:1"}).Op("exit", "Exit", {"switch_b"}).Retval("exit");
  const BuiltProgram built = BuildOrFail(graph);
  const Loop& loop = built->loops[0];
  ASSERT_EQ(loop.nexts.size(), 2);
  EXPECT_EQ(loop.nexts[0].slot, loop.nexts[1].slot);
  EXPECT_FALSE(loop.nexts[0].is_last);
  EXPECT_TRUE(loop.nexts[1].is_last);
}

// Malformed graphs.

StaticGraph MainAndIdentity() {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x"}).Result("F", "F/x");
  return graph;
}

TEST(ProgramTest, RefusesTwoSitesWithOneId) {
  StaticGraph graph = MainAndIdentity();
  graph.Function("G", {"x"}).Call("G/again", "F", 1, {"G/x"}).Result("G", "G/again/return_0");
  ExpectFault(graph, {"call_id 1", "one call site"});
}

TEST(ProgramTest, RefusesOneIdForTwoFunctions) {
  StaticGraph graph = MainAndIdentity();
  graph.Function("G", {"x"}).Result("G", "G/x");
  graph.Node("other/call_1", kCallOp, {"x0"}, StaticGraph::SiteAttrs("G", 1, 1));
  ExpectFault(graph, {"call_id 1", "'F'", "'G'"});
}

TEST(ProgramTest, RefusesOneArgumentTwice) {
  StaticGraph graph = MainAndIdentity();
  graph.Node("other/call_0", kCallOp, {"x0"}, StaticGraph::SiteAttrs("F", 1, 0));
  ExpectFault(graph, {"index 0 of call_id 1 is taken"});
}

TEST(ProgramTest, RefusesGapsInArguments) {
  StaticGraph graph = MainAndIdentity();
  graph.Node("main/call_2", kCallOp, {"x0"}, StaticGraph::SiteAttrs("F", 1, 2));
  ExpectFault(graph, {"Call of 'F' at 'main'", "without gaps"});
}

TEST(ProgramTest, RefusesCallsWithoutTheLastArgumentThatABodyReads) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x", "y"}).Op("F/sum", "AddV2", {"F/x", "F/y"}).Result("F", "F/sum");
  ExpectFault(graph, {"Call of 'F' at 'main'", "lacks argument 1", "the function takes"});
}

TEST(ProgramTest, RefusesCallsOfMissingBodies) {
  StaticGraph graph;
  AddMain(&graph, "Nowhere", 1);
  ExpectFault(graph, {"Call of 'Nowhere' at 'main'", "no body"});
}

TEST(ProgramTest, RefusesReturnsWithoutACall) {
  StaticGraph graph;
  graph.Return("main", "F", 1, 0, {}).Retval("main/return_0").Function("F", {"x"}).Result("F", "F/x");
  ExpectFault(graph, {"Call of 'F' at 'main'", "no Call"});
}

TEST(ProgramTest, RefusesArgumentsOfAnotherType) {
  StaticGraph graph;
  graph.Arg("x", 0, DT_FLOAT).Node("main/call_0", kCallOp, {"x"}, StaticGraph::SiteAttrs("F", 1, 0, DT_FLOAT));
  graph.Return("main", "F", 1, 0, {"^main/call_0"}).Retval("main/return_0");
  graph.Function("F", {"x"}).Result("F", "F/x");
  ExpectFault(graph, {"Call of 'F' at 'main'", "argument 0 is float", "takes int32"});
}

TEST(ProgramTest, RefusesResultsOfAnotherType) {
  StaticGraph graph;
  graph.Arg("x").Node("main/call_0", kCallOp, {"x"}, StaticGraph::SiteAttrs("F", 1, 0));
  graph.Return("main", "F", 1, 0, {"^main/call_0"}, DT_FLOAT).Retval("main/return_0", 0, DT_FLOAT);
  graph.Function("F", {"x"}).Result("F", "F/x");
  ExpectFault(graph, {"Call of 'F' at 'main'", "output 0 as float", "int32"});
}

TEST(ProgramTest, RefusesReturnsOfMissingResults) {
  StaticGraph graph = MainAndIdentity();
  graph.Return("main", "F", 1, 1, {"^main/call_0"}).Retval("main/return_1", 1);
  ExpectFault(graph, {"Call of 'F' at 'main'", "output 1"});
}

TEST(ProgramTest, RefusesOneResultTwice) {
  StaticGraph graph = MainAndIdentity();
  graph.Node("F/other", kResultOp, {"F/x"}, {{kTypeAttr, kInt}, {kFunctionAttr, "F"}, {kIndexAttr, 0}});
  ExpectFault(graph, {"result 0", "'F/"});
}

TEST(ProgramTest, RefusesResultsOfAnotherFunction) {
  StaticGraph graph = MainAndIdentity();
  graph.Node("stray", kResultOp, {"x0"}, {{kTypeAttr, kInt}, {kFunctionAttr, "F"}, {kIndexAttr, 0}});
  ExpectFault(graph, {"'stray'", "does not belong to its body"});
}

TEST(ProgramTest, RefusesOneEntryTwice) {
  StaticGraph graph = MainAndIdentity();
  graph.Entry("F", "y", 0);
  ExpectFault(graph, {"argument 0 has an entry already"});
}

TEST(ProgramTest, RefusesTwoFrameStarts) {
  StaticGraph graph = MainAndIdentity();
  graph.Node("F/other", kFrameStartOp, {}, {{kFunctionAttr, "F"}, {kMaxDepthAttr, 1}, {kWorkersAttr, 0}});
  ExpectFault(graph, {"'F' has a FrameStart already"});
}

TEST(ProgramTest, RefusesDepthsBelowOne) {
  StaticGraph graph;
  graph.Function("F", {"x"}, 0).Result("F", "F/x");
  ExpectFault(graph, {"'F/frame_start'", "max_depth must be at least 1, got 0"});
}

TEST(ProgramTest, RefusesACallThatWaitsForItself) {
  StaticGraph graph;
  graph.Function("F", {"x"}).Result("F", "F/x");
  graph.Return("self", "F", 1, 0, {})
      .Node("self/call_0", kCallOp, {"self/return_0"}, StaticGraph::SiteAttrs("F", 1, 0));
  ExpectFault(graph, {"Node 'self/", "cycle"});
}

TEST(ProgramTest, RefusesArgumentsOfTheGraphInABody) {
  StaticGraph graph;
  graph.Function("F", {"x"}).Retval("F/x");
  ExpectFault(graph, {"'retval_0' stands inside a function's body"});
}

TEST(ProgramTest, KeepsConstantsAndArithmeticWhereTheyAre) {
  StaticGraph graph;
  graph.Const("f1", 1.5f).Const("f2", 2.5f).Op("f", "AddV2", {"f1", "f2"}, tensorflow::DT_FLOAT);
  graph.Const("i1", 1).Const("i2", 2).Op("i", "AddV2", {"i1", "i2"});
  graph.Retval("f", 0, tensorflow::DT_FLOAT).Retval("i", 1);
  int made = 0;  // constants in the device's memory, which for this test is the host's too
  const DeviceMemory gpu(tensorflow::DEVICE_GPU, [&](const tensorflow::TensorProto& proto, tensorflow::Tensor* tensor) {
    ++made;
    return tensor->FromProto(proto) ? absl::OkStatus() : absl::InternalError("no tensor");
  });
  BuiltProgram built;
  ASSERT_TRUE(Construct(graph.graph(), &built.graph).ok());
  ASSERT_TRUE(BuildProgram(*built.graph, gpu, VariableReads::kInEveryFrame, &built.program).ok());
  EXPECT_EQ(made, 2);
  const Region& root = built->regions[0];
  EXPECT_EQ(OpsOf(root, OpKind::kKernel).size(), 1);  // of floats, on the device
  EXPECT_EQ(OpsOf(root, OpKind::kScalar).size(), 1);  // of integers
  for (const ConstantTensor& constant : built->constants) {
    EXPECT_EQ(constant.is_on_host, constant.tensor.dtype() == tensorflow::DT_INT32);
  }
  const auto is_boxed = [](const Value& input) { return input.kind == Value::Kind::kConstant; };
  EXPECT_EQ(std::count_if(root.inputs.begin(), root.inputs.end(), is_boxed), 2)
      << "what is on the device keeps its box";
}

TEST(ProgramTest, RefusesGapsAtTheBoundary) {
  StaticGraph graph;
  graph.Arg("x", 1).Retval("x");
  ExpectFault(graph, {"0 of the graph is missing"});
}

}  // namespace
}  // namespace tensorflow_recursion
