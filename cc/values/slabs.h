// Memory for what a deep recursion holds by the million, in pieces that all of it shares.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_

#include <cstddef>

namespace tensorflow_recursion {

// Large enough to be rare, small enough that what a record or frame leaves behind is soon of use to others.
inline constexpr size_t kSlabBytes = 256 << 10;

// Slabs for all runs of the process, uninitialized. A thread-safe cache in front of the operating system. Not malloc's:
// that keeps what each thread has freed for that thread and for blocks of that size, and deep runs on changing threads
// would hold their memory many times over, first in frames and then in records.
unsigned char* TakeSlab();
void GiveSlab(unsigned char* slab);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_
