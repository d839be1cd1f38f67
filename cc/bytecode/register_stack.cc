// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_stack.h"

#include <algorithm>
#include <cstdlib>

namespace tensorflow_recursion {
namespace {

// How large the first stack is. This is enough for recursions of some hundred levels, and only two pages of memory.
constexpr size_t kFirstWords = 1024;

}  // namespace

// Uses realloc, because it remaps large blocks instead of copying them.
bool RegisterStack::Grow(size_t words) {
  size_t size = std::max({words, 2 * size_, kFirstWords});
  if (run_bytes_ != nullptr) {  // near the limit, the stack gets only what is left
    const int64_t left = max_run_bytes_->load(std::memory_order_relaxed) - run_bytes_->load(std::memory_order_relaxed);
    size = std::min(size, size_ + static_cast<size_t>(std::max<int64_t>(left, 0)) / sizeof(uint64_t));
    if (size < words) return false;
  }
  const auto more = static_cast<int64_t>((size - size_) * sizeof(uint64_t));
  auto* const grown = static_cast<uint64_t*>(std::realloc(words_, size * sizeof(uint64_t)));
  if (grown == nullptr) return false;
  if (run_bytes_ != nullptr) run_bytes_->fetch_add(more, std::memory_order_relaxed);
  words_ = grown;
  size_ = size;
  return true;
}

void RegisterStack::Shrink(size_t words) {
  if (size_ <= words) return;
  if (run_bytes_ != nullptr) {
    run_bytes_->fetch_sub(static_cast<int64_t>(size_ * sizeof(uint64_t)), std::memory_order_relaxed);
  }
  std::free(words_);
  words_ = nullptr;
  size_ = 0;
}

}  // namespace tensorflow_recursion
