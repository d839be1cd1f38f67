// Makes the tensors and sums that the tests of contributions are about.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_VALUES_CONTRIBUTION_VALUES_H_
#define TENSORFLOW_RECURSION_TESTS_CC_VALUES_CONTRIBUTION_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cc/values/contributions.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"

namespace tensorflow_recursion {

using Shape = std::vector<int64_t>;

// A tensor of this shape that holds first, first + 1 ..
inline tensorflow::Tensor Floats(const Shape& shape, float first) {
  tensorflow::Tensor tensor(tensorflow::DT_FLOAT, tensorflow::TensorShape(shape));
  auto values = tensor.flat<float>();
  for (int64_t i = 0; i < values.size(); ++i) values(i) = first + static_cast<float>(i);
  return tensor;
}

inline tensorflow::Tensor Int64s(const std::vector<int64_t>& values) {
  tensorflow::Tensor tensor(tensorflow::DT_INT64, tensorflow::TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor.flat<int64_t>().data());
  return tensor;
}

inline std::vector<float> ValuesOf(const tensorflow::Tensor& tensor) {
  const auto values = tensor.flat<float>();
  return {values.data(), values.data() + values.size()};
}

inline tensorflow::Tensor Box(Contributions contributions) {
  tensorflow::Tensor box(tensorflow::DT_VARIANT, tensorflow::TensorShape({}));
  box.scalar<tensorflow::Variant>()() = std::move(contributions);
  return box;
}

// One term, a row `number` and its index.
inline Contributions Row(float number) { return Contributions(Floats({1}, number), Int64s({0})); }

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_VALUES_CONTRIBUTION_VALUES_H_
