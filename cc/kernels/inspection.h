// What tfr.bytecode and tests ask about a graph without running it.
// Graphs are serialized here, so that whoever asks needs no header of TensorFlow.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_INSPECTION_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_INSPECTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/base/export.h"

namespace tensorflow_recursion {

// Expands all calls that `fetches` need in `graph`. `graph` and `*expanded` are GraphDefs as bytes. InvalidArgument if
// `graph` is none, and for what ExpandCalls refuses.
TENSORFLOW_RECURSION_EXPORT absl::Status ExpandSerialized(const std::string& graph, std::vector<std::string> fetches,
                                                          std::string* expanded);

// Expands `calls` in the GraphDef `graph`, and lists what `function` is compiled to (ListBytecode).
TENSORFLOW_RECURSION_EXPORT absl::Status ListSerialized(const std::string& graph, std::vector<std::string> calls,
                                                        const std::string& function, std::string* listing);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_INSPECTION_H_
