// Kernels that compare numbers, and that select by such conditions.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>

#include "cc/native/native_table.h"
#include "cc/native/operands.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// --- Comparisons ----------------------------------------------------------------------------------

// Whether all numbers of a tensor of this shape may meet the operand: it has one for each, or it is a single number.
template <typename T>
bool Meets(const Operand<T>& operand, const TensorShape& shape) {
  if (operand.tensor == nullptr || operand.tensor->shape() == shape) return true;
  return operand.size == 1 && operand.dims() <= shape.dims();
}

template <typename T>
int64_t StepOf(const Operand<T>& operand) {
  return operand.size == 1 ? 0 : 1;
}

template <typename T, template <typename> class Compare>
bool RunCompare(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  Operand<T> x, y;
  if (!x.Read(inputs[0]) || !y.Read(inputs[1])) return false;
  const bool is_y_larger = x.tensor == nullptr || (y.tensor != nullptr && x.size < y.size);
  const Tensor* const larger = is_y_larger ? y.tensor : x.tensor;
  if (larger == nullptr || !Meets(x, larger->shape()) || !Meets(y, larger->shape())) return false;
  const int64_t count = larger->NumElements(), x_step = StepOf(x), y_step = StepOf(y);
  bool* const to = NewOutput<bool>(tensorflow::DT_BOOL, larger->shape(), &outputs[0]);
  const Compare<T> compare;
  for (int64_t i = 0; i < count; ++i) to[i] = compare(x.data[i * x_step], y.data[i * y_step]);
  return true;
}

template <template <typename> class Compare>
bool BindCompare(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  if (kernel->dtype == tensorflow::DT_FLOAT) kernel->run = RunCompare<float, Compare>;
  if (kernel->dtype == tensorflow::DT_DOUBLE) kernel->run = RunCompare<double, Compare>;
  return true;
}

// --- Select ---------------------------------------------------------------------------------------

// Selects by one condition for each number, or by one for all.
template <typename T>
bool RunSelect(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  Operand<bool> condition;
  if (!condition.Read(inputs[0])) return false;
  if (condition.tensor == nullptr) {
    const TensorShape *x_shape = ShapeIn(inputs[1]), *y_shape = ShapeIn(inputs[2]);
    if (x_shape == nullptr || y_shape == nullptr || *x_shape != *y_shape) return false;
    HandOn(&inputs[*condition.data ? 1 : 2], &outputs[0]);
    return true;
  }
  Operand<T> x, y;
  if (!x.Read(inputs[1]) || !y.Read(inputs[2])) return false;
  const TensorShape& shape = condition.tensor->shape();
  const bool is_x_whole = x.tensor != nullptr && x.tensor->shape() == shape;
  const bool is_y_whole = y.tensor != nullptr && y.tensor->shape() == shape;
  const bool may_broadcast = kernel.numbers[0] != 0;
  if (may_broadcast ? !Meets(x, shape) || !Meets(y, shape) : !is_x_whole || !is_y_whole) return false;
  const int64_t x_step = StepOf(x), y_step = StepOf(y), count = condition.size;
  T* to = nullptr;
  if (is_x_whole && (IsUnshared(inputs[1]) || !is_y_whole)) {
    to = ReuseOrNew<T>(&inputs[1], &outputs[0]);
  } else if (is_y_whole) {
    to = ReuseOrNew<T>(&inputs[2], &outputs[0]);
  } else {
    to = NewOutput<T>(kernel.dtype, shape, &outputs[0]);
  }
  for (int64_t i = 0; i < count; ++i) to[i] = condition.data[i] ? x.data[i * x_step] : y.data[i * y_step];
  return true;
}

// SelectV2 broadcasts its operands, Select does not.
template <bool kMayBroadcast>
bool BindSelect(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->numbers[0] = kMayBroadcast ? 1 : 0;
  TFR_NATIVE_OF_FLOATS(kernel, RunSelect);
  return true;
}

}  // namespace

void AddSelections(NativeTable* table) {
  table->insert({{"Less", BindCompare<std::less>},
                 {"LessEqual", BindCompare<std::less_equal>},
                 {"Greater", BindCompare<std::greater>},
                 {"GreaterEqual", BindCompare<std::greater_equal>},
                 {"Equal", BindCompare<std::equal_to>},
                 {"NotEqual", BindCompare<std::not_equal_to>},
                 {"Select", BindSelect<false>},
                 {"SelectV2", BindSelect<true>}});
}

}  // namespace tensorflow_recursion
