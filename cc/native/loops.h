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

// Functions of two numbers. Gradients have the operands of TensorFlow's operators: (dy, x) for Relu, (y, dy) for Tanh,
// Sigmoid and Sqrt.
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

// How the numbers of two operands are paired: number by number, or the one number of the left (right) operand with all
// numbers of the other.
enum class Meeting { kBoth, kOneLeft, kOneRight, kCount };

// The loops for float or double. An operand may be `out` itself, or must not overlap with it. A result depends on the
// operands and on the sizes alone, not on where they lie in memory.
template <typename T>
struct Loops {
  using UnaryLoop = void (*)(const T* x, T* out, int64_t count);
  using BinaryLoop = void (*)(const T* x, const T* y, T* out, int64_t count);
  // Computes out [rows, columns] = x [rows, depth] * w [depth, columns]. Each row of x and out has its own pointer. All
  // sizes are at least 1. A row of the result does not depend on how many rows there are: it may be computed alone or
  // in a wave.
  using ProductLoop = void (*)(const T* const* x, const T* w, T* const* out, int64_t rows, int64_t depth,
                               int64_t columns);
  using Reduction = T (*)(const T* x, int64_t count);

  UnaryLoop unary[static_cast<int>(Unary::kCount)];
  BinaryLoop binary[static_cast<int>(Binary::kCount)][static_cast<int>(Meeting::kCount)];
  ProductLoop product;
  // The same for a weight w [columns, depth], which is used transposed.
  ProductLoop product_transposed;
  Reduction sum;      // 0 if there are no numbers
  Reduction maximum;  // needs at least one number; NaN if one of them is

  UnaryLoop of(Unary function) const { return unary[static_cast<int>(function)]; }
  BinaryLoop of(Binary function, Meeting meeting) const {
    return binary[static_cast<int>(function)][static_cast<int>(meeting)];
  }
};

// The loops in the widest vector instructions of this processor.
template <typename T>
const Loops<T>& BestLoops();

// The loops for one instruction set and its name, such as "avx2". AllLoops returns those of each set that this
// processor has, for tests.
template <typename T>
struct NamedLoops {
  std::string name;
  const Loops<T>* loops;
};
template <typename T>
std::vector<NamedLoops<T>> AllLoops();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_LOOPS_H_
