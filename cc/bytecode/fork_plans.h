// Finds calls that may run at the same time as the one before them, and writes the code for that.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_FORK_PLANS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_FORK_PLANS_H_

#include "cc/bytecode/code.h"

namespace tensorflow_recursion {

// In `fib(n - 1) + fib(n - 2)` the second call needs nothing of the first one. While the first one runs, another thread
// may compute n - 2 from what the caller's registers hold and make the second call. For each such pair of calls this
// writes two pieces of code behind all functions (see ForkPlan). As long as nobody splits a call off, they do not run.
void AddForkPlans(Code* code);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_FORK_PLANS_H_
