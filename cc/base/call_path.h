// Writes the chain of calls that led to an error as text, elided in the middle.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_CALL_PATH_H_
#define TENSORFLOW_RECURSION_CC_BASE_CALL_PATH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensorflow_recursion {

// How many calls an error names at each end of its path. Those in the middle are only counted.
inline constexpr int kCallPathEnd = 3;

// `outermost` and `innermost` hold the names of at most kCallPathEnd calls each, in call order, and
// `depth` is how many calls the path has: "Fib > Fib > Fib > (94 more) > Fib > Fib > Fib". When both
// ends together are longer than the path, `innermost` is the part that `outermost` does not cover.
inline std::string FormatCallPath(const std::vector<std::string>& outermost, int64_t depth,
                                  const std::vector<std::string>& innermost) {
  std::string text = absl::StrJoin(outermost, " > ");
  const int64_t between = depth - static_cast<int64_t>(outermost.size() + innermost.size());
  if (between > 0) absl::StrAppend(&text, " > (", between, " more)");
  if (!innermost.empty()) absl::StrAppend(&text, " > ", absl::StrJoin(innermost, " > "));
  return text;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_CALL_PATH_H_
