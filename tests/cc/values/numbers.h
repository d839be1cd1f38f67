// Makes values of numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_VALUES_NUMBERS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_VALUES_NUMBERS_H_

#include <cstdint>
#include <vector>

#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {

inline Value Number(int32_t number) { return ScalarFromTensor(tensorflow::Tensor(number)); }

inline std::vector<Value> Numbers(const std::vector<int>& numbers) {
  std::vector<Value> values;
  values.reserve(numbers.size());
  for (int number : numbers) values.push_back(Number(number));
  return values;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_VALUES_NUMBERS_H_
