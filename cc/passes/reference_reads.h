// Lets kernels read the references to variables that operators without a kernel would read.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_REFERENCE_READS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_REFERENCE_READS_H_

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Puts an Identity between a reference and each operator that reads its value but has no kernel in the executor: a
// call, a Switch, a fetch. So only kernels read references, where it is checked whether the variable has a value. The
// Identity waits for what the operator waits for, such as an assignment.
absl::Status ReadReferencesByKernels(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_REFERENCE_READS_H_
