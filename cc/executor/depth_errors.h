// Makes the errors of runs whose recursion goes too deep, or takes too much memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cc/base/available_memory.h"
#include "cc/base/options.h"
#include "cc/executor/run_state.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Says which memory a run takes too much of, and what to do.
inline std::string TooMuchMemory(const RunState& run) {
  const Options& options = run.environment.program->options;
  if (run.is_out_of_memory()) {
    return absl::StrCat("the machine has ", run.least_memory() >> 20, " MiB of memory left, and ",
                        run.environment.memory.reserve >> 20,
                        " MiB have to stay free; do less work per level, take a smaller batch, or let less memory stay "
                        "free with the environment variable ",
                        kMemoryReserveVariable, " (max_depth does not help)");
  }
  return absl::StrCat("the frames of calls take ", kDefaultMaxFrameBytes >> 20,
                      " MiB, the limit unless max_depth is above ", kDefaultMaxDepth, "; raise it ",
                      options.depth_setting);
}

// The error of a call of `callee` at `site`, which would be at `depth`. If it is not too deep, it takes too much
// memory.
inline absl::Status RecursionTooDeep(const RunState& run, const std::string& callee, const std::string& site,
                                     int64_t depth, bool is_too_deep) {
  const Options& options = run.environment.program->options;
  const std::string reason =
      is_too_deep ? absl::StrCat("the limit is ", options.max_depth, "; raise it ", options.depth_setting)
                  : absl::StrCat("but ", TooMuchMemory(run));
  return absl::ResourceExhaustedError(absl::StrCat("Recursion too deep", is_too_deep ? "" : " for the memory",
                                                   ": call of '", callee, "' would be at depth ", depth, ", ", reason,
                                                   "\n\t [[{{node ", site, "}}]]"));
}

// Names the functions that a program calls, but not very many: "'f'", "'f', 'g'".
inline std::string CalledFunctions(const Program& program) {
  constexpr size_t kMostNames = 3;
  std::vector<std::string> names;
  for (const CallSite& site : program.sites) {
    std::string name = absl::StrCat("'", site.callee_name, "'");
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  if (names.size() <= kMostNames) return absl::StrJoin(names, ", ");
  const size_t others = names.size() - kMostNames;
  names.resize(kMostNames);
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", others, " more");
}

// The error of a run that takes too much memory after all its calls were opened, so that none of them is to blame.
inline absl::Status OutOfMemory(const RunState& run) {
  return absl::ResourceExhaustedError(absl::StrCat("Recursion takes too much memory: all calls of ",
                                                   CalledFunctions(*run.environment.program), " are open, but ",
                                                   TooMuchMemory(run)));
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_
