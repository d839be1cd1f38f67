// Binds calls to bodies: decides which body every call runs, starting from the calls of the main graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_BINDING_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_BINDING_H_

#include "absl/status/status.h"
#include "cc/expand/body_factory.h"
#include "cc/expand/call_program.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Adds the functions that `main` may reach to `program`, each with its body. Afterwards attribute `f` of every call
// names a function of the program, which may be a copy. InvalidArgument if a call does not fit its function, or a
// function cannot be instantiated or placed.
absl::Status BindCalls(tensorflow::Graph* main, BodyFactory* bodies, CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_BINDING_H_
