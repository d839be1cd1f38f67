// Writes a program's tables as text, for people who want to see what is run.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_TEXT_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_TEXT_H_

#include <string>

#include "cc/program/program.h"

namespace tensorflow_recursion {

// One line a region, one an operator, one an edge or death that goes out of it:
//
//     region 1 function Fib: 112 bytes a frame, 3 slots, 4 counts
//       op 0 site Fib (call 2 of Fib) waits for 1
//         port 0 -> op 2 data slot 1
//         dead 0 -> op 4 merge input 1
std::string ProgramText(const Program& program);

// Writes ProgramText to the log if the environment has TF_CPP_VMODULE=program_text=1.
void LogProgram(const Program& program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_TEXT_H_
