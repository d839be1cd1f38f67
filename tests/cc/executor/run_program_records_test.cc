// Records: what a forward recursion keeps, and the backward one reads.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/values/record.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_VARIANT;

StaticGraph& Retain(StaticGraph* graph, const std::string& name, const Inputs& values, const Types& types,
                    const Inputs& controls = {}) {
  Inputs inputs = values;
  inputs.insert(inputs.end(), controls.begin(), controls.end());
  return graph->Node(name, kRetainOp, inputs,
                     {{kTypeAttr, tensorflow::DataTypeSlice(types)}, {kFunctionAttr, "F__fn"}});
}

StaticGraph& Recall(StaticGraph* graph, const std::string& name, const std::string& record, const Types& types) {
  return graph->Node(name, kRecallOp, {record},
                     {{kTypeAttr, tensorflow::DataTypeSlice(types)}, {kFunctionAttr, "F__fn"}});
}

// A call with arguments of several types; returns number and type of each result.
void CallOfTypes(StaticGraph* graph, const std::string& site, const std::string& function, int id,
                 const std::vector<std::pair<std::string, tensorflow::DataType>>& arguments, const Types& results) {
  Inputs calls;
  for (const auto& [input, dtype] : arguments) {
    const int index = static_cast<int>(calls.size());
    calls.push_back(absl::StrCat("^", site, "/call_", index));
    graph->Node(calls.back().substr(1), kCallOp, {input}, StaticGraph::SiteAttrs(function, id, index, dtype));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    graph->Return(site, function, id, static_cast<int>(i), calls, results[i]);
  }
}

// F(n, x) = y, record: y = x if n < 1, else the sum of x and of `calls` times F(n - 1, x). B(record) is the sum
// of y over all invocations. `box` runs between a record and the one around it.
void AddRecorded(StaticGraph* graph, int calls, int64_t max_depth = 1000, bool boxes = false) {
  Types types = {kInt, kInt, kInt};
  for (int i = 0; i < calls; ++i) types.push_back(DT_VARIANT);
  const Inputs frame_start = {"^F/frame_start"};
  graph->Function("F", {"n", "x"}, max_depth).Const("F/one", 1, frame_start).Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sx", "Switch", {"F/x", "F/less"});
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"}).Op("F/leaf", "Identity", {"F/sn:1"});
  Retain(graph, "F/none", {}, {}, {"^F/leaf"});
  Inputs summands = {"F/sx"};
  Inputs retained = {"F/n", "F/y", "F/x"};
  for (int i = 0; i < calls; ++i) {
    const std::string site = absl::StrCat("F/call_", i);
    const std::string record = absl::StrCat("F/record_", i);
    CallOfTypes(graph, site, "F", 10 + i, {{"F/n1", kInt}, {"F/sx", kInt}}, {kInt, DT_VARIANT});
    Merge(graph, record, {site + "/return_1", "F/none"}, DT_VARIANT);
    summands.push_back(site + "/return_0");
    retained.push_back(record);
    if (!boxes) continue;
    retained.back() = absl::StrCat("F/box_", i);
    graph->Node(retained.back(), "PyFuncStateless", {record},
                {{"Tin", tensorflow::DataTypeSlice({DT_VARIANT})},
                 {"Tout", tensorflow::DataTypeSlice({DT_VARIANT})},
                 {"token", retained.back()}});
  }
  graph->Kernel("F/add", summands);
  Merge(graph, "F/y", {"F/add", "F/sx:1"}).Result("F", "F/y");
  Retain(graph, "F/retain", retained, types).Result("F", "F/retain", 1, DT_VARIANT);

  graph->Function("B", {"record"}, max_depth, DT_VARIANT);
  Recall(graph, "B/recall", "B/record", types).Const("B/one", 1, {"^B/frame_start"});
  graph->Op("B/less", "Less", {"B/recall", "B/one"}).Op("B/sy", "Switch", {"B/recall:1", "B/less"});
  summands = {"B/sy"};
  for (int i = 0; i < calls; ++i) {
    const std::string site = absl::StrCat("B/call_", i);
    const std::string record = absl::StrCat("B/record_", i);
    graph->Op(record, "Switch", {absl::StrCat("B/recall:", 3 + i), "B/less"}, DT_VARIANT);
    CallOfTypes(graph, site, "B", 20 + i, {{record, DT_VARIANT}}, {kInt});
    summands.push_back(site + "/return_0");
  }
  graph->Kernel("B/add", summands);
  Merge(graph, "B/merge", {"B/add", "B/sy:1"}).Result("B", "B/merge");
}

// The main graph: F forward, and as many times backward.
void AddRecordedMain(StaticGraph* graph, int backwards) {
  graph->Arg("n").Arg("x", 1);
  CallOfTypes(graph, "forward", "F", 1, {{"n", kInt}, {"x", kInt}},
              backwards > 0 ? Types{kInt, DT_VARIANT} : Types{kInt});
  graph->Retval("forward/return_0");
  for (int i = 0; i < backwards; ++i) {
    const std::string site = absl::StrCat("backward_", i);
    CallOfTypes(graph, site, "B", 2 + i, {{"forward/return_1", DT_VARIANT}}, {kInt});
    graph->Retval(site + "/return_0", 1 + i);
  }
}

class RecordedTest : public RunProgramTest {
 protected:
  ~RecordedTest() override { EXPECT_EQ(Record::LiveCount(), 0); }

  // Sums of boxed numbers, until one fails.
  void AddBoxed(KernelRunner::Cost cost = KernelRunner::Cost::kCheap) {
    for (const char* node : {"F/add", "B/add"}) {
      runner_.On(
          node,
          [this, node](KernelCall* call) {
            if (++sums_ == failing_sum_) return absl::InternalError("broken");
            const int inputs = 1 + calls_;
            int32_t sum = 0;
            for (int i = 0; i < inputs; ++i) sum += LiveTensors::Number(call->inputs[i]);
            call->outputs[0] = live_.Make(sum);
            return absl::OkStatus();
          },
          cost);
    }
    for (const char* node : {"F/box_0", "F/box_1"}) {
      runner_.On(node, [](KernelCall* call) {
        call->outputs[0] = Value::Own(new tensorflow::Tensor(TensorFromValue(call->inputs[0], DT_VARIANT)));
        return absl::OkStatus();
      });
    }
  }

  std::vector<int> Expected(int n, int x, int backwards) const {
    int y = x;
    int sum = x;
    for (int i = 0; i < n; ++i) {
      y = calls_ * y + x;
      sum = calls_ * sum + y;
    }
    std::vector<int> expected(1 + backwards, sum);
    expected[0] = y;
    return expected;
  }

  int calls_ = 1;  // in the body
  std::atomic<int> sums_{0};
  std::atomic<int> failing_sum_{0};
};

TEST_F(RecordedTest, ABackwardRecursionReadsWhatTheForwardOneKept) {
  for (calls_ = 1; calls_ <= 2; ++calls_) {
    for (const bool boxes : {false, true}) {
      for (const int backwards : {0, 1, 2}) {
        StaticGraph graph;
        AddRecordedMain(&graph, backwards);
        AddRecorded(&graph, calls_, 1000, boxes);
        SetProgram(graph);
        for (uint64_t seed = 0; seed < kSeeds; ++seed) {
          for (const int workers : {1, 4}) {
            SCOPED_TRACE(absl::StrCat("calls ", calls_, " boxes ", boxes, " backwards ", backwards, " seed ", seed));
            AddBoxed(workers > 1 ? KernelRunner::Cost::kExpensive : KernelRunner::Cost::kCheap);
            RunEnvironment environment = Environment(seed);
            environment.max_workers = workers;
            Outcome outcome = RunToEnd(environment, {Number(6), live_.Make(3)});
            EXPECT_TRUE(outcome.status.ok()) << outcome.status;
            EXPECT_EQ(outcome.Numbers(), Expected(6, 3, backwards));
            outcome.Release();
            EXPECT_EQ(live_.count(), 0);
            EXPECT_EQ(Record::LiveCount(), 0);
          }
        }
      }
    }
  }
}

TEST_F(RecordedTest, AnErrorLeavesNoRecordBehind) {
  calls_ = 2;
  StaticGraph graph;
  AddRecordedMain(&graph, 2);
  AddRecorded(&graph, 2);
  SetProgram(graph);
  for (failing_sum_ = 1; failing_sum_ < 90; failing_sum_ = failing_sum_ + 3) {
    for (const int workers : {1, 4}) {
      AddBoxed(workers > 1 ? KernelRunner::Cost::kExpensive : KernelRunner::Cost::kCheap);
      RunEnvironment environment = Environment(failing_sum_);
      environment.max_workers = workers;
      sums_ = 0;
      ExpectError(RunToEnd(environment, {Number(5), live_.Make(3)}), absl::StatusCode::kInternal, {"broken"});
      EXPECT_EQ(Record::LiveCount(), 0);
    }
  }
}

TEST_F(RecordedTest, CancellationLeavesNoRecordBehind) {
  calls_ = 2;
  StaticGraph graph;
  AddRecordedMain(&graph, 2);
  AddRecorded(&graph, 2);
  SetProgram(graph);
  for (int last_poll = 1; last_poll < 60; last_poll += 2) {
    AddBoxed(KernelRunner::Cost::kExpensive);
    RunEnvironment environment = Environment();
    environment.max_workers = last_poll % 4;
    std::atomic<int> polls{0};
    environment.is_cancelled = [&] { return ++polls >= last_poll; };
    Outcome outcome = RunToEnd(environment, {Number(6), live_.Make(3)});
    if (polls < last_poll) {  // kernels on other threads have let the run end with fewer polls
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      outcome.Release();
      EXPECT_EQ(live_.count(), 0);
    } else {
      ExpectError(outcome, absl::StatusCode::kCancelled, {"cancelled"});
    }
    EXPECT_EQ(Record::LiveCount(), 0);
  }
}

// Else a gradient would copy what it could write to, and need the memory of the whole recursion to its end.
TEST_F(RecordedTest, TheLastReaderGetsTheValuesThemselves) {
  for (const bool boxes : {false, true}) {
    for (const int readers : {1, 2}) {
      StaticGraph graph;
      graph.Arg("x").Kernel("y", {"x"}).Const("constant", 4);
      runner_.On("y", [this](KernelCall* call) {
        call->outputs[0] = live_.Make(5);
        return absl::OkStatus();
      });
      Retain(&graph, "retain", {"y", "constant"}, {kInt, kInt});
      const std::string record = boxes ? "box" : "retain";
      if (boxes) {
        graph.Node("box", "PyFuncStateless", {"retain"},
                   {{"Tin", tensorflow::DataTypeSlice({DT_VARIANT})},
                    {"Tout", tensorflow::DataTypeSlice({DT_VARIANT})},
                    {"token", "box"}});
        runner_.On("box", [](KernelCall* call) {
          call->outputs[0] = Value::Own(new tensorflow::Tensor(TensorFromValue(call->inputs[0], DT_VARIANT)));
          return absl::OkStatus();
        });
      }
      int unshared = 0;
      for (int i = 0; i < readers; ++i) {
        const std::string recall = absl::StrCat("recall_", i);
        const std::string reader = absl::StrCat("reader_", i);
        Recall(&graph, recall, record, {kInt, kInt}).Kernel(reader, {recall, recall + ":1"}).Retval(reader, i);
        runner_.On(reader, [&unshared](KernelCall* call) {
          unshared += call->inputs[0].tensor->RefCountIsOne();
          call->outputs[0] = Number(LiveTensors::Number(call->inputs[0]) + call->inputs[1].int32);
          return absl::OkStatus();
        });
      }
      SetProgram(graph);
      EXPECT_EQ(RunWith({Number(1)}).Numbers(), std::vector<int>(readers, 9));
      EXPECT_EQ(unshared, 1) << "boxes " << boxes << " readers " << readers;
      EXPECT_EQ(live_.count(), 0);
      EXPECT_EQ(Record::LiveCount(), 0);
    }
  }
}

TEST_F(RecordedTest, ARecordOutlivesItsProgram) {
  tensorflow::Tensor constant(kInt, tensorflow::TensorShape({1}));
  constant.flat<int32_t>()(0) = 7;
  tensorflow::Tensor boxed;
  {
    StaticGraph graph;
    graph.Arg("x").Node("constant", "Const", {}, {{"dtype", kInt}, {"value", constant}});
    Retain(&graph, "retain", {"x", "constant"}, {kInt, kInt}).Retval("retain", 0, DT_VARIANT);
    SetProgram(graph);
    const Outcome outcome = RunWith({live_.Make(5)});
    boxed = TensorFromValue(outcome.retvals[0], DT_VARIANT);
  }
  StaticGraph graph;
  graph.Arg("record", 0, DT_VARIANT);
  Recall(&graph, "recall", "record", {kInt, kInt}).Retval("recall").Retval("recall:1", 1);
  SetProgram(graph);
  EXPECT_EQ(RunWith({Value::Own(new tensorflow::Tensor(boxed))}).Numbers(), (std::vector<int>{5, 7}));
  EXPECT_EQ(RunWith({Value::Own(new tensorflow::Tensor(boxed))}).Numbers(), (std::vector<int>{5, 7}));
  boxed = tensorflow::Tensor();
  EXPECT_EQ(live_.count(), 0);
}

// i, r = i + 1, Retain(i, r) while i < n; then reads the last one.
TEST_F(RecordedTest, LoopsCarryRecords) {
  StaticGraph graph;
  graph.Arg("n").Const("zero", 0).Enter("enter_i", "zero", "loop").Enter("enter_n", "n", "loop", true);
  Retain(&graph, "start", {"n"}, {kInt});
  for (const bool is_constant : {false, true}) {
    graph.Node(is_constant ? "first" : "enter_r", "Enter", {"start"},
               {{"T", DT_VARIANT}, {"frame_name", "loop"}, {"is_constant", is_constant}, {"parallel_iterations", 10}});
  }
  Merge(&graph, "i", {"enter_i", "next_i"});
  Merge(&graph, "r", {"enter_r", "next_r"}, DT_VARIANT);
  graph.Op("less", "Less", {"i", "enter_n"}).Node("cond", "LoopCond", {"less"});
  graph.Op("switch_i", "Switch", {"i", "cond"}).Op("switch_r", "Switch", {"r", "cond"}, DT_VARIANT);
  graph.Op("body", "Identity", {"switch_i:1"}).Const("one", 1, {"^body"});
  Retain(&graph, "retain", {"body", "switch_r:1", "first"}, {kInt, DT_VARIANT, DT_VARIANT});
  graph.Op("add_i", "AddV2", {"body", "one"}).Op("next_i", "NextIteration", {"add_i"});
  graph.Op("next_r", "NextIteration", {"retain"}, DT_VARIANT).Op("exit", "Exit", {"switch_r"}, DT_VARIANT);
  Recall(&graph, "recall", "exit", {kInt, DT_VARIANT, DT_VARIANT}).Retval("recall");
  Recall(&graph, "recall_first", "recall:2", {kInt}).Retval("recall_first", 1);
  SetProgram(graph);
  ExpectInEveryOrder({10}, {9, 10});
}

TEST_F(RecordedTest, ARecordMayBeEmpty) {
  StaticGraph graph;
  AddMain(&graph, "G", 1);
  graph.Function("G", {"x"});
  Retain(&graph, "G/retain", {}, {}, {"^G/frame_start"});
  Recall(&graph, "G/recall", "G/retain", {}).Op("G/after", "Identity", {"G/x", "^G/recall"}).Result("G", "G/after");
  SetProgram(graph);
  ExpectInEveryOrder({3}, {3});
}

TEST_F(RecordedTest, ARecordOfADeadBranchIsDead) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  Retain(&graph, "dead", {"x", "switch:1"}, {kInt, kInt});
  Retain(&graph, "live", {"x", "switch"}, {kInt, kInt});
  Recall(&graph, "dead_recall", "dead", {kInt, kInt}).Retval("dead_recall");
  Merge(&graph, "merge", {"dead", "live"}, DT_VARIANT);
  Recall(&graph, "recall", "merge", {kInt, kInt}).Retval("recall:1", 1);
  SetProgram(graph);
  ExpectInEveryOrder({3}, {Outcome::kDead, 3});
}

TEST_F(RecordedTest, WhatIsNoRecordIsAnError) {
  StaticGraph graph;
  graph.Arg("record", 0, DT_VARIANT).Arg("x", 1);
  CallOfTypes(&graph, "main", "B", 1, {{"record", DT_VARIANT}}, {kInt});
  graph.Retval("main/return_0");
  AddRecorded(&graph, 1);
  SetProgram(graph);
  auto* empty = new tensorflow::Tensor(DT_VARIANT, tensorflow::TensorShape({}));
  ExpectError(RunWith({Value::Own(empty), live_.Make(1)}), absl::StatusCode::kInvalidArgument,
              {"Gradient of 'F': its input is not the record of a forward call but an empty variant",
               "{{node B/recall}}", "in call B"});
  Record* record = Record::New(1);
  record->Set(0, live_.Make(1), kInt);
  ExpectError(RunWith({Value::Own(record), live_.Make(1)}), absl::StatusCode::kInvalidArgument,
              {"holds 1 values, expected 4", "{{node B/recall}}"});
}

class DeepRecordedTest : public RecordedTest {};

TEST_F(DeepRecordedTest, GoesAMillionCallsForwardAndBack) {
  for (const bool boxes : {false, true}) {
    for (const int backwards : {0, 1, 2}) {
      SCOPED_TRACE(absl::StrCat("boxes ", boxes, " backwards ", backwards));
      StaticGraph graph;
      AddRecordedMain(&graph, backwards);
      AddRecorded(&graph, 1, kDeep + 1, boxes);
      AddBoxed();  // for the boxes
      for (const char* node : {"F/add", "B/add"}) {
        runner_.On(node, [](KernelCall* call) {
          call->outputs[0] = Number(static_cast<int32_t>(static_cast<uint32_t>(call->inputs[0].int32) +
                                                         static_cast<uint32_t>(call->inputs[1].int32)));
          return absl::OkStatus();
        });
      }
      SetProgram(graph);
      SmallStackThreads threads;
      RunEnvironment environment = Environment();
      environment.schedule = [&threads](std::function<void()> work) { threads.Schedule(std::move(work)); };
      PendingRun run;
      threads.Schedule([&] { run.Start(environment, Numbers({kDeep - 1, 1})); });
      const Outcome outcome = run.Wait();
      const uint64_t sum = uint64_t{kDeep} * (kDeep + 1) / 2;
      std::vector<int> expected(1 + backwards, static_cast<int>(static_cast<uint32_t>(sum)));
      expected[0] = kDeep;
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.Numbers(), expected);
      EXPECT_EQ(Record::LiveCount(), 0);
    }
  }
}

}  // namespace
}  // namespace tensorflow_recursion
