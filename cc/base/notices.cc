// SPDX-License-Identifier: Apache-2.0
#include "cc/base/notices.h"

#include <atomic>

#include "tensorflow/core/platform/logging.h"

namespace tensorflow_recursion {
namespace {

// Python's thread sets it, and threads that prepare graphs read it.
std::atomic<NoticeListener> current{nullptr};

}  // namespace

void SetNoticeListener(NoticeListener listener) { current.store(listener); }

void Notify(NoticeKind kind, const std::string& text) {
  if (const NoticeListener listener = current.load()) {
    listener(kind, text);
  } else {
    LOG(WARNING) << text;
  }
}

}  // namespace tensorflow_recursion
