// Gradients of functions on numbers, compiled: the forward function makes records, the backward one reads them.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/record_steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cc/analysis/superfluous_waits.h"
#include "cc/bytecode/compiler.h"
#include "cc/bytecode/disassembler.h"
#include "cc/bytecode/interpreter.h"
#include "cc/values/scalar_operators.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/bytecode/interpreting.h"

namespace tensorflow_recursion {
namespace {

using State = Interpreter::State;
using tensorflow::DT_BOOL;
using tensorflow::DT_VARIANT;

const tensorflow::DataTypeVector kKept = {DT_BOOL, kInt, kInt, DT_VARIANT};

Attrs RecordAttrs(const std::string& function) { return {{"T", kKept}, {kFunctionAttr, function}}; }

// power(x, n) = 1 if n < 1 else x * power(x, n - 1), which keeps the condition, x, the inner power and its record.
void AddForward(StaticGraph* graph) {
  const Inputs start = {"^F/frame_start"};
  graph->Function("F", {"x", "n"}).Const("F/one", 1, start);
  graph->Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/x_in", "Switch", {"F/x", "F/less"}).Op("F/n_in", "Switch", {"F/n", "F/less"});
  graph->Op("F/n1", "Sub", {"F/n_in", "F/one"});
  graph->Node("F/f/call_0", kCallOp, {"F/x_in"}, StaticGraph::SiteAttrs("F", 1, 0));
  graph->Node("F/f/call_1", kCallOp, {"F/n1"}, StaticGraph::SiteAttrs("F", 1, 1));
  graph->Return("F/f", "F", 1, 0, {"^F/f/call_0", "^F/f/call_1"});
  graph->Return("F/f", "F", 1, 1, {"^F/f/call_0", "^F/f/call_1"}, DT_VARIANT);
  graph->Op("F/product", "Mul", {"F/x_in", "F/f/return_0"});
  graph->Op("F/taken", "Switch", {"F/one", "F/less"});
  graph->Node("F/pivot", "NoOp", {"^F/on_true"}).Op("F/on_true", "Identity", {"F/taken:1"});
  graph->Node("F/no_number", "FakeParam", {"^F/pivot"}, {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}});
  graph->Node("F/no_record", "FakeParam", {"^F/pivot"},
              {{"dtype", DT_VARIANT}, {"shape", tensorflow::TensorShape({})}});
  Merge(graph, "F/y", {"F/product", "F/taken:1"});
  Merge(graph, "F/inner", {"F/f/return_0", "F/no_number"});
  Merge(graph, "F/record", {"F/f/return_1", "F/no_record"}, DT_VARIANT);
  graph->Node("F/retain", kRetainOp, {"F/less", "F/x", "F/inner", "F/record"}, RecordAttrs("F"));
  graph->Result("F", "F/y").Result("F", "F/retain", 1, DT_VARIANT);
}

// dx(record, dy) = 0 if n < 1 else dy * inner + dx(record', dy * x)
void AddBackward(StaticGraph* graph) {
  const Inputs start = {"^B/frame_start"};
  graph->Function("B", {}).Entry("B", "record", 0, DT_VARIANT).Entry("B", "dy", 1).Const("B/zero", 0, start);
  graph->Node("B/recall", kRecallOp, {"B/record"}, RecordAttrs("F"));
  const auto in = [&](const std::string& name, const std::string& from, tensorflow::DataType dtype = kInt) {
    graph->Op("B/" + name, "Switch", {from, "B/recall:0"}, dtype);
  };
  in("dy_in", "B/dy");
  in("x_in", "B/recall:1");
  in("inner_in", "B/recall:2");
  in("record_in", "B/recall:3", DT_VARIANT);
  in("zero_in", "B/zero");
  graph->Op("B/here", "Mul", {"B/dy_in", "B/inner_in"}).Op("B/deeper", "Mul", {"B/dy_in", "B/x_in"});
  graph->Node("B/f/call_0", kCallOp, {"B/record_in"}, StaticGraph::SiteAttrs("B", 2, 0, DT_VARIANT));
  graph->Node("B/f/call_1", kCallOp, {"B/deeper"}, StaticGraph::SiteAttrs("B", 2, 1));
  graph->Return("B/f", "B", 2, 0, {"^B/f/call_0", "^B/f/call_1"});
  graph->Op("B/sum", "AddV2", {"B/here", "B/f/return_0"});
  Merge(graph, "B/dx", {"B/sum", "B/zero_in:1"});
  graph->Result("B", "B/dx");
}

void AddCalls(StaticGraph* graph) {
  graph->Arg("x", 0).Arg("n", 1).Call("call", "F", 3, {"x", "n"}, 0);
  graph->Return("call", "F", 3, 0, {"^call/call_0", "^call/call_1"}).Retval("call/return_0");
  graph->Return("call", "F", 3, 1, {"^call/call_0", "^call/call_1"}, DT_VARIANT);
  graph->Node("gradient/call_0", kCallOp, {"call/return_1"}, StaticGraph::SiteAttrs("B", 4, 0, DT_VARIANT));
  graph->Node("gradient/call_1", kCallOp, {"x"}, StaticGraph::SiteAttrs("B", 4, 1));
  graph->Return("gradient", "B", 4, 0, {"^gradient/call_0", "^gradient/call_1"}).Retval("gradient/return_0", 1);
}

class RecordStepsTest : public ::testing::Test {
 protected:
  RecordStepsTest() {
    StaticGraph built;
    AddForward(&built);
    AddBackward(&built);
    AddCalls(&built);
    absl::Status status = Construct(built.graph(), &graph_);
    GraphRegions regions;
    if (status.ok()) status = regions.Build(*graph_);
    if (status.ok()) status = BuildFlowGraph(*graph_, std::move(regions), DeviceMemory(), &flow_);
    if (status.ok()) status = DropSuperfluousWaits(&flow_);
    EXPECT_TRUE(status.ok()) << status;
    compiled_ = CompileFunctions(flow_);
    for (const auto& [region, reason] : compiled_.reasons) ADD_FAILURE() << reason;
    if (compiled_.code == nullptr) return;
    interpreter_.emplace(*compiled_.code, kMuch, nullptr, nullptr);
  }
  ~RecordStepsTest() override {
    interpreter_.reset();
    EXPECT_EQ(Record::LiveCount(), live_before_);
  }

  int Find(const std::string& name) { return compiled_.functions.at(flow_.regions.FindFunction(name)); }
  std::string Listing(const std::string& name) {
    return Disassemble(*compiled_.code, compiled_.code->functions[Find(name)]);
  }

  State Run(const std::string& name, const std::vector<uint64_t>& arguments, int64_t budget = kMuch) {
    EXPECT_TRUE(interpreter_->Start(Find(name), arguments, 1));
    return interpreter_->Resume(&budget);
  }

  // The value, and the record with a reference for the caller.
  int32_t Forward(int32_t x, int32_t n, Record** record) {
    EXPECT_EQ(Run("F", {ToBits(x), ToBits(n)}), State::kDone);
    const auto value = FromBits<int32_t>(interpreter_->results()[0]);
    *record = interpreter_->TakeRecord(1);
    interpreter_->Trim();
    return value;
  }

  int32_t Backward(Record* record, int32_t dy) {
    EXPECT_EQ(Run("B", {ToBits(record), ToBits(dy)}), State::kDone);
    return FromBits<int32_t>(interpreter_->results()[0]);
  }

  const int64_t live_before_ = Record::LiveCount();
  std::unique_ptr<tensorflow::Graph> graph_;
  FlowGraph flow_;
  CompiledFunctions compiled_;
  std::optional<Interpreter> interpreter_;
};

TEST_F(RecordStepsTest, BothFunctionsAreCompiled) {
  EXPECT_EQ(Listing("F").substr(0, Listing("F").find('\n')), "F(int32, int32) -> int32, variant");
  EXPECT_NE(Listing("F").find("MakeRecord"), std::string::npos) << Listing("F");
  EXPECT_NE(Listing("F").find("= {bool, int32, int32, variant}"), std::string::npos) << Listing("F");
  EXPECT_EQ(Listing("B").substr(0, Listing("B").find('\n')), "B(variant, int32) -> int32");
  EXPECT_NE(Listing("B").find("OpenRecord"), std::string::npos) << Listing("B");
}

TEST_F(RecordStepsTest, ForwardKeepsWhatBackwardReads) {
  Record* record = nullptr;
  EXPECT_EQ(Forward(3, 4, &record), 81);
  EXPECT_EQ(Record::LiveCount(), live_before_ + 5);
  EXPECT_EQ(Backward(record, 1), 4 * 27);
  EXPECT_EQ(Backward(record, 10), 10 * 4 * 27);  // as often as one likes
  record->Unref();
}

TEST_F(RecordStepsTest, ARecordIsAsTheExecutorMakesIt) {
  Record* record = nullptr;
  Forward(3, 1, &record);
  const RecordType type = {"recall", "F", kKept};
  Record* found = nullptr;
  EXPECT_TRUE(FindRecord(Value::Own(record), type, &found).ok());
  EXPECT_FALSE(record->Get(0).boolean);
  EXPECT_EQ(record->Get(1).int32, 3);
  const Record* inner = record->Get(3).record;
  EXPECT_TRUE(inner->Get(0).boolean);
  EXPECT_EQ(inner->Get(3).kind, Value::Kind::kRecord);
  EXPECT_EQ(inner->Get(3).record, nullptr);
  record->Unref();
}

TEST_F(RecordStepsTest, AnAbandonedCallLeavesNoRecords) {
  EXPECT_EQ(Run("F", {ToBits(2), ToBits(20)}, 5), State::kPaused);
  interpreter_->Trim();
  Record* record = nullptr;
  EXPECT_EQ(Forward(2, 10, &record), 1024);
  record->Unref();
}

TEST_F(RecordStepsTest, AMillionRecordsDeep) {
  Record* record = nullptr;
  EXPECT_EQ(Forward(1, 1'000'000, &record), 1);
  EXPECT_EQ(Backward(record, 1), 1'000'000);
  record->Unref();
}

TEST_F(RecordStepsTest, ZerosAreARecordWithoutValues) {
  Record* zeros = Record::New(0);
  const int64_t budget = 3;  // zeros of zeros, without end
  EXPECT_EQ(Run("B", {ToBits(zeros), ToBits(1)}, budget), State::kPaused);
  zeros->Unref();
}

TEST_F(RecordStepsTest, AnotherRecordIsUnfit) {
  Record* other = Record::New(4);
  EXPECT_EQ(Run("B", {ToBits(other), ToBits(1)}), State::kUnfit);
  other->Unref();
}

TEST_F(RecordStepsTest, CallsThatMakeRecordsAreNotSplitOff) {
  for (const ForkPlan& plan : compiled_.code->fork_plans) EXPECT_NE(plan.callee, Find("F"));
}

}  // namespace
}  // namespace tensorflow_recursion
