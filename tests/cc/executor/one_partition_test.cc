// One partition of several, written by hand: what it sends, receives and announces to the others.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "cc/program/program.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/executor/fake_runner.h"
#include "tests/cc/executor/thread_pool.h"
#include "tests/cc/program/built_programs.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

StaticGraph& Send(StaticGraph* graph, const std::string& name, const Inputs& inputs,
                  tensorflow::DataType dtype = kInt) {
  return graph->Node(name, "_Send", inputs,
                     {{"T", dtype},
                      {"tensor_name", name},
                      {"send_device", std::string(kDeviceA)},
                      {"send_device_incarnation", 1},
                      {"recv_device", std::string(kDeviceB)}});
}

// A receive in `function`, empty for the main graph.
StaticGraph& Receive(StaticGraph* graph, const std::string& name, tensorflow::DataType dtype = kInt,
                     const std::string& function = "") {
  Attrs attrs = {{"tensor_type", dtype},
                 {"tensor_name", name},
                 {"send_device", std::string(kDeviceB)},
                 {"send_device_incarnation", 1},
                 {"recv_device", std::string(kDeviceA)}};
  if (function.empty()) return graph->Node(name, "_Recv", {}, attrs);
  attrs.emplace_back(kBodyAttr, function);
  return graph->Node(name, "_Recv", {"^" + function + "/frame_start"}, attrs);  // connected with what has no mark
}

StaticGraph& SitePiece(StaticGraph* graph, const std::string& name, const char* op, const std::string& function,
                       int call_id, const Inputs& inputs) {
  return graph->Node(name, op, inputs, {{kFunctionAttr, function}, {kCallIdAttr, call_id}});
}

constexpr uint64_t kRunsOfEach = 40;

class OnePartitionTest : public ::testing::Test {
 protected:
  static constexpr int kDead = Outcome::kDead;
  using Tag = std::pair<uint64_t, int64_t>;

  void SetProgram(const StaticGraph& graph) {
    built_ = Build(graph);
    ASSERT_TRUE(built_.status.ok()) << built_.status;
    for (const KernelNode& node : built_->kernels) {
      if (node.node->IsSend()) {
        runner_.On(node.name, [this, name = node.name](KernelCall* call) {
          EXPECT_EQ(call->is_dead, call->inputs[0].is_dead()) << name;
          std::lock_guard<std::mutex> lock(mutex_);
          sent_[name].insert(call->is_dead ? kDead : LiveTensors::Number(call->inputs[0]));
          tags_[name].insert({call->tag.id, call->tag.iteration});
          return absl::OkStatus();
        });
      } else if (node.node->IsRecv()) {
        runner_.OnAsync(node.name, [this, name = node.name](KernelCall* call, FakeRunner::Done done) {
          std::lock_guard<std::mutex> lock(mutex_);
          receives_[name].emplace_back(call, std::move(done));
        });
      }
    }
  }

  RunEnvironment Environment(uint64_t seed = 0) { return EnvironmentOf(built_, &runner_, &pool_, seed); }

  // Runs a graph that receives nothing, in several orders of ready operators.
  void ExpectSent(const StaticGraph& graph, const std::vector<int>& arguments,
                  const std::map<std::string, std::multiset<int>>& expected, const std::vector<int>& results) {
    ASSERT_NO_FATAL_FAILURE(SetProgram(graph));
    for (uint64_t seed = 0; seed < kRunsOfEach; ++seed) {
      SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
      sent_.clear();
      const Outcome outcome = RunToEnd(Environment(seed), Numbers(arguments));
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.Numbers(), results);
      EXPECT_EQ(sent_, expected);
    }
  }

  // Answers one receive of the node.
  void Answer(const std::string& name, Value value) {
    std::pair<KernelCall*, FakeRunner::Done> receive;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ASSERT_FALSE(receives_[name].empty()) << name;
      receive = std::move(receives_[name].back());
      receives_[name].pop_back();
    }
    receive.first->outputs[0] = value;
    receive.second(absl::OkStatus());
  }
  static Value True() { return ScalarFromTensor(tensorflow::Tensor(true)); }
  static Value Dead() { return Value::Empty(); }

  LiveTensors live_;
  BuiltProgram built_;
  FakeRunner runner_;
  std::mutex mutex_;
  std::map<std::string, std::multiset<int>> sent_;  // by node; numbers, or kDead
  std::map<std::string, std::set<Tag>> tags_;       // of sends
  std::map<std::string, std::vector<std::pair<KernelCall*, FakeRunner::Done>>> receives_;
  ThreadPool pool_{4};
};

// Sends.

TEST_F(OnePartitionTest, ASendIsToldThatItsInputIsDead) {
  StaticGraph graph;
  BeginChoice(&graph);
  Send(&graph, "F/taken", {"F/switch"});
  Send(&graph, "F/not_taken", {"F/switch:1"});
  Send(&graph, "F/always", {"F/x"});
  EndChoice(&graph, "F/switch");
  ExpectSent(graph, {5}, {{"F/taken", {5}}, {"F/not_taken", {kDead}}, {"F/always", {5}}}, {5});
  ExpectSent(graph, {-5}, {{"F/taken", {kDead}}, {"F/not_taken", {-5}}, {"F/always", {-5}}}, {5});
}

TEST_F(OnePartitionTest, ASendDiesOfAControlInputAndOfTwoDeathsOnce) {
  StaticGraph graph;
  BeginChoice(&graph).Op("F/on_true", "Identity", {"F/switch:1"}).Op("F/also", "Neg", {"F/switch:1"});
  graph.Const("F/constant", 7, {"^F/on_true"}).Kernel("F/slow", {"F/x"}).Kernel("F/effect", {"F/switch:1"}, 0, true);
  Send(&graph, "F/by_control", {"F/x", "^F/on_true"});
  Send(&graph, "F/by_effect", {"F/slow", "^F/effect"});
  Send(&graph, "F/twice", {"F/also", "^F/on_true", "^F/effect"});
  Send(&graph, "F/by_constant", {"F/constant"});
  EndChoice(&graph, "F/switch");
  ExpectSent(graph, {5},
             {{"F/by_control", {kDead}}, {"F/by_effect", {kDead}}, {"F/twice", {kDead}}, {"F/by_constant", {kDead}}},
             {5});
  ExpectSent(graph, {-5}, {{"F/by_control", {-5}}, {"F/by_effect", {-5}}, {"F/twice", {5}}, {"F/by_constant", {7}}},
             {5});
}

TEST_F(OnePartitionTest, ASendOfADeadCallsResultIsDead) {
  StaticGraph graph;
  BeginChoice(&graph).Call("F/call", "G", 2, {"F/switch"});
  Send(&graph, "F/result", {"F/call/return_0"});
  graph.Function("G", {"x"}).Op("G/neg", "Neg", {"G/x"}).Result("G", "G/neg");
  EndChoice(&graph, "F/call/return_0");
  ExpectSent(graph, {5}, {{"F/result", {-5}}}, {-5});
  ExpectSent(graph, {-5}, {{"F/result", {kDead}}}, {5});
}

// for i in range(n): send i. `start` is a node that is live with `n`.
void AddSendingLoop(StaticGraph* graph, const std::string& prefix, const std::string& n, const std::string& start) {
  auto in = [&](const char* node) { return prefix + node; };
  graph->Const(in("first"), 0, {"^" + start}).Enter(in("enter_i"), in("first"), in("loop"));
  graph->Enter(in("enter_n"), n, in("loop"), true);
  Merge(graph, in("i"), {in("enter_i"), in("next")});
  graph->Op(in("less"), "Less", {in("i"), in("enter_n")}).Node(in("cond"), "LoopCond", {in("less")});
  graph->Op(in("switch"), "Switch", {in("i"), in("cond")}).Op(in("exit"), "Exit", {in("switch")});
  graph->Op(in("body"), "Identity", {in("switch:1")}).Const(in("one"), 1, {"^" + in("body")});
  graph->Op(in("add"), "AddV2", {in("body"), in("one")}).Op(in("next"), "NextIteration", {in("add")});
  Send(graph, in("send"), {in("body")});
}

TEST_F(OnePartitionTest, ALoopThatSendsStartsDeadToo) {
  StaticGraph graph;
  BeginChoice(&graph).Op("F/pivot", "Identity", {"F/switch"});
  AddSendingLoop(&graph, "F/l_", "F/switch", "F/pivot");
  Send(&graph, "F/sent_exit", {"F/l_exit"});
  EndChoice(&graph, "F/l_exit");
  ExpectSent(graph, {2}, {{"F/l_send", {0, 1, kDead}}, {"F/sent_exit", {2}}}, {2});
  ExpectSent(graph, {0}, {{"F/l_send", {kDead}}, {"F/sent_exit", {0}}}, {0});
  ExpectSent(graph, {-5}, {{"F/l_send", {kDead}}, {"F/sent_exit", {kDead}}}, {5});
}

TEST_F(OnePartitionTest, ALoopWithALoopThatSendsStartsDeadToo) {
  StaticGraph graph;
  graph.Arg("x").Const("zero", 0).Op("less", "Less", {"x", "zero"}).Op("choice", "Switch", {"x", "less"});
  graph.Op("pivot", "Identity", {"choice"});
  AddSendingLoop(&graph, "o_", "choice", "pivot");
  AddSendingLoop(&graph, "i_", "o_body", "o_body");
  Send(&graph, "o_inner", {"i_exit"});
  graph.Retval("o_exit");
  ExpectSent(
      graph, {3},
      {{"o_send", {0, 1, 2, kDead}}, {"i_send", {0, 0, 1, kDead, kDead, kDead, kDead}}, {"o_inner", {0, 1, 2, kDead}}},
      {3});
  ExpectSent(graph, {-3}, {{"o_send", {kDead}}, {"i_send", {kDead}}, {"o_inner", {kDead}}}, {kDead});
}

// Tags.

TEST_F(OnePartitionTest, KernelsGetTheTagOfTheirFrame) {
  StaticGraph graph;
  graph.Arg("x").Call("main", "F", 3, {"x"}).Retval("main/return_0");
  graph.Function("F", {"x"}).Call("F/call", "G", 4, {"F/x"}).Result("F", "F/call/return_0");
  graph.Function("G", {"x"}).Op("G/pivot", "Identity", {"G/x"});
  AddSendingLoop(&graph, "G/", "G/x", "G/pivot");
  Send(&graph, "G/before", {"G/x"});
  graph.Result("G", "G/exit").Op("pivot", "Identity", {"x"});
  AddSendingLoop(&graph, "", "x", "pivot");
  Send(&graph, "top", {"exit"});
  SetProgram(graph);
  EXPECT_EQ(RunToEnd(Environment(), Numbers({1})).Numbers(), std::vector<int>{1});
  auto pair = [](const FrameTag& tag) { return Tag(tag.id, tag.iteration); };
  const FrameTag g = ChildTag(ChildTag({}, 3), 4);
  EXPECT_EQ(tags_["G/before"], std::set<Tag>{pair(g)});
  const uint64_t in_g = tensorflow::Hash64("G/loop");
  EXPECT_EQ(tags_["G/send"], (std::set<Tag>{pair(ChildTag(g, in_g, 0)), pair(ChildTag(g, in_g, 1))}));
  const uint64_t in_main = tensorflow::Hash64("loop");
  EXPECT_EQ(tags_["send"], (std::set<Tag>{pair(MainLoopTag({}, in_main, 0)), pair(MainLoopTag({}, in_main, 1))}));
  EXPECT_EQ(tags_["top"], std::set<Tag>{Tag(0, 0)});
}

TEST_F(OnePartitionTest, AsynchronousKernelsGetTheTagOfTheirFrame) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  Receive(&graph, "F/recv", kInt, "F").Op("F/sum", "AddV2", {"F/x", "F/recv"}).Result("F", "F/sum");
  graph.Function("F", {"x"});
  SetProgram(graph);
  PendingRun run;
  run.Start(Environment(), Numbers({1}));
  const FrameTag expected = ChildTag({}, 1);
  const FrameTag tag = receives_["F/recv"].at(0).first->tag;
  EXPECT_EQ(Tag(tag.id, tag.iteration), Tag(expected.id, expected.iteration));
  Answer("F/recv", Number(41));
  EXPECT_EQ(run.Wait().Numbers(), std::vector<int>{42});
}

TEST_F(OnePartitionTest, FramesWithoutMessagesHaveNoTags) {
  const StaticGraph graph = FibGraph();
  SetProgram(graph);
  for (const Region& region : built_->regions) EXPECT_EQ(region.tag_slot, kNone) << region.name;
}

// Calls that another device decides.

// main = F(x, late(x)), on a device that is told whether the call lives. F waits for `early` kernels on x, `late` on y.
StaticGraph CallThatWaits() {
  StaticGraph graph;
  graph.Arg("x").Kernel("slow", {"x"});
  Receive(&graph, "told", tensorflow::DT_BOOL);
  SitePiece(&graph, "main/open", kJoinCallOp, "F", 1, {"told"}).Call("main", "F", 1, {"x", "slow"}, 2);
  graph.Retval("main/return_0").Retval("main/return_1", 1).Function("F", {"x", "y"});
  graph.Kernel("F/early", {"F/x"}).Kernel("F/late", {"F/y"}).Result("F", "F/early").Result("F", "F/late", 1);
  return graph;
}

TEST_F(OnePartitionTest, ACallWaitsForItsAnnouncement) {
  SetProgram(CallThatWaits());
  PendingRun run;
  run.Start(Environment(), {live_.Make(4)});  // goes on with nothing else to do until all waits
  EXPECT_EQ(runner_.runs("slow"), 1);
  EXPECT_EQ(runner_.runs("F/early"), 0);
  Answer("told", True());
  EXPECT_EQ(run.Wait().Numbers(), (std::vector<int>{4, 4}));
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(OnePartitionTest, ACallThatIsDeadElsewhereDropsItsArguments) {
  SetProgram(CallThatWaits());
  PendingRun run;
  run.Start(Environment(), {live_.Make(4)});
  Answer("told", Dead());
  EXPECT_EQ(run.Wait().Numbers(), (std::vector<int>{kDead, kDead}));
  EXPECT_EQ(runner_.runs("F/early") + runner_.runs("F/late"), 0);
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(OnePartitionTest, ArgumentsMayComeAfterTheAnnouncement) {
  FakeRunner::Done slow;
  runner_.OnAsync("slow", [&](KernelCall* call, FakeRunner::Done done) {
    call->outputs[0] = call->inputs[0].Take();
    slow = std::move(done);
  });
  for (bool is_alive : {true, false}) {
    absl::Notification opened;
    runner_.On("F/early", [&](KernelCall* call) {
      call->outputs[0] = call->inputs[0].Take().Escape();
      opened.Notify();
      return absl::OkStatus();
    });
    SetProgram(CallThatWaits());
    PendingRun run;
    run.Start(Environment(), {live_.Make(4)});
    EXPECT_FALSE(opened.HasBeenNotified());
    Answer("told", is_alive ? True() : Dead());
    if (is_alive) opened.WaitForNotification();
    slow(absl::OkStatus());
    EXPECT_EQ(run.Wait().Numbers(), is_alive ? (std::vector<int>{4, 4}) : (std::vector<int>{kDead, kDead}));
    EXPECT_EQ(opened.HasBeenNotified(), is_alive);
  }
  EXPECT_EQ(live_.count(), 0);
}

// The deciding device has a live argument, this one has none.
TEST_F(OnePartitionTest, ACallMayOpenWithDeadArgumentsAlone) {
  for (bool is_alive : {true, false}) {
    StaticGraph graph;
    graph.Arg("x").Const("zero", 0).Op("less", "Less", {"x", "zero"}).Op("choice", "Switch", {"x", "less"});
    Receive(&graph, "told", tensorflow::DT_BOOL);
    SitePiece(&graph, "main/open", kJoinCallOp, "F", 1, {"told"}).Call("main", "F", 1, {"choice", "choice"}, 2);
    graph.Retval("main/return_0").Retval("main/return_1", 1).Function("F", {"x", "y"});
    graph.Const("F/one", 1, {"^F/frame_start"}).Kernel("F/alone", {"F/one"}).Op("F/sum", "AddV2", {"F/x", "F/y"});
    SetProgram(graph.Result("F", "F/alone").Result("F", "F/sum", 1));
    PendingRun run;
    const int runs = runner_.runs("F/alone");
    run.Start(Environment(), Numbers({-5}));
    EXPECT_EQ(runner_.runs("F/alone"), runs);
    Answer("told", is_alive ? True() : Dead());
    EXPECT_EQ(run.Wait().Numbers(), (std::vector<int>{is_alive ? 1 : kDead, kDead}));
    EXPECT_EQ(runner_.runs("F/alone"), runs + is_alive);
  }
}

TEST_F(OnePartitionTest, ACallMayHaveNoArgumentsHere) {
  for (bool is_alive : {true, false}) {
    StaticGraph graph;
    Receive(&graph, "told", tensorflow::DT_BOOL);
    SitePiece(&graph, "main/open", kJoinCallOp, "F", 1, {"told"}).Return("main", "F", 1, 0, {"^main/open"});
    graph.Retval("main/return_0").Function("F", {}).Const("F/one", 1, {"^F/frame_start"}).Result("F", "F/one");
    SetProgram(graph);
    PendingRun run;
    run.Start(Environment(), {});
    Answer("told", is_alive ? True() : Dead());
    EXPECT_EQ(run.Wait().Numbers(), std::vector<int>{is_alive ? 1 : kDead});
  }
}

// Calls that this device decides.

TEST_F(OnePartitionTest, AnnouncementDiesWithItsCall) {
  StaticGraph graph;
  BeginChoice(&graph).Call("F/call", "G", 2, {"F/switch"});
  graph.Function("G", {"x"}).Op("G/neg", "Neg", {"G/x"}).Result("G", "G/neg");
  SitePiece(&graph, "F/call/opened", kAnnounceCallOp, "G", 2, {"^F/call/call_0"});
  graph.Const("F/told", 1, {"^F/call/opened"});
  Send(&graph, "F/send", {"F/told"});
  EndChoice(&graph, "F/call/return_0");
  ExpectSent(graph, {5}, {{"F/send", {1}}}, {-5});
  ExpectSent(graph, {-5}, {{"F/send", {kDead}}}, {5});
}

TEST_F(OnePartitionTest, AnnouncementFiresWhenTheFrameOpens) {
  StaticGraph graph;
  graph.Arg("x").Kernel("slow", {"x"}).Call("main", "F", 1, {"x", "slow"}).Function("F", {"x", "y"});
  graph.Op("F/sum", "AddV2", {"F/x", "F/y"}).Result("F", "F/sum").Retval("main/return_0");
  SitePiece(&graph, "main/opened", kAnnounceCallOp, "F", 1, {"^main/call_0"}).Const("told", 1, {"^main/opened"});
  Send(&graph, "send", {"told"});
  FakeRunner::Done slow;
  runner_.OnAsync("slow", [&](KernelCall* call, FakeRunner::Done done) {
    call->outputs[0] = Number(2);
    slow = std::move(done);
  });
  SetProgram(graph);
  PendingRun run;
  run.Start(Environment(), Numbers({1}));
  EXPECT_EQ(sent_["send"], std::multiset<int>{1});
  slow(absl::OkStatus());
  EXPECT_EQ(run.Wait().Numbers(), std::vector<int>{3});
}

TEST_F(OnePartitionTest, AnnouncementFiresForACallThatAnotherWorkerOpens) {
  StaticGraph graph;
  graph.Arg("x").Kernel("warm", {"x"}).Call("a", "F", 1, {"warm"}).Call("b", "F", 2, {"warm"});
  graph.Op("sum", "AddV2", {"a/return_0", "b/return_0"}).Retval("sum");
  graph.Function("F", {"x"}).Kernel("F/meet", {"F/x"}).Result("F", "F/meet");
  for (const auto& [site, id] : {std::pair("a", 1), std::pair("b", 2)}) {
    const std::string name = site;
    SitePiece(&graph, name + "/opened", kAnnounceCallOp, "F", id, {"^" + name + "/call_0"});
    graph.Const(name + "_told", id, {"^" + name + "/opened"});
    Send(&graph, name + "_send", {name + "_told"});
  }
  Send(&graph, "F/send", {"F/x"});
  Meeting meeting;
  runner_.On("F/meet", [&](KernelCall* call) { return meeting.Join(call); });
  auto pass = [](KernelCall* call) {
    call->outputs[0] = call->inputs[0].Take();
    return absl::OkStatus();
  };
  runner_.On("warm", pass, KernelRunner::Cost::kExpensive);
  SetProgram(graph);
  RunEnvironment environment = Environment();
  environment.max_workers = 2;
  EXPECT_EQ(RunToEnd(environment, Numbers({1})).Numbers(), std::vector<int>{2});
  EXPECT_EQ(sent_["a_send"], std::multiset<int>{1});
  EXPECT_EQ(sent_["b_send"], std::multiset<int>{2});
  auto pair = [](const FrameTag& tag) { return Tag(tag.id, tag.iteration); };
  EXPECT_EQ(tags_["F/send"], (std::set<Tag>{pair(ChildTag({}, 1)), pair(ChildTag({}, 2))}));
}

// Receives in flight.

// down(n) = n > 0 ? down(n - 1) + received : 0
StaticGraph ReceivingRecursion() {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}, 1'000'000).Const("F/zero", 0, {"^F/frame_start"}).Const("F/one", 1, {"^F/frame_start"});
  graph.Op("F/done", "Equal", {"F/n", "F/zero"}).Op("F/switch", "Switch", {"F/n", "F/done"});
  graph.Op("F/less", "Sub", {"F/switch", "F/one"}).Call("F/call", "F", 2, {"F/less"});
  Receive(&graph, "F/recv", kInt, "F").Op("F/sum", "AddV2", {"F/call/return_0", "F/recv"});
  return Merge(&graph, "F/merge", {"F/sum", "F/switch:1"}).Result("F", "F/merge");
}

// More than a worker waits for: the answers come when the last frame is open.
TEST_F(OnePartitionTest, GoesOnWithoutAnswersAfterItsPatience) {
  constexpr size_t kFrames = 5001;
  SetProgram(ReceivingRecursion());
  std::vector<std::pair<KernelCall*, FakeRunner::Done>> waiting;
  runner_.OnAsync("F/recv", [&](KernelCall* call, FakeRunner::Done done) {
    waiting.emplace_back(call, std::move(done));
    if (waiting.size() < kFrames) return;
    pool_.Schedule([receives = std::move(waiting)] {
      for (const auto& [receive, end] : receives) {
        receive->outputs[0] = Number(2);
        end(absl::OkStatus());
      }
    });
  });
  const Outcome outcome = RunToEnd(Environment(), Numbers({kFrames - 1}));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.Numbers(), std::vector<int>{2 * (kFrames - 1)});
}

TEST_F(OnePartitionTest, ReceivesInFlightCountAsMemory) {
  constexpr int kReceives = 64;
  constexpr int64_t kMostInFlight = 512 * 1024 / 2;  // of 2 KiB in 512 MiB
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}, 1'000'000).Call("F/call", "F", 2, {"F/n"});
  Inputs inputs = {"F/call/return_0"};
  for (int i = 0; i < kReceives; ++i) {
    inputs.push_back(absl::StrCat("F/recv_", i));
    Receive(&graph, inputs.back(), kInt, "F");
  }
  SetProgram(graph.Kernel("F/all", inputs).Result("F", "F/all"));
  RunEnvironment environment = Environment();
  size_t in_flight = 0;
  environment.on_error = [&](const absl::Status&) {
    for (auto& [name, receives] : receives_) {
      in_flight += receives.size();
      for (auto& [call, done] : receives) done(absl::CancelledError("aborted"));
    }
  };
  const Outcome outcome = RunToEnd(environment, Numbers({1}));
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kResourceExhausted) << outcome.status;
  EXPECT_TRUE(absl::StrContains(outcome.status.message(), "512 MiB")) << outcome.status;
  EXPECT_GT(in_flight, kMostInFlight / 2);
  EXPECT_LE(in_flight, kMostInFlight);
}

TEST_F(OnePartitionTest, AnErrorWhileReceivesAreInFlightReleasesEverything) {
  SetProgram(CallThatWaits());
  PendingRun run;
  run.Start(Environment(), {live_.Make(4)});
  FakeRunner::Done done = std::move(receives_["told"].at(0).second);
  done(absl::UnavailableError("the other device is gone"));
  const Outcome outcome = run.Wait();
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable) << outcome.status;
  EXPECT_EQ(live_.count(), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
