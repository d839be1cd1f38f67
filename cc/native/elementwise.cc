// Kernels that compute number by number, with the broadcasting that nets use.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>

#include "cc/native/loops.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// --- One operand ----------------------------------------------------------------------------------

// numbers[0] is the function, a Unary.
template <typename T>
bool RunUnary(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  if (x == nullptr) return false;
  const T* const from = DataOf<T>(*x);
  const int64_t count = x->NumElements();
  T* const to = ReuseOrNew<T>(&inputs[0], &outputs[0]);
  BestLoops<T>().of(static_cast<Unary>(kernel.numbers[0]))(from, to, count);
  return true;
}

// --- Two operands ---------------------------------------------------------------------------------

// How a small operand is broadcast to a large one of `rows` times `columns` numbers: the same row meets each row, or,
// if `is_number`, number i meets all numbers of row i. FindPattern makes it.
struct Pattern {
  int64_t rows;
  int64_t columns;
  bool is_number;
};

bool IsOne(const TensorShape& shape, int dimension) { return shape.dim_size(dimension) == 1; }

// Whether `small` can be broadcast to the shape of `large` by such a pattern.
bool FindPattern(const TensorShape& small, const TensorShape& large, Pattern* pattern) {
  const int lead = large.dims() - small.dims();
  if (lead < 0) return false;
  int first = 0;  // the first dimension that is not 1
  while (first < small.dims() && IsOne(small, first)) ++first;
  if (first == small.dims()) {
    *pattern = {1, large.num_elements(), true};
    return true;
  }
  int last = small.dims();
  while (last > first && IsOne(small, last - 1) && !IsOne(large, lead + last - 1)) --last;
  for (int d = first; d < last; ++d) {
    if (small.dim_size(d) != large.dim_size(lead + d)) return false;
  }
  pattern->rows = 1;
  pattern->columns = 1;
  if (last == small.dims()) {  // the dimensions in front of `first` repeat the row
    for (int d = 0; d < lead + first; ++d) pattern->rows *= large.dim_size(d);
    for (int d = lead + first; d < large.dims(); ++d) pattern->columns *= large.dim_size(d);
    pattern->is_number = false;
    return true;
  }
  for (int d = 0; d < lead + first; ++d) {
    if (!IsOne(large, d)) return false;
  }
  for (int d = lead + first; d < lead + last; ++d) pattern->rows *= large.dim_size(d);
  for (int d = lead + last; d < large.dims(); ++d) pattern->columns *= large.dim_size(d);
  pattern->is_number = true;
  return true;
}

// Computes the function of `small` and each row of `large`.
template <typename T>
void MeetRows(Binary function, const T* small, const T* large, T* to, const Pattern& pattern, bool small_is_left) {
  const Meeting one = small_is_left ? Meeting::kOneLeft : Meeting::kOneRight;
  const auto loop = BestLoops<T>().of(function, pattern.is_number ? one : Meeting::kBoth);
  for (int64_t row = 0; row < pattern.rows; ++row) {
    const T* const left = small_is_left ? small : large;
    loop(left, small_is_left ? large : small, to, pattern.columns);
    if (pattern.is_number) ++small;
    large += pattern.columns;
    to += pattern.columns;
  }
}

template <typename T>
bool RunSame(Binary function, Value* inputs, Value* outputs, const Operand<T>& x, const Operand<T>& y) {
  T* const to = ReuseOrNew<T>(IsUnshared(inputs[0]) ? &inputs[0] : &inputs[1], &outputs[0]);
  BestLoops<T>().of(function, Meeting::kBoth)(x.data, y.data, to, x.size);
  return true;
}

template <typename T>
bool RunBroadcast(Binary function, Value* inputs, Value* outputs, Operand<T>* x, Operand<T>* y) {
  const bool small_is_left = x->tensor == nullptr || (y->tensor != nullptr && x->size < y->size);
  const Operand<T>& small = small_is_left ? *x : *y;
  const Operand<T>& large = small_is_left ? *y : *x;
  Pattern pattern{1, large.size, true};
  if (small.tensor != nullptr && !FindPattern(small.tensor->shape(), large.tensor->shape(), &pattern)) return false;
  if (large.size == 0) return false;
  T* const to = ReuseOrNew<T>(&inputs[small_is_left ? 1 : 0], &outputs[0]);
  MeetRows(function, small.data, large.data, to, pattern, small_is_left);
  return true;
}

// numbers[0] is the function, a Binary.
template <typename T>
bool RunBinary(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  Operand<T> x, y;
  if (!x.Read(inputs[0]) || !y.Read(inputs[1])) return false;
  const auto function = static_cast<Binary>(kernel.numbers[0]);
  if (x.tensor == nullptr && y.tensor == nullptr) return false;
  const bool is_same = x.tensor != nullptr && y.tensor != nullptr && x.tensor->shape() == y.tensor->shape();
  if (is_same) return RunSame(function, inputs, outputs, x, y);
  return RunBroadcast(function, inputs, outputs, &x, &y);
}

// --- Repetition -----------------------------------------------------------------------------------

// Makes the output of this shape, of rank 1 or more. Returns false if x cannot be broadcast to it by a Pattern.
template <typename T>
bool Repeat(const NativeKernel& kernel, const TensorShape& shape, Value* x, Value* output) {
  Operand<T> operand;
  if (!operand.Read(*x)) return false;
  if (operand.tensor != nullptr && operand.tensor->shape() == shape) {
    HandOn(x, output);
    return true;
  }
  Pattern pattern{1, shape.num_elements(), true};
  if (operand.tensor != nullptr && !FindPattern(operand.tensor->shape(), shape, &pattern)) return false;
  const T* from = operand.data;
  T* to = NewOutput<T>(kernel.dtype, shape, output);
  for (int64_t row = 0; row < pattern.rows; ++row, to += pattern.columns) {
    if (pattern.is_number) {
      std::fill_n(to, pattern.columns, *from++);
    } else {
      std::copy_n(from, pattern.columns, to);
    }
  }
  return true;
}

// Inputs: a tensor, how often each of its dimensions is repeated. It serves dimensions of one element, as gradients of
// sums have them.
template <typename T>
bool RunTile(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  const Tensor* const multiples = TensorIn(inputs[1]);
  if (x == nullptr || multiples == nullptr || multiples->shape() != TensorShape({x->dims()})) return false;
  TensorShape shape;
  for (int d = 0; d < x->dims(); ++d) {
    const int64_t times = IntegerAt(*multiples, d);
    if (times != 1 && !IsOne(x->shape(), d)) return false;
    if (!AddSize(times == 1 ? x->dim_size(d) : times, &shape)) return false;
  }
  return Repeat<T>(kernel, shape, &inputs[0], &outputs[0]);
}

// Inputs: a tensor, the shape that it is broadcast to.
template <typename T>
bool RunBroadcastTo(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  TensorShape shape;
  return ReadSizes(inputs[1], &shape) && Repeat<T>(kernel, shape, &inputs[0], &outputs[0]);
}

bool BindTile(const tensorflow::Node& node, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunTile);
  return IsIndexType(node.input_type(1));
}

bool BindBroadcastTo(const tensorflow::Node& node, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunBroadcastTo);
  return IsIndexType(node.input_type(1));
}

// --- Gradients ------------------------------------------------------------------------------------

// Gradients have two operands of the same shape. numbers[0] is the function, a Binary.
template <typename T>
bool RunGradient(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  Operand<T> x, y;
  if (!x.Read(inputs[0]) || !y.Read(inputs[1]) || x.tensor == nullptr || y.tensor == nullptr) return false;
  if (x.tensor->shape() != y.tensor->shape()) return false;
  return RunSame(static_cast<Binary>(kernel.numbers[0]), inputs, outputs, x, y);
}

// --- The table ------------------------------------------------------------------------------------

template <Unary kFunction>
bool BindUnary(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->numbers[0] = static_cast<int64_t>(kFunction);
  TFR_NATIVE_OF_FLOATS(kernel, RunUnary);
  return true;
}

template <Binary kFunction>
bool BindBinary(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->numbers[0] = static_cast<int64_t>(kFunction);
  TFR_NATIVE_OF_FLOATS(kernel, RunBinary);
  return true;
}

template <Binary kFunction>
bool BindGradient(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->numbers[0] = static_cast<int64_t>(kFunction);
  TFR_NATIVE_OF_FLOATS(kernel, RunGradient);
  return true;
}

}  // namespace

void AddElementwise(NativeTable* table) {
  table->insert({{"Neg", BindUnary<Unary::kNeg>},
                 {"Abs", BindUnary<Unary::kAbs>},
                 {"Square", BindUnary<Unary::kSquare>},
                 {"Sqrt", BindUnary<Unary::kSqrt>},
                 {"Reciprocal", BindUnary<Unary::kReciprocal>},
                 {"Exp", BindUnary<Unary::kExp>},
                 {"Log", BindUnary<Unary::kLog>},
                 {"Relu", BindUnary<Unary::kRelu>},
                 {"Tanh", BindUnary<Unary::kTanh>},
                 {"Sigmoid", BindUnary<Unary::kSigmoid>}});
  table->insert({{"Add", BindBinary<Binary::kAdd>},
                 {"AddV2", BindBinary<Binary::kAdd>},
                 {"Sub", BindBinary<Binary::kSub>},
                 {"Mul", BindBinary<Binary::kMul>},
                 {"Div", BindBinary<Binary::kDiv>},
                 {"RealDiv", BindBinary<Binary::kDiv>},
                 {"Maximum", BindBinary<Binary::kMaximum>},
                 {"Minimum", BindBinary<Binary::kMinimum>},
                 {"SquaredDifference", BindBinary<Binary::kSquaredDifference>}});
  table->insert({{"ReluGrad", BindGradient<Binary::kReluGrad>},
                 {"TanhGrad", BindGradient<Binary::kTanhGrad>},
                 {"SigmoidGrad", BindGradient<Binary::kSigmoidGrad>},
                 {"SqrtGrad", BindGradient<Binary::kSqrtGrad>}});
  table->insert({{"Tile", BindTile}, {"BroadcastTo", BindBroadcastTo}});
}

}  // namespace tensorflow_recursion
