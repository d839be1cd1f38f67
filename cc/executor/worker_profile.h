// Counts where a worker's time goes, in a run that is profiled.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_PROFILE_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/analysis/kernel_node.h"
#include "cc/base/run_profile.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// The time now, by the clock that profiles are in.
int64_t ProfileClock();

// Adds what it has counted to the process's profile when it ends, with the worker. Not thread-safe: it is the worker's.
class WorkerProfile {
 public:
  explicit WorkerProfile(const Program& program)
      : program_(program), kernels_(program.kernels.size()), pieces_(program.pieces.size()) {}
  WorkerProfile(const WorkerProfile&) = delete;
  WorkerProfile& operator=(const WorkerProfile&) = delete;
  ~WorkerProfile();

  // A thread was inside of the worker.
  void NoteBusy(int64_t nanoseconds) { busy_ += nanoseconds; }
  // A kernel has run, here, or beside the worker; then its inputs were released.
  void NoteKernel(const KernelNode& node, const Region& region, int64_t nanoseconds) {
    Note(region, nanoseconds, &kernels_[node.id]);
  }
  // The code of piece `index` of the program has run.
  void NotePiece(uint32_t index, const Region& region, int64_t nanoseconds) {
    Note(region, nanoseconds, &pieces_[index]);
  }
  void NoteRelease(int64_t nanoseconds) { release_ += nanoseconds; }

 private:
  struct Kernel {
    KernelTimes times;
    bool is_in_main_graph = false;
  };

  static void Note(const Region& region, int64_t nanoseconds, Kernel* kernel) {
    kernel->is_in_main_graph = region.is_in_main_graph();
    ++kernel->times.count;
    kernel->times.nanoseconds += nanoseconds;
  }
  static void AddTo(const Kernel& kernel, const std::string& name, RunProfile* counted);

  const Program& program_;
  std::vector<Kernel> kernels_;  // by KernelNode::id
  std::vector<Kernel> pieces_;   // as the program numbers them
  int64_t busy_ = 0;
  int64_t release_ = 0;
};

// Times something if there is a profile.
class ProfileTimer {
 public:
  explicit ProfileTimer(WorkerProfile* profile) : profile_(profile), start_(profile == nullptr ? 0 : ProfileClock()) {}

  bool is_on() const { return profile_ != nullptr; }
  WorkerProfile* profile() const { return profile_; }
  // Since the last call, or since it was made. Only if it is on.
  int64_t Lap() {
    const int64_t before = start_;
    start_ = ProfileClock();
    return start_ - before;
  }

 private:
  WorkerProfile* const profile_;
  int64_t start_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_PROFILE_H_
