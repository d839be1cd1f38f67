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
// `tf.reshape` says that x has one element, and so Grappler replaces tf.size(x) by 1: every call took the first branch.
// So it does in a tf.function, of which the conditionals have become Switches before Grappler sees it. A BranchInput
// has the static shape of what it hands on, but its open dimensions are others: nothing that is said of them holds
// outside of the branch. So it is with what a handle tells of the shape of a variable, or of the elements of a
// TensorArray of control flow v1.
void AddBranchInputs(tensorflow::GraphDef* graph);
absl::Status AddBranchInputs(tensorflow::Graph* graph);

// Takes them out again. One that others wait for becomes an Identity, which is dead when its branch is not taken.
absl::Status RemoveBranchInputs(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_BRANCH_INPUTS_H_
