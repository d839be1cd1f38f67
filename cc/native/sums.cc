// Sums and other reductions, and what is made of them: softmax and cross entropy.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>

#include "cc/native/loops.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// --- AddN -----------------------------------------------------------------------------------------

template <typename T>
bool RunAddN(const NativeKernel& kernel, Value* inputs, Value* outputs) {
  const Tensor* const first = TensorIn(inputs[0]);
  if (first == nullptr) return false;
  for (int i = 1; i < kernel.num_inputs; ++i) {
    const Tensor* const x = TensorIn(inputs[i]);
    if (x == nullptr || x->shape() != first->shape()) return false;
  }
  if (kernel.num_inputs == 1) {
    PassOn(&inputs[0], &outputs[0]);
    return true;
  }
  const int64_t count = first->NumElements();
  const T* const a = DataOf<T>(*first);
  const T* const b = DataOf<T>(*inputs[1].tensor_or_null());
  T* const to = ReuseOrNew<T>(IsUnshared(inputs[0]) ? &inputs[0] : &inputs[1], &outputs[0]);
  const auto add = BestLoops<T>().of(Binary::kAdd, Meeting::kBoth);
  add(a, b, to, count);
  for (int i = 2; i < kernel.num_inputs; ++i) add(to, DataOf<T>(*inputs[i].tensor_or_null()), to, count);
  return true;
}

bool BindAddN(const tensorflow::Node& node, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunAddN);
  if (kernel->dtype == tensorflow::DT_VARIANT) kernel->run = AddContributions;
  return node.num_inputs() > 0;
}

// --- Softmax --------------------------------------------------------------------------------------

// The rows of a tensor: how many, and how many numbers each has.
bool ReadRows(const Tensor* x, int64_t* rows, int64_t* columns) {
  if (x == nullptr || x->dims() < 1 || x->NumElements() == 0) return false;
  *columns = x->dim_size(x->dims() - 1);
  *rows = x->NumElements() / *columns;
  return true;
}

// The logarithm of the sum of the exponentials of a row, after its largest number has been subtracted.
template <typename T>
T ShiftRow(const T* x, T* shifted, int64_t columns) {
  const Loops<T>& loops = BestLoops<T>();
  const T largest = loops.maximum(x, columns);
  loops.of(Binary::kSub, Meeting::kOneRight)(x, &largest, shifted, columns);
  return largest;
}

template <typename T>
bool RunSoftmax(const NativeKernel& /*kernel*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  int64_t rows = 0, columns = 0;
  if (!ReadRows(x, &rows, &columns)) return false;
  const Loops<T>& loops = BestLoops<T>();
  const T* from = DataOf<T>(*x);
  T* to = ReuseOrNew<T>(&inputs[0], &outputs[0]);
  for (int64_t row = 0; row < rows; ++row, from += columns, to += columns) {
    ShiftRow(from, to, columns);
    loops.of(Unary::kExp)(to, to, columns);
    const T scale = T(1) / loops.sum(to, columns);
    loops.of(Binary::kMul, Meeting::kOneRight)(to, &scale, to, columns);
  }
  return true;
}

bool BindSoftmax(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunSoftmax);
  return true;
}

}  // namespace

void AddSums(NativeTable* table) { table->insert({{"AddN", BindAddN}, {"Softmax", BindSoftmax}}); }

}  // namespace tensorflow_recursion
