// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/inbox.h"

#include <mutex>
#include <utility>

#include "cc/executor/run_state.h"

namespace tensorflow_recursion {

void Inbox::Post(Message message) {
  if (!PostHere(std::move(message))) return;
  run_->BeginActivity();
  run_->environment.schedule(wake_);
}

bool Inbox::PostHere(Message message) {
  // Thousands of receives may end at once after an error, and waking a worker for each would flood the thread pool that
  // the next step needs.
  if (run_->failed()) {
    message.ReleaseValues();
    return false;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  messages_.push_back(std::move(message));
  has_mail_.store(true, std::memory_order_release);
  return !std::exchange(is_awake_, true);
}

std::vector<Message> Inbox::Take(std::vector<Message> empty) {
  if (!has_mail_.load(std::memory_order_acquire)) return empty;
  std::lock_guard<std::mutex> lock(mutex_);
  has_mail_.store(false, std::memory_order_relaxed);
  return std::exchange(messages_, std::move(empty));
}

void Inbox::Open() {
  std::lock_guard<std::mutex> lock(mutex_);
  is_awake_ = true;
}

bool Inbox::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!messages_.empty()) return false;
  is_awake_ = false;
  return true;
}

}  // namespace tensorflow_recursion
