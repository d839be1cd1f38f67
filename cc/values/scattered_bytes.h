// Copying the rows that a recursion has made, one by one, into one piece of memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SCATTERED_BYTES_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SCATTERED_BYTES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {

// The numbers of a tensor, which must be of a dtype that may be copied as bytes; nothing if it has none.
absl::string_view TensorBytes(const tensorflow::Tensor& tensor);

// Copies the pieces one behind the other to `to`, which has room for them all. They lie anywhere in memory, mostly
// outside of the processor's caches, so the next ones are asked for while one is copied.
void CopyPieces(const std::vector<absl::string_view>& pieces, void* to);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SCATTERED_BYTES_H_
