// Makes the errors of runs whose recursion goes too deep, or takes too much memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cc/base/available_memory.h"
#include "cc/base/options.h"
#include "cc/executor/run_state.h"

namespace tensorflow_recursion {

// Says which limit was reached, and how to raise it.
inline std::string ReachedLimit(const RunState& run, bool is_too_deep) {
  const Options& options = run.environment.program->options;
  if (is_too_deep) return absl::StrCat("the limit is ", options.max_depth, "; raise it ", options.depth_setting);
  if (run.is_out_of_memory()) {
    return absl::StrCat("where it leaves the machine ", run.least_memory() >> 20, " MiB of memory, and ",
                        run.environment.memory.reserve >> 20,
                        " MiB are the least; do less work per level, take a smaller batch, or lower the least with the "
                        "environment variable ",
                        kMemoryReserveVariable, " (max_depth does not help)");
  }
  return absl::StrCat("where its frames take ", kDefaultMaxFrameBytes >> 20,
                      " MiB, the limit unless max_depth is above ", kDefaultMaxDepth, "; raise it ",
                      options.depth_setting);
}

// The error of a call of `callee` at `site`, which would be at `depth`. If it is not too deep, it takes too much
// memory.
inline absl::Status RecursionTooDeep(const RunState& run, const std::string& callee, const std::string& site,
                                     int64_t depth, bool is_too_deep) {
  return absl::ResourceExhaustedError(absl::StrCat("Recursion too deep: call of '", callee, "' would be at depth ",
                                                   depth, ", ", ReachedLimit(run, is_too_deep), "\n\t [[{{node ", site,
                                                   "}}]]"));
}

// The error of a run that takes too much memory after all its calls were opened, so that no call can be named.
inline absl::Status OutOfMemory(const RunState& run) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "Recursion takes too much memory: all its calls are open, and it is ", ReachedLimit(run, /*is_too_deep=*/false)));
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_
