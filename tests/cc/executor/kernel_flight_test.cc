// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/kernel_flight.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cc/executor/worker_profile.h"
#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

// Flights of the kernels `first`, of one input, and `second`, of two, whose second input is what the first yields.
class KernelFlightTest : public WorkerPartsTest {
 protected:
  void SetUp() override { Begin(/*max_workers=*/1); }

  // The run has two activities: the fixture's, and that of the flight. The worker that owns the frame sleeps.
  void Begin(int max_workers) {
    StaticGraph graph;
    graph.Arg("x").Kernel("first", {"x"}).Kernel("second", {"x", "first"}).Retval("second");
    for (const char* node : {"first", "second"}) {
      runner_.On(node, [this](KernelCall* call) {
        call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
        return absl::OkStatus();
      });
    }
    SetProgram(graph, max_workers);
    TakeOff();
  }

  void TakeOff() {
    run_->BeginActivity();
    owner_ = std::make_unique<Inbox>(run_.get(), [this] { ++wakes_; });
    frame_ = NewFrame(built_->regions[0]);
    frame_->owner = owner_.get();
  }

  std::unique_ptr<KernelInFlight> Kernel(const std::string& node, KernelInFlight::Way way,
                                         const std::vector<Value>& inputs) {
    auto kernel = std::make_unique<KernelInFlight>();
    kernel->way = way;
    const Region& root = built_->regions[0];
    for (const OpId op : OpsOf(root, OpKind::kKernel)) {
      if (built_->KernelOf(root.ops[op]).name == node) kernel->op = op;
    }
    kernel->node = &built_->KernelOf(root.ops[kernel->op]);
    for (const Value& value : inputs) kernel->inputs.push_back(value);
    kernel->outputs.resize(1, Value::Empty());
    kernel->call = KernelCall{kernel->inputs.data(), kernel->outputs.data(), {}, /*worker=*/0, /*is_dead=*/false};
    return kernel;
  }

  KernelFlight One(KernelInFlight::Way way = KernelInFlight::Way::kSpread) {
    return {run_.get(), frame_, Kernel("first", way, {live_.Make(5)}).release()};
  }
  KernelFlight Both() {
    KernelFlight flight = One();
    flight.kernel->next = Kernel("second", flight.kernel->way, {live_.Make(7), Value::Empty()});
    flight.kernel->next->arrival = 1;
    return flight;
  }
  int wakes_ = 0;
  std::unique_ptr<Inbox> owner_;
  Frame* frame_ = nullptr;
};

// --- Fly ------------------------------------------------------------------------------------------

TEST_F(KernelFlightTest, TheMessageThatEndsAFlightTakesTheKernelOver) {
  const KernelFlight flight = One();
  const Message message = Fly(flight);
  EXPECT_EQ(message.kind, Message::Kind::kKernelDone);
  EXPECT_EQ(message.frame, frame_);
  EXPECT_EQ(message.op, flight.kernel->op);
  ASSERT_EQ(message.kernel.get(), flight.kernel);
  EXPECT_TRUE(message.kernel->status.ok());
  EXPECT_FALSE(message.kernel->is_handed_on);
  EXPECT_EQ(LiveTensors::Number(message.kernel->outputs[0]), 6);
  EXPECT_EQ(live_.count(), 1) << "the input has been released";
}

TEST_F(KernelFlightTest, AKernelGetsWhatTheOneBeforeItYields) {
  int arrived = 0;
  int live = 0;
  runner_.On("second", [&](KernelCall* call) {
    arrived = LiveTensors::Number(call->inputs[1]);
    live = live_.count();
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
    return absl::OkStatus();
  });
  const Message message = Fly(Both());
  EXPECT_EQ(arrived, 6);
  EXPECT_EQ(live, 2) << "its own inputs alone: those of the first are released before it runs";
  EXPECT_TRUE(message.kernel->is_handed_on);
  EXPECT_FALSE(message.kernel->next->is_handed_on);
  EXPECT_EQ(LiveTensors::Number(message.kernel->next->outputs[0]), 8);
}

TEST_F(KernelFlightTest, AnErrorEndsAFlight) {
  runner_.On("first", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(6);
    return absl::InternalError("broken");
  });
  const Message message = Fly(Both());
  EXPECT_EQ(message.kernel->status, absl::InternalError("broken"));
  EXPECT_FALSE(message.kernel->is_handed_on);
  EXPECT_EQ(runner_.runs("second"), 0);
}

TEST_F(KernelFlightTest, AKernelThatYieldsNothingEndsAFlight) {
  runner_.On("first", [](KernelCall*) { return absl::OkStatus(); });
  const Message message = Fly(Both());
  EXPECT_TRUE(message.kernel->status.ok());
  EXPECT_FALSE(message.kernel->is_handed_on);
  EXPECT_EQ(runner_.runs("second"), 0);
}

TEST_F(KernelFlightTest, NoKernelRunsOnceTheRunHasFailed) {
  runner_.On("first", [this](KernelCall* call) {
    run_->Fail(absl::InternalError("elsewhere"));
    call->outputs[0] = live_.Make(6);
    return absl::OkStatus();
  });
  Fly(Both());
  EXPECT_EQ(runner_.runs("first"), 1);
  EXPECT_EQ(runner_.runs("second"), 0);
  Fly(Both());
  EXPECT_EQ(runner_.runs("first"), 1);
  EXPECT_EQ(live_.count(), 0) << "whatever has run or not, the messages have released all";
}

TEST_F(KernelFlightTest, AProfileIsToldHowLongAThreadWasBusy) {
  runner_.On("first", [](KernelCall* call) {
    const int64_t start = ProfileClock();
    while (ProfileClock() == start) {
    }
    call->outputs[0] = call->inputs[0].Take();
    return absl::OkStatus();
  });
  EXPECT_EQ(Fly(One()).kernel->nanoseconds, 0) << "nobody asks";
  RunEnvironment environment = run_->environment;
  environment.profiles = true;
  RunState profiled(environment, [] {});
  KernelFlight flight = One();
  flight.run = &profiled;
  EXPECT_GT(Fly(flight).kernel->nanoseconds, 0);
}

// --- RunBeside ------------------------------------------------------------------------------------

TEST_F(KernelFlightTest, AThreadThatRunsBesideASleepingWorkerHasToWakeIt) {
  EXPECT_TRUE(RunBeside(One()));
  EXPECT_EQ(wakes_, 0) << "that is left to the caller";
  EXPECT_TRUE(scheduled_.empty()) << "and to no other thread";
  EXPECT_EQ(owner_->Take().size(), 1);
  run_->EndActivity();
  EXPECT_FALSE(has_ended_) << "the flight's activity is now the worker's";
  run_->EndActivity();
  EXPECT_TRUE(has_ended_);
}

TEST_F(KernelFlightTest, AThreadThatRunsBesideAWorkerThatIsAwakeIsDone) {
  owner_->Open();
  EXPECT_FALSE(RunBeside(One()));
  EXPECT_EQ(owner_->Take().size(), 1);
  run_->EndActivity();
  EXPECT_TRUE(has_ended_) << "the flight's activity has ended";
}

TEST_F(KernelFlightTest, AnOffloadedKernelLeavesItsThreadToAnother) {
  Begin(/*max_workers=*/2);
  ASSERT_TRUE(run_->BeginOffload());
  RunBeside(One(KernelInFlight::Way::kSpread));
  EXPECT_FALSE(run_->BeginOffload()) << "it was no such kernel";
  run_->BeginActivity();
  RunBeside(One(KernelInFlight::Way::kOffloaded));
  EXPECT_TRUE(run_->BeginOffload());
}

// --- Send and Start -------------------------------------------------------------------------------

TEST_F(KernelFlightTest, AThreadOfThePoolRunsWhatIsSentAndGoesOnAsTheWorker) {
  Send(One());
  EXPECT_EQ(runner_.runs("first"), 0);
  ASSERT_EQ(scheduled_.size(), 1);
  scheduled_[0]();
  EXPECT_EQ(runner_.runs("first"), 1);
  EXPECT_EQ(wakes_, 1);
  EXPECT_EQ(scheduled_.size(), 1) << "the same thread does";
}

TEST_F(KernelFlightTest, AThreadOfThePoolDoesNotWakeAWorkerThatIsAwake) {
  owner_->Open();
  Send(One());
  ASSERT_EQ(scheduled_.size(), 1);
  scheduled_[0]();
  EXPECT_EQ(wakes_, 0);
  EXPECT_TRUE(owner_->MayHaveMail());
}

TEST_F(KernelFlightTest, AnAsynchronousKernelHasTheWorkerWokenOnAnotherThread) {
  FakeRunner::Done done;
  runner_.OnAsync("first", [&](KernelCall*, FakeRunner::Done when_done) { done = std::move(when_done); });
  Start(One(KernelInFlight::Way::kAsynchronous));
  EXPECT_FALSE(owner_->MayHaveMail()) << "it has only been started";
  done(absl::InternalError("broken"));
  EXPECT_EQ(wakes_, 0) << "this thread may have to do something else";
  ASSERT_EQ(scheduled_.size(), 1);
  run_->EndActivity();
  EXPECT_FALSE(has_ended_) << "the worker's activity has begun";
  scheduled_[0]();
  EXPECT_EQ(wakes_, 1);
  const std::vector<Message> mail = owner_->Take();
  ASSERT_EQ(mail.size(), 1);
  EXPECT_EQ(mail[0].kernel->status, absl::InternalError("broken"));
  run_->EndActivity();
  EXPECT_TRUE(has_ended_) << "the flight's activity has ended";
}

}  // namespace
}  // namespace tensorflow_recursion
