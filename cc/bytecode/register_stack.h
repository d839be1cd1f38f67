// Holds the registers of compiled calls: 64 bits each, one frame on top of the other, on the heap.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_STACK_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_STACK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorflow_recursion {

// Grows as a recursion gets deeper. What it takes counts towards the limit of a run, with that run's frames.
class RegisterStack {
 public:
  // `run_bytes` is what the run takes already, and `max_run_bytes` the limit, which may change; both are nullptr if
  // there is none. Relaxed, because they are only compared.
  RegisterStack(std::atomic<int64_t>* run_bytes, const std::atomic<int64_t>* max_run_bytes)
      : run_bytes_(run_bytes), max_run_bytes_(max_run_bytes) {}
  ~RegisterStack() { Shrink(0); }

  RegisterStack(const RegisterStack&) = delete;
  RegisterStack& operator=(const RegisterStack&) = delete;

  uint64_t* begin() const { return words_; }
  uint64_t* end() const { return words_ + size_; }

  // Makes room for at least `words`; what is there moves along. Returns false if the run may not have so much.
  bool Grow(size_t words);
  // Gives all memory back, with what is in it, if it is more than `words`.
  void Shrink(size_t words);

 private:
  std::atomic<int64_t>* const run_bytes_;
  const std::atomic<int64_t>* const max_run_bytes_;
  uint64_t* words_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_STACK_H_
