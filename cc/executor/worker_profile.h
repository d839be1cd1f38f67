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

// The time by the clock that profiles use.
int64_t ProfileClock();

// It ends with its worker, and then adds what it has counted to the process's profile. Not thread-safe: it is the
// worker's own.
class WorkerProfile {
 public:
  explicit WorkerProfile(const Program& program)
      : program_(program), kernels_(program.kernels.size()), pieces_(program.pieces.size()) {}
  WorkerProfile(const WorkerProfile&) = delete;
  WorkerProfile& operator=(const WorkerProfile&) = delete;
  ~WorkerProfile();

  // To be called when a thread was inside of the worker for so long.
  void NoteBusy(int64_t nanoseconds) { busy_ += nanoseconds; }
  // To be called when a kernel has run, on the worker's thread or beside it.
  void NoteKernel(const KernelNode& node, const Region& region, int64_t nanoseconds) {
    Note(region, nanoseconds, &kernels_[node.id]);
  }
  // To be called when the code of piece `index` of the program has run.
  void NotePiece(uint32_t index, const Region& region, int64_t nanoseconds) {
    Note(region, nanoseconds, &pieces_[index]);
  }
  // To be called when the inputs of a kernel have been released.
  void NoteRelease(int64_t nanoseconds) { release_ += nanoseconds; }

 private:
  // The times of one kernel or piece.
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
  // By KernelNode::id, and by the number of the piece.
  std::vector<Kernel> kernels_;
  std::vector<Kernel> pieces_;
  int64_t busy_ = 0;
  int64_t release_ = 0;
};

// Measures times, if there is a profile.
class ProfileTimer {
 public:
  explicit ProfileTimer(WorkerProfile* profile) : profile_(profile), start_(profile == nullptr ? 0 : ProfileClock()) {}

  bool is_on() const { return profile_ != nullptr; }
  WorkerProfile* profile() const { return profile_; }
  // Returns the time since the last call, or since the timer was made. Only for a timer that is on.
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
