// Runs work that takes long on threads of its own, so that it leaves the threads of a pool to others.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_SPARE_THREADS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_SPARE_THREADS_H_

#include <functional>

namespace tensorflow_recursion {

// Runs `work` on a thread of its own. It is the thread that became idle last, because its allocator still has the
// memory of what it ran before, or a new one if none is idle. Idle threads end after some seconds.
void RunOnSpareThread(std::function<void()> work);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_SPARE_THREADS_H_
