// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/expand_calls.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tests/cc/expand/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Transforms, and checks that a session could build the result and tell its loops.
GraphDef Expand(const GraphDef& graph, const Inputs& fetches, const Inputs& feeds = {}) {
  ExpandOptions options;
  options.fetches = fetches;
  options.feeds = feeds;
  GraphDef expanded;
  const absl::Status status = ExpandCalls(graph, options, &expanded);
  EXPECT_TRUE(status.ok()) << status;
  std::unique_ptr<tensorflow::Graph> built;
  const absl::Status construction = Construct(expanded, &built);
  EXPECT_TRUE(construction.ok()) << construction;
  std::vector<tensorflow::ControlFlowInfo> info;
  const absl::Status frames = tensorflow::BuildControlFlowInfo(built.get(), &info);
  EXPECT_TRUE(frames.ok()) << frames;
  return expanded;
}

void ExpectFault(const GraphDef& graph, const Inputs& fetches, const std::string& text) {
  ExpandOptions options;
  options.fetches = fetches;
  GraphDef expanded;
  const absl::Status status = ExpandCalls(graph, options, &expanded);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
}

void ExpectFault(const GraphBuilder& builder, const Inputs& fetches, const std::string& text) {
  ExpectFault(builder.graph(), fetches, text);
}

GraphBuilder OneCall() {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Node("z", "Identity", {"y"}, {{"T", kInt}}).Function(Endless("F", "F"));
  return builder;
}

int64_t CallId(const GraphDef& graph, const std::string& node) { return Find(graph, node)->attr().at("call_id").i(); }

// The graph as a whole.

TEST(ExpandCallsTest, CopiesAGraphWithoutCalls) {
  GraphBuilder builder;
  builder.Const("x").Node("y", "Identity", {"x"}, {{"T", kInt}});
  EXPECT_FALSE(HasExpandableCalls(builder.graph()));
  EXPECT_EQ(Expand(builder.graph(), {"y:0"}).DebugString(), builder.graph().DebugString());
}

TEST(ExpandCallsTest, LeavesTheBodyOfAFunctionAlone) {
  GraphBuilder builder;
  builder.Node("x", "_Arg", {}, {{"T", kInt}, {"index", 0}}).Call("y", "F", {"x"}).Function(Endless("F", "F"));
  EXPECT_FALSE(HasExpandableCalls(builder.graph()));
}

TEST(ExpandCallsTest, LeavesAnExpandedGraphAlone) {
  const GraphDef once = Expand(OneCall().graph(), {"z:0"});
  EXPECT_FALSE(HasExpandableCalls(once));
}

TEST(ExpandCallsTest, IsDeterministic) {
  const GraphDef graph = OneCall().graph();
  EXPECT_EQ(Expand(graph, {"z:0"}).DebugString(), Expand(graph, {"z:0"}).DebugString());
}

TEST(ExpandCallsTest, KeepsTheLibrary) { EXPECT_EQ(Expand(OneCall().graph(), {"z:0"}).library().function_size(), 1); }

TEST(ExpandCallsTest, PutsEachBodyInOnce) {
  GraphBuilder builder = OneCall();
  builder.Call("y2", "F", {"y"});
  const GraphDef expanded = Expand(builder.graph(), {"y2:0"});
  EXPECT_EQ(NodesOf(expanded, kEntryOp).size(), 1);
  EXPECT_EQ(NodesOf(expanded, kFrameStartOp).size(), 1);
  EXPECT_EQ(Names(NodesOf(expanded, kResultOp)), (std::set<std::string>{"F/r"}));
  EXPECT_TRUE(NodesOf(expanded, kInvokeOp).empty());
}

TEST(ExpandCallsTest, TransformsOnlyWhatIsFetched) {
  GraphBuilder builder = OneCall();
  builder.Call("other", "G", {"x"}).Function(Endless("G", "Undefined"));
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(Find(expanded, "other"), nullptr);
  EXPECT_EQ(Find(expanded, "G/n"), nullptr);
}

TEST(ExpandCallsTest, TransformsEverythingWithoutFetches) {
  GraphBuilder builder = OneCall();
  builder.Call("other", "G", {"x"}).Function(Endless("G", "G"));
  const GraphDef expanded = Expand(builder.graph(), {});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/n", "G/n"}));
  EXPECT_NE(Find(expanded, "other"), nullptr);
}

// Call sites.

TEST(ExpandCallsTest, SitesHaveACallPerArgumentAndAReturnPerOutput) {
  GraphBuilder builder;
  builder.Const("a").Const("b").Call("y", "Swap", {"a", "b"}, {kInt, kInt}, {kInt, kInt});
  builder.Node("z", "AddV2", {"y", "y:1"}, {{"T", kInt}});
  builder.Function(FunctionDefHelper::Create("Swap", {"a: int32", "b: int32"}, {"c: int32", "d: int32"}, {}, {},
                                             {{"c", "b"}, {"d", "a"}}));
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "y/call_0"), Inputs{"a"});
  EXPECT_EQ(InputsOf(expanded, "y/call_1"), Inputs{"b"});
  EXPECT_EQ(InputsOf(expanded, "y/return_1"), (Inputs{"recursion_keep_alive/Swap", "^y/call_0", "^y/call_1"}));
  EXPECT_EQ(InputsOf(expanded, "z"), (Inputs{"y/return_0", "y/return_1"}));
  EXPECT_EQ(CallId(expanded, "y/call_0"), CallId(expanded, "y/return_1"));
}

TEST(ExpandCallsTest, SitesHaveTheirOwnIds) {
  const GraphDef expanded = Expand(OneCall().graph(), {"z:0"});
  EXPECT_EQ(CallId(expanded, "y/call_0"), 1);
  EXPECT_EQ(CallId(expanded, "F/call/call_0"), 2);
}

TEST(ExpandCallsTest, CallsTakeTheControlInputsOfTheSite) {
  GraphBuilder builder = OneCall();
  builder.Const("first").Call("later", "F", {"x", "^first"});
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"later:0"}), "later/call_0"), (Inputs{"x", "^first"}));
}

TEST(ExpandCallsTest, OnlyReturnsOfTheMainGraphHoldTheBodies) {
  const GraphDef expanded = Expand(OneCall().graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "y/return_0"), (Inputs{"recursion_keep_alive/F", "^y/call_0"}));
  EXPECT_EQ(InputsOf(expanded, "F/call/return_0"), Inputs{"^F/call/call_0"});
  EXPECT_EQ(InputsOf(expanded, "recursion_keep_alive/F"), (Inputs{"^F/recursion_frame_start", "^F/r"}));
}

TEST(ExpandCallsTest, KeepAlivesHoldAllThatTheComponentCalls) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "Even", {"x"}).Function(Endless("Even", "Odd")).Function(Endless("Odd", "Even"));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/Even", "^Even/r"));
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/Even", "^Odd/r"));
}

TEST(ExpandCallsTest, StatedShapesStay) {
  GraphBuilder builder = OneCall();
  GraphDef graph = builder.graph();
  NodeDef* call = graph.mutable_node(1);
  (*call->mutable_attr())["output_shapes"].mutable_list()->add_shape()->add_dim()->set_size(3);
  const GraphDef expanded = Expand(graph, {"z:0"});
  EXPECT_EQ(Find(expanded, "y/return_0")->attr().at("shape").shape().dim(0).size(), 3);
  EXPECT_TRUE(Find(expanded, "F/call/return_0")->attr().at("shape").shape().unknown_rank());
}

TEST(ExpandCallsTest, CallsWithoutArgumentsOpenTheFrameByAConstant) {
  GraphBuilder builder;
  builder.Const("first").Call("y", "F", {"^first"}, {});
  builder.Function(
      FunctionDefHelper::Create("F", {}, {"r: int32"}, {}, {BodyCall("call", "F", {}, {})}, {{"r", "call:results:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(Find(expanded, "y/call")->attr().at("value").tensor().dtype(), tensorflow::DT_BOOL);
  EXPECT_EQ(InputsOf(expanded, "y/call"), Inputs{"^first"});
  EXPECT_EQ(InputsOf(expanded, "F/call/call"), Inputs{"^F/recursion_frame_start"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/recursion_start"}));
}

// Bodies.

TEST(ExpandCallsTest, InputlessNodesOfBodiesStartByTheirFrameStart) {
  EXPECT_EQ(InputsOf(Expand(OneCall().graph(), {"z:0"}), "F/one"), Inputs{"^F/recursion_frame_start"});
}

TEST(ExpandCallsTest, FrameStartsCarryTheOptions) {
  ExpandOptions options;
  options.run.max_depth = 17;
  options.run.workers = 3;
  GraphDef expanded;
  ASSERT_TRUE(ExpandCalls(OneCall().graph(), options, &expanded).ok());
  EXPECT_EQ(Find(expanded, "F/recursion_frame_start")->attr().at("max_depth").i(), 17);
  EXPECT_EQ(Find(expanded, "F/recursion_frame_start")->attr().at("workers").i(), 3);
}

TEST(ExpandCallsTest, BodiesAvoidNamesOfTheMainGraph) {
  GraphBuilder builder = OneCall();
  builder.Const("F/n").Call("w", "F", {"F/n"});
  const GraphDef expanded = Expand(builder.graph(), {"w:0"});
  EXPECT_EQ(Find(expanded, "F/n")->op(), "Const");
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/n_1"}));
}

TEST(ExpandCallsTest, BodyNamesDoNotDependOnWhatIsFetched) {
  GraphBuilder whole = OneCall();
  whole.Const("F/n").Const("F/unrelated");
  std::vector<std::string> names;
  for (const NodeDef& node : whole.graph().node()) names.push_back(node.name());
  const std::vector<std::string> taken = TakenNames(names, whole.graph().library());
  EXPECT_EQ(taken, std::vector<std::string>{"F/n"});

  GraphDef pruned = OneCall().graph();
  SetAttrValue(taken, &(*pruned.mutable_node(1)->mutable_attr())[kTakenNamesAttr]);
  EXPECT_EQ(Names(NodesOf(Expand(pruned, {"z:0"}), kEntryOp)), (std::set<std::string>{"F/n_1"}));
}

TEST(ExpandCallsTest, ResultsAvoidNamesOfBodyNodes) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"n_out: int32"}, {},
                                             {MakeBodyNode("n_out", "Identity", {"n"}, {{"T", kInt}})},
                                             {{"n_out", "n_out:output:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(Find(expanded, "F/n_out")->op(), "Identity");
  EXPECT_EQ(Names(NodesOf(expanded, kResultOp)), (std::set<std::string>{"F/n_out_1"}));
}

TEST(ExpandCallsTest, ControlFlowOfBodiesBecomesSwitchesAndMerges) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {},
                                             {BodyTrue("p"), BodyIf("if", "Then", "Else")}, {{"r", "if:output:0"}}));
  builder.Function(Endless("Then", "F"));
  builder.Function(FunctionDefHelper::Create("Else", {"n: int32"}, {"r: int32"}, {}, {}, {{"r", "n"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_TRUE(NodesOf(expanded, "If").empty());
  EXPECT_FALSE(NodesOf(expanded, "Switch").empty());
  EXPECT_EQ(NodesOf(expanded, kCallOp).size(), 2) << "one in the main graph, one in the branch";
}

TEST(ExpandCallsTest, ControlFlowOfTheMainGraphIsExpandedWhereItHoldsCalls) {
  const Types types = {kInt};
  GraphBuilder builder;
  builder.Node("p", "Placeholder", {}, {{"dtype", tensorflow::DT_BOOL}});
  builder.Const("x").Node("if", "If", {"p", "x"},
                          {{"Tcond", tensorflow::DT_BOOL},
                           {"Tin", tensorflow::DataTypeSlice(types)},
                           {"Tout", tensorflow::DataTypeSlice(types)},
                           {"then_branch", FunctionDefHelper::FunctionRef("F")},
                           {"else_branch", FunctionDefHelper::FunctionRef("F")}});
  builder.Function(Endless("F", "F"));
  EXPECT_TRUE(HasExpandableCalls(builder.graph()));
  const GraphDef expanded = Expand(builder.graph(), {"if:0"});
  EXPECT_TRUE(NodesOf(expanded, "If").empty());
  EXPECT_EQ(NodesOf(expanded, kCallOp).size(), 3) << "one in each branch, one in the body";
  EXPECT_NE(Find(expanded, "if"), nullptr) << "the fetched name stays";
}

// Fetched, fed and awaited calls.

TEST(ExpandCallsTest, NobodyElseKeepsTheNameOfACall) {
  const GraphDef expanded = Expand(OneCall().graph(), {"z:0"});
  EXPECT_EQ(Find(expanded, "y"), nullptr);
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"y/return_0"});
}

TEST(ExpandCallsTest, FetchedCallsKeepTheirName) {
  const GraphDef expanded = Expand(OneCall().graph(), {"y:0", "z:0"});
  EXPECT_EQ(Find(expanded, "y")->op(), "Identity");
  EXPECT_EQ(InputsOf(expanded, "y"), Inputs{"y/return_0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"y/return_0"});
}

TEST(ExpandCallsTest, ConsumersOfFedCallsReadWhatIsFed) {
  const GraphDef expanded = Expand(OneCall().graph(), {"z:0"}, {"y:0"});
  EXPECT_EQ(Find(expanded, "y")->op(), "Identity");
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"y"});
}

// F(n) = (n, F(n)[1]): two outputs that have nothing to do with each other.
GraphBuilder TwoOutputs() {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}, {kInt}, {kInt, kInt});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"a: int32", "b: int32"}, {},
                                             {BodyCall("call", "F", {"n"}, {kInt}, {kInt, kInt})},
                                             {{"a", "n"}, {"b", "call:results:1"}}));
  return builder;
}

TEST(ExpandCallsTest, OutputsThatNobodyNeedsAreLeftOut) {
  const GraphDef first = Expand(TwoOutputs().graph(), {"y:0"});
  EXPECT_EQ(Names(NodesOf(first, kResultOp)), (std::set<std::string>{"F/a"}));
  EXPECT_EQ(Find(first, "F/call/call_0"), nullptr) << "the recursion serves only the other output";
}

TEST(ExpandCallsTest, FetchingOneOutputDoesNotWaitForAnother) {
  const GraphDef second = Expand(TwoOutputs().graph(), {"y:1"});
  EXPECT_EQ(InputsOf(second, "y"), (Inputs{"y/return_1", "y/return_1"}));
  EXPECT_EQ(Names(NodesOf(second, kResultOp)), (std::set<std::string>{"F/b"}));
}

TEST(ExpandCallsTest, FetchingTheNodeTakesAllOutputs) {
  EXPECT_EQ(InputsOf(Expand(TwoOutputs().graph(), {"y"}), "y"), (Inputs{"y/return_0", "y/return_1"}));
}

TEST(ExpandCallsTest, ControlConsumersWaitForAllOutputs) {
  GraphBuilder builder = TwoOutputs();
  builder.Node("after", "NoOp", {"^y"});
  const GraphDef expanded = Expand(builder.graph(), {"after"});
  EXPECT_EQ(Find(expanded, "y")->op(), "NoOp");
  EXPECT_EQ(InputsOf(expanded, "y"), (Inputs{"^y/return_0", "^y/return_1"}));
}

// Side effects.

const Types kInts = {kInt};

// F(n) asserts, calls itself, and returns n.
GraphBuilder Effectful() {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Node("after", "NoOp", {"^y"});
  builder.Function(FunctionDefHelper::Create(
      "F", {"n: int32"}, {"r: int32"}, {},
      {BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "n"}, {{"T", tensorflow::DataTypeSlice(kInts)}}),
       BodyCall("call", "F", {"n"})},
      {{"r", "n"}}));
  return builder;
}

TEST(ExpandCallsTest, SideEffectsOfALiveFunctionStay) {
  const GraphDef expanded = Expand(Effectful().graph(), {"y:0"});
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/F", "^F/assert"));
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/F", "^F/call/call_0"));
  EXPECT_EQ(Find(expanded, "F/recursion_done"), nullptr) << "nobody waits for them";
}

TEST(ExpandCallsTest, ControlConsumersWaitForSideEffects) {
  const GraphDef expanded = Expand(Effectful().graph(), {"after"});
  EXPECT_EQ(InputsOf(expanded, "y"), (Inputs{"^y/return_0", "^y/return_1"}));
  EXPECT_EQ(Find(expanded, "F/recursion_done")->attr().at("index").i(), 1);
  EXPECT_EQ(InputsOf(expanded, "F/recursion_done/true"), Inputs{"^F/recursion_done/effects"});
  EXPECT_EQ(Find(expanded, "F/recursion_done/effects")->op(), "ControlTrigger") << "dead branches must not kill it";
  EXPECT_EQ(InputsOf(expanded, "F/recursion_done/effects"), (Inputs{"^F/assert", "^F/call/return_1"}));
}

TEST(ExpandCallsTest, FunctionsWithoutOutputsSayWhenTheyAreDone) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}, {kInt}, {});
  builder.Function(
      FunctionDefHelper::Create("F", {"n: int32"}, {}, {}, {BodyCall("call", "F", {"n"}, {kInt}, {})}, {}));
  const GraphDef expanded = Expand(builder.graph(), {"y"});
  EXPECT_EQ(Find(expanded, "y")->op(), "NoOp");
  EXPECT_EQ(InputsOf(expanded, "y"), Inputs{"^y/return_0"});
  EXPECT_EQ(InputsOf(expanded, "F/recursion_done/true"), Inputs{"^F/recursion_frame_start"});
}

// Gradients.

using tensorflow::DT_VARIANT;

Attrs RecordAttrs(const std::string& function, const Types& types) {
  return {{"T", tensorflow::DataTypeSlice(types)}, {"function", function}};
}

// A call of F that can be differentiated.
Attrs ForwardAttrs() {
  Attrs attrs = GraphBuilder::CallAttrs("F", kInts, kInts);
  attrs.emplace_back("forward", "F__forward1");
  return attrs;
}

// F(n) = F(n) + 1 retains n, its result, the record of its call, and the 1.
FunctionDef Forward() {
  return FunctionDefHelper::Create("F__forward1", {"n: int32"}, {"r: int32", "record: variant"}, {},
                                   {BodyConst("one"), MakeBodyNode("call", kInvokeOp, {"n"}, ForwardAttrs()),
                                    MakeBodyNode("add", "AddV2", {"call:results:0", "one:output:0"}, {{"T", kInt}}),
                                    MakeBodyNode("retain", kRetainOp, {"n", "add:z:0", "call:record:0", "one:output:0"},
                                                 RecordAttrs("F", {kInt, kInt, DT_VARIANT, kInt}))},
                                   {{"r", "add:z:0"}, {"record", "retain:record:0"}});
}

// x, y = F(x), and g, two gradients of y, of which `backward` computes (a, b).
GraphBuilder DifferentiatedBy(const std::vector<BodyNode>& backward, const std::string& a, const std::string& b) {
  GraphBuilder builder;
  builder.Const("x").Const("dy").Node("y", kInvokeOp, {"x"}, ForwardAttrs());
  builder.Call("g", "F__backward1", {"y:1", "dy"}, {DT_VARIANT, kInt}, {kInt, kInt});
  builder.Function(Endless("F", "F")).Function(Forward());
  return builder.Function(FunctionDefHelper::Create("F__backward1", {"record: variant", "dy: int32"},
                                                    {"a: int32", "b: int32"}, {}, backward, {{"a", a}, {"b", b}}));
}

BodyNode RecallAll() {
  return MakeBodyNode("recall", kRecallOp, {"record"}, RecordAttrs("F", {kInt, kInt, DT_VARIANT, kInt}));
}

BodyNode GradientCall(const Inputs& inputs = {"recall:values:2", "dy"}) {
  return BodyCall("inner", "F__backward1", inputs, {DT_VARIANT, kInt}, {kInt, kInt});
}

// `a` comes from the gradient of the inner call and n; `b` needs the result, and waits for an assertion.
GraphBuilder Differentiated() {
  return DifferentiatedBy(
      {RecallAll(), GradientCall(), MakeBodyNode("sum", "AddV2", {"inner:results:0", "recall:values:0"}, {{"T", kInt}}),
       BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "dy"}, {{"T", tensorflow::DataTypeSlice(kInts)}}),
       MakeBodyNode("product", "Mul", {"dy", "recall:values:1", "^assert"}, {{"T", kInt}})},
      "sum:z:0", "product:z:0");
}

Types TypesOf(const GraphDef& graph, const std::string& node) {
  Types types;
  if (Find(graph, node) == nullptr) return types;
  for (int type : Find(graph, node)->attr().at("T").list().type()) types.push_back(tensorflow::DataType(type));
  return types;
}

TEST(ExpandGradientsTest, OnlyWhatIsReadIsRetained) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g:0"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"), (Inputs{"F__forward1/n", "F__forward1/call/return_1"}));
  EXPECT_EQ(TypesOf(expanded, "F__forward1/retain"), (Types{kInt, DT_VARIANT}));
  EXPECT_EQ(TypesOf(expanded, "F__backward1/recall"), (Types{kInt, DT_VARIANT}));
  EXPECT_EQ(InputsOf(expanded, "F__backward1/sum"), (Inputs{"F__backward1/inner/return_0", "F__backward1/recall:0"}));
  EXPECT_EQ(InputsOf(expanded, "F__backward1/inner/call_0"), Inputs{"F__backward1/recall:1"}) << "it was 2";
  EXPECT_EQ(InputsOf(expanded, "g/call_0"), Inputs{"y/return_1"});
  EXPECT_EQ(Find(expanded, "y/return_0"), nullptr) << "nobody reads the result";
  EXPECT_EQ(Find(expanded, "F__forward1/add"), nullptr) << "nor is it retained";
}

TEST(ExpandGradientsTest, RecordsOfCallsAreKeptOnlyIfTheyAreRead) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g:1"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"), Inputs{"F__forward1/add"});
  EXPECT_EQ(TypesOf(expanded, "F__backward1/recall"), Types{kInt});
  EXPECT_EQ(InputsOf(expanded, "F__backward1/product"),
            (Inputs{"F__backward1/dy", "F__backward1/recall:0", "^F__backward1/assert"}));
  EXPECT_TRUE(HasInput(expanded, "F__forward1/add", "F__forward1/call/return_0"));
}

TEST(ExpandGradientsTest, WhatAnyReadsIsRetained) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g:0", "g:1"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"),
            (Inputs{"F__forward1/n", "F__forward1/add", "F__forward1/call/return_1"}));
  EXPECT_EQ(TypesOf(expanded, "F__backward1/recall"), (Types{kInt, kInt, DT_VARIANT}));
}

TEST(ExpandGradientsTest, StatedShapesFollowTheirValues) {
  GraphDef graph = Differentiated().graph();
  NodeDef* recall = graph.mutable_library()->mutable_function(2)->mutable_node_def(0);
  ASSERT_EQ(recall->op(), kRecallOp);
  auto* shapes = (*recall->mutable_attr())["shapes"].mutable_list();
  for (int i = 0; i < 4; ++i) shapes->add_shape()->add_dim()->set_size(i + 10);
  const GraphDef expanded = Expand(graph, {"g:0"});
  const auto& kept = Find(expanded, "F__backward1/recall")->attr().at("shapes").list();
  ASSERT_EQ(kept.shape_size(), 2);
  EXPECT_EQ(kept.shape(0).dim(0).size(), 10);
  EXPECT_EQ(kept.shape(1).dim(0).size(), 12);
}

TEST(ExpandGradientsTest, RecordsMayBeEmpty) {
  const GraphBuilder builder = DifferentiatedBy({RecallAll()}, "dy", "dy");
  const GraphDef expanded = Expand(builder.graph(), {"g:0"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"), Inputs{"^F__forward1/recursion_frame_start"});
  EXPECT_TRUE(TypesOf(expanded, "F__forward1/retain").empty());
  EXPECT_EQ(Find(expanded, "F__forward1/call/call_0"), nullptr) << "there is nothing to compute";
}

// H passes on what it recalls of a record of G.
TEST(ExpandGradientsTest, WhatARecordHoldsOfAnotherIsReadOnlyIfItIsRead) {
  const Types two = {kInt, kInt}, record = {DT_VARIANT};
  GraphBuilder builder;
  builder.Const("x").Call("g", "G", {"x"}, kInts, record).Call("h", "H", {"g"}, record, record);
  builder.Call("k", "K", {"h"}, record);
  builder.Function(FunctionDefHelper::Create(
      "G", {"n: int32"}, {"record: variant"}, {},
      {BodyConst("one"), MakeBodyNode("retain", kRetainOp, {"n", "one:output:0"}, RecordAttrs("G", two))},
      {{"record", "retain:record:0"}}));
  builder.Function(FunctionDefHelper::Create(
      "H", {"in: variant"}, {"out: variant"}, {},
      {MakeBodyNode("recall", kRecallOp, {"in"}, RecordAttrs("G", two)),
       MakeBodyNode("retain", kRetainOp, {"recall:values:0", "recall:values:1"}, RecordAttrs("H", two))},
      {{"out", "retain:record:0"}}));
  builder.Function(FunctionDefHelper::Create("K", {"record: variant"}, {"r: int32"}, {},
                                             {MakeBodyNode("recall", kRecallOp, {"record"}, RecordAttrs("H", two))},
                                             {{"r", "recall:values:1"}}));
  const GraphDef expanded = Expand(builder.graph(), {"k:0"});
  EXPECT_EQ(InputsOf(expanded, "K/r"), Inputs{"K/recall:0"});
  EXPECT_EQ(InputsOf(expanded, "H/retain"), Inputs{"H/recall:0"});
  EXPECT_EQ(InputsOf(expanded, "G/retain"), Inputs{"G/one"});
}

TEST(ExpandGradientsTest, RecallsMayBeFetched) {
  GraphBuilder builder = Differentiated();
  builder.Node("recall", kRecallOp, {"y:1"}, RecordAttrs("F", {kInt, kInt, DT_VARIANT, kInt}));
  const GraphDef expanded = Expand(builder.graph(), {"recall:1"});
  EXPECT_EQ(TypesOf(expanded, "recall"), (Types{kInt, kInt, DT_VARIANT, kInt})) << "its outputs have the same places";
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain").size(), 4);
}

TEST(ExpandGradientsTest, WithoutGradientsThePlainFunctionRuns) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"y:0"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), std::set<std::string>{"F/n"});
  EXPECT_TRUE(NodesOf(expanded, kRetainOp).empty());
  EXPECT_EQ(Find(expanded, "y/return_1"), nullptr);
}

TEST(ExpandGradientsTest, WithGradientsOnlyTheForwardFunctionRuns) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"y:0", "g:0"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)),
            (std::set<std::string>{"F__forward1/n", "F__backward1/record", "F__backward1/dy"}));
  EXPECT_EQ(InputsOf(expanded, "y"), Inputs{"y/return_0"});
}

TEST(ExpandGradientsTest, OutputsThatNobodyNeedsCostNothing) {
  const GraphDef first = Expand(Differentiated().graph(), {"g:0"});
  EXPECT_EQ(Names(NodesOf(first, kResultOp)), (std::set<std::string>{"F__backward1/a", "F__forward1/record"}));
  EXPECT_EQ(Find(first, "F__backward1/product"), nullptr);
  EXPECT_EQ(Find(first, "F__backward1/assert"), nullptr) << "stateful, but nobody needs what waits for it";
  EXPECT_EQ(Find(first, "F__backward1/inner/return_1"), nullptr);

  const GraphDef second = Expand(Differentiated().graph(), {"g:1"});
  EXPECT_NE(Find(second, "F__backward1/assert"), nullptr);
  EXPECT_EQ(Find(second, "F__backward1/sum"), nullptr);
  EXPECT_EQ(Find(second, "F__backward1/inner/call_0"), nullptr) << "the recursion serves only the other output";
}

TEST(ExpandGradientsTest, FetchingTheNodeTakesAllOutputs) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g"});
  EXPECT_EQ(InputsOf(expanded, "g"), (Inputs{"g/return_0", "g/return_1"}));
  EXPECT_EQ(Find(expanded, "F__backward1/recursion_done"), nullptr) << "gradients have no side effects of their own";
}

// Waits for gradients.

TEST(ExpandGradientsTest, NothingWaitsForGradientCalls) {
  GraphBuilder builder = Differentiated();
  builder.Node("z", "Identity", {"x", "^g"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"x"});
  EXPECT_TRUE(NodesOf(expanded, kCallOp).empty());
}

TEST(ExpandGradientsTest, ReadersOfOneOutputDoNotWaitForAnother) {
  GraphBuilder builder = Differentiated();
  builder.Node("z", "Identity", {"g:0", "^g"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"g/return_0"});
  EXPECT_EQ(Find(expanded, "g/return_1"), nullptr);
}

TEST(ExpandGradientsTest, JoinsThatWaitForNothingElseAreDropped) {
  GraphBuilder builder = Differentiated();
  // The outer one comes first, so that its input is not known to be idle when it is looked at.
  builder.Node("outer", "NoOp", {"^inner", "^g"}).Node("inner", "NoOp", {"^g"});
  builder.Node("z", "Identity", {"x", "^outer"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"x"});
  EXPECT_EQ(Find(expanded, "inner"), nullptr);
  EXPECT_EQ(Find(expanded, "outer"), nullptr);
}

TEST(ExpandGradientsTest, JoinsThatWaitForOthersStay) {
  GraphBuilder builder = Differentiated();
  builder.Const("other").Node("join", "NoOp", {"^g", "^other"}).Node("idle", "NoOp");
  builder.Node("z", "Identity", {"x", "^join", "^idle"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_TRUE(HasInput(expanded, "z", "^join"));
  EXPECT_TRUE(HasInput(expanded, "z", "^idle")) << "it has never waited for a gradient";
  EXPECT_EQ(InputsOf(expanded, "join"), Inputs{"^other"});
}

TEST(ExpandGradientsTest, NothingInBodiesWaitsForGradientCallsOrRecords) {
  const GraphBuilder builder =
      DifferentiatedBy({RecallAll(), GradientCall(), MakeBodyNode("join", "NoOp", {"^inner"}),
                        MakeBodyNode("first", "Identity", {"dy", "^join", "^inner", "^recall"}, {{"T", kInt}})},
                       "first:output:0", "inner:results:0");
  const GraphDef expanded = Expand(builder.graph(), {"g:0"});
  EXPECT_EQ(InputsOf(expanded, "F__backward1/first"), Inputs{"F__backward1/dy"});
  for (const char* node : {"join", "inner/call_0", "recall"}) {
    EXPECT_EQ(Find(expanded, std::string("F__backward1/") + node), nullptr) << node;
  }
}

// An assignment after a gradient must not change what the gradient reads.
TEST(ExpandGradientsTest, SideEffectsWaitForGradientCalls) {
  const Attrs assert_attrs = {{"T", tensorflow::DataTypeSlice(kInts)}};
  GraphBuilder builder = Differentiated();
  builder.Node("true", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("direct", "Assert", {"true", "x", "^g"}, assert_attrs);
  const GraphDef direct = Expand(builder.graph(), {"direct"});
  EXPECT_EQ(InputsOf(direct, "direct"), (Inputs{"true", "x", "^g"}));
  EXPECT_EQ(InputsOf(direct, "g"), (Inputs{"^g/return_0", "^g/return_1"}));

  builder.Node("same", "Identity", {"x", "^g"}, {{"T", kInt}}).Node("join", "NoOp", {"^same", "^g"});
  builder.Node("assert", "Assert", {"true", "x", "^join"}, assert_attrs);
  const GraphDef joined = Expand(builder.graph(), {"assert"});
  EXPECT_TRUE(HasInput(joined, "join", "^g"));
  EXPECT_TRUE(HasInput(joined, "same", "^g"));
  EXPECT_TRUE(HasInput(joined, "assert", "^join"));

  builder.Const("value", 1, {"^g"}).Node("reader", "Assert", {"true", "value"}, assert_attrs);
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"reader"}), "value"), Inputs{"^g"}) << "it waits for the reader";
}

TEST(ExpandGradientsTest, CallsWithSideEffectsWaitForGradientCalls) {
  GraphBuilder builder = Differentiated();
  builder.Call("effect", "E", {"x", "^g"});
  builder.Function(FunctionDefHelper::Create(
      "E", {"n: int32"}, {"r: int32"}, {},
      {BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "n"}, {{"T", tensorflow::DataTypeSlice(kInts)}})},
      {{"r", "n"}}));
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"effect"}), "effect/call_0"), (Inputs{"x", "^g"}));
}

TEST(ExpandGradientsTest, SideEffectsInBodiesWaitForGradientCalls) {
  const Attrs gradient = GraphBuilder::CallAttrs("F__backward1", {DT_VARIANT, kInt}, {kInt, kInt});
  GraphBuilder builder = Differentiated();
  builder.Call("e", "E", {"x"});
  builder.Function(FunctionDefHelper::Create(
      "E", {"n: int32"}, {"r: int32"}, {},
      {MakeBodyNode("y", kInvokeOp, {"n"}, ForwardAttrs()), MakeBodyNode("g", kInvokeOp, {"y:record:0", "n"}, gradient),
       BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "n", "^g"}, {{"T", tensorflow::DataTypeSlice(kInts)}}),
       MakeBodyNode("same", "Identity", {"n", "^g"}, {{"T", kInt}})},
      {{"r", "same:output:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"e:0"});
  EXPECT_EQ(InputsOf(expanded, "E/same"), Inputs{"E/n"});
  EXPECT_TRUE(HasInput(expanded, "E/assert", "^E/g"));
}

TEST(ExpandGradientsTest, WaitsOfGradientCallsStay) {
  GraphBuilder builder = Differentiated();
  GraphDef graph = builder.Const("first").graph();
  graph.mutable_node(3)->add_input("^first");
  ASSERT_EQ(graph.node(3).name(), "g");
  EXPECT_EQ(InputsOf(Expand(graph, {"g:0"}), "g/call_0"), (Inputs{"y/return_1", "^first"}));
}

TEST(ExpandGradientsTest, WaitsForForwardCallsStay) {
  GraphBuilder builder = Differentiated();
  builder.Node("z", "Identity", {"g:0", "^y"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), (Inputs{"g/return_0", "^y"}));
  EXPECT_EQ(InputsOf(expanded, "y"), (Inputs{"^y/return_0", "^y/return_1"}));
}

TEST(ExpandGradientsTest, ReportsWhereForwardIsMissing) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Function(Endless("F", "F"));
  builder.Node("z", "Identity", {"y:1"}, {{"T", DT_VARIANT}});
  ExpectFault(builder, {"z:0"}, "Call 'y' of 'F': its record is read, but its attribute forward names no function");
}

TEST(ExpandGradientsTest, ReportsWhereForwardDoesNotFit) {
  GraphDef undefined = Differentiated().graph(), plain = Differentiated().graph();
  (*undefined.mutable_node(2)->mutable_attr())["forward"].set_s("Nowhere");
  (*plain.mutable_node(2)->mutable_attr())["forward"].set_s("F");
  ExpectFault(undefined, {"g:0"}, "Call of 'Nowhere' (node 'y'): the function is declared but has no definition");
  ExpectFault(plain, {"g:0"}, "Call of 'F' (node 'y'): the call has 2 outputs, the function returns 1");
}

// Loops.

// A while loop in v1 form around `call`, which reads "<loop>/next" and is in its frame.
void AddLoop(GraphBuilder* builder, const std::string& name, const std::string& init) {
  const Attrs type = {{"T", kInt}};
  builder->Node(name + "/enter", "Enter", {init}, {{"T", kInt}, {"frame_name", name + "_frame"}});
  builder->Node(name + "/merge", "Merge", {name + "/enter", name + "/iterate"}, {{"T", kInt}, {"N", 2}});
  builder->Const(name + "/limit", 3, {"^" + name + "/merge"});
  builder->Node(name + "/less", "Less", {name + "/merge", name + "/limit"}, type);
  builder->Node(name + "/cond", "LoopCond", {name + "/less"});
  builder->Node(name + "/switch", "Switch", {name + "/merge", name + "/cond"}, type);
  builder->Node(name + "/next", "Identity", {name + "/switch:1"}, type);
  builder->Node(name + "/exit", "Exit", {name + "/switch"}, type);
}

TEST(ExpandCallsTest, CallsInLoopsTakeTheTokenThroughTheLoopsFrames) {
  GraphBuilder builder;
  builder.Const("x").Function(Endless("F", "F"));
  AddLoop(&builder, "outer", "x");
  AddLoop(&builder, "inner", "outer/next");
  builder.Call("a", "F", {"inner/next"}).Call("b", "F", {"a"}).Call("c", "F", {"inner/exit"});
  builder.Node("inner/iterate", "NextIteration", {"b"}, {{"T", kInt}});
  builder.Node("outer/iterate", "NextIteration", {"c"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"outer/exit:0"});

  const std::string outer = "recursion_keep_alive/F/enter/outer_frame",
                    inner = "recursion_keep_alive/F/enter/inner_frame";
  EXPECT_EQ(InputsOf(expanded, outer), Inputs{"recursion_keep_alive/F"});
  EXPECT_EQ(InputsOf(expanded, inner), Inputs{outer});
  EXPECT_TRUE(Find(expanded, inner)->attr().at("is_constant").b());
  EXPECT_TRUE(HasInput(expanded, "a/return_0", inner));
  EXPECT_TRUE(HasInput(expanded, "b/return_0", inner)) << "shared by the frame's calls";
  EXPECT_TRUE(HasInput(expanded, "c/return_0", outer));
}

// What comes from outside of a loop lives in the iteration too that finds the condition false.
TEST(ExpandCallsTest, ArgumentsFromOutsideOfALoopWaitForItsCondition) {
  const auto two =
      FunctionDefHelper::Create("G", {"a: int32", "b: int32"}, {"r: int32"}, {},
                                {BodyCall("call", "G", {"a", "b"}, {kInt, kInt})}, {{"r", "call:results:0"}});
  GraphBuilder builder;
  builder.Const("x").Function(two);
  AddLoop(&builder, "outer", "x");
  AddLoop(&builder, "inner", "outer/next");
  const Attrs constant = {{"T", kInt}, {"frame_name", "inner_frame"}, {"is_constant", true}};
  builder.Node("x_in_outer", "Enter", {"x"}, {{"T", kInt}, {"frame_name", "outer_frame"}, {"is_constant", true}});
  builder.Node("x_in_inner", "Enter", {"x_in_outer"}, constant);
  builder.Call("a", "G", {"inner/next", "x_in_inner"}, {kInt, kInt})
      .Call("b", "G", {"x_in_outer", "inner/exit"}, {kInt, kInt});
  builder.Call("c", "G", {"outer/merge", "x_in_outer"}, {kInt, kInt});  // before the condition
  builder.Node("inner/iterate", "NextIteration", {"a"}, {{"T", kInt}});
  builder.Node("both", "AddV2", {"b", "c"}, {{"T", kInt}});
  builder.Node("outer/iterate", "NextIteration", {"both"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"outer/exit:0"});

  EXPECT_EQ(InputsOf(expanded, "a/call_0"), Inputs{"inner/next"});
  EXPECT_EQ(InputsOf(expanded, "a/call_1"), (Inputs{"x_in_inner", "^inner/cond/call_pivot"}));
  EXPECT_EQ(InputsOf(expanded, "b/call_0"), (Inputs{"x_in_outer", "^outer/cond/call_pivot"}));
  EXPECT_EQ(InputsOf(expanded, "b/call_1"), Inputs{"inner/exit"});
  EXPECT_EQ(InputsOf(expanded, "c/call_1"), Inputs{"x_in_outer"});
  EXPECT_EQ(InputsOf(expanded, "outer/cond/call_pivot"), Inputs{"outer/cond/call_switch:1"});
  EXPECT_EQ(InputsOf(expanded, "outer/cond/call_switch"), (Inputs{"outer/cond", "outer/cond"}));
}

TEST(ExpandCallsTest, LoopsOfBodiesHaveFramesOfTheirOwn) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  const Attrs type = {{"T", kInt}};
  auto loop = [&](const std::string& function) {
    return FunctionDefHelper::Create(
        function, {"n: int32"}, {"r: int32"}, {},
        {MakeBodyNode("enter", "Enter", {"n"}, {{"T", kInt}, {"frame_name", "loop"}}),
         MakeBodyNode("merge", "Merge", {"enter:output:0", "iterate:output:0"}, {{"T", kInt}, {"N", 2}}),
         MakeBodyNode("limit", "Enter", {"n"}, {{"T", kInt}, {"frame_name", "loop"}, {"is_constant", true}}),
         MakeBodyNode("less", "Less", {"merge:output:0", "limit:output:0"}, type),
         MakeBodyNode("cond", "LoopCond", {"less:z:0"}),
         MakeBodyNode("switch", "Switch", {"merge:output:0", "cond:output:0"}, type),
         BodyCall("call", "F", {"switch:output_true:0"}),
         MakeBodyNode("iterate", "NextIteration", {"call:results:0"}, type),
         MakeBodyNode("exit", "Exit", {"switch:output_false:0"}, type)},
        {{"r", "exit:output:0"}});
  };
  builder.Call("g", "G", {"y"}).Function(loop("F")).Function(loop("G"));
  const GraphDef expanded = Expand(builder.graph(), {"g:0"});
  EXPECT_EQ(Find(expanded, "F/enter")->attr().at("frame_name").s(), "F/loop");
  EXPECT_EQ(Find(expanded, "F/limit")->attr().at("frame_name").s(), "F/loop");
  EXPECT_EQ(Find(expanded, "G/enter")->attr().at("frame_name").s(), "G/loop");
  EXPECT_EQ(InputsOf(expanded, "F/call/return_0"), Inputs{"^F/call/call_0"});
}

// Copies of bodies.

using tensorflow::DT_RESOURCE;

const Types kIntAndHandle = {kInt, DT_RESOURCE};

// Puts nodes on devices, by name.
GraphDef On(const Devices& devices, GraphDef graph) {
  for (NodeDef& node : *graph.mutable_node()) {
    const auto device = devices.find(node.name());
    if (device != devices.end()) node.set_device(device->second);
  }
  return graph;
}

BodyNode BodyRead(const std::string& name, const std::string& handle) {
  return MakeBodyNode(name, "ReadVariableOp", {handle}, {{"dtype", kInt}});
}

// Variables v and w, and x.
GraphBuilder Variables() {
  GraphBuilder builder;
  for (const char* name : {"v", "w"}) {
    builder.Node(name, "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}});
  }
  return builder.Const("x");
}

// F(n, h) = F(n, h) + the variable of h.
FunctionDef Reader(const std::string& name, const std::string& callee) {
  return FunctionDefHelper::Create(name, {"n: int32", "h: resource"}, {"r: int32"}, {},
                                   {BodyCall("call", callee, {"n", "h"}, kIntAndHandle), BodyRead("read", "h"),
                                    MakeBodyNode("add", "AddV2", {"call:results:0", "read:value:0"}, {{"T", kInt}})},
                                   {{"r", "add:z:0"}});
}

GraphBuilder TwoReaders() {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", "v"}, kIntAndHandle).Call("z", "F", {"x", "w"}, kIntAndHandle);
  return builder.Function(Reader("F", "F"));
}

std::string Function(const GraphDef& graph, const std::string& node) {
  return Find(graph, node) == nullptr ? "no node " + node : Find(graph, node)->attr().at("function").s();
}

std::string DeviceIn(const GraphDef& graph, const std::string& node) {
  return Find(graph, node) == nullptr ? "no node " + node : Find(graph, node)->device();
}

const Devices kApart = {{"v", kDeviceA}, {"w", kDeviceB}};

TEST(ExpandCopiesTest, ABodyIsThereForEveryDeviceOfAResource) {
  const GraphDef expanded = Expand(On(kApart, TwoReaders().graph()), {"y:0", "z:0"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/n", "F/h", "F__copy1/n", "F__copy1/h"}));
  EXPECT_EQ(Function(expanded, "y/call_0"), "F");
  EXPECT_EQ(Function(expanded, "F/call/call_1"), "F");
  EXPECT_EQ(Function(expanded, "z/call_0"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/call/call_1"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/call/return_0"), "F__copy1");
  EXPECT_EQ(DeviceIn(expanded, "F/h"), kDeviceA);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/h"), kDeviceB);
}

TEST(ExpandCopiesTest, OneBodyServesAllCallsWithResourcesOfOneDevice) {
  const GraphDef together = Expand(On({{"v", kDeviceA}, {"w", kDeviceA}}, TwoReaders().graph()), {"y:0", "z:0"});
  EXPECT_EQ(Names(NodesOf(together, kFrameStartOp)), std::set<std::string>{"F/recursion_frame_start"});
  const GraphDef alone = Expand(On(kApart, TwoReaders().graph()), {"z:0"});
  EXPECT_EQ(Names(NodesOf(alone, kFrameStartOp)), std::set<std::string>{"F/recursion_frame_start"});
  EXPECT_EQ(DeviceIn(alone, "F/h"), kDeviceB);
}

TEST(ExpandCopiesTest, WhatAFunctionCallsIsCopiedIfItPassesTheResource) {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", "v"}, kIntAndHandle).Call("z", "F", {"x", "w"}, kIntAndHandle);
  builder.Function(FunctionDefHelper::Create(
      "F", {"n: int32", "h: resource"}, {"r: int32"}, {},
      {BodyCall("plain", "Plain", {"n"}), BodyCall("call", "G", {"plain:results:0", "h"}, kIntAndHandle)},
      {{"r", "call:results:0"}}));
  builder.Function(Reader("G", "F")).Function(Endless("Plain", "Plain"));
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"y:0", "z:0"});
  EXPECT_EQ(Function(expanded, "F__copy1/call/call_1"), "G__copy1");
  EXPECT_EQ(Function(expanded, "G__copy1/call/call_1"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/plain/call_0"), "Plain");
  EXPECT_EQ(Function(expanded, "F/plain/call_0"), "Plain");
  EXPECT_EQ(NodesOf(expanded, kFrameStartOp).size(), 5);
}

TEST(ExpandCopiesTest, ResourcesThatChangePlacesMakeACopy) {
  const Types types = {DT_RESOURCE, DT_RESOURCE};
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"v", "w"}, types);
  builder.Function(FunctionDefHelper::Create("F", {"a: resource", "b: resource"}, {"r: int32"}, {},
                                             {BodyRead("read", "a"), BodyCall("call", "F", {"b", "a"}, types)},
                                             {{"r", "call:results:0"}}));
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"y:0"});
  EXPECT_EQ(Function(expanded, "F/call/call_0"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/call/call_0"), "F");
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/a"), kDeviceB);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/b"), kDeviceA);
}

// Pick(n, h) is h, by way of itself in one of two branches.
FunctionDef Pick() {
  return FunctionDefHelper::Create(
      "Pick", {"n: int32", "h: resource"}, {"r: resource"}, {},
      {BodyTrue("p"), MakeBodyNode("switch", "Switch", {"h", "p:output:0"}, {{"T", DT_RESOURCE}}),
       BodyCall("call", "Pick", {"n", "switch:output_false:0"}, kIntAndHandle, {DT_RESOURCE}),
       MakeBodyNode("merge", "Merge", {"call:results:0", "switch:output_true:0"}, {{"T", DT_RESOURCE}, {"N", 2}})},
      {{"r", "merge:output:0"}});
}

TEST(ExpandCopiesTest, ResourcesAreFollowedThroughCallsThatReturnThem) {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", "a2"}, kIntAndHandle).Call("z", "F", {"x", "b1"}, kIntAndHandle);
  builder.Call("a2", "Pick", {"x", "a1"}, kIntAndHandle, {DT_RESOURCE});
  builder.Call("a1", "Pick", {"x", "v"}, kIntAndHandle, {DT_RESOURCE});
  builder.Call("b1", "Pick", {"x", "w"}, kIntAndHandle, {DT_RESOURCE});
  builder.Function(Reader("F", "F")).Function(Pick());
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"y:0", "z:0"});
  EXPECT_EQ(Function(expanded, "a2/call_0"), "Pick");
  EXPECT_EQ(Function(expanded, "Pick/call/call_0"), "Pick");
  EXPECT_EQ(Function(expanded, "b1/call_0"), "Pick__copy1");
  EXPECT_EQ(Function(expanded, "z/call_0"), "F__copy1");
  EXPECT_EQ(DeviceIn(expanded, "F/h"), kDeviceA);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/h"), kDeviceB);
}

// F(h) = F(F(h)): what the call returns is known only when it is.
TEST(ExpandCopiesTest, AResourceThatOnlyARecursionReturnsServesAnyBody) {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"v"}, {DT_RESOURCE}, {DT_RESOURCE}).Node("read", "ReadVariableOp", {"y"}, {{"dtype", kInt}});
  builder.Function(
      FunctionDefHelper::Create("F", {"h: resource"}, {"r: resource"}, {},
                                {BodyCall("inner", "F", {"h"}, {DT_RESOURCE}, {DT_RESOURCE}),
                                 BodyCall("outer", "F", {"inner:results:0"}, {DT_RESOURCE}, {DT_RESOURCE})},
                                {{"r", "outer:results:0"}}));
  EXPECT_EQ(NodesOf(Expand(On(kApart, builder.graph()), {"read:0"}), kFrameStartOp).size(), 1);
}

TEST(ExpandCopiesTest, CallsThatTakeEachOthersResultsMayBeMany) {
  constexpr int kCalls = 5000;
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", absl::StrCat("pick", kCalls)}, kIntAndHandle);
  for (int i = kCalls; i > 0; --i) {
    const std::string from = i == 1 ? "v" : absl::StrCat("pick", i - 1);
    builder.Call(absl::StrCat("pick", i), "Pick", {"x", from}, kIntAndHandle, {DT_RESOURCE});
  }
  builder.Function(Reader("F", "F")).Function(Pick());
  EXPECT_EQ(DeviceIn(Expand(On(kApart, builder.graph()), {"y:0"}), "F/h"), kDeviceA);
}

// F(n, h) with its gradient: what the variable is like is asked through the record.
GraphBuilder DifferentiatedReaders() {
  GraphBuilder builder = Variables();
  Attrs forward = GraphBuilder::CallAttrs("F", kIntAndHandle, kInts);
  forward.emplace_back("forward", "F__forward1");
  const Types retained = {DT_RESOURCE, DT_VARIANT};
  builder.Node("y", kInvokeOp, {"x", "v"}, forward).Node("z", kInvokeOp, {"x", "w"}, forward);
  builder.Call("dy", "F__backward1", {"y:1"}, {DT_VARIANT}).Call("dz", "F__backward1", {"z:1"}, {DT_VARIANT});
  builder.Function(Reader("F", "F"));
  builder.Function(FunctionDefHelper::Create(
      "F__forward1", {"n: int32", "h: resource"}, {"r: int32", "record: variant"}, {},
      {MakeBodyNode("call", kInvokeOp, {"n", "h"}, forward),
       MakeBodyNode("retain", kRetainOp, {"h", "call:record:0"}, RecordAttrs("F__forward1", retained))},
      {{"r", "call:results:0"}, {"record", "retain:record:0"}}));
  return builder.Function(
      FunctionDefHelper::Create("F__backward1", {"record: variant"}, {"r: int32"}, {},
                                {MakeBodyNode("recall", kRecallOp, {"record"}, RecordAttrs("F__forward1", retained)),
                                 BodyCall("inner", "F__backward1", {"recall:values:1"}, {DT_VARIANT}),
                                 BodyCall("look", "F", {"inner:results:0", "recall:values:0"}, kIntAndHandle)},
                                {{"r", "look:results:0"}}));
}

TEST(ExpandCopiesTest, AGradientRunsTheCopyOfItsForwardCall) {
  const GraphDef expanded = Expand(On(kApart, DifferentiatedReaders().graph()), {"dy:0", "dz:0"});
  for (const auto& [call, copy] : Devices{{"dy", ""}, {"dz", "__copy1"}}) {
    const std::string backward = "F__backward1" + copy;
    EXPECT_EQ(Function(expanded, call + "/call_0"), backward);
    EXPECT_EQ(Function(expanded, backward + "/inner/call_0"), backward);
    EXPECT_EQ(Function(expanded, backward + "/look/call_1"), "F" + copy);
  }
  EXPECT_EQ(DeviceIn(expanded, "F/h"), kDeviceA);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/h"), kDeviceB);
}

TEST(ExpandCopiesTest, CopiesAvoidOtherFunctionsNames) {
  GraphBuilder builder = TwoReaders();
  builder.Const("F__copy2/n").Call("other", "F__copy1", {"y"}).Function(Endless("F__copy1", "F__copy1"));
  EXPECT_EQ(TakenNames({"F__copy2/n", "F__copy2/m", "F__copy/n", "F__copy2x/n"}, builder.graph().library()),
            std::vector<std::string>{"F__copy2/n"});
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"other:0", "z:0"});
  EXPECT_EQ(Function(expanded, "other/call_0"), "F__copy1");
  EXPECT_EQ(Function(expanded, "z/call_0"), "F__copy2");
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)),
            (std::set<std::string>{"F/n", "F/h", "F__copy1/n", "F__copy2/n_1", "F__copy2/h"}));
}

// Of fourteen resources, seven on each device, the recursion makes all orders there are.
TEST(ExpandCopiesTest, ReportsAFunctionThatWouldBeCopiedWithoutEnd) {
  const Types types(14, DT_RESOURCE);
  Inputs first, rotated, swapped;
  std::vector<std::string> arguments;
  for (int i = 0; i < 14; ++i) {
    first.push_back(i < 7 ? "v" : "w");
    arguments.push_back(absl::StrCat("a", i, ": resource"));
    rotated.push_back(absl::StrCat("a", (i + 1) % 14));
    swapped.push_back(absl::StrCat("a", i == 0 ? 1 : i == 1 ? 0 : i));
  }
  GraphBuilder builder = Variables();
  builder.Call("y", "F", first, types);
  builder.Function(
      FunctionDefHelper::Create("F", arguments, {"r: int32"}, {},
                                {BodyCall("rotate", "F", rotated, types), BodyCall("swap", "F", swapped, types),
                                 MakeBodyNode("add", "AddV2", {"rotate:results:0", "swap:results:0"}, {{"T", kInt}})},
                                {{"r", "add:z:0"}}));
  ExpectFault(On(kApart, builder.graph()), {"y:0"}, "Function 'F': its calls pass resources");
}

// Bad input.

TEST(ExpandCallsTest, ReportsAFunctionWithoutDefinition) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Function(Endless("F", "Nowhere"));
  ExpectFault(builder, {"y:0"}, "Call of 'Nowhere' (node 'call'): the function is declared but has no definition");
}

TEST(ExpandCallsTest, ReportsFunctionsThatContainThemselvesWithoutACall) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {},
                                             {MakeBodyNode("again", "F", {"n"}, {})}, {{"r", "again:r:0"}}));
  ExpectFault(builder, {"y:0"}, "contains itself");
}

TEST(ExpandCallsTest, ReportsBrokenBodies) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  FunctionDef function = Endless("F", "F");
  function.mutable_node_def(0)->set_op("NoSuchOperator");
  ExpectFault(builder.Function(function), {"y:0"}, "Function 'F': ");
}

TEST(ExpandCallsTest, ReportsBrokenGraphs) {
  GraphBuilder missing = OneCall();
  ExpectFault(missing.Node("w", "Identity", {"nowhere"}, {{"T", kInt}}), {"w:0"}, "input 'nowhere'");
  GraphBuilder twice = OneCall();
  ExpectFault(twice.Const("x"), {"z:0"}, "appears twice");
  GraphBuilder type = OneCall();
  ExpectFault(type.Node("w", "Identity", {"y"}, {{"T", tensorflow::DT_FLOAT}}), {"w:0"}, "w");
}

TEST(ExpandCallsTest, ReportsWhatTensorFlowWouldDieOf) {
  GraphBuilder inputs = OneCall();
  ExpectFault(inputs.Node("w", "Identity", {"y", "y"}, {{"T", kInt}}), {"w:0"}, "w");
  GraphBuilder length = OneCall();
  ExpectFault(length.Node("w", "AddN", {"y"}, {{"T", kInt}, {"N", int64_t{1} << 31}}), {"w:0"},
              "attribute N is 2147483648");
  GraphBuilder value;
  FunctionDef valueless = Endless("F", "F");
  valueless.mutable_node_def(0)->mutable_attr()->erase("value");
  ExpectFault(value.Const("x").Call("y", "F", {"x"}).Function(valueless), {"y:0"}, "missing attr 'value'");
  GraphBuilder branch;  // marked for lowering, although a branch has too few outputs
  FunctionDef function = FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {},
                                                   {BodyTrue("p"), BodyIf("if", "B", "B")}, {{"r", "if:output:0"}});
  (*function.mutable_node_def(1)->mutable_attr())["_lower_using_switch_merge"].set_b(true);
  branch.Const("x").Call("y", "F", {"x"}).Function(function);
  branch.Function(FunctionDefHelper::Create("B", {"n: int32"}, {}, {}, {}, {}));
  EXPECT_EQ(NodesOf(Expand(branch.graph(), {"y:0"}), "If").size(), 1) << "its kernel will complain";
}

TEST(ExpandCallsTest, ReportsUnknownFetches) {
  ExpectFault(OneCall(), {"nowhere:0"}, "Fetch 'nowhere:0' is not in the graph");
  ExpectFault(OneCall(), {"y:1"}, "Fetch 'y:1': the call has no such output");
}

TEST(ExpandCallsTest, ReportsABodyBesideCallsOfItsFunction) {
  GraphBuilder builder = OneCall();
  builder.Node("F/n", kEntryOp, {}, {{"T", kInt}, {"function", "F"}, {"index", 0}});
  ExpectFault(builder, {"z:0"}, "Function 'F': the graph holds calls of it and its body");
}

}  // namespace
}  // namespace tensorflow_recursion
