// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/worker_profile.h"

#include <chrono>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace tensorflow_recursion {

int64_t ProfileClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

WorkerProfile::~WorkerProfile() {
  RunProfile counted;
  counted.busy_nanoseconds = busy_;
  counted.release_nanoseconds = release_;
  for (const KernelNode& node : program_.kernels) AddTo(kernels_[node.id], node.op, &counted);
  for (size_t i = 0; i < pieces_.size(); ++i) {
    AddTo(pieces_[i], absl::StrCat("piece of ", program_.pieces[i].members.size(), " operators"), &counted);
  }
  AddToProfile(counted);
}

void WorkerProfile::AddTo(const Kernel& kernel, const std::string& name, RunProfile* counted) {
  if (kernel.times.count == 0) return;
  KernelTimes& sum = (kernel.is_in_main_graph ? counted->main_graph : counted->bodies)[name];
  sum.count += kernel.times.count;
  sum.nanoseconds += kernel.times.nanoseconds;
}

}  // namespace tensorflow_recursion
