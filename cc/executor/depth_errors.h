// What a run says that calls itself too deep.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cc/base/options.h"

namespace tensorflow_recursion {

// The call of `callee` at `site` would be at `depth`. It is either too deep, or its frames take too much memory.
inline absl::Status RecursionTooDeep(const Options& options, const std::string& callee, const std::string& site,
                                     int64_t depth, bool is_too_deep) {
  const std::string limit = is_too_deep ? absl::StrCat("the limit is ", options.max_depth)
                                        : absl::StrCat("where its frames take ", kDefaultMaxFrameBytes >> 20,
                                                       " MiB, the limit unless max_depth is above ", kDefaultMaxDepth);
  return absl::ResourceExhaustedError(absl::StrCat("Recursion too deep: call of '", callee, "' would be at depth ",
                                                   depth, ", ", limit, "; raise it ", options.depth_setting,
                                                   "\n\t [[{{node ", site, "}}]]"));
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_DEPTH_ERRORS_H_
