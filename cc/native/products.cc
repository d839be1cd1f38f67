// Kernels that multiply a few rows with a weight, and that add biases.
// SPDX-License-Identifier: Apache-2.0
#include "cc/native/products.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cc/native/loops.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TryGetNodeAttr;

// A weight of this many bytes does not fit into the first-level cache. To read it from further away then takes longer
// than to multiply it with one row: four rows at once take a third (depth 300) to half (depth 150) of the time that
// they take one by one.
constexpr int64_t kBytesOfFarWeight = int64_t{1} << 16;

// The numbers of a weight, a tensor or a rope. A rope may let go of them, so *held keeps them.
template <typename T>
const T* WeightIn(const Value& value, Tensor* held) {
  if (value.kind != Value::Kind::kRope) return DataOf<T>(*value.tensor_or_null());
  *held = value.rope->View();
  return DataOf<T>(*held);
}

FactorDims DimsOf(const NativeKernel& kernel) {
  const auto dims = static_cast<int>(kernel.numbers[3]);
  return {dims & 255, dims >> 8 & 255, dims >> 16};
}

// The two factors of one product: x [rows, depth] and w [depth, columns]; or w [columns, depth], transposed. Each of
// these may stand for several dimensions.
struct Factors {
  const Tensor* x = nullptr;
  const TensorShape* w = nullptr;
  int64_t rows = 1, depth = 1, columns = 1;
  FactorDims dims;
  int first_column = 1;  // the first dimension of w that is columns

  // Returns false if these kernels do not serve the factors.
  bool Read(const NativeKernel& kernel, const Value* inputs) {
    x = inputs[0].tensor_or_null();
    w = ShapeIn(inputs[kWeightOfProduct]);
    dims = DimsOf(kernel);
    if (x == nullptr || w == nullptr || !x->IsInitialized()) return false;
    if (x->dims() != dims.own_of_x + dims.summed || w->dims() != dims.summed + dims.own_of_w) return false;
    const bool is_transposed = kernel.numbers[0] != 0;
    first_column = is_transposed ? 0 : dims.summed;
    const int first_summed = is_transposed ? dims.own_of_w : 0;
    for (int d = 0; d < dims.own_of_x; ++d) rows *= x->dim_size(d);
    for (int d = 0; d < dims.own_of_w; ++d) columns *= w->dim_size(first_column + d);
    for (int d = 0; d < dims.summed; ++d) {
      if (x->dim_size(dims.own_of_x + d) != w->dim_size(first_summed + d)) return false;
      depth *= w->dim_size(first_summed + d);
    }
    return rows > 0 && rows <= kMostRows && depth > 0 && columns > 0 && rows * depth * columns <= kMostMultiplications;
  }

  TensorShape ShapeOfProducts() const {
    TensorShape shape = x->shape();
    shape.RemoveLastDims(dims.summed);
    for (int d = 0; d < dims.own_of_w; ++d) shape.AddDim(w->dim_size(first_column + d));
    return shape;
  }
};

// The rows of all calls that are multiplied with one weight, and where their products go.
template <typename T>
struct ProductRows {
  const T* from[2 * kRowsOfWave];
  T* to[2 * kRowsOfWave];
  int64_t count = 0;

  // Adds the rows of `factors`. Makes *output a tensor for their products, which are not computed yet.
  void Add(const Factors& factors, Value* output) {
    T* const out = NewOutput<T>(factors.x->dtype(), factors.ShapeOfProducts(), output);
    const T* const x = DataOf<T>(*factors.x);
    for (int64_t row = 0; row < factors.rows; ++row, ++count) {
      from[count] = x + row * factors.depth;
      to[count] = out + row * factors.columns;
    }
  }
};

// What a fused operator does with each row of a product: it adds a bias and applies an activation.
template <typename T>
struct Finish {
  const T* bias = nullptr;
  std::optional<Unary> activation;

  void Apply(T* row, int64_t columns) const {
    const Loops<T>& loops = BestLoops<T>();
    loops.of(Binary::kAdd, Meeting::kBoth)(row, bias, row, columns);
    if (activation.has_value()) loops.of (*activation)(row, row, columns);
  }
};

// numbers[0] says whether the weight is transposed, numbers[1] is the activation, numbers[2] says how many operators
// are fused with the product (none, a bias, or a bias and an activation), numbers[3] has the FactorDims.
template <typename T>
bool RunTogether(const NativeKernel& kernel, absl::Span<const NativeCall> calls) {
  const bool is_transposed = kernel.numbers[0] != 0, has_bias = kernel.numbers[2] != 0;
  const size_t count = calls.size();
  Factors of_call[kRowsOfWave];
  const Tensor* biases[kRowsOfWave] = {};
  for (size_t i = 0; i < count; ++i) {
    if (!of_call[i].Read(kernel, calls[i].inputs)) return false;
    // Operands that begin at the same place need not be the same: one may be a view of the other in another shape.
    if (i > 0 && *of_call[i].w != *of_call[0].w) return false;
    if (!has_bias) continue;
    biases[i] = TensorIn(calls[i].inputs[2]);
    if (biases[i] == nullptr || biases[i]->dims() != 1 || biases[i]->dim_size(0) != of_call[i].columns) return false;
  }
  ProductRows<T> rows;
  for (size_t i = 0; i < count; ++i) rows.Add(of_call[i], &calls[i].outputs[0]);
  const Factors& factors = of_call[0];
  const Loops<T>& loops = BestLoops<T>();
  Tensor held;
  const T* const w = WeightIn<T>(calls[0].inputs[kWeightOfProduct], &held);
  (is_transposed ? loops.product_transposed : loops.product)(rows.from, w, rows.to, rows.count, factors.depth,
                                                             factors.columns);
  if (!has_bias) return true;
  Finish<T> finish;
  if (kernel.numbers[2] > 1) finish.activation = static_cast<Unary>(kernel.numbers[1]);
  int64_t row = 0;
  for (size_t i = 0; i < count; ++i) {
    finish.bias = DataOf<T>(*biases[i]);
    for (const int64_t end = row + of_call[i].rows; row < end; ++row) finish.Apply(rows.to[row], factors.columns);
  }
  return true;
}

// Ropes are multiplied alone: another reader may make one let go of the memory that it would be known by.
NativeShare ShareOfWeight(const NativeKernel& kernel, const Value* inputs) {
  const Tensor* const w = inputs[kWeightOfProduct].tensor_or_null();
  const int64_t bytes_of_number = kernel.dtype == tensorflow::DT_FLOAT ? sizeof(float) : sizeof(double);
  if (w == nullptr || w->NumElements() * bytes_of_number < kBytesOfFarWeight) return {};  // as in most small nets
  Factors factors;
  if (!factors.Read(kernel, inputs) || factors.rows >= kRowsOfWave) return {};
  return {w->data(), static_cast<int>(factors.rows)};
}

// What a fused product may end with.
std::optional<Unary> FindActivation(const std::string& op) {
  if (op == "Relu") return Unary::kRelu;
  if (op == "Tanh") return Unary::kTanh;
  if (op == "Sigmoid") return Unary::kSigmoid;
  return std::nullopt;
}

// Serves the operator that Grappler makes of a MatMul, a BiasAdd and perhaps an activation.
bool BindFusedMatMul(const tensorflow::Node& node, NativeKernel* kernel) {
  std::vector<std::string> parts;
  bool is_x_transposed = false, is_w_transposed = false;
  if (!TryGetNodeAttr(node.attrs(), "transpose_a", &is_x_transposed) || is_x_transposed) return false;
  if (!TryGetNodeAttr(node.attrs(), "transpose_b", &is_w_transposed)) return false;
  if (!TryGetNodeAttr(node.attrs(), "fused_ops", &parts)) return false;
  if (node.num_inputs() != 3 || parts.empty() || parts.size() > 2 || parts[0] != "BiasAdd") return false;
  if (parts.size() == 2) {
    const std::optional<Unary> activation = FindActivation(parts[1]);
    if (!activation.has_value()) return false;
    kernel->numbers[1] = static_cast<int64_t>(*activation);
  }
  BindFactors(is_w_transposed, FactorDims(), kernel);
  kernel->numbers[2] = static_cast<int64_t>(parts.size());
  return true;
}

// Whether a bias is added along the last dimension, which NHWC means.
bool HasPlainFormat(const tensorflow::Node& node) {
  std::string format;
  return TryGetNodeAttr(node.attrs(), "data_format", &format) && format == "NHWC";
}

template <typename T>
void AddBias(const T* x, const T* bias, T* to, int64_t rows, int64_t columns) {
  const auto add = BestLoops<T>().of(Binary::kAdd, Meeting::kBoth);
  for (int64_t row = 0; row < rows; ++row) add(x + row * columns, bias, to + row * columns, columns);
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

// The gradient of a bias is the sum of all rows.
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

template <typename T>
bool RunProduct(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const NativeCall call{inputs, outputs};
  return RunTogether<T>(kernel, absl::MakeConstSpan(&call, 1));
}

template bool RunProduct<float>(const NativeKernel&, const NativeContext&, Value*, Value*);
template bool RunProduct<double>(const NativeKernel&, const NativeContext&, Value*, Value*);

void BindFactors(bool is_w_transposed, const FactorDims& dims, NativeKernel* kernel) {
  kernel->numbers[0] = is_w_transposed ? 1 : 0;
  kernel->numbers[3] = dims.own_of_x | dims.summed << 8 | dims.own_of_w << 16;
  TFR_NATIVE_OF_FLOATS(kernel, RunProduct);
  kernel->share = ShareOfWeight;
  kernel->run_together = kernel->dtype == tensorflow::DT_FLOAT ? RunTogether<float> : RunTogether<double>;
}

void AddProducts(NativeTable* table) {
  table->insert({{"_FusedMatMul", BindFusedMatMul}, {"BiasAdd", BindBiasAdd}, {"BiasAddGrad", BindBiasAddGrad}});
}

}  // namespace tensorflow_recursion
