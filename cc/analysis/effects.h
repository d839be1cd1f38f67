// Side effects in bodies: which operators have them, and how a body waits for all of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_EFFECTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_EFFECTS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Whether running `node` can be observed from outside: it prints, assigns, asserts, takes from a queue ...
// Creating handles, reading variables and drawing random numbers cannot. Invokes are judged by their callees.
bool HasEffect(const tensorflow::Node& node);

// Whether operators of this type read a variable and do nothing else: ReadVariableOp, ResourceGather ... It matters
// which writes come before them and which after, although they have no effect.
bool ReadsState(const std::string& op);

// Whether the order in which `node` runs may matter: TensorFlow calls it stateful, or it takes a TF1 reference
// variable, which it may write to. Wider than HasEffect: reads of variables, random numbers and receives are among
// these.
bool IsStateful(const tensorflow::Node& node);

// Names nodes of the body's outermost frame that run after, or are, all nodes with effects; `is_effect` tells
// those. An effect inside a loop gets its loop's next iteration, and thus an Exit, to wait for it.
// Fails with InvalidArgument when the body's loops are malformed.
absl::Status CollectEffects(tensorflow::Graph* body, const std::function<bool(const tensorflow::Node&)>& is_effect,
                            std::vector<std::string>* effects);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_EFFECTS_H_
