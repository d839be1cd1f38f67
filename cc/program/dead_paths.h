// Finds what must learn of each death that may happen in a region.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_DEAD_PATHS_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_DEAD_PATHS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "cc/program/program.h"

namespace tensorflow_recursion {

// The switches of a region by the branch on their predicate. When a branch takes one side, the outputs of its switches
// for the other side are dead.
using SwitchesByBranch = std::map<OpId, std::vector<OpId>>;

// Fills in `port_deaths` and `deaths` of a region whose operators, ports, edges and gates are in place.
void FindDeaths(const SwitchesByBranch& switches, Region* region);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_DEAD_PATHS_H_
