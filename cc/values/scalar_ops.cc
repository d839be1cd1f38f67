// SPDX-License-Identifier: Apache-2.0
#include "cc/values/scalar_ops.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/container/flat_hash_map.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;

template <typename T>
T Get(const Value& value) {
  if constexpr (std::is_same_v<T, bool>) return value.boolean;
  if constexpr (std::is_same_v<T, int32_t>) return value.int32;
  if constexpr (std::is_same_v<T, int64_t>) return value.int64;
  if constexpr (std::is_same_v<T, float>) return value.float32;
  if constexpr (std::is_same_v<T, double>) return value.float64;
}

template <typename T>
void Set(Value* out, T result) {
  // All 64 bits at once: whoever reads them next would wait for two writes to come together.
  uint64_t bits = 0;
  std::memcpy(&bits, &result, sizeof(result));
  *out = Value::Scalar(bits);
}

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Integer arithmetic wraps around, as TensorFlow's kernels do; signed overflow is undefined in C++.
template <typename T, typename Operation>
T Wrap(T x, T y, Operation operation) {
  if constexpr (kIsInteger<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(operation(static_cast<Unsigned>(x), static_cast<Unsigned>(y)));
  } else {
    return operation(x, y);
  }
}

template <typename T>
T WrapNegate(T x) {
  return Wrap<T>(T{0}, x, [](auto a, auto b) { return static_cast<decltype(a)>(a - b); });
}

// Division that traps or overflows is the kernel's to report.
template <typename T>
bool Divisible(T x, T y) {
  return y != 0 && !(y == -1 && x == std::numeric_limits<T>::min());
}

template <typename T>
struct Add {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = Wrap(x, y, [](auto a, auto b) { return static_cast<decltype(a)>(a + b); });
    return true;
  }
};

template <typename T>
struct Sub {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = Wrap(x, y, [](auto a, auto b) { return static_cast<decltype(a)>(a - b); });
    return true;
  }
};

template <typename T>
struct Mul {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = Wrap(x, y, [](auto a, auto b) { return static_cast<decltype(a)>(a * b); });
    return true;
  }
};

template <typename T>
struct TruncateDiv {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if (!Divisible(x, y)) return false;
    *out = x / y;
    return true;
  }
};

template <typename T>
struct RealDiv {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = x / y;
    return true;
  }
};

template <typename T>
struct FloorDiv {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if constexpr (kIsInteger<T>) {
      if (!Divisible(x, y)) return false;
      T quotient = x / y;
      *out = (x % y != 0 && ((x < 0) != (y < 0))) ? quotient - 1 : quotient;
    } else {
      *out = std::floor(x / y);
    }
    return true;
  }
};

template <typename T>
struct FloorMod {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if (!Divisible(x, y)) return false;
    T remainder = x % y;
    *out = (remainder != 0 && ((remainder < 0) != (y < 0))) ? remainder + y : remainder;
    return true;
  }
};

template <typename T>
struct TruncateMod {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if (!Divisible(x, y)) return false;
    *out = x % y;
    return true;
  }
};

template <typename T>
bool Ordered(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) return !std::isnan(x) && !std::isnan(y) && !(x == 0 && y == 0);
  return true;
}

template <typename T>
struct Maximum {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = x < y ? y : x;
    return Ordered(x, y);
  }
};

template <typename T>
struct Minimum {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = y < x ? y : x;
    return Ordered(x, y);
  }
};

#define TFR_COMPARISON(name, operation)    \
  template <typename T>                    \
  struct name {                            \
    using Out = bool;                      \
    static bool Run(T x, T y, bool* out) { \
      *out = x operation y;                \
      return true;                         \
    }                                      \
  };
TFR_COMPARISON(Less, <)
TFR_COMPARISON(LessEqual, <=)
TFR_COMPARISON(Greater, >)
TFR_COMPARISON(GreaterEqual, >=)
TFR_COMPARISON(Equal, ==)
TFR_COMPARISON(NotEqual, !=)
TFR_COMPARISON(LogicalAnd, &&)
TFR_COMPARISON(LogicalOr, ||)
#undef TFR_COMPARISON

template <typename T>
struct Neg {
  using Out = T;
  static bool Run(T x, T* out) {
    *out = kIsInteger<T> ? WrapNegate(x) : static_cast<T>(-x);
    return true;
  }
};

template <typename T>
struct Abs {
  using Out = T;
  static bool Run(T x, T* out) {
    if constexpr (kIsInteger<T>) {
      *out = x < 0 ? WrapNegate(x) : x;
    } else {
      *out = std::fabs(x);
    }
    return true;
  }
};

template <typename T>
struct Square {
  using Out = T;
  static bool Run(T x, T* out) { return Mul<T>::Run(x, x, out); }
};

template <typename T>
struct LogicalNot {
  using Out = bool;
  static bool Run(T x, bool* out) {
    *out = !x;
    return true;
  }
};

template <template <typename> class Operation, typename T>
bool Binary(const Value* in, Value* out) {
  if (!in[0].is_scalar() || !in[1].is_scalar()) return false;
  typename Operation<T>::Out result;
  if (!Operation<T>::Run(Get<T>(in[0]), Get<T>(in[1]), &result)) return false;
  Set(out, result);
  return true;
}

template <template <typename> class Operation, typename T>
bool Unary(const Value* in, Value* out) {
  if (!in[0].is_scalar()) return false;
  typename Operation<T>::Out result;
  if (!Operation<T>::Run(Get<T>(in[0]), &result)) return false;
  Set(out, result);
  return true;
}

// Whether converting `x` is defined in C++; the rest is left to the kernel.
template <typename From, typename To>
bool Convertible(From x) {
  if constexpr (std::is_floating_point_v<From> && kIsInteger<To>) {
    constexpr double kLimit = sizeof(To) == 4 ? 2147483648.0 : 9223372036854775808.0;
    return x > -kLimit && x < kLimit;
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
    return !(std::fabs(x) > static_cast<double>(std::numeric_limits<float>::max()));
  } else {
    return true;
  }
}

template <typename From, typename To>
bool Cast(const Value* in, Value* out) {
  if (!in[0].is_scalar()) return false;
  From x = Get<From>(in[0]);
  if (!Convertible<From, To>(x)) return false;
  Set<To>(out, static_cast<To>(x));
  return true;
}

// Select(condition, x, y) on raw payloads serves every dtype.
bool Select(const Value* in, Value* out) {
  if (!in[0].is_scalar() || !in[1].is_scalar() || !in[2].is_scalar()) return false;
  *out = in[0].boolean ? in[1] : in[2];
  return true;
}

bool Forward(const Value* in, Value* out) {
  *out = in[0];
  return in[0].is_scalar();
}

// GatherV2(params, index, axis) of one element of a vector: how functions read the arrays of a tree.
template <typename T, typename Index>
bool GatherElement(const Value* in, Value* out) {
  const tensorflow::Tensor* params = in[0].tensor_or_null();
  const bool is_element = params != nullptr && params->dims() == 1 && in[1].is_scalar() && in[2].is_scalar();
  if (!is_element || in[2].int64 != 0) return false;
  const Index index = Get<Index>(in[1]);
  if (index < 0 || index >= params->dim_size(0)) return false;
  Set<T>(out, static_cast<const T*>(params->data())[index]);
  return true;
}

template <typename T>
ScalarFunction GatherBy(DataType index) {
  return index == tensorflow::DT_INT32 ? GatherElement<T, int32_t> : GatherElement<T, int64_t>;
}

ScalarFunction FindGather(DataType params, DataType index) {
  switch (params) {
    case tensorflow::DT_BOOL:
      return GatherBy<bool>(index);
    case tensorflow::DT_INT32:
      return GatherBy<int32_t>(index);
    case tensorflow::DT_INT64:
      return GatherBy<int64_t>(index);
    case tensorflow::DT_FLOAT:
      return GatherBy<float>(index);
    case tensorflow::DT_DOUBLE:
      return GatherBy<double>(index);
    default:
      return nullptr;
  }
}

using ByType = absl::flat_hash_map<DataType, ScalarFunction>;

template <template <typename> class Operation>
ByType BinaryIntegers() {
  return {{tensorflow::DT_INT32, Binary<Operation, int32_t>}, {tensorflow::DT_INT64, Binary<Operation, int64_t>}};
}

template <template <typename> class Operation>
ByType BinaryFloats() {
  return {{tensorflow::DT_FLOAT, Binary<Operation, float>}, {tensorflow::DT_DOUBLE, Binary<Operation, double>}};
}

template <template <typename> class Operation>
ByType BinaryNumbers() {
  ByType all = BinaryIntegers<Operation>();
  for (const auto& entry : BinaryFloats<Operation>()) all.insert(entry);
  return all;
}

template <template <typename> class Operation>
ByType BinaryNumbersAndBool() {
  ByType all = BinaryNumbers<Operation>();
  all[tensorflow::DT_BOOL] = Binary<Operation, bool>;
  return all;
}

template <template <typename> class Operation>
ByType UnaryNumbers() {
  return {{tensorflow::DT_INT32, Unary<Operation, int32_t>},
          {tensorflow::DT_INT64, Unary<Operation, int64_t>},
          {tensorflow::DT_FLOAT, Unary<Operation, float>},
          {tensorflow::DT_DOUBLE, Unary<Operation, double>}};
}

using ByOperator = absl::flat_hash_map<std::string, ByType>;

const ByOperator& HomogeneousOperators() {
  static const auto* table = new ByOperator{
      {"Add", BinaryNumbers<Add>()},
      {"AddV2", BinaryNumbers<Add>()},
      {"Sub", BinaryNumbers<Sub>()},
      {"Mul", BinaryNumbers<Mul>()},
      {"Div", BinaryIntegers<TruncateDiv>()},
      {"TruncateDiv", BinaryIntegers<TruncateDiv>()},
      {"RealDiv", BinaryFloats<RealDiv>()},
      {"FloorDiv", BinaryNumbers<FloorDiv>()},
      {"FloorMod", BinaryIntegers<FloorMod>()},
      {"Mod", BinaryIntegers<TruncateMod>()},
      {"TruncateMod", BinaryIntegers<TruncateMod>()},
      {"Maximum", BinaryNumbers<Maximum>()},
      {"Minimum", BinaryNumbers<Minimum>()},
      {"Less", BinaryNumbers<Less>()},
      {"LessEqual", BinaryNumbers<LessEqual>()},
      {"Greater", BinaryNumbers<Greater>()},
      {"GreaterEqual", BinaryNumbers<GreaterEqual>()},
      {"Equal", BinaryNumbersAndBool<Equal>()},
      {"NotEqual", BinaryNumbersAndBool<NotEqual>()},
      {"LogicalAnd", {{tensorflow::DT_BOOL, Binary<LogicalAnd, bool>}}},
      {"LogicalOr", {{tensorflow::DT_BOOL, Binary<LogicalOr, bool>}}},
      {"LogicalNot", {{tensorflow::DT_BOOL, Unary<LogicalNot, bool>}}},
      {"Neg", UnaryNumbers<Neg>()},
      {"Abs", UnaryNumbers<Abs>()},
      {"Square", UnaryNumbers<Square>()},
  };
  return *table;
}

template <typename From>
ByType CastsFrom() {
  return {{tensorflow::DT_BOOL, Cast<From, bool>},
          {tensorflow::DT_INT32, Cast<From, int32_t>},
          {tensorflow::DT_INT64, Cast<From, int64_t>},
          {tensorflow::DT_FLOAT, Cast<From, float>},
          {tensorflow::DT_DOUBLE, Cast<From, double>}};
}

ScalarFunction FindCast(DataType from, DataType to) {
  static const auto* table = new absl::flat_hash_map<DataType, ByType>{{tensorflow::DT_BOOL, CastsFrom<bool>()},
                                                                       {tensorflow::DT_INT32, CastsFrom<int32_t>()},
                                                                       {tensorflow::DT_INT64, CastsFrom<int64_t>()},
                                                                       {tensorflow::DT_FLOAT, CastsFrom<float>()},
                                                                       {tensorflow::DT_DOUBLE, CastsFrom<double>()}};
  auto row = table->find(from);
  if (row == table->end()) return nullptr;
  auto cell = row->second.find(to);
  return cell == row->second.end() ? nullptr : cell->second;
}

bool IsSelect(const std::string& op) { return op == "Select" || op == "SelectV2"; }

}  // namespace

ScalarFunction FindScalarFunction(const std::string& op, const tensorflow::DataTypeVector& inputs,
                                  const tensorflow::DataTypeVector& outputs) {
  if (inputs.empty() || outputs.size() != 1) return nullptr;
  if (op == "Cast") return FindCast(inputs[0], outputs[0]);
  if (op == "GatherV2") return FindGather(inputs[0], inputs[1]);
  if (op == "Squeeze") return IsUnboxed(inputs[0]) ? Forward : nullptr;
  if (IsSelect(op)) return inputs.size() == 3 && IsUnboxed(inputs[1]) ? Select : nullptr;
  auto row = HomogeneousOperators().find(op);
  if (row == HomogeneousOperators().end()) return nullptr;
  auto cell = row->second.find(inputs[0]);
  return cell == row->second.end() ? nullptr : cell->second;
}

}  // namespace tensorflow_recursion
