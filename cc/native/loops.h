// Loops over rows of numbers, in the widest vector instructions that the processor has.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_NATIVE_LOOPS_H_
#define TENSORFLOW_RECURSION_CC_NATIVE_LOOPS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tensorflow_recursion {

// Functions of one number.
enum class Unary { kNeg, kAbs, kSquare, kSqrt, kReciprocal, kExp, kLog, kRelu, kTanh, kSigmoid, kCount };

// Functions of two. Gradients are TensorFlow's: of Tanh (y, dy), of Relu (dy, x).
enum class Binary {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,
  kMinimum,
  kSquaredDifference,
  kReluGrad,
  kTanhGrad,
  kSigmoidGrad,
  kSqrtGrad,
  kCount
};

// How two rows of operands meet: number by number, or one number of this side with all of the other.
enum class Meeting { kBoth, kOneLeft, kOneRight, kCount };

// The loops for float or double. Whatever `out` is computed from may be `out` itself, or not overlap with it. What
// comes out for an element depends on the operands and on the sizes alone: not on where it stands in memory.
template <typename T>
struct Loops {
  using UnaryLoop = void (*)(const T* x, T* out, int64_t count);
  using BinaryLoop = void (*)(const T* x, const T* y, T* out, int64_t count);
  // out [rows, columns] = x [rows, depth] * w [depth, columns], of rows that may lie anywhere. Sums run over the depth
  // from its beginning, whatever the number of rows.
  using ProductLoop = void (*)(const T* const* x, const T* w, T* const* out, int64_t rows, int64_t depth,
                               int64_t columns);
  using Reduction = T (*)(const T* x, int64_t count);

  UnaryLoop unary[static_cast<int>(Unary::kCount)];
  BinaryLoop binary[static_cast<int>(Binary::kCount)][static_cast<int>(Meeting::kCount)];
  ProductLoop product;
  // The same of w [columns, depth], transposed. Each sum is of as many parts as a vector has numbers.
  ProductLoop product_transposed;
  Reduction sum;      // 0 of nothing
  Reduction maximum;  // of at least one number; NaN if one is

  UnaryLoop of(Unary function) const { return unary[static_cast<int>(function)]; }
  BinaryLoop of(Binary function, Meeting meeting) const {
    return binary[static_cast<int>(function)][static_cast<int>(meeting)];
  }
};

// Those for this processor.
template <typename T>
const Loops<T>& BestLoops();

// Those for each instruction set that this processor has, by name, for tests.
template <typename T>
struct NamedLoops {
  std::string name;
  const Loops<T>* loops;
};
template <typename T>
std::vector<NamedLoops<T>> AllLoops();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_LOOPS_H_
