// A pool of memory blocks for what kernels make and drop by the hundred in every run: tensors, their headers, ropes,
// terms of sums.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_BLOCK_POOL_H_
#define TENSORFLOW_RECURSION_CC_VALUES_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>

namespace tensorflow_recursion {

// The size of the smallest blocks, which hold the headers of tensors (the C++ objects tensorflow::Tensor).
inline constexpr size_t kHeaderBlockBytes = 32;
// Blocks of other sizes lie at multiples of this, as TensorFlow's kernels expect of tensors.
inline constexpr size_t kBlockAlignment = 64;
// Larger blocks come from the system and go back to it at once.
inline constexpr size_t kLargestBlock = 512 << 10;
// How much the store that all threads share keeps at most. Each thread keeps blocks besides: of each size at most 128
// blocks and some 64 KiB, or two blocks if they are larger than that.
inline constexpr int64_t kMostSpareBlockBytes = int64_t{64} << 20;

// Returns an uninitialized block of at least `bytes`. Thread-safe: each thread has blocks of its own, so that most
// calls take no lock. malloc would take longer for aligned memory that comes and goes at this rate.
void* TakeBlock(size_t bytes);
// Gives back what TakeBlock(bytes) returned. It may be called on any thread, also after the run that took the block.
void GiveBlock(void* block, size_t bytes);

// How many bytes of blocks lie in the shared store of this process, for tests.
int64_t SpareBlockBytes();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_BLOCK_POOL_H_
