// Makes operators of the executor that read one element of a tensor, `x[i]`.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_ELEMENT_OPERATORS_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_ELEMENT_OPERATORS_H_

#include <string>

#include "absl/status/status.h"
#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/element_reads.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// `x[i]` is four nodes in a graph: an addition, i + 1, two that make the bounds [i] and [i + 1], and a StridedSlice
// between them. Each of them is a kernel or an operator to be run. This makes the StridedSlice a kScalar
// that reads x and i, and drops the other three if nothing else reads them. It does the same with `x[i, j]` of a
// matrix.
//
// The inputs become x, i, j and the strides; for a vector, the strides stand in the place of j, too. The operator's
// kernel, to which it falls back, takes bounds instead: see PackIndices(). Returns the reads that were found.
ElementReads MakeElementOperators(FlowGraph* flow);

// Makes the inputs of the StridedSlice out of those of the operator, in place. `dtype` is the type of the indices.
// Returns false if one of these is no number.
bool PackIndices(tensorflow::DataType dtype, Value* inputs);

// The error of operator `name` if one of its indices is no number.
absl::Status IndexIsNoNumber(const std::string& name);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_ELEMENT_OPERATORS_H_
