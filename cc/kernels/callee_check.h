// Checks whether a call fits the function that it names.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_CALLEE_CHECK_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_CALLEE_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// The node's name, and the types of what the call passes and reads.
struct CallSignature {
  std::string name;
  tensorflow::DataTypeVector arguments;
  tensorflow::DataTypeVector results;
};

// InvalidArgument if `library` has no definition of the function, or one that the call does not fit. The message names
// the call and the function.
absl::Status CheckCallee(const tensorflow::FunctionLibraryDefinition& library, const tensorflow::NameAttrList& function,
                         const CallSignature& signature);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_CALLEE_CHECK_H_
