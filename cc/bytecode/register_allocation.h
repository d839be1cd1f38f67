// Gives the values of a function registers.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_ALLOCATION_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_ALLOCATION_H_

#include <cstdint>
#include <vector>

#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

// Which register each value of a function is in, as AllocateRegisters decides.
struct RegisterAllocation {
  IdVector<VirtualId, uint16_t> registers;
  // For each step that is a kCall: the caller's register where the callee's registers begin.
  std::vector<uint16_t> windows;
  // A register that no value is in, by which values can be moved in circles.
  uint16_t spare = 0;
};

// Values that live at the same time get different registers, and others share one. So frames are small, and the frame
// of a call begins right behind what the caller still needs. Arguments are in the first registers.
RegisterAllocation AllocateRegisters(const FunctionSteps& function);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_REGISTER_ALLOCATION_H_
