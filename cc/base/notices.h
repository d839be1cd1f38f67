// Tells users what they should know although nothing has failed: that calls run dynamically, for example.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_NOTICES_H_
#define TENSORFLOW_RECURSION_CC_BASE_NOTICES_H_

#include <string>

#include "cc/base/export.h"

namespace tensorflow_recursion {

// What a notice is about.
enum class NoticeKind {
  // The switch is on, and calls run dynamically all the same.
  kFallback,
  // Calls run dynamically, because static execution was not turned on.
  kNoSwitch,
};

// A listener may be called in any thread, also in one that does not hold Python's lock. It must not wait for anything.
using NoticeListener = void (*)(NoticeKind kind, const std::string& text);

// From now on `listener` gets all notices. Before, they go to TensorFlow's log, as warnings.
TENSORFLOW_RECURSION_EXPORT void SetNoticeListener(NoticeListener listener);

void Notify(NoticeKind kind, const std::string& text);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_NOTICES_H_
