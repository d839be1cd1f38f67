// The memory of the fake GPU: addresses that a host program can't touch, and what stands behind them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_FAKE_GPU_MEMORY_H_
#define TENSORFLOW_RECURSION_TESTS_CC_FAKE_GPU_MEMORY_H_

#include <cstdint>

namespace fake_gpu {

// Device addresses are protected against every access, so whoever takes a device's tensor for one of the host dies
// where it does. What the device "holds" lies at another address, which its own kernels and copies ask for.
class Memory {
 public:
  static Memory& Get();

  // nullptr if the device is full. Never freed: TensorFlow's allocator asks for regions and keeps them.
  void* Allocate(uint64_t bytes);
  bool Holds(const void* device) const;

  // Where the content of a device address lies. Ends the process if it is none of the device.
  char* Content(const void* device) const;

  static constexpr uint64_t kBytes = uint64_t{4} << 30;  // of addresses; pages come as they are used

 private:
  Memory();

  char* addresses_;
  char* content_;
  uint64_t used_ = 0;
};

}  // namespace fake_gpu

#endif  // TENSORFLOW_RECURSION_TESTS_CC_FAKE_GPU_MEMORY_H_
