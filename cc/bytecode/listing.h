// Says what a function was compiled to, or why it was not compiled.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_LISTING_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_LISTING_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {

// `graph` is a static graph. `function` is a name that users know. All bodies of this name are listed, of which there
// may be several. NotFound if the graph holds none.
absl::Status ListBytecode(const tensorflow::GraphDef& graph, const std::string& function, std::string* listing);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_LISTING_H_
