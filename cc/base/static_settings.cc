// SPDX-License-Identifier: Apache-2.0
#include "cc/base/static_settings.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "absl/strings/string_view.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

absl::string_view StaticVariable() {
  const char* const text = std::getenv(kStaticVariable);
  return text == nullptr ? "" : text;
}

// The settings that hold for calls outside of sessions. There is one in the process.
struct Kept {
  Kept() {
    settings.is_on = StaticVariable() != "0";
    settings.options.depth_setting = kDepthSettingOfCall;
  }

  // Needed because Python sets in one thread what kernels read in others.
  std::mutex mu;
  StaticSettings settings;
  std::atomic<int64_t> version{1};
};

Kept& TheSettings() {
  static Kept* const kept = new Kept;
  return *kept;
}

// Calls of all threads count here. Relaxed, because nothing else depends on the numbers.
std::atomic<int64_t> static_calls{0};
std::atomic<int64_t> dynamic_calls{0};

}  // namespace

StaticSettings GetStaticSettings() {
  const std::lock_guard<std::mutex> lock(TheSettings().mu);
  return TheSettings().settings;
}

void SetStaticSettings(const StaticSettings& settings) {
  const std::lock_guard<std::mutex> lock(TheSettings().mu);
  TheSettings().settings = settings;
  TheSettings().settings.options.depth_setting = kDepthSettingOfCall;
  TheSettings().version.fetch_add(1);
}

int64_t StaticSettingsVersion() { return TheSettings().version.load(std::memory_order_acquire); }

absl::Status CheckStaticVariable() {
  const absl::string_view text = StaticVariable();
  if (text.empty() || text == "0" || text == "1") return absl::OkStatus();
  return InvalidArgument("Environment variable ", kStaticVariable, " is '", text, "', expected 0 or 1");
}

OutermostCalls CountOutermostCalls() {
  return {static_calls.load(std::memory_order_relaxed), dynamic_calls.load(std::memory_order_relaxed)};
}

void NoteOutermostCall(bool is_static) {
  (is_static ? static_calls : dynamic_calls).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tensorflow_recursion
