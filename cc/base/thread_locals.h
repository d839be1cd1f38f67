// How thread-local variables are found that kernels use many times.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_THREAD_LOCALS_H_
#define TENSORFLOW_RECURSION_CC_BASE_THREAD_LOCALS_H_

// For a thread-local variable of a few bytes: its offset from the thread's pointer is known when the library is loaded,
// so that to find it is one instruction. Otherwise it is a call of __tls_get_addr() each time, which took 2.6 % of a
// training step. A process keeps 1.6 KB for such variables of libraries that are loaded after its start; ours take 40
// bytes of it, and more should go behind a pointer.
#define TFR_INITIAL_EXEC __attribute__((tls_model("initial-exec")))

#endif  // TENSORFLOW_RECURSION_CC_BASE_THREAD_LOCALS_H_
