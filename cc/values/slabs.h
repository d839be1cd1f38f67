// Slabs: large pieces of memory that frames and records are cut from. A deep recursion has millions of those.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_

#include <cstddef>

namespace tensorflow_recursion {

// Large enough that slabs are seldom asked for; small enough that one is soon empty, and can serve something else.
inline constexpr size_t kSlabBytes = 256 << 10;

// These take an uninitialized slab and give one back. They are a thread-safe cache in front of the operating system,
// for all runs of the process. malloc would not do: it keeps what each thread has freed for that thread and for blocks
// of that size, so that deep runs on changing threads would hold their memory many times over, first for frames and
// then for records.
unsigned char* TakeSlab();
void GiveSlab(unsigned char* slab);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SLABS_H_
