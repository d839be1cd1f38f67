// The loops of cc/native/loops.h for one instruction set. loops.cc includes this file once for each instruction set, so
// it has no include guard.
// SPDX-License-Identifier: Apache-2.0

// loops.cc defines three macros before: TFR_TARGET_NAMESPACE is the namespace of the code, TFR_TARGET the attribute of
// functions that use the instructions, TFR_VECTOR_BYTES the size of a vector.
#define TFR_INLINE TFR_TARGET inline __attribute__((always_inline))
// Unrolls the loop behind it, so that arrays which it indexes can be in registers.
#if defined(__clang__)
#define TFR_UNROLLED _Pragma("unroll")
#else
#define TFR_UNROLLED _Pragma("GCC unroll 16")
#endif
// Without this GCC loads a vector that is used two or three times anew for each use, which takes longer than the use.
#if defined(__x86_64__)
#define TFR_KEEP_IN_REGISTER(vector) asm("" : "+v"(vector))
#else
#define TFR_KEEP_IN_REGISTER(vector)
#endif

namespace tensorflow_recursion {
namespace TFR_TARGET_NAMESPACE {
namespace {

// --- Vectors --------------------------------------------------------------------------------------

// The vector of numbers of type T, and the one of integers of the same size for their bits.
template <typename T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(TFR_VECTOR_BYTES)));
  typedef int32_t Bits __attribute__((vector_size(TFR_VECTOR_BYTES)));
};
template <>
struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(TFR_VECTOR_BYTES)));
  typedef int64_t Bits __attribute__((vector_size(TFR_VECTOR_BYTES)));
};
template <typename T>
using Vec = typename VectorOf<T>::Type;
template <typename T>
using Bits = typename VectorOf<T>::Bits;

template <typename T>
constexpr int64_t kLanes = TFR_VECTOR_BYTES / sizeof(T);

template <typename T>
TFR_INLINE Vec<T> Load(const T* from) {
  Vec<T> vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <typename T>
TFR_INLINE void Store(const Vec<T>& vector, T* to) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

template <typename T>
TFR_INLINE Vec<T> All(T number) {
  return number - Vec<T>{};  // not by adding zeros: they would make -0 positive
}

// The vector 0, 1, 2 ...
template <typename T>
TFR_INLINE Bits<T> LaneNumbers() {
  Bits<T> numbers{};
  for (int i = 0; i < kLanes<T>; ++i) numbers[i] = i;
  return numbers;
}

// A vector whose first `count` lanes come from memory; the others are zero. `count` is at most the number of lanes, and
// what lies behind that many numbers is not read: it may be no memory of ours.
template <typename T>
TFR_INLINE Vec<T> LoadSome(const T* from, int64_t count) {
#if TFR_VECTOR_BYTES == 64
  const uint32_t mask = (uint32_t{1} << count) - 1;
  if constexpr (sizeof(T) == sizeof(float)) return (Vec<T>)_mm512_maskz_loadu_ps(mask, from);
  if constexpr (sizeof(T) == sizeof(double)) return (Vec<T>)_mm512_maskz_loadu_pd(mask, from);
#elif TFR_VECTOR_BYTES == 32
  const __m256i mask = (__m256i)(LaneNumbers<T>() < static_cast<int>(count));
  if constexpr (sizeof(T) == sizeof(float)) return (Vec<T>)_mm256_maskload_ps(from, mask);
  if constexpr (sizeof(T) == sizeof(double)) return (Vec<T>)_mm256_maskload_pd(from, mask);
#else
  T numbers[kLanes<T>] = {};
  for (int64_t i = 0; i < count; ++i) numbers[i] = from[i];
  return Load(numbers);
#endif
}

// Stores the first `count` lanes.
template <typename T>
TFR_INLINE void StoreSome(const Vec<T>& vector, T* to, int64_t count) {
#if TFR_VECTOR_BYTES == 64
  const uint32_t mask = (uint32_t{1} << count) - 1;
  if constexpr (sizeof(T) == sizeof(float)) _mm512_mask_storeu_ps(to, mask, (__m512)vector);
  if constexpr (sizeof(T) == sizeof(double)) _mm512_mask_storeu_pd(to, mask, (__m512d)vector);
#elif TFR_VECTOR_BYTES == 32
  const __m256i mask = (__m256i)(LaneNumbers<T>() < static_cast<int>(count));
  if constexpr (sizeof(T) == sizeof(float)) _mm256_maskstore_ps(to, mask, (__m256)vector);
  if constexpr (sizeof(T) == sizeof(double)) _mm256_maskstore_pd(to, mask, (__m256d)vector);
#else
  T numbers[kLanes<T>];
  Store(vector, numbers);
  for (int64_t i = 0; i < count; ++i) to[i] = numbers[i];
#endif
}

// The sums of neighbours: those of `a` in the first half of the lanes, those of `b` in the second.
template <typename T>
TFR_INLINE Vec<T> AddNeighbours(const Vec<T>& a, const Vec<T>& b) {
#if defined(__clang__)
  T numbers[2 * kLanes<T>], sums[kLanes<T>];
  Store(a, numbers);
  Store(b, numbers + kLanes<T>);
  for (int i = 0; i < kLanes<T>; ++i) sums[i] = numbers[2 * i] + numbers[2 * i + 1];
  return Load(sums);
#else
  const Bits<T> even = LaneNumbers<T>() * 2;
  return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, even + 1);
#endif
}

// Lane i of the result is the sum of the lanes of vectors[i]. Overwrites the vectors.
template <typename T>
TFR_INLINE Vec<T> SumsOf(Vec<T>* vectors) {
  for (int64_t left = kLanes<T>; left > 1; left /= 2) {
    for (int64_t i = 0; i < left / 2; ++i) vectors[i] = AddNeighbours<T>(vectors[2 * i], vectors[2 * i + 1]);
  }
  return vectors[0];
}

// --- Functions ------------------------------------------------------------------------------------

template <typename T, typename Function>
TFR_INLINE Vec<T> LaneByLane(const Vec<T>& x, Function function) {
  T numbers[kLanes<T>];
  Store(x, numbers);
  for (int i = 0; i < kLanes<T>; ++i) numbers[i] = function(numbers[i]);
  return Load(numbers);
}

// Computes e^x = 2^n * e^r, where |r| is at most half of log 2 and a polynomial gives e^r. It multiplies by 2^n in two
// steps, because 2^n may be out of range where the product is not. (The constants are those of the Cephes library.)
TFR_INLINE Vec<float> Exp(const Vec<float>& number) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves an integer in the lowest bits
  Vec<float> x = number > 89.0F ? All(89.0F) : number;
  x = x < -105.0F ? All(-105.0F) : x;
  const Vec<float> shifted = x * 1.44269504F + kRound;
  const Vec<float> n = shifted - kRound;
  const Vec<float> r = x - n * 0.693359375F + n * 2.12194440e-4F;
  Vec<float> p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const Bits<float> exponent = (Bits<float>)shifted - (Bits<float>)All(kRound);
  const Bits<float> half = exponent >> 1;
  return p * (Vec<float>)((half + 127) << 23) * (Vec<float>)((exponent - half + 127) << 23);
}
TFR_INLINE Vec<double> Exp(const Vec<double>& x) {
  return LaneByLane<double>(x, [](double number) TFR_TARGET { return ::exp(number); });
}

TFR_INLINE Vec<float> TanhOf(const Vec<float>& x) {
  const Bits<float> sign = (Bits<float>)x & INT32_MIN;
  const Vec<float> size = (Vec<float>)((Bits<float>)x & INT32_MAX);
  const Vec<float> far = 1.0F - 2.0F / (Exp(size * 2.0F) + 1.0F);
  const Vec<float> square = x * x;
  Vec<float> p = square * -5.70498872745e-3F + 2.06390887954e-2F;
  p = p * square - 5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square - 3.33332819422e-1F;
  const Vec<float> near = p * square * x + x;
  return size < 0.625F ? near : (Vec<float>)((Bits<float>)far | sign);
}
TFR_INLINE Vec<double> TanhOf(const Vec<double>& x) {
  return LaneByLane<double>(x, [](double number) TFR_TARGET { return ::tanh(number); });
}

template <typename T>
TFR_INLINE Vec<T> SqrtOf(const Vec<T>& x) {
#if TFR_VECTOR_BYTES == 64
  if constexpr (sizeof(T) == sizeof(float)) return (Vec<T>)_mm512_maskz_sqrt_ps(0xFFFF, (__m512)x);
  if constexpr (sizeof(T) == sizeof(double)) return (Vec<T>)_mm512_maskz_sqrt_pd(0xFF, (__m512d)x);
#elif TFR_VECTOR_BYTES == 32
  if constexpr (sizeof(T) == sizeof(float)) return (Vec<T>)_mm256_sqrt_ps((__m256)x);
  if constexpr (sizeof(T) == sizeof(double)) return (Vec<T>)_mm256_sqrt_pd((__m256d)x);
#elif defined(__x86_64__)
  if constexpr (sizeof(T) == sizeof(float)) return (Vec<T>)_mm_sqrt_ps((__m128)x);
  if constexpr (sizeof(T) == sizeof(double)) return (Vec<T>)_mm_sqrt_pd((__m128d)x);
#else
  // Exact in float, too: the square root in double has enough digits to be rounded once more.
  return LaneByLane<T>(x, [](T number) TFR_TARGET { return static_cast<T>(__builtin_sqrt(number)); });
#endif
}

// Computes log(m * 2^e) = log m + e * log 2, where m lies between the square roots of 1/2 and 2 and a polynomial gives
// its logarithm. (The constants are those of the Cephes library.)
TFR_INLINE Vec<float> LogOf(const Vec<float>& x) {
  constexpr float kSmallestNormal = 1.17549435e-38F;
  const Bits<float> is_tiny = x < kSmallestNormal;
  const Bits<float> bits = (Bits<float>)(is_tiny ? x * 8388608.0F : x);  // 2^23
  Vec<float> m = (Vec<float>)((bits & 0x7FFFFF) | 0x3F000000);           // at least 1/2 and less than 1
  const Bits<float> is_low = m < 0.707106781F;
  m = (is_low ? m + m : m) - 1.0F;
  const Bits<float> exponent = (bits >> 23) - 126 + is_low - (is_tiny & 23);  // a comparison that holds is -1
  const Vec<float> e = __builtin_convertvector(exponent, Vec<float>);
  Vec<float> p = m * 7.0376836292e-2F - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  const Vec<float> square = m * m;
  const Vec<float> tail = p * m * square - e * 2.12194440e-4F - square * 0.5F;
  Vec<float> result = m + tail + e * 0.693359375F;
  result = x > __FLT_MAX__ ? x : result;
  result = x == 0.0F ? All(-__builtin_inff()) : result;
  return x >= 0.0F ? result : All(__builtin_nanf(""));
}
TFR_INLINE Vec<double> LogOf(const Vec<double>& x) {
  const Vec<double> logs = LaneByLane<double>(x, [](double number) TFR_TARGET { return ::log(number); });
  // On TensorFlow's threads a subnormal number is 0, to comparisons but not to the C library.
  return x == 0.0 ? All(-__builtin_inf()) : logs;
}

template <Unary kFunction, typename T>
TFR_INLINE Vec<T> Apply(const Vec<T>& x) {
  if constexpr (kFunction == Unary::kNeg) return -x;
  if constexpr (kFunction == Unary::kAbs) {
    return (Vec<T>)((Bits<T>)x & ~(Bits<T>)All<T>(T(-0.0)));
  }
  if constexpr (kFunction == Unary::kSquare) return x * x;
  if constexpr (kFunction == Unary::kSqrt) return SqrtOf<T>(x);
  if constexpr (kFunction == Unary::kReciprocal) return T(1) / x;
  if constexpr (kFunction == Unary::kExp) return Exp(x);
  if constexpr (kFunction == Unary::kLog) return LogOf(x);
  if constexpr (kFunction == Unary::kRelu) return x < T(0) ? All(T(0)) : x;  // NaN stays
  if constexpr (kFunction == Unary::kTanh) return TanhOf(x);
  if constexpr (kFunction == Unary::kSigmoid) return T(1) / (T(1) + Exp(-x));
}

template <Binary kFunction, typename T>
TFR_INLINE Vec<T> Apply(const Vec<T>& x, const Vec<T>& y) {
  if constexpr (kFunction == Binary::kAdd) return x + y;
  if constexpr (kFunction == Binary::kSub) return x - y;
  if constexpr (kFunction == Binary::kMul) return x * y;
  if constexpr (kFunction == Binary::kDiv) return x / y;
  // The result is NaN if either operand is.
  if constexpr (kFunction == Binary::kMaximum) return ((x < y) | (y != y)) ? y : x;
  if constexpr (kFunction == Binary::kMinimum) return ((y < x) | (y != y)) ? y : x;
  if constexpr (kFunction == Binary::kSquaredDifference) return (x - y) * (x - y);
  if constexpr (kFunction == Binary::kReluGrad) return x * (y > T(0) ? All(T(1)) : All(T(0)));  // NaN of an infinity
  if constexpr (kFunction == Binary::kTanhGrad) return y * (T(1) - x * x);
  if constexpr (kFunction == Binary::kSigmoidGrad) return y * x * (T(1) - x);
  // Where dy is 0 so is the result, also where the square root is 0.
  if constexpr (kFunction == Binary::kSqrtGrad) return y == T(0) ? All(T(0)) : T(0.5) * y / x;
}

// --- Loops ----------------------------------------------------------------------------------------

// The numbers behind the last whole vector are computed by the same instructions, in a vector that they fill partly.
template <Unary kFunction, typename T>
TFR_TARGET void UnaryLoop(const T* x, T* out, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) Store(Apply<kFunction, T>(Load(x + i)), out + i);
  if (i < count) StoreSome(Apply<kFunction, T>(LoadSome(x + i, count - i)), out + i, count - i);
}

template <Meeting kMeeting, Meeting kOne, typename T>
TFR_INLINE Vec<T> Operand(const T* from, int64_t i, int64_t count) {
  if constexpr (kMeeting == kOne) return All(from[0]);
  return count >= kLanes<T> ? Load(from + i) : LoadSome(from + i, count);
}

template <Binary kFunction, Meeting kMeeting, typename T>
TFR_TARGET void BinaryLoop(const T* x, const T* y, T* out, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) {
    const Vec<T> left = Operand<kMeeting, Meeting::kOneLeft>(x, i, kLanes<T>);
    const Vec<T> right = Operand<kMeeting, Meeting::kOneRight>(y, i, kLanes<T>);
    Store(Apply<kFunction, T>(left, right), out + i);
  }
  if (i == count) return;
  const Vec<T> left = Operand<kMeeting, Meeting::kOneLeft>(x, i, count - i);
  const Vec<T> right = Operand<kMeeting, Meeting::kOneRight>(y, i, count - i);
  StoreSome(Apply<kFunction, T>(left, right), out + i, count - i);
}

// --- Products -------------------------------------------------------------------------------------

#include "cc/native/products_for_target.h"

// --- Reductions -----------------------------------------------------------------------------------

// Fewer numbers than this are added one by one, because to bring them into a vector takes longer.
constexpr int64_t kFewNumbers = 8;

template <typename T>
TFR_TARGET T Sum(const T* x, int64_t count) {
  if (count < kFewNumbers) {
    T sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += x[i];
    return sum;
  }
  Vec<T> sums{};
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) sums += Load(x + i);
  if (i < count) sums += LoadSome(x + i, count - i);
  T numbers[kLanes<T>];
  Store(sums, numbers);
  for (int64_t half = kLanes<T> / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; ++j) numbers[j] += numbers[j + half];
  }
  return numbers[0];
}

template <typename T>
TFR_TARGET T MaximumOfFew(const T* x, int64_t count) {
  T largest = x[0];
  for (int64_t i = 1; i < count; ++i) largest = x[i] <= largest || largest != largest ? largest : x[i];
  return largest;
}

// The last vector ends with the last number, so it may overlap with the one before.
template <typename T>
TFR_TARGET T Maximum(const T* x, int64_t count) {
  if (count < 2 * kLanes<T>) return MaximumOfFew(x, count);
  Vec<T> largest = Load(x);
  for (int64_t i = kLanes<T>; i < count; i += kLanes<T>) {
    const Vec<T> next = Load(x + (i + kLanes<T> <= count ? i : count - kLanes<T>));
    largest = ((next <= largest) | (largest != largest)) ? largest : next;
  }
  T numbers[kLanes<T>];
  Store(largest, numbers);
  return MaximumOfFew(numbers, kLanes<T>);
}

// --- The table ------------------------------------------------------------------------------------

template <Unary kFunction, typename T>
void SetUnary(Loops<T>* loops) {
  loops->unary[static_cast<int>(kFunction)] = UnaryLoop<kFunction, T>;
  constexpr int kNext = static_cast<int>(kFunction) + 1;
  if constexpr (kNext < static_cast<int>(Unary::kCount)) SetUnary<static_cast<Unary>(kNext)>(loops);
}

template <Binary kFunction, typename T>
void SetBinary(Loops<T>* loops) {
  auto& row = loops->binary[static_cast<int>(kFunction)];
  row[static_cast<int>(Meeting::kBoth)] = BinaryLoop<kFunction, Meeting::kBoth, T>;
  row[static_cast<int>(Meeting::kOneLeft)] = BinaryLoop<kFunction, Meeting::kOneLeft, T>;
  row[static_cast<int>(Meeting::kOneRight)] = BinaryLoop<kFunction, Meeting::kOneRight, T>;
  constexpr int kNext = static_cast<int>(kFunction) + 1;
  if constexpr (kNext < static_cast<int>(Binary::kCount)) SetBinary<static_cast<Binary>(kNext)>(loops);
}

template <typename T>
Loops<T> MakeLoops() {
  Loops<T> loops;
  SetUnary<Unary::kNeg>(&loops);
  SetBinary<Binary::kAdd>(&loops);
  loops.product = Product<T>;
  loops.product_transposed = ProductTransposed<T>;
  loops.sum = Sum<T>;
  loops.maximum = Maximum<T>;
  return loops;
}

}  // namespace
}  // namespace TFR_TARGET_NAMESPACE
}  // namespace tensorflow_recursion

#undef TFR_INLINE
#undef TFR_UNROLLED
#undef TFR_KEEP_IN_REGISTER
#undef TFR_SHIFTS_LINES
