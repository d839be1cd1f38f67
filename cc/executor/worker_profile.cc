// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/worker_profile.h"

#include <chrono>

namespace tensorflow_recursion {

int64_t ProfileClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

WorkerProfile::~WorkerProfile() {
  RunProfile counted;
  counted.busy_nanoseconds = busy_;
  counted.release_nanoseconds = release_;
  for (const KernelNode& node : program_.kernels) {
    const Kernel& kernel = kernels_[node.id];
    if (kernel.times.count == 0) continue;
    KernelTimes& sum = (kernel.is_in_main_graph ? counted.main_graph : counted.bodies)[node.op];
    sum.count += kernel.times.count;
    sum.nanoseconds += kernel.times.nanoseconds;
  }
  AddToProfile(counted);
}

}  // namespace tensorflow_recursion
