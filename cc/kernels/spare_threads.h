// Threads for what takes long: work that leaves the threads of a pool to others.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_SPARE_THREADS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_SPARE_THREADS_H_

#include <functional>

namespace tensorflow_recursion {

// Runs `work` on a thread of its own: the one that became idle last, if there is one, because its allocator
// holds the memory of what it ran before; else a new one. Idle threads end after some seconds.
void RunOnSpareThread(std::function<void()> work);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_SPARE_THREADS_H_
