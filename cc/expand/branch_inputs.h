// Keeps what a branch or an iteration tells of shapes from what is around it, while TensorFlow's optimizers look.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_BRANCH_INPUTS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_BRANCH_INPUTS_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Puts a BranchInput behind every output of a Switch that something reads, and behind handles of variables that a loop
// only reads.
//
// Grappler takes for granted that all operators run. In
//
//     if tf.size(x) < 2:
//         return tf.reshape(x, [1])
//     return f(x[1:])
//
// `tf.reshape` says that x has one element, and so Grappler replaces tf.size(x) by 1: every call takes the first
// branch. (The same happens in a tf.function without recursion, because its conditionals have become Switches before
// Grappler sees them.) A BranchInput has the static shape of what it hands on, but other open dimensions: what is said
// of them in the branch holds nowhere else. It does the same for the shapes that a handle tells: that of a variable, or
// of the elements of a TensorArray of control flow v1.
void AddBranchInputs(tensorflow::GraphDef* graph);
absl::Status AddBranchInputs(tensorflow::Graph* graph);

// Takes the BranchInputs out again. One that others wait for by a control edge becomes an Identity, which is dead when
// its branch is not taken.
absl::Status RemoveBranchInputs(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_BRANCH_INPUTS_H_
