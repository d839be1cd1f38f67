// Holds ordinary calls in the loop, or in the branch, that they stand in, until their callees are put in their place.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_HOLD_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_HOLD_CALLS_H_

#include <functional>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// The nodes of a function or of a graph.
using NodeDefs = google::protobuf::RepeatedPtrField<tensorflow::NodeDef>;

// Adds control edges to ordinary calls that have none and stand in loops or branches of v1 form, where `holds` is true.
// They come from what decides whether the call runs: the sides of Switches, for example, that its arguments depend on.
//
// When TensorFlow puts a callee in the place of its call, the constants of the callee wait for what the call waits for.
// If that is nothing, they are outside of a loop whose nodes read them, and the graph is malformed. Or they live
// although the branch with the call is not taken, and the constant that f returns in
//
//     y = tf.cond(p, lambda: f(x), lambda: x)
//
// comes out of the condition at any rate. If the function that the call stands in is put in the place of a call itself,
// the inner call also gets a control edge from outside of its loop.
//
// TensorFlow's lowering adds such edges itself. But Grappler takes them out again where an argument orders the same,
// and the optimizers of a dataset lower loops in any function that the dataset may run. Which functions they lower
// depends on the order in which they come to them, which is another one in every process.
void HoldCalls(const tensorflow::FunctionLibraryDefinition& library,
               const std::function<bool(const tensorflow::NodeDef&)>& holds, NodeDefs* nodes);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_HOLD_CALLS_H_
