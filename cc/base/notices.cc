// SPDX-License-Identifier: Apache-2.0
#include "cc/base/notices.h"

#include <atomic>

#include "tensorflow/core/platform/logging.h"

namespace tensorflow_recursion {
namespace {

std::atomic<NoticeListener> current{nullptr};  // set by Python's thread, read by those that prepare graphs

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
