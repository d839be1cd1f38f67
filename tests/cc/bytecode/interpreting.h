// What tests that run an interpreter share: a limit that no program of theirs reaches, and the type of most registers.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_INTERPRETING_H_
#define TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_INTERPRETING_H_

#include <cstdint>

#include "cc/bytecode/code.h"

namespace tensorflow_recursion {

// So many calls deep, or so many instructions, no test goes.
inline constexpr int64_t kMuch = int64_t{1} << 60;

inline constexpr RegisterType kIntRegister = {tensorflow::DT_INT32, false};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_INTERPRETING_H_
