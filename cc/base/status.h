// Builds the errors of this library: every message says subject, what was expected, what came.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_STATUS_H_
#define TENSORFLOW_RECURSION_CC_BASE_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tensorflow_recursion {

template <typename... Args>
absl::Status InvalidArgument(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

// The same error as InvalidArgument: for errors of TensorFlow's that a fault in the user's graph has caused.
inline absl::Status AsInvalidArgument(const absl::Status& status) {
  return status.ok() ? status : absl::InvalidArgumentError(status.message());
}

// Returns from the calling function when `expression` is not OK.
#define TFR_RETURN_IF_ERROR(expression)      \
  do {                                       \
    absl::Status tfr_status = (expression);  \
    if (!tfr_status.ok()) return tfr_status; \
  } while (false)

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_STATUS_H_
