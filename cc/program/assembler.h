// Lays a flow graph out as the tables of a program: operators by region, edges, deaths, slots, pending counts.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_ASSEMBLER_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_ASSEMBLER_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_graph.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// `flow` must have no superfluous waits. Its constants, records and kernels become the program's. InvalidArgument if a
// node has more inputs than can be counted, or reads an output that its source does not have.
absl::Status Assemble(FlowGraph flow, Program* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_ASSEMBLER_H_
