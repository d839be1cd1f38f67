// Keeps the C++ stack flat however deep calls nest.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_FLAT_STACK_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_FLAT_STACK_H_

#include <functional>

namespace tensorflow_recursion {

// A function's executor usually hands its work to a thread pool, and nothing nests. But a pool runs work inline when
// its queue is full, and sessions without a pool run everything inline. Then each call would lie on the stack above its
// caller, and each return above its callee.

// Runs `work`. Inside of another RunFlat() on this thread it runs only when that one's own work has returned. The
// newest work comes first, so nested calls run depth first. Nothing that `work` does may wait for other work that it
// starts so.
void RunFlat(std::function<void()> work);

// Runs `work` on this thread as long as less than half of its stack is used, and else on another thread. For callers
// that may wait for `work` to be done. Returns false, and has run nothing, if `max_threads` threads run such work
// already.
bool RunNested(std::function<void()> work, int max_threads);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_FLAT_STACK_H_
