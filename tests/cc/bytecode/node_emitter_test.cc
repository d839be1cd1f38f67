// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/node_emitter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/values/record.h"
#include "cc/values/scalar_operators.h"
#include "tensorflow/core/framework/tensor.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/bytecode/emitting.h"
#include "tests/cc/bytecode/step_list.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_BOOL;
using tensorflow::DT_FLOAT;
using tensorflow::DT_VARIANT;

// F(x, y), of which the tests add the rest. The values of x and y are v0 and v1.
class NodeEmitterTest : public EmittingTest {
 protected:
  NodeEmitterTest() { graph_.Function("F", {"x", "y"}); }

  // Emits all nodes, each behind those that it reads.
  std::string Emit() {
    MakeContext();
    writer_ = std::make_unique<StepWriter>(context_.get(), &steps_);
    for (NodeId entry : flow().functions.at(F()).entries) writer_->Define(entry, 0, {writer_->NewVirtual()});
    NodeEmitter emitter(context_.get(), writer_.get());
    for (NodeId id : context_->nodes[F()]) emitter.Emit(id);
    EXPECT_FALSE(writer_->misses_values());
    return TextOf(steps_);
  }

  // Where a value is that has been emitted.
  StepOperand ValueOf(const std::string& node, OpKind kind, int port = 0) {
    Input input;
    input.source = {built_->Find(node, kind), port};
    return writer_->ValueOf(input);
  }

  int KernelId(const std::string& node) const {
    for (const KernelNode& kernel : flow().kernels) {
      if (kernel.name == node) return kernel.id;
    }
    ADD_FAILURE() << "no kernel " << node;
    return -1;
  }

  StaticGraph& Const(const std::string& name, int value) { return graph_.Const(name, value, {"^F/frame_start"}); }
  // A vector or matrix of floats, as an argument: v2.
  void AddArray() { graph_.Entry("F", "array", 2, DT_FLOAT); }
  StaticGraph& Gather(const std::string& name, const std::string& array, const std::string& index) {
    return graph_.Node(name, "GatherV2", {array, index, "F/axis"},
                       {{"Tparams", DT_FLOAT}, {"Tindices", kInt}, {"Taxis", kInt}, {"batch_dims", 0}});
  }
  void Slice(const std::string& begin, const std::string& end, int shrink, int num_strides) {
    tensorflow::Tensor ones(kInt, tensorflow::TensorShape({num_strides}));
    ones.flat<int32_t>().setConstant(1);
    graph_.Node("F/strides", "Const", {"^F/frame_start"}, {{"dtype", kInt}, {"value", ones}});
    graph_.Node("F/read", "StridedSlice", {"F/array", begin, end, "F/strides"},
                {{"T", DT_FLOAT},
                 {"Index", kInt},
                 {"begin_mask", 0},
                 {"end_mask", 0},
                 {"ellipsis_mask", 0},
                 {"new_axis_mask", 0},
                 {"shrink_axis_mask", shrink}});
  }

  std::unique_ptr<StepWriter> writer_;
};

// --- Arithmetic -----------------------------------------------------------------------------------

TEST_F(NodeEmitterTest, ABinaryOperatorIsOneStep) {
  graph_.Op("F/difference", "Sub", {"F/y", "F/x"});
  EXPECT_EQ(Emit(), "v2 = SubInt32 v1, v0\n");
  EXPECT_EQ(steps_.steps[0].kernel, std::nullopt) << "a difference never needs its kernel";
}

TEST_F(NodeEmitterTest, AConstantIsPartOfTheStep) {
  Const("F/five", 5).Op("F/difference", "Sub", {"F/x", "F/five"});
  EXPECT_EQ(Emit(), "v2 = SubInt32K v0, 5\n");
}

TEST_F(NodeEmitterTest, AConstantThatComesFirstChangesPlacesWhereThatIsTheSame) {
  Const("F/five", 5).Op("F/sum", "AddV2", {"F/five", "F/x"});
  EXPECT_EQ(Emit(), "v2 = AddInt32K v0, 5\n");
}

TEST_F(NodeEmitterTest, AComparisonWithAConstantThatComesFirstIsTurnedRound) {
  Const("F/five", 5).Op("F/less", "Less", {"F/five", "F/x"});
  EXPECT_EQ(Emit(), "v2 = GreaterInt32K v0, 5\n");
}

TEST_F(NodeEmitterTest, AConstantThatMustComeFirstGetsARegister) {
  Const("F/five", 5).Op("F/difference", "Sub", {"F/five", "F/x"});
  EXPECT_EQ(Emit(),
            "v2 = Constant 5\n"
            "v3 = SubInt32 v2, v0\n");
}

TEST_F(NodeEmitterTest, OfTwoConstantsTheFirstGetsARegister) {
  Const("F/five", 5);
  Const("F/three", 3).Op("F/difference", "Sub", {"F/five", "F/three"});
  EXPECT_EQ(Emit(),
            "v2 = Constant 5\n"
            "v3 = SubInt32K v2, 3\n");
}

TEST_F(NodeEmitterTest, AnOperatorWithSpecialCasesNamesItsKernelAndWhatThatReads) {
  Const("F/five", 5).Op("F/quotient", "FloorDiv", {"F/x", "F/five"});
  EXPECT_EQ(Emit(), "v2 = FloorDivInt32K v0, 5\n");
  const Step& step = steps_.steps[0];
  EXPECT_EQ(step.kernel, KernelId("F/quotient"));
  ASSERT_EQ(step.kernel_operands.size(), 2);
  EXPECT_EQ(step.kernel_operands[0].value, 0);
  EXPECT_TRUE(step.kernel_operands[1].value == kNone);
  EXPECT_EQ(step.kernel_operands[1].constant, ToBits(5));
}

TEST_F(NodeEmitterTest, AKernelReadsItsInputsInTheirOwnOrder) {
  graph_.Entry("F", "f", 2, DT_FLOAT);
  graph_.Node("F/five", "Const", {"^F/frame_start"}, {{"dtype", DT_FLOAT}, {"value", tensorflow::Tensor(5.0F)}});
  graph_.Op("F/least", "Minimum", {"F/five", "F/f"}, DT_FLOAT);
  EXPECT_EQ(Emit(), absl::StrCat("v3 = MinimumFloatK v2, ", ToBits(5.0F), "\n"));
  const Step& step = steps_.steps[0];
  EXPECT_EQ(step.kernel, KernelId("F/least"));
  ASSERT_EQ(step.kernel_operands.size(), 2);
  EXPECT_EQ(step.kernel_operands[0].constant, ToBits(5.0F));
  EXPECT_EQ(step.kernel_operands[1].value, 2);
}

TEST_F(NodeEmitterTest, LogicHasStepsOfItsOwn) {
  graph_.Entry("F", "p", 2, DT_BOOL).Entry("F", "q", 3, DT_BOOL);
  graph_.Node("F/and", "LogicalAnd", {"F/p", "F/q"}).Node("F/not", "LogicalNot", {"F/and"});
  graph_.Node("F/or", "LogicalOr", {"F/not", "F/p"});
  EXPECT_EQ(Emit(),
            "v4 = LogicalAnd v2, v3\n"
            "v5 = LogicalNot v4\n"
            "v6 = LogicalOr v5, v2\n");
}

TEST_F(NodeEmitterTest, ASumOfManyIsAddedUpFromLeftToRight) {
  graph_.Entry("F", "f", 2, DT_FLOAT).Entry("F", "g", 3, DT_FLOAT);
  graph_.Node("F/sum", "AddN", {"F/f", "F/g", "F/f"}, {{"T", DT_FLOAT}, {"N", 3}});
  graph_.Op("F/difference", "Sub", {"F/sum", "F/f"}, DT_FLOAT);
  EXPECT_EQ(Emit(),
            "v4 = AddFloat v2, v3\n"
            "v5 = AddFloat v4, v2\n"
            "v6 = SubFloat v5, v2\n");
}

TEST_F(NodeEmitterTest, AnyOtherOperatorIsAppliedWithItsKernelForSpecialCases) {
  graph_.Entry("F", "p", 2, DT_BOOL).Op("F/select", "SelectV2", {"F/p", "F/x", "F/y"});
  EXPECT_EQ(Emit(), "v3 = Apply v2, v0, v1\n");
  const Step& step = steps_.steps[0];
  EXPECT_EQ(code_.operator_names.at(step.target), "SelectV2");
  EXPECT_NE(code_.operators.at(step.target), nullptr);
  EXPECT_EQ(step.kernel, KernelId("F/select"));
  EXPECT_EQ(step.kernel_operands.size(), 3);
}

TEST_F(NodeEmitterTest, ACastToAnotherTypeIsApplied) {
  graph_.Node("F/cast", "Cast", {"F/x"}, {{"SrcT", kInt}, {"DstT", DT_FLOAT}});
  EXPECT_EQ(Emit(), "v2 = Apply v0\n");
}

// --- What needs no step ---------------------------------------------------------------------------

TEST_F(NodeEmitterTest, WhatKeepsANumberAsItIsNeedsNoStep) {
  graph_.Node("F/cast", "Cast", {"F/x"}, {{"SrcT", kInt}, {"DstT", kInt}});
  graph_.Node("F/squeeze", "Squeeze", {"F/cast"}, {{"T", kInt}});
  graph_.Node("F/ensure", "EnsureShape", {"F/squeeze"}, {{"T", kInt}, {"shape", tensorflow::TensorShape({})}});
  graph_.Node("F/shape", "Shape", {"F/y"}, {{"T", kInt}, {"out_type", kInt}});
  graph_.Node("F/reshape", "Reshape", {"F/ensure", "F/shape"}, {{"T", kInt}, {"Tshape", kInt}});
  graph_.Op("F/difference", "Sub", {"F/reshape", "F/y"});
  EXPECT_EQ(Emit(), "v2 = SubInt32 v0, v1\n");
}

TEST_F(NodeEmitterTest, WhatHandsSeveralValuesOnKeepsThemApart) {
  graph_.Node("F/both", "IdentityN", {"F/x", "F/y"}, {{"T", Types{kInt, kInt}}});
  graph_.Op("F/difference", "Sub", {"F/both:1", "F/both:0"});
  EXPECT_EQ(Emit(), "v2 = SubInt32 v1, v0\n");
}

TEST_F(NodeEmitterTest, ASwitchHasItsValueOnEitherSide) {
  graph_.Entry("F", "p", 2, DT_BOOL).Op("F/s", "Switch", {"F/y", "F/p"});
  EXPECT_EQ(Emit(), "");
  for (const int side : {0, 1}) EXPECT_EQ(ValueOf("F/s", OpKind::kSwitch, side).value, 1);
}

TEST_F(NodeEmitterTest, ZerosLikeARecordAreTheRecordOfZeros) {
  graph_.Entry("F", "record", 2, DT_VARIANT).Op("F/zeros", "ZerosLike", {"F/record"}, DT_VARIANT);
  EXPECT_EQ(Emit(), "");
  const StepOperand zeros = ValueOf("F/zeros", OpKind::kKernel);
  EXPECT_TRUE(zeros.is_constant());
  EXPECT_EQ(zeros.constant, ToBits(Record::Zeros()));
}

// --- Elements -------------------------------------------------------------------------------------

TEST_F(NodeEmitterTest, AGatherReadsAnElementAndHasAKernel) {
  AddArray();
  Const("F/axis", 0);
  Gather("F/read", "F/array", "F/y");
  EXPECT_EQ(Emit(), "v3 = ElementAt v2, v1\n");
  const Step& step = steps_.steps[0];
  EXPECT_EQ(step.target, (ElementAccess{2, false, false, false}.Encode()));
  EXPECT_EQ(step.kernel, KernelId("F/read"));
  ASSERT_EQ(step.kernel_operands.size(), 3);
  EXPECT_TRUE(step.kernel_operands[0].is_array);
  EXPECT_EQ(step.kernel_operands[0].value, 2);
  EXPECT_FALSE(step.kernel_operands[1].is_array);
  EXPECT_EQ(step.kernel_operands[1].value, 1);
}

TEST_F(NodeEmitterTest, ASliceReadsAnElementWithoutItsPackedBoundsAndWithoutAKernel) {
  AddArray();
  const Attrs packed = {{"T", kInt}, {"N", 2}, {"axis", 0}};
  graph_.Node("F/begin", "Pack", {"F/y", "F/x"}, packed).Node("F/end", "Pack", {"F/y", "F/x"}, packed);
  Slice("F/begin", "F/end", /*shrink=*/3, /*num_strides=*/2);
  EXPECT_EQ(Emit(), "v3 = ElementAt v2, v1, v0\n");
  EXPECT_EQ(steps_.steps[0].target, (ElementAccess{2, false, true, true}.Encode()));
  EXPECT_EQ(steps_.steps[0].kernel, std::nullopt);
}

TEST_F(NodeEmitterTest, AKnownIndexGetsARegister) {
  AddArray();
  tensorflow::Tensor last(kInt, tensorflow::TensorShape({1}));
  last.flat<int32_t>()(0) = -1;
  graph_.Node("F/last", "Const", {"^F/frame_start"}, {{"dtype", kInt}, {"value", last}});
  Slice("F/last", "F/last", /*shrink=*/1, /*num_strides=*/1);
  EXPECT_EQ(Emit(), absl::StrCat("v3 = Constant ", ToBits(-1), "\n", "v4 = ElementAt v2, v3\n"));
}

TEST_F(NodeEmitterTest, AConstantArrayIsKeptOnceWithTheCode) {
  const tensorflow::Tensor array(DT_FLOAT, tensorflow::TensorShape({3}));
  graph_.Node("F/array", "Const", {"^F/frame_start"}, {{"dtype", DT_FLOAT}, {"value", array}});
  Const("F/axis", 0);
  Gather("F/first", "F/array", "F/x");
  Gather("F/second", "F/array", "F/y");
  Emit();
  ASSERT_EQ(code_.arrays.size(), 1);
  EXPECT_EQ(code_.arrays[0].length, 3);
  ASSERT_EQ(steps_.steps.size(), 4);
  for (const size_t i : {0, 2}) EXPECT_EQ(steps_.steps[i].constant, ToBits(&code_.arrays[0]));
}

// --- Calls ----------------------------------------------------------------------------------------

TEST_F(NodeEmitterTest, ACallHasItsArgumentsInAWindow) {
  graph_.Call("F/call", "G", 7, {"F/y", "F/x"}).Result("F", "F/call/return_0");
  graph_.Function("G", {"a", "b"}).Result("G", "G/a");
  EXPECT_EQ(Emit(),
            "v2, v3 = Move v1, v0\n"
            "v4 = Call v2, v3\n");
  const Step& call = steps_.steps[1];
  EXPECT_EQ(call.target, context_->functions.at(flow().regions.FindFunction("G")));
  EXPECT_EQ(call.site, "F/call");
  EXPECT_EQ(call.callee, "G");
  for (const VirtualId argument : call.operands) EXPECT_TRUE(steps_.is_in_window[argument]);
  EXPECT_FALSE(steps_.is_in_window[call.results[0]]) << "it goes where the caller wants it";
}

TEST_F(NodeEmitterTest, SeveralResultsOfACallLeaveItsWindowAtOnce) {
  Const("F/five", 5).Call("F/call", "G", 7, {"F/five"}, /*num_returns=*/2);
  graph_.Op("F/difference", "Sub", {"F/call/return_1", "F/call/return_0"});
  graph_.Function("G", {"a"}).Result("G", "G/a", 0).Result("G", "G/a", 1);
  EXPECT_EQ(Emit(),
            "v2 = Constant 5\n"
            "v3, v4 = Call v2\n"
            "v5, v6 = Move v3, v4\n"
            "v7 = SubInt32 v6, v5\n");
  for (const VirtualId result : steps_.steps[1].results) EXPECT_TRUE(steps_.is_in_window[result]);
  for (const VirtualId kept : steps_.steps[2].results) EXPECT_FALSE(steps_.is_in_window[kept]);
}

}  // namespace
}  // namespace tensorflow_recursion
