// SPDX-License-Identifier: Apache-2.0
#include "cc/values/scalar_ops.h"

#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeToEnum;
using tensorflow::DataTypeVector;

// --- From an operator on numbers to functions on Values and on bits -------------------------------

template <template <typename> class Operation, typename T>
bool BinaryNumbers(uint64_t x, uint64_t y, uint64_t /*z*/, uint64_t* out) {
  typename Operation<T>::Out result;
  if (!Operation<T>::Run(FromBits<T>(x), FromBits<T>(y), &result)) return false;
  *out = ToBits(result);
  return true;
}

template <typename Operation, typename T>
bool UnaryNumber(uint64_t x, uint64_t /*y*/, uint64_t /*z*/, uint64_t* out) {
  typename Operation::Out result;
  if (!Operation::Run(FromBits<T>(x), &result)) return false;
  *out = ToBits(result);
  return true;
}

template <NumberFunction function, int kOperands>
bool OnValues(const Value* in, Value* out) {
  uint64_t operands[3] = {0, 0, 0};
  for (int i = 0; i < kOperands; ++i) {
    if (!in[i].is_scalar()) return false;
    operands[i] = in[i].bits;
  }
  uint64_t result = 0;
  if (!function(operands[0], operands[1], operands[2], &result)) return false;
  *out = Value::Scalar(result);
  return true;
}

template <NumberFunction function, int kOperands>
ScalarOperator Both() {
  return {OnValues<function, kOperands>, function};
}

// --- Operators that serve every dtype -------------------------------------------------------------

bool SelectNumber(uint64_t condition, uint64_t x, uint64_t y, uint64_t* out) {
  *out = FromBits<bool>(condition) ? x : y;
  return true;
}

bool ForwardNumber(uint64_t x, uint64_t /*y*/, uint64_t /*z*/, uint64_t* out) {
  *out = x;
  return true;
}

// --- GatherV2(params, index, axis) of one element of a vector: how functions read the arrays of a tree ---------------

template <typename T, typename Index>
bool ElementOf(const tensorflow::Tensor& params, Index index, uint64_t* out) {
  if (params.dims() != 1 || index < 0 || index >= params.dim_size(0)) return false;
  *out = ToBits(static_cast<const T*>(params.data())[index]);
  return true;
}

template <typename T, typename Index>
bool GatherNumber(uint64_t params, uint64_t index, uint64_t axis, uint64_t* out) {
  if (axis != 0) return false;
  const auto* tensor = FromBits<const tensorflow::Tensor*>(params);
  return ElementOf<T>(*tensor, FromBits<Index>(index), out);
}

template <typename T, typename Index>
bool GatherValue(const Value* in, Value* out) {
  const tensorflow::Tensor* params = in[0].tensor_or_null();
  if (params == nullptr || !in[1].is_scalar() || !in[2].is_scalar() || in[2].bits != 0) return false;
  uint64_t result = 0;
  if (!ElementOf<T>(*params, FromBits<Index>(in[1].bits), &result)) return false;
  *out = Value::Scalar(result);
  return true;
}

// --- The table ------------------------------------------------------------------------------------

using ByType = absl::flat_hash_map<DataType, ScalarOperator>;
using ByOperator = absl::flat_hash_map<std::string, ByType>;

// Types of operands, as a template parameter pack.
template <typename... T>
struct Types {};
using SignedIntegers = Types<int8_t, int16_t, int32_t, int64_t>;
using Unsigned = Types<uint8_t, uint16_t, uint32_t, uint64_t>;
using Floats = Types<float, double>;
using Bool = Types<bool>;

template <template <typename> class Operation, typename... T>
void AddBinary(Types<T...>, ByType* to) {
  (to->emplace(DataTypeToEnum<T>::value, Both<BinaryNumbers<Operation, T>, 2>()), ...);
}

template <template <typename> class Operation, typename... T>
void AddUnary(Types<T...>, ByType* to) {
  (to->emplace(DataTypeToEnum<T>::value, Both<UnaryNumber<Operation<T>, T>, 1>()), ...);
}

template <template <typename> class Operation, typename... Groups>
ByType Binary() {
  ByType all;
  (AddBinary<Operation>(Groups(), &all), ...);
  return all;
}

template <template <typename> class Operation, typename... Groups>
ByType Unary() {
  ByType all;
  (AddUnary<Operation>(Groups(), &all), ...);
  return all;
}

template <template <typename> class Operation>
ByType BinaryIntegers() {
  return Binary<Operation, SignedIntegers, Unsigned>();
}

template <template <typename> class Operation>
ByType BinaryOfAll() {
  return Binary<Operation, SignedIntegers, Unsigned, Floats>();
}

template <template <typename> class Operation>
ByType UnaryFloats() {
  return Unary<Operation, Floats>();
}

ByOperator Arithmetic() {
  using namespace operators;  // NOLINT: the table below names nearly all of them
  return {
      {"Add", BinaryOfAll<Add>()},
      {"AddV2", BinaryOfAll<Add>()},
      {"Sub", BinaryOfAll<Sub>()},
      {"Mul", BinaryOfAll<Mul>()},
      {"Div", BinaryIntegers<TruncateDiv>()},
      {"TruncateDiv", BinaryIntegers<TruncateDiv>()},
      {"RealDiv", Binary<RealDiv, Floats>()},
      {"FloorDiv", BinaryOfAll<FloorDiv>()},
      {"FloorMod", BinaryOfAll<FloorMod>()},
      {"Mod", BinaryOfAll<TruncateMod>()},
      {"TruncateMod", BinaryOfAll<TruncateMod>()},
      {"Maximum", BinaryOfAll<Maximum>()},
      {"Minimum", BinaryOfAll<Minimum>()},
      {"SquaredDifference", BinaryOfAll<SquaredDifference>()},
      {"Pow", BinaryOfAll<Pow>()},
      {"BitwiseAnd", BinaryIntegers<BitwiseAnd>()},
      {"BitwiseOr", BinaryIntegers<BitwiseOr>()},
      {"BitwiseXor", BinaryIntegers<BitwiseXor>()},
      {"LeftShift", BinaryIntegers<LeftShift>()},
      {"RightShift", BinaryIntegers<RightShift>()},
      {"Atan2", Binary<Atan2, Floats>()},
      {"SqrtGrad", Binary<SqrtGrad, Floats>()},
      {"RsqrtGrad", Binary<RsqrtGrad, Floats>()},
      {"ReciprocalGrad", Binary<ReciprocalGrad, Floats>()},
      {"InvGrad", Binary<ReciprocalGrad, Floats>()},
      {"TanhGrad", Binary<TanhGrad, Floats>()},
      {"SigmoidGrad", Binary<SigmoidGrad, Floats>()},
      {"Invert", Unary<Invert, SignedIntegers, Unsigned>()},
      {"Neg", Unary<Neg, SignedIntegers, Floats>()},
      {"Abs", Unary<Abs, SignedIntegers, Floats>()},
      {"Sign", Unary<Sign, SignedIntegers, Floats>()},
      {"Square", Unary<Square, SignedIntegers, Unsigned, Floats>()},
      {"Round", UnaryFloats<Rint>()},  // half to even
      {"Snapshot", Unary<Same, SignedIntegers, Unsigned, Floats, Bool>()},
      {"ZerosLike", Unary<Zero, SignedIntegers, Unsigned, Floats, Bool>()},
      {"OnesLike", Unary<One, SignedIntegers, Unsigned, Floats, Bool>()},
  };
}

ByOperator Logic() {
  using namespace operators;  // NOLINT
  return {
      {"Less", BinaryOfAll<Less>()},
      {"LessEqual", BinaryOfAll<LessEqual>()},
      {"Greater", BinaryOfAll<Greater>()},
      {"GreaterEqual", BinaryOfAll<GreaterEqual>()},
      {"Equal", Binary<Equal, SignedIntegers, Unsigned, Floats, Bool>()},
      {"NotEqual", Binary<NotEqual, SignedIntegers, Unsigned, Floats, Bool>()},
      {"LogicalAnd", Binary<LogicalAnd, Bool>()},
      {"LogicalOr", Binary<LogicalOr, Bool>()},
      {"LogicalNot", Unary<LogicalNot, Bool>()},
      {"IsNan", UnaryFloats<IsNan>()},
      {"IsInf", UnaryFloats<IsInf>()},
      {"IsFinite", UnaryFloats<IsFinite>()},
  };
}

ByOperator Functions() {
  using namespace operators;  // NOLINT
  return {
      {"Floor", UnaryFloats<Floor>()},
      {"Ceil", UnaryFloats<Ceil>()},
      {"Rint", UnaryFloats<Rint>()},
      {"Reciprocal", UnaryFloats<Reciprocal>()},
      {"Inv", UnaryFloats<Reciprocal>()},
      {"Sqrt", UnaryFloats<Sqrt>()},
      {"Exp", UnaryFloats<Exp>()},
      {"Expm1", UnaryFloats<Expm1>()},
      {"Log", UnaryFloats<Log>()},
      {"Log1p", UnaryFloats<Log1p>()},
      {"Sin", UnaryFloats<Sin>()},
      {"Cos", UnaryFloats<Cos>()},
      {"Tan", UnaryFloats<Tan>()},
      {"Asin", UnaryFloats<Asin>()},
      {"Acos", UnaryFloats<Acos>()},
      {"Atan", UnaryFloats<Atan>()},
      {"Sinh", UnaryFloats<Sinh>()},
      {"Cosh", UnaryFloats<Cosh>()},
      {"Tanh", Unary<Tanh, Types<double>>()},  // the kernel computes float32 by a polynomial of its own
  };
}

const ByOperator& HomogeneousOperators() {
  static const auto* table = [] {
    auto* all = new ByOperator(Arithmetic());
    for (const ByOperator& part : {Logic(), Functions()}) all->insert(part.begin(), part.end());
    return all;
  }();
  return *table;
}

ScalarOperator Find(const ByType& row, DataType type) {
  const auto cell = row.find(type);
  return cell == row.end() ? ScalarOperator() : cell->second;
}

template <typename From, typename... To>
void AddCasts(Types<To...>, ByType* to) {
  (to->emplace(DataTypeToEnum<To>::value, Both<UnaryNumber<operators::Cast<From, To>, From>, 1>()), ...);
}

template <typename From>
ByType CastsFrom() {
  ByType all;
  AddCasts<From>(SignedIntegers(), &all);
  AddCasts<From>(Unsigned(), &all);
  AddCasts<From>(Floats(), &all);
  AddCasts<From>(Bool(), &all);
  return all;
}

template <typename... From>
void AddCastRows(Types<From...>, absl::flat_hash_map<DataType, ByType>* to) {
  (to->emplace(DataTypeToEnum<From>::value, CastsFrom<From>()), ...);
}

ScalarOperator FindCast(DataType from, DataType to) {
  static const auto* table = [] {
    auto* rows = new absl::flat_hash_map<DataType, ByType>();
    AddCastRows(SignedIntegers(), rows);
    AddCastRows(Unsigned(), rows);
    AddCastRows(Floats(), rows);
    AddCastRows(Bool(), rows);
    return rows;
  }();
  const auto row = table->find(from);
  return row == table->end() ? ScalarOperator() : Find(row->second, to);
}

template <typename Index, typename... T>
void AddGathers(Types<T...>, ByType* to) {
  (to->emplace(DataTypeToEnum<T>::value, ScalarOperator{GatherValue<T, Index>, GatherNumber<T, Index>}), ...);
}

template <typename Index>
ByType GathersBy() {
  ByType all;
  AddGathers<Index>(SignedIntegers(), &all);
  AddGathers<Index>(Unsigned(), &all);
  AddGathers<Index>(Floats(), &all);
  AddGathers<Index>(Bool(), &all);
  return all;
}

ScalarOperator FindGather(DataType params, DataType index) {
  static const auto* by_int32 = new ByType(GathersBy<int32_t>());
  static const auto* by_int64 = new ByType(GathersBy<int64_t>());
  if (index == tensorflow::DT_INT32) return Find(*by_int32, params);
  return index == tensorflow::DT_INT64 ? Find(*by_int64, params) : ScalarOperator();
}

// --- AddN(x, y, z..), from the left to the right as the kernel adds ------------------------------------

// An AddN with more terms than this runs as a kernel, and its function is not compiled.
constexpr size_t kMostTerms = 16;

template <typename T, size_t kTerms>
bool SumOfValues(const Value* in, Value* out) {
  if (!in[0].is_scalar()) return false;
  T sum = FromBits<T>(in[0].bits);
  for (size_t i = 1; i < kTerms; ++i) {
    if (!in[i].is_scalar()) return false;
    operators::Add<T>::Run(sum, FromBits<T>(in[i].bits), &sum);
  }
  *out = Value::Scalar(ToBits(sum));
  return true;
}

template <typename T, size_t... kIndices>
ScalarOperator SumOf(size_t terms, std::index_sequence<kIndices...>) {
  static constexpr ScalarFunction kSums[] = {SumOfValues<T, kIndices + 1>...};
  return {kSums[terms - 1], BinaryNumbers<operators::Add, T>};
}

template <typename... T>
ScalarOperator FindSum(DataType dtype, size_t terms, Types<T...>) {
  ScalarOperator found;
  if (terms > kMostTerms) return found;
  const auto try_type = [&](auto number) {
    using Number = decltype(number);
    if (dtype != DataTypeToEnum<Number>::value) return;
    found = SumOf<Number>(terms, std::make_index_sequence<kMostTerms>());
  };
  (try_type(T{}), ...);
  return found;
}

bool IsSelect(const std::string& op) { return op == "Select" || op == "SelectV2"; }

}  // namespace

ScalarOperator FindScalarOperator(const std::string& op, const DataTypeVector& inputs, const DataTypeVector& outputs) {
  if (inputs.empty() || outputs.size() != 1) return {};
  if (op == "Cast") return FindCast(inputs[0], outputs[0]);
  if (op == "AddN") return FindSum(inputs[0], inputs.size(), Floats());
  if (op == "GatherV2") return FindGather(inputs[0], inputs[1]);
  if (op == "Squeeze" || op == "EnsureShape") return IsUnboxed(inputs[0]) ? Both<ForwardNumber, 1>() : ScalarOperator();
  if (IsSelect(op)) return inputs.size() == 3 && IsUnboxed(inputs[1]) ? Both<SelectNumber, 3>() : ScalarOperator();
  const auto row = HomogeneousOperators().find(op);
  return row == HomogeneousOperators().end() ? ScalarOperator() : Find(row->second, inputs[0]);
}

}  // namespace tensorflow_recursion
