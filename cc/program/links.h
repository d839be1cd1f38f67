// Fills in the tables that tie regions and operators together: call sites, loops, and the gates of branches.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_LINKS_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_LINKS_H_

#include "absl/status/status.h"
#include "cc/program/layout.h"

namespace tensorflow_recursion {

// All of these are to be called when the operators have been numbered.

// InvalidArgument if a call reads an output that its callee does not have.
absl::Status LinkCallSites(Layout* layout);

void LinkLoops(Layout* layout);

void LinkGates(Layout* layout);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_LINKS_H_
