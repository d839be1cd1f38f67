// The loops for every instruction set that the processor has, against plain ones.
// SPDX-License-Identifier: Apache-2.0
#include "cc/native/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/denormal.h"

namespace tensorflow_recursion {
namespace {

template <typename T>
std::vector<T> Random(int64_t count, int seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<T> normal;
  std::vector<T> numbers(count);
  for (T& number : numbers) number = normal(generator);
  return numbers;
}

// Where the rows of a matrix begin.
template <typename T>
std::vector<T*> Rows(std::vector<T>* matrix, int64_t rows) {
  std::vector<T*> begins;
  for (int64_t r = 0; r < rows; ++r) begins.push_back(matrix->data() + r * (matrix->size() / rows));
  return begins;
}
template <typename T>
std::vector<const T*> ConstRows(const std::vector<T>& matrix, int64_t rows) {
  std::vector<const T*> begins;
  for (int64_t r = 0; r < rows; ++r) begins.push_back(matrix.data() + r * (matrix.size() / rows));
  return begins;
}

template <typename T>
class LoopsTest : public ::testing::Test {
 protected:
  static constexpr double kTolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;

  static double Of(Unary function, double x) {
    switch (function) {
      case Unary::kNeg:
        return -x;
      case Unary::kAbs:
        return std::abs(x);
      case Unary::kSquare:
        return x * x;
      case Unary::kSqrt:
        return std::sqrt(x);
      case Unary::kReciprocal:
        return 1 / x;
      case Unary::kExp:
        return std::exp(x);
      case Unary::kLog:
        return std::log(x);
      case Unary::kRelu:
        return x < 0 ? 0 : x;
      case Unary::kTanh:
        return std::tanh(x);
      default:
        return 1 / (1 + std::exp(-x));
    }
  }
};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LoopsTest, Floats);

TYPED_TEST(LoopsTest, FunctionsAreExactToAFewBits) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    for (int f = 0; f < static_cast<int>(Unary::kCount); ++f) {
      std::vector<T> x, y(4001);
      for (int i = 0; i < 4001; ++i) x.push_back(static_cast<T>(i - 2000) / 100);
      loops->unary[f](x.data(), y.data(), 4001);
      for (int i = 0; i < 4001; ++i) {
        const double want = this->Of(static_cast<Unary>(f), static_cast<double>(x[i]));
        if (std::isnan(want) || std::isinf(want)) continue;
        ASSERT_NEAR(y[i], want, this->kTolerance * std::abs(want)) << name << " function " << f << " of " << x[i];
      }
    }
  }
}

TYPED_TEST(LoopsTest, LogarithmsOfTheWholeRange) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  const T infinity = Limits::infinity();
  std::vector<T> x = {Limits::denorm_min(),
                      Limits::min() / 3,
                      Limits::min(),
                      std::nextafter(T(1), T(0)),
                      T(1),
                      T(0.70710675),
                      T(0.70710683),
                      std::nextafter(T(1), T(2)),
                      T(1.4142135),
                      T(1.4142137),
                      Limits::max(),
                      Limits::max() / T(3)};
  for (int e = Limits::min_exponent - Limits::digits + 1; e < Limits::max_exponent; ++e)
    x.push_back(std::ldexp(T(1.3), e));
  const auto count = static_cast<int64_t>(x.size());
  for (const auto& [name, loops] : AllLoops<T>()) {
    std::vector<T> y(count);
    loops->of(Unary::kLog)(x.data(), y.data(), count);
    for (int64_t i = 0; i < count; ++i) {
      const double want = std::log(static_cast<double>(x[i]));
      ASSERT_NEAR(y[i], want, this->kTolerance * std::abs(want)) << name << " of " << x[i];
    }
    const std::vector<T> edges = {T(0), -T(0), infinity, -infinity, T(-1), -Limits::denorm_min(), Limits::quiet_NaN()};
    std::vector<T> logs(edges.size());
    loops->of(Unary::kLog)(edges.data(), logs.data(), static_cast<int64_t>(edges.size()));
    EXPECT_EQ(std::vector<T>(logs.begin(), logs.begin() + 3), std::vector<T>({-infinity, -infinity, infinity})) << name;
    for (size_t i = 3; i < edges.size(); ++i) EXPECT_TRUE(std::isnan(logs[i])) << name << " of " << edges[i];
  }
}

// TensorFlow's threads take subnormal numbers for 0, of which stock kernels say that the logarithm is -inf.
TYPED_TEST(LoopsTest, LogarithmsOfSubnormalNumbersOnThreadsOfTensorFlow) {
  using T = TypeParam;
  const tensorflow::port::ScopedFlushDenormal flush;
  const T tiny[] = {std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min() / 3};
  for (const auto& [name, loops] : AllLoops<T>()) {
    T logs[2] = {};
    loops->of(Unary::kLog)(tiny, logs, 2);
    for (const T log : logs) EXPECT_EQ(log, -std::numeric_limits<T>::infinity()) << name;
  }
}

TYPED_TEST(LoopsTest, SquareRootsAreExact) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = Random<T>(70, 3);  // half of them negative
  x.insert(x.end(),
           {T(0), Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN()});
  const auto count = static_cast<int64_t>(x.size());
  for (const auto& [name, loops] : AllLoops<T>()) {
    std::vector<T> y(count);
    loops->of(Unary::kSqrt)(x.data(), y.data(), count);
    for (int64_t i = 0; i < count; ++i) {
      const T want = std::sqrt(x[i]);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(y[i]) : y[i] == want) << name << " of " << x[i];
    }
    const T zero = -T(0);
    loops->of(Unary::kSqrt)(&zero, y.data(), 1);
    EXPECT_TRUE(y[0] == 0 && std::signbit(y[0])) << name;
  }
}

// What an element becomes does not depend on where it stands: at the end of a row, which fills no vector, or before.
TYPED_TEST(LoopsTest, EveryPlaceGivesTheSame) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    for (int f = 0; f < static_cast<int>(Unary::kCount); ++f) {
      for (const int64_t count : {1, 3, 15, 16, 17, 50}) {
        const std::vector<T> x(count, static_cast<T>(0.7));
        std::vector<T> y(count);
        loops->unary[f](x.data(), y.data(), count);
        for (const T number : y) ASSERT_EQ(number, y[0]) << name << " function " << f;
      }
    }
  }
}

TYPED_TEST(LoopsTest, WritesNothingBehindTheEnd) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    for (const int64_t count : {0, 1, 7, 16, 33}) {
      std::vector<T> x(count + 1, T(2)), y(count + 1, T(5));
      loops->of(Binary::kMul, Meeting::kBoth)(x.data(), x.data(), y.data(), count);
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(y[i], 4) << name;
      EXPECT_EQ(y[count], 5) << name;
    }
  }
}

TYPED_TEST(LoopsTest, OneNumberMeetsAll) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    const std::vector<T> x = Random<T>(37, 1);
    std::vector<T> y(37);
    const T one = -T(0);  // what a sum with zeros would lose
    loops->of(Binary::kAdd, Meeting::kOneLeft)(&one, &one, y.data(), 1);
    EXPECT_TRUE(std::signbit(y[0])) << name;
    const T three = 3;
    loops->of(Binary::kSub, Meeting::kOneLeft)(&three, x.data(), y.data(), 37);
    for (int i = 0; i < 37; ++i) EXPECT_EQ(y[i], 3 - x[i]) << name;
    loops->of(Binary::kSub, Meeting::kOneRight)(x.data(), &three, y.data(), 37);
    for (int i = 0; i < 37; ++i) EXPECT_EQ(y[i], x[i] - 3) << name;
  }
}

TYPED_TEST(LoopsTest, Products) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    for (const auto& [rows, depth, columns] : std::vector<std::tuple<int, int, int>>{
             {1, 100, 50}, {3, 50, 2}, {2, 33, 13}, {4, 17, 33}, {5, 3, 130}, {9, 64, 64}, {1, 1, 1}, {2, 120, 85}}) {
      const std::vector<T> x = Random<T>(rows * depth, 1), w = Random<T>(depth * columns, 2);
      std::vector<T> transposed(w.size());
      for (int k = 0; k < depth; ++k) {
        for (int j = 0; j < columns; ++j) transposed[j * depth + k] = w[k * columns + j];
      }
      std::vector<T> y(rows * columns), z(rows * columns);
      const std::vector<T*> ys = Rows(&y, rows), zs = Rows(&z, rows);
      loops->product(ConstRows(x, rows).data(), w.data(), ys.data(), rows, depth, columns);
      loops->product_transposed(ConstRows(x, rows).data(), transposed.data(), zs.data(), rows, depth, columns);
      for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < columns; ++j) {
          double want = 0, size = 1;
          for (int k = 0; k < depth; ++k) {
            const double term = static_cast<double>(x[r * depth + k]) * w[k * columns + j];
            want += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(y[r * columns + j], want, this->kTolerance * size) << name;
          ASSERT_NEAR(z[r * columns + j], want, this->kTolerance * size) << name;
        }
      }
    }
  }
}

// Weights of few rows or few columns have loops of their own. The numbers are small integers, so that sums are exact.
TYPED_TEST(LoopsTest, ProductsOfAllSmallSizes) {
  using T = TypeParam;
  constexpr int kRows = 3;
  for (const auto& [name, loops] : AllLoops<T>()) {
    for (int depth = 1; depth <= 34; ++depth) {
      for (int columns = 1; columns <= 34; ++columns) {
        std::vector<T> x(kRows * depth), w(depth * columns), transposed(w.size()), want(kRows * columns);
        for (int i = 0; i < kRows * depth; ++i) x[i] = static_cast<T>(i * 7 % 11 - 5);
        for (int i = 0; i < depth * columns; ++i) {
          w[i] = static_cast<T>(i * 5 % 13 - 6);
          transposed[i % columns * depth + i / columns] = w[i];
        }
        for (int i = 0; i < kRows * columns; ++i) {
          for (int k = 0; k < depth; ++k) want[i] += x[i / columns * depth + k] * w[k * columns + i % columns];
        }
        std::vector<T> y(want.size()), z(want.size());
        loops->product(ConstRows(x, kRows).data(), w.data(), Rows(&y, kRows).data(), kRows, depth, columns);
        loops->product_transposed(ConstRows(x, kRows).data(), transposed.data(), Rows(&z, kRows).data(), kRows, depth,
                                  columns);
        ASSERT_EQ(y, want) << name << " " << depth << " x " << columns;
        ASSERT_EQ(z, want) << name << " " << depth << " x " << columns << ", transposed";
        for (T& number : x) number = -T(0);
        loops->product(ConstRows(x, kRows).data(), w.data(), Rows(&y, kRows).data(), kRows, depth, columns);
        loops->product_transposed(ConstRows(x, kRows).data(), transposed.data(), Rows(&z, kRows).data(), kRows, depth,
                                  columns);
        for (int i = 0; i < kRows * columns; ++i) {
          ASSERT_FALSE(std::signbit(y[i]) || std::signbit(z[i]))
              << name << ": a sum of zeros is 0, as in stock kernels";
        }
      }
    }
  }
}

// To the last bit: which rows wait together is up to chance.
TYPED_TEST(LoopsTest, ARowOfAProductIsTheSameWhateverStandsBesideIt) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    for (const auto& [depth, columns] : std::vector<std::pair<int, int>>{{100, 50},
                                                                         {33, 130},
                                                                         {5, 7},
                                                                         {70, 16},
                                                                         {120, 85},
                                                                         {3, 3000},
                                                                         {3000, 3},
                                                                         {3, 2},
                                                                         {1, 5},
                                                                         {16, 15},
                                                                         {2, 1}}) {
      const std::vector<T> x = Random<T>(13 * depth, 1), w = Random<T>(depth * columns, 2);
      for (const auto product : {loops->product, loops->product_transposed}) {
        std::vector<T> alone(13 * columns);
        const std::vector<T*> of_alone = Rows(&alone, 13);
        const std::vector<const T*> of_x = ConstRows(x, 13);
        for (int r = 0; r < 13; ++r) product(&of_x[r], w.data(), &of_alone[r], 1, depth, columns);
        for (int rows = 2; rows <= 13; ++rows) {
          std::vector<T> together(rows * columns);
          const std::vector<T*> of_together = Rows(&together, rows);
          product(of_x.data(), w.data(), of_together.data(), rows, depth, columns);
          for (int i = 0; i < rows * columns; ++i) ASSERT_EQ(together[i], alone[i]) << name << " " << rows << " rows";
        }
      }
    }
  }
}

// In a weight that begins anywhere in a cache line, and has nothing before and behind it.
TYPED_TEST(LoopsTest, AProductIsTheSameWhereverItsWeightBegins) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    for (const auto& [depth, columns] :
         std::vector<std::pair<int, int>>{{120, 85}, {85, 120}, {2, 4200}, {4200, 2}, {5, 300}, {15, 37}}) {
      const std::vector<T> x = Random<T>(2 * depth, 1), w = Random<T>(depth * columns, 2);
      for (const auto product : {loops->product, loops->product_transposed}) {
        for (const int rows : {1, 2}) {
          std::vector<T> first(rows * columns);
          for (int begin = 0; begin < 64 / static_cast<int>(sizeof(T)); ++begin) {
            std::vector<T> moved(begin, std::numeric_limits<T>::quiet_NaN());
            moved.insert(moved.end(), w.begin(), w.end());
            moved.shrink_to_fit();
            std::vector<T> y(rows * columns);
            const std::vector<T*> of_y = Rows(&y, rows);
            product(ConstRows(x, 2).data(), moved.data() + begin, of_y.data(), rows, depth, columns);
            if (begin == 0) first = y;
            ASSERT_EQ(y, first) << name << " from " << begin;
          }
        }
      }
    }
  }
}

TYPED_TEST(LoopsTest, Reductions) {
  using T = TypeParam;
  for (const auto& [name, loops] : AllLoops<T>()) {
    EXPECT_EQ(loops->sum(nullptr, 0), 0);
    std::vector<T> x;
    for (int i = 1; i <= 100; ++i) {
      x.push_back(static_cast<T>(i));
      EXPECT_EQ(loops->sum(x.data(), i), i * (i + 1) / 2) << name;
      EXPECT_EQ(loops->maximum(x.data(), i), i) << name;
    }
    // The largest number, NaN or an infinity at each place of rows of each length.
    using Limits = std::numeric_limits<T>;
    for (int count = 1; count <= 70; ++count) {
      for (int place = 0; place < count; ++place) {
        std::vector<T> numbers(count, T(-7));
        numbers[place] = T(-3);
        ASSERT_EQ(loops->maximum(numbers.data(), count), T(-3)) << name << " at " << place << " of " << count;
        ASSERT_EQ(loops->sum(numbers.data(), count), T(-7 * count + 4)) << name << " at " << place << " of " << count;
        numbers[place] = -Limits::infinity();
        ASSERT_EQ(loops->maximum(numbers.data(), count), count == 1 ? -Limits::infinity() : T(-7)) << name;
        numbers[place] = Limits::quiet_NaN();
        ASSERT_TRUE(std::isnan(loops->maximum(numbers.data(), count))) << name << " at " << place << " of " << count;
        ASSERT_TRUE(std::isnan(loops->sum(numbers.data(), count))) << name << " at " << place << " of " << count;
      }
    }
  }
}

}  // namespace
}  // namespace tensorflow_recursion
