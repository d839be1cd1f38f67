// Slabs: the large pieces of memory that the frames and records of a deep recursion, millions of them, are cut from.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_

#include <cstddef>

namespace tensorflow_recursion {

// Large enough that slabs are seldom asked for; small enough that one is soon empty, and can serve something else.
inline constexpr size_t kSlabBytes = 256 << 10;

// Slabs for all runs of the process, uninitialized. A thread-safe cache in front of the operating system. Not malloc's:
// that keeps what each thread has freed for that thread and for blocks of that size, and deep runs on changing threads
// would hold their memory many times over, first in frames and then in records.
unsigned char* TakeSlab();
void GiveSlab(unsigned char* slab);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_
