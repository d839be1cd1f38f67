// Copies pieces of memory to where they lie side by side: the rows that the frames of a recursion made, for example.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SIDE_BY_SIDE_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SIDE_BY_SIDE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow_recursion {

// Copies the pieces to `to`, one behind the other. If `threads` are given, they share a copy that is large enough. The
// pieces of a step over a batch were made by several workers, and each processor has some of them in its caches.
void CopySideBySide(const std::vector<absl::string_view>& pieces, void* to, tensorflow::thread::ThreadPool* threads);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SIDE_BY_SIDE_H_
