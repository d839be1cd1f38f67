// SPDX-License-Identifier: Apache-2.0
#include "cc/base/run_profile.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace tensorflow_recursion {
namespace {

// Relaxed, because a run that starts just when this changes may count or not.
std::atomic<bool> is_profiling{false};

// What has been counted since the profile was started. There is one in the process.
struct KeptProfile {
  // Needed because runs of any thread add to the sum.
  std::mutex mu;
  RunProfile sum;
};

KeptProfile& TheProfile() {
  static KeptProfile* const profile = new KeptProfile;
  return *profile;
}

void AddTimes(const std::map<std::string, KernelTimes>& from, std::map<std::string, KernelTimes>* to) {
  for (const auto& [op, times] : from) {
    KernelTimes& sum = (*to)[op];
    sum.count += times.count;
    sum.nanoseconds += times.nanoseconds;
  }
}

}  // namespace

void RunProfile::Add(const RunProfile& other) {
  runs += other.runs;
  busy_nanoseconds += other.busy_nanoseconds;
  release_nanoseconds += other.release_nanoseconds;
  frame_bytes = std::max(frame_bytes, other.frame_bytes);
  AddTimes(other.main_graph, &main_graph);
  AddTimes(other.bodies, &bodies);
}

void StartProfile() {
  const std::lock_guard<std::mutex> lock(TheProfile().mu);
  TheProfile().sum = RunProfile();
  is_profiling.store(true, std::memory_order_relaxed);
}

RunProfile StopProfile() {
  is_profiling.store(false, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(TheProfile().mu);
  return std::exchange(TheProfile().sum, RunProfile());
}

bool IsProfiling() { return is_profiling.load(std::memory_order_relaxed); }

void AddToProfile(const RunProfile& counted) {
  const std::lock_guard<std::mutex> lock(TheProfile().mu);
  TheProfile().sum.Add(counted);
}

}  // namespace tensorflow_recursion
