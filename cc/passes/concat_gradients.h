// Makes each gradient of a concatenation in a function body one operator.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_CONCAT_GRADIENTS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_CONCAT_GRADIENTS_H_

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// TensorFlow takes the gradient g of tf.concat([x, y], axis) by ShapeN(x, y), by ConcatOffset of these shapes, which
// says where each part begins, and by a Slice of g for each part: four operators. Here they become one,
// ConcatGradient(axis, g, x, y). It takes a shape instead of a part where the shape is a constant, or is read by
// others, too. If a part has no gradient, everything stays as it is.
//
// Where all shapes are known, TensorFlow's optimizers leave only the Slices of g, whose beginnings and sizes are
// constants. Two or more Slices that cut g into neighbouring parts along one dimension become such an operator, too,
// even if they come from elsewhere.
//
// The graph must be on a CPU. InvalidArgument if TensorFlow refuses the new operator.
absl::Status MergeConcatGradients(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_CONCAT_GRADIENTS_H_
