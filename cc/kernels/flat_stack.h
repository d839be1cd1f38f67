// Keeps the C++ stack flat however deep calls nest.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_FLAT_STACK_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_FLAT_STACK_H_

#include <functional>

namespace tensorflow_recursion {

// A function's executor usually hands its work to a thread pool, and nothing nests. But a pool runs
// work inline when its queue is full, and sessions without a pool run everything inline: then each
// call would sit on the stack of its caller, and each return on the stack of its callee.

// Runs `work`; inside of another RunFlat on this thread, only once that one's own work has returned.
// The latest comes first, so nested calls run depth first. Nothing that `work` does may wait for
// what it starts in this way.
void RunFlat(std::function<void()> work);

// Runs `work` on top of whatever is on the stack until half of the stack is used, then on another
// thread; for callers that may wait for `work` to be done. Returns false, with nothing run, when
// `max_threads` threads run such work already.
bool RunNested(std::function<void()> work, int max_threads);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_FLAT_STACK_H_
