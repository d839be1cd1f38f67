// Side effects in bodies: which operators have them, and how a body waits for all of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_EFFECTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_EFFECTS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Whether running `node` can be observed from outside: it prints, assigns, asserts, takes from a queue ...
// Creating handles, reading variables and drawing random numbers cannot. Invokes are judged by their callees.
bool HasEffect(const tensorflow::Node& node);

// Whether operators of this type read a variable and do nothing else, as ReadVariableOp and ResourceGather do. They
// have no effect, but it matters which writes come before them.
bool ReadsState(const std::string& op);

// Whether the order in which `node` runs may matter: TensorFlow calls it stateful, or it takes a TF1 reference
// variable, which it may write to. Besides operators with effects these are reads of variables, random numbers and
// receives.
bool IsStateful(const tensorflow::Node& node);

// Whether `node` makes the same of the same inputs, however often it runs, and does nothing else. It is false for nodes
// that name functions, into which it does not look, and for those that TensorFlow calls stateless although they read a
// file, or draw a random number.
bool IsPure(const tensorflow::Node& node);

// Whether `node`, or a function of `library` that it calls or that its attributes name, changes a tensor that it is
// given, as InplaceAdd does, also if somebody else has that tensor.
bool ChangesInput(const tensorflow::Node& node, const tensorflow::FunctionLibraryDefinition& library);

// Adds to `effects` the names of nodes in the body's outermost frame: when all of these have run, so have all nodes of
// which `is_effect` is true. Those inside of loops are represented by an Exit: the loop's NextIteration is made to wait
// for them. InvalidArgument if the body's loops are malformed.
absl::Status CollectEffects(tensorflow::Graph* body, const std::function<bool(const tensorflow::Node&)>& is_effect,
                            std::vector<std::string>* effects);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_EFFECTS_H_
