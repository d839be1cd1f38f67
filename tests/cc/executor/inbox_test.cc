// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/inbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "cc/executor/run_state.h"
#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

class InboxTest : public WorkerPartsTest {
 protected:
  void SetUp() override {
    StaticGraph graph;
    graph.Arg("x").Retval("x");
    SetProgram(graph);
    inbox_ = std::make_unique<Inbox>(run_.get(), [this] { ++wakes_; });
  }

  static Message AMessage(uint32_t op) { return Message(Message::Kind::kChildEnded, nullptr, OpId(op)); }

  int wakes_ = 0;
  std::unique_ptr<Inbox> inbox_;
};

TEST_F(InboxTest, AMessageWakesASleepingWorkerOnce) {
  inbox_->Post(AMessage(1));
  inbox_->Post(AMessage(2));
  ASSERT_EQ(scheduled_.size(), 1);
  scheduled_[0]();
  EXPECT_EQ(wakes_, 1);
}

TEST_F(InboxTest, WakingBeginsAnActivity) {
  inbox_->Post(AMessage(1));
  run_->EndActivity();  // the one that the run began with
  EXPECT_FALSE(has_ended_);
  run_->EndActivity();
  EXPECT_TRUE(has_ended_);
}

TEST_F(InboxTest, AnAwakeWorkerIsNotWoken) {
  inbox_->Open();
  inbox_->Post(AMessage(1));
  EXPECT_TRUE(scheduled_.empty());
}

TEST_F(InboxTest, AThreadThatGoesOnAsTheWorkerGivesItsActivityToIt) {
  EXPECT_TRUE(inbox_->PostHere(AMessage(1)));
  EXPECT_FALSE(inbox_->PostHere(AMessage(2))) << "the worker is awake";
  EXPECT_TRUE(scheduled_.empty());
  EXPECT_FALSE(has_ended_);
  run_->EndActivity();  // the one that the run began with, which is now the worker's
  EXPECT_TRUE(has_ended_);
}

TEST_F(InboxTest, MessagesComeInMemoryOfEarlierOnes) {
  inbox_->Open();
  inbox_->Post(AMessage(1));
  std::vector<Message> mail = inbox_->Take();
  const Message* const memory = mail.data();
  mail.clear();
  inbox_->Post(AMessage(2));
  mail = inbox_->Take(std::move(mail));
  EXPECT_EQ(mail.at(0).op, 2);
  mail.clear();
  inbox_->Post(AMessage(3));
  EXPECT_EQ(inbox_->Take().data(), memory);
}

TEST_F(InboxTest, MessagesComeInOrder) {
  EXPECT_FALSE(inbox_->MayHaveMail());
  EXPECT_TRUE(inbox_->Take().empty());
  for (uint32_t op = 0; op < 3; ++op) inbox_->Post(AMessage(op));
  EXPECT_TRUE(inbox_->MayHaveMail());
  const std::vector<Message> mail = inbox_->Take();
  ASSERT_EQ(mail.size(), 3);
  for (uint32_t op = 0; op < 3; ++op) EXPECT_EQ(mail[op].op, op);
  EXPECT_FALSE(inbox_->MayHaveMail());
}

TEST_F(InboxTest, AWorkerStaysAwakeWhileThereAreMessages) {
  inbox_->Open();
  inbox_->Post(AMessage(1));
  EXPECT_FALSE(inbox_->Close());
  inbox_->Take();
  EXPECT_TRUE(inbox_->Close());
  inbox_->Post(AMessage(2));
  EXPECT_EQ(scheduled_.size(), 1) << "it had gone to sleep";
}

TEST_F(InboxTest, AfterAnErrorMessagesAreDroppedAndTheirValuesReleased) {
  run_->Fail(absl::InternalError("broken"));
  Message message = AMessage(1);
  message.values.push_back(live_.Make(5));
  inbox_->Post(std::move(message));
  EXPECT_EQ(live_.count(), 0);
  EXPECT_TRUE(inbox_->Take().empty());
  EXPECT_TRUE(scheduled_.empty());
}

TEST_F(InboxTest, AnyThreadMayPost) {
  constexpr size_t kThreads = 4, kMessages = 1000;
  inbox_->Open();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this] {
      for (size_t i = 0; i < kMessages; ++i) inbox_->Post(AMessage(static_cast<uint32_t>(i)));
    });
  }
  size_t taken = 0;
  while (taken < kThreads * kMessages) taken += inbox_->Take().size();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(inbox_->Close());
}

}  // namespace
}  // namespace tensorflow_recursion
