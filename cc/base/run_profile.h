// Where the time of static runs goes, counted while somebody has asked for it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_RUN_PROFILE_H_
#define TENSORFLOW_RECURSION_CC_BASE_RUN_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>

#include "cc/base/export.h"

namespace tensorflow_recursion {

// How often kernels of one type have run, and how long they took together.
struct KernelTimes {
  int64_t count = 0;
  int64_t nanoseconds = 0;
};

// Sums over runs and threads. What `busy` has beyond kernels and releases is the executor itself: frames, edges,
// arithmetic on single numbers, compiled functions.
struct RunProfile {
  int64_t runs = 0;
  // How long threads were inside of workers, or ran kernels beside them.
  int64_t busy_nanoseconds = 0;
  // How long it took to give back the inputs of kernels.
  int64_t release_nanoseconds = 0;
  // The kernels outside of all functions, and those of functions, by the type of their operator.
  std::map<std::string, KernelTimes> main_graph;
  std::map<std::string, KernelTimes> bodies;
  // How much the frames took in the run where they took the most.
  int64_t frame_bytes = 0;

  void Add(const RunProfile& other);
};

// All of these may be called in any thread. A run counts if it starts while profiling is on; what it has counted is
// there when it has ended.
TENSORFLOW_RECURSION_EXPORT void StartProfile();
TENSORFLOW_RECURSION_EXPORT RunProfile StopProfile();
bool IsProfiling();
void AddToProfile(const RunProfile& counted);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_RUN_PROFILE_H_
