// What TensorFlow's CPU kernels compute for single numbers. Each operator is written once, for the executor's unboxed
// operators and for compiled code alike.
//
// An operator is a struct template with the type of its result, Out, and a function Run(operands.., out). It returns
// false when the kernel has to compute the result: because it reports an error (division by zero), because C++ leaves
// the result undefined, or because kernels differ (the sign of a zero).
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPERATORS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPERATORS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tensorflow_recursion {

// Numbers, and pointers to tensors, travel as 64 bits. The first bytes hold the number, the others are zero.
template <typename T>
T FromBits(uint64_t bits) {
  T number;
  std::memcpy(static_cast<void*>(&number), &bits, sizeof(T));
  return number;
}

// Writes all 64 bits at once. After two narrower writes, a processor would wait before it can read the whole.
template <typename T>
uint64_t ToBits(T number) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const void*>(&number), sizeof(T));
  return bits;
}

namespace operators {

template <typename T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T>;

// Integer arithmetic wraps around, as in TensorFlow's kernels. It is done in unsigned numbers no narrower than
// unsigned, because signed overflow is undefined in C++, also where small unsigned numbers are promoted to int.
template <typename T, typename Operation>
T Wrap(T x, T y, Operation operation) {
  if constexpr (kIsInteger<T>) {
    using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(operation(static_cast<Wide>(x), static_cast<Wide>(y)));
  } else {
    return operation(x, y);
  }
}

template <typename T>
T WrapNegate(T x) {
  return Wrap<T>(T{0}, x, [](auto a, auto b) { return a - b; });
}

// Whether x / y neither traps nor overflows; the kernel reports the rest.
template <typename T>
bool Divisible(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == T{-1} && x == std::numeric_limits<T>::min()) return false;
  }
  return y != 0;
}

// Whether rounding an integer quotient or modulus down differs from cutting it off.
template <typename T>
bool RoundsDown(T x, T y) {
  if constexpr (std::is_signed_v<T>) return x % y != 0 && ((x < 0) != (y < 0));
  return false;
}

// TensorFlow clamps the count of a shift to between 0 and the number of bits less one.
template <typename T>
T ShiftCount(T count) {
  constexpr T kMost = sizeof(T) * 8 - 1;
  if constexpr (std::is_signed_v<T>) {
    if (count < 0) return 0;
  }
  return count > kMost ? kMost : count;
}

// Operators whose result is always `expression`.
#define TFR_UNARY(name, result, expression) \
  template <typename T>                     \
  struct name {                             \
    using Out = result;                     \
    static bool Run(T x, Out* out) {        \
      *out = (expression);                  \
      return true;                          \
    }                                       \
  };
#define TFR_BINARY(name, result, expression) \
  template <typename T>                      \
  struct name {                              \
    using Out = result;                      \
    static bool Run(T x, T y, Out* out) {    \
      *out = (expression);                   \
      return true;                           \
    }                                        \
  };

TFR_BINARY(Add, T, Wrap(x, y, [](auto a, auto b) { return a + b; }))
TFR_BINARY(Sub, T, Wrap(x, y, [](auto a, auto b) { return a - b; }))
TFR_BINARY(Mul, T, Wrap(x, y, [](auto a, auto b) { return a * b; }))
TFR_BINARY(RealDiv, T, x / y)
TFR_BINARY(BitwiseAnd, T, static_cast<T>(x& y))
TFR_BINARY(BitwiseOr, T, static_cast<T>(x | y))
TFR_BINARY(BitwiseXor, T, static_cast<T>(x ^ y))
TFR_BINARY(LeftShift, T, static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << ShiftCount(y)))
TFR_BINARY(RightShift, T, static_cast<T>(x >> ShiftCount(y)))
TFR_BINARY(Less, bool, x < y)
TFR_BINARY(LessEqual, bool, x <= y)
TFR_BINARY(Greater, bool, x > y)
TFR_BINARY(GreaterEqual, bool, x >= y)
TFR_BINARY(Equal, bool, x == y)
TFR_BINARY(NotEqual, bool, x != y)
TFR_BINARY(LogicalAnd, bool, x&& y)
TFR_BINARY(LogicalOr, bool, x || y)
TFR_BINARY(Atan2, T, std::atan2(x, y))

TFR_UNARY(LogicalNot, bool, !x)
TFR_UNARY(Invert, T, static_cast<T>(~x))
TFR_UNARY(Floor, T, std::floor(x))
TFR_UNARY(Ceil, T, std::ceil(x))
TFR_UNARY(Rint, T, std::nearbyint(x))
TFR_UNARY(Reciprocal, T, T{1} / x)
TFR_UNARY(Exp, T, std::exp(x))
TFR_UNARY(Expm1, T, std::expm1(x))
TFR_UNARY(Log, T, std::log(x))
TFR_UNARY(Log1p, T, std::log1p(x))
TFR_UNARY(Sqrt, T, std::sqrt(x))
TFR_UNARY(Sin, T, std::sin(x))
TFR_UNARY(Cos, T, std::cos(x))
TFR_UNARY(Tan, T, std::tan(x))
TFR_UNARY(Asin, T, std::asin(x))
TFR_UNARY(Acos, T, std::acos(x))
TFR_UNARY(Atan, T, std::atan(x))
TFR_UNARY(Sinh, T, std::sinh(x))
TFR_UNARY(Cosh, T, std::cosh(x))
TFR_UNARY(Tanh, T, std::tanh(x))
TFR_UNARY(IsNan, bool, std::isnan(x))
TFR_UNARY(IsInf, bool, std::isinf(x))
TFR_UNARY(IsFinite, bool, std::isfinite(x))
TFR_UNARY(Same, T, x)
TFR_UNARY(Zero, T, T{0})
TFR_UNARY(One, T, T{1})
#undef TFR_UNARY
#undef TFR_BINARY

// Gradients of functions, from y = f(x) and dy. Where dy is 0, or the result is not a number, the kernel computes it:
// kernels have rules of their own for 0 times infinity, and for the sign of a NaN.
#define TFR_GRADIENT(name, expression)     \
  template <typename T>                    \
  struct name {                            \
    using Out = T;                         \
    static bool Run(T y, T dy, T* out) {   \
      *out = (expression);                 \
      return dy != 0 && !std::isnan(*out); \
    }                                      \
  };
TFR_GRADIENT(SqrtGrad, T{0.5} * dy / y)
TFR_GRADIENT(RsqrtGrad, T{-0.5} * (dy * y) * (y * y))
TFR_GRADIENT(ReciprocalGrad, -dy*(y* y))
TFR_GRADIENT(TanhGrad, dy*(T{1} - y * y))
TFR_GRADIENT(SigmoidGrad, dy * y * (T{1} - y))
#undef TFR_GRADIENT

// Divides integers, and cuts off what is behind the point of the quotient.
template <typename T>
struct TruncateDiv {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if (!Divisible(x, y)) return false;
    *out = static_cast<T>(x / y);
    return true;
  }
};

// Divides, and rounds the quotient down.
template <typename T>
struct FloorDiv {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if constexpr (kIsInteger<T>) {
      if (!Divisible(x, y)) return false;
      *out = static_cast<T>(x / y - (RoundsDown(x, y) ? 1 : 0));
    } else {
      *out = std::floor(x / y);
    }
    return true;
  }
};

// The remainder with the sign of x.
template <typename T>
struct TruncateMod {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if constexpr (kIsInteger<T>) {
      if (!Divisible(x, y)) return false;
      *out = static_cast<T>(x % y);
    } else {
      *out = std::fmod(x, y);
    }
    return true;
  }
};

// The remainder with the sign of y.
template <typename T>
struct FloorMod {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if constexpr (kIsInteger<T>) {
      if (!Divisible(x, y)) return false;
      *out = static_cast<T>(x % y + (RoundsDown(x, y) ? y : T{0}));
    } else {
      const T remainder = std::fmod(x, y);
      *out = remainder != 0 && ((remainder < 0) != (y < 0)) ? remainder + y : remainder;
    }
    return true;
  }
};

// Whether it is clear which of x and y is greater. The kernel decides between two zeros, and between a number and NaN.
template <typename T>
bool Ordered(T x, T y) {
  if constexpr (kIsFloat<T>) return !std::isnan(x) && !std::isnan(y) && !(x == 0 && y == 0);
  return true;
}

// Whether a number is subnormal: so close to zero that it has fewer digits. TensorFlow's threads treat such numbers as
// zeros in arithmetic and comparisons, so that only the bits can tell.
template <typename T>
bool IsSubnormal(T x) {
  if constexpr (!kIsFloat<T>) {
    return false;
  } else {
    using Bits = std::conditional_t<sizeof(T) == sizeof(uint64_t), uint64_t, uint32_t>;
    constexpr int kDigits = std::numeric_limits<T>::digits - 1;
    Bits bits;
    std::memcpy(&bits, &x, sizeof(bits));
    const Bits magnitude = bits & ~(Bits{1} << (8 * sizeof(Bits) - 1));
    return magnitude != 0 && (magnitude >> kDigits) == 0;
  }
}

// The greater number; the kernel decides where that is not clear, and where it would return a subnormal number.
template <typename T>
struct Maximum {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = x < y ? y : x;
    return Ordered(x, y) && !IsSubnormal(*out);
  }
};

// The lesser number, with the exceptions of Maximum.
template <typename T>
struct Minimum {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    *out = y < x ? y : x;
    return Ordered(x, y) && !IsSubnormal(*out);
  }
};

// (x - y) * (x - y), which wraps around for integers.
template <typename T>
struct SquaredDifference {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    T difference;
    Sub<T>::Run(x, y, &difference);
    return Mul<T>::Run(difference, difference, out);
  }
};

// Raises an integer to a power by squaring, and wraps around. The kernel reports negative exponents of integers.
template <typename T>
struct Pow {
  using Out = T;
  static bool Run(T x, T y, T* out) {
    if constexpr (kIsFloat<T>) {
      *out = std::pow(x, y);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (y < 0) return false;
      }
      T power = 1;
      for (T base = x, rest = y; rest != 0; rest = static_cast<T>(rest >> 1), Mul<T>::Run(base, base, &base)) {
        if ((rest & 1) != 0) Mul<T>::Run(power, base, &power);
      }
      *out = power;
    }
    return true;
  }
};

// -x, which wraps around for integers.
template <typename T>
struct Neg {
  using Out = T;
  static bool Run(T x, T* out) {
    *out = kIsInteger<T> ? WrapNegate(x) : static_cast<T>(-x);
    return true;
  }
};

// The absolute value; that of the lowest integer wraps around.
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

// x * x, which wraps around for integers.
template <typename T>
struct Square {
  using Out = T;
  static bool Run(T x, T* out) { return Mul<T>::Run(x, x, out); }
};

// The kernel computes the sign of a zero or NaN.
template <typename T>
struct Sign {
  using Out = T;
  static bool Run(T x, T* out) {
    *out = static_cast<T>((x > 0) - (x < 0));
    return Ordered(x, T{0});
  }
};

// Whether C++ defines what `x` is converted to; the kernel converts the rest.
template <typename From, typename To>
bool Convertible(From x) {
  if constexpr (kIsFloat<From> && kIsInteger<To>) {
    // One more than the largest number is a power of two, which From holds exactly, unlike perhaps the largest itself.
    const From limit = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    return x < limit && (std::is_signed_v<To> ? x > -limit : x > -1);
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
    return !(std::fabs(x) > static_cast<double>(std::numeric_limits<float>::max()));
  } else {
    return true;
  }
}

// Converts a number from one type to another, where Convertible() says that C++ can.
template <typename From, typename To>
struct Cast {
  using Out = To;
  static bool Run(From x, To* out) {
    if (!Convertible<From, To>(x)) return false;
    *out = static_cast<To>(x);
    return true;
  }
};

}  // namespace operators
}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPERATORS_H_
