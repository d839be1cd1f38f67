// Memory for what kernels make and drop by the hundred in every run: tensors, their headers, terms of sums.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_BLOCK_POOL_H_
#define TENSORFLOW_RECURSION_CC_VALUES_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>

namespace tensorflow_recursion {

// What the smallest blocks take: headers of tensors.
inline constexpr size_t kHeaderBlockBytes = 32;
// Blocks of other sizes lie at multiples of this, as TensorFlow's kernels expect of tensors.
inline constexpr size_t kBlockAlignment = 64;
// Larger ones are not kept.
inline constexpr size_t kLargestBlock = 512 << 10;
// What the store that all threads share keeps at most. Each thread keeps some 64 KiB of a size besides.
inline constexpr int64_t kMostSpareBlockBytes = int64_t{64} << 20;

// An uninitialized block of at least `bytes`. Thread-safe: each thread has blocks of its own, so that most calls take
// no lock; malloc takes longer for memory that is aligned and comes and goes like this.
void* TakeBlock(size_t bytes);
// Gives back what TakeBlock(bytes) returned, on any thread and at any time, also after the run that took it.
void GiveBlock(void* block, size_t bytes);

// How many bytes of blocks lie in the shared store of this process, for tests.
int64_t SpareBlockBytes();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_BLOCK_POOL_H_
