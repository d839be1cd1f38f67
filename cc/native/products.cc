// Products of a few rows with a weight, and biases.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "cc/native/loops.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TryGetNodeAttr;

// More rows, or more work than a worker should do alone, are for the stock kernel.
constexpr int64_t kMostRows = 8;
constexpr int64_t kMostMultiplications = int64_t{4} << 20;

enum class Activation { kNone, kRelu, kTanh, kSigmoid };

// A weight is no smaller than a matrix of this size, of which TensorIn would say that it is too large.
const Tensor* MatrixIn(const Value& value) {
  const Tensor* const tensor = value.tensor_or_null();
  return tensor != nullptr && tensor->dims() == 2 && tensor->IsInitialized() ? tensor : nullptr;
}

// Makes outputs[0] the product; nullptr if it is not for this kernel.
template <typename T>
T* Multiply(Value* inputs, Value* outputs, bool is_transposed, int64_t* rows, int64_t* columns) {
  const Tensor* const x = MatrixIn(inputs[0]);
  const Tensor* const w = MatrixIn(inputs[1]);
  if (x == nullptr || w == nullptr) return nullptr;
  *rows = x->dim_size(0);
  const int64_t depth = x->dim_size(1);
  *columns = w->dim_size(is_transposed ? 0 : 1);
  if (*rows < 1 || *rows > kMostRows || depth < 1 || *columns < 1) return nullptr;
  if (w->dim_size(is_transposed ? 1 : 0) != depth || *rows * depth * *columns > kMostMultiplications) return nullptr;
  TensorShape shape = x->shape();
  shape.set_dim(1, *columns);
  T* const to = NewOutput<T>(x->dtype(), shape, &outputs[0]);
  const Loops<T>& loops = BestLoops<T>();
  (is_transposed ? loops.product_transposed : loops.product)(DataOf<T>(*x), DataOf<T>(*w), to, *rows, depth, *columns);
  return to;
}

// numbers[0]: whether the weight is transposed.
template <typename T>
bool RunMatMul(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  int64_t rows = 0, columns = 0;
  return Multiply<T>(inputs, outputs, kernel.numbers[0] != 0, &rows, &columns) != nullptr;
}

bool BindMatMul(const tensorflow::Node& node, NativeKernel* kernel) {
  bool transpose_a = false, transpose_b = false;
  if (!TryGetNodeAttr(node.attrs(), "transpose_a", &transpose_a) || transpose_a) return false;
  if (!TryGetNodeAttr(node.attrs(), "transpose_b", &transpose_b)) return false;
  kernel->numbers[0] = transpose_b ? 1 : 0;
  TFR_NATIVE_OF_FLOATS(kernel, RunMatMul);
  return true;
}

// Of matrices: what Grappler makes of a MatMul among reshapes.
bool BindBatchMatMul(const tensorflow::Node& node, NativeKernel* kernel) {
  bool adjoint_x = false, adjoint_y = false;
  if (!TryGetNodeAttr(node.attrs(), "adj_x", &adjoint_x) || adjoint_x) return false;
  if (!TryGetNodeAttr(node.attrs(), "adj_y", &adjoint_y)) return false;
  kernel->numbers[0] = adjoint_y ? 1 : 0;
  TFR_NATIVE_OF_FLOATS(kernel, RunMatMul);
  return true;
}

template <typename T>
void AddBias(const T* x, const T* bias, T* to, int64_t rows, int64_t columns) {
  const auto add = BestLoops<T>().of(Binary::kAdd, Meeting::kBoth);
  for (int64_t row = 0; row < rows; ++row) add(x + row * columns, bias, to + row * columns, columns);
}

template <typename T>
void Activate(Activation activation, T* x, int64_t count) {
  const Loops<T>& loops = BestLoops<T>();
  if (activation == Activation::kRelu) loops.of(Unary::kRelu)(x, x, count);
  if (activation == Activation::kTanh) loops.of(Unary::kTanh)(x, x, count);
  if (activation == Activation::kSigmoid) loops.of(Unary::kSigmoid)(x, x, count);
}

// numbers[0]: whether the weight is transposed; numbers[1]: the activation.
template <typename T>
bool RunFusedMatMul(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const bias = TensorIn(inputs[2]);
  const Tensor* const w = MatrixIn(inputs[1]);
  if (bias == nullptr || bias->dims() != 1 || w == nullptr) return false;
  if (bias->dim_size(0) != w->dim_size(kernel.numbers[0] != 0 ? 0 : 1)) return false;
  int64_t rows = 0, columns = 0;
  T* const to = Multiply<T>(inputs, outputs, kernel.numbers[0] != 0, &rows, &columns);
  if (to == nullptr) return false;
  AddBias(to, DataOf<T>(*bias), to, rows, columns);
  Activate(static_cast<Activation>(kernel.numbers[1]), to, rows * columns);
  return true;
}

// What a Grappler pass makes of MatMul, BiasAdd and an activation.
bool BindFusedMatMul(const tensorflow::Node& node, NativeKernel* kernel) {
  std::vector<std::string> parts;
  if (!BindMatMul(node, kernel) || !TryGetNodeAttr(node.attrs(), "fused_ops", &parts)) return false;
  if (node.num_inputs() != 3 || parts.empty() || parts.size() > 2 || parts[0] != "BiasAdd") return false;
  Activation activation = Activation::kNone;
  if (parts.size() == 2) {
    if (parts[1] == "Relu") activation = Activation::kRelu;
    if (parts[1] == "Tanh") activation = Activation::kTanh;
    if (parts[1] == "Sigmoid") activation = Activation::kSigmoid;
    if (activation == Activation::kNone) return false;
  }
  kernel->numbers[1] = static_cast<int64_t>(activation);
  TFR_NATIVE_OF_FLOATS(kernel, RunFusedMatMul);
  return true;
}

// The numbers of a row are those of the last dimension.
bool HasPlainFormat(const tensorflow::Node& node) {
  std::string format;
  return TryGetNodeAttr(node.attrs(), "data_format", &format) && format == "NHWC";
}

template <typename T>
bool RunBiasAdd(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  const Tensor* const bias = TensorIn(inputs[1]);
  if (x == nullptr || bias == nullptr || x->dims() < 2 || bias->dims() != 1) return false;
  const int64_t columns = bias->dim_size(0);
  if (columns == 0 || x->dim_size(x->dims() - 1) != columns) return false;
  const int64_t rows = x->NumElements() / columns;
  const T* const from = DataOf<T>(*x);
  AddBias(from, DataOf<T>(*bias), ReuseOrNew<T>(&inputs[0], &outputs[0]), rows, columns);
  return true;
}

bool BindBiasAdd(const tensorflow::Node& node, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunBiasAdd);
  return HasPlainFormat(node);
}

// The sum of all rows.
template <typename T>
bool RunBiasAddGrad(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  if (x == nullptr || x->dims() < 2 || x->NumElements() == 0) return false;
  const int64_t columns = x->dim_size(x->dims() - 1);
  const int64_t rows = x->NumElements() / columns;
  const TensorShape shape({columns});
  if (rows == 1) {
    ViewAs(&inputs[0], shape, &outputs[0]);
    return true;
  }
  const T* const from = DataOf<T>(*x);
  T* const to = NewOutput<T>(x->dtype(), shape, &outputs[0]);
  const auto add = BestLoops<T>().of(Binary::kAdd, Meeting::kBoth);
  add(from, from + columns, to, columns);
  for (int64_t row = 2; row < rows; ++row) add(to, from + row * columns, to, columns);
  return true;
}

bool BindBiasAddGrad(const tensorflow::Node& node, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunBiasAddGrad);
  return HasPlainFormat(node);
}

}  // namespace

void AddProducts(NativeTable* table) {
  table->insert({{"MatMul", BindMatMul},
                 {"BatchMatMulV2", BindBatchMatMul},
                 {"_FusedMatMul", BindFusedMatMul},
                 {"BiasAdd", BindBiasAdd},
                 {"BiasAddGrad", BindBiasAddGrad}});
}

}  // namespace tensorflow_recursion
