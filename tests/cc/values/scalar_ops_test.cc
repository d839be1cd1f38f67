// SPDX-License-Identifier: Apache-2.0
#include "cc/values/scalar_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeVector;
using tensorflow::Tensor;

constexpr DataType kBool = tensorflow::DT_BOOL;
constexpr DataType kInt32 = tensorflow::DT_INT32;
constexpr DataType kInt64 = tensorflow::DT_INT64;
constexpr DataType kFloat = tensorflow::DT_FLOAT;
constexpr DataType kDouble = tensorflow::DT_DOUBLE;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
DataType TypeOf() {
  return tensorflow::DataTypeToEnum<T>::value;
}

template <typename T>
Value Scalar(T number) {
  return ScalarFromTensor(Tensor(number));
}

template <typename T>
T Number(const Value& value) {
  return TensorFromScalar(value, TypeOf<T>()).template scalar<T>()();
}

template <typename T>
bool Same(T a, T b) {
  if (a != a || b != b) return a != a && b != b;
  return a == b && std::signbit(static_cast<double>(a)) == std::signbit(static_cast<double>(b));
}

// Whether `op` computes on these operands itself; *result is then what it says.
template <typename Out, typename T>
bool Compute(const std::string& op, const std::vector<T>& operands, Out* result) {
  const ScalarFunction function = FindScalarFunction(op, DataTypeVector(operands.size(), TypeOf<T>()), {TypeOf<Out>()});
  EXPECT_NE(function, nullptr) << op << " of " << tensorflow::DataTypeString(TypeOf<T>());
  if (function == nullptr) return false;
  std::vector<Value> in;
  for (const T operand : operands) in.push_back(Scalar<T>(operand));
  Value out = Value::Empty();
  if (!function(in.data(), &out)) return false;
  EXPECT_EQ(out.kind, Value::Kind::kScalar);
  *result = Number<Out>(out);
  return true;
}

template <typename Out, typename T>
void Expect(const std::string& op, const std::vector<T>& operands, Out expected) {
  SCOPED_TRACE(op + " of " + tensorflow::DataTypeString(TypeOf<T>()));
  Out result{};
  ASSERT_TRUE(Compute<Out>(op, operands, &result));
  EXPECT_TRUE(Same<Out>(result, expected))
      << "of " << operands.front() << ", " << operands.back() << ": got " << result << ", expected " << expected;
}

template <typename T>
void ExpectLeftToKernel(const std::string& op, const std::vector<T>& operands) {
  T result{};
  EXPECT_FALSE(Compute<T>(op, operands, &result)) << op << " of " << operands.front() << ", " << operands.back();
}

template <typename T>
class NumberTest : public ::testing::Test {};
using Numbers = ::testing::Types<int32_t, int64_t, float, double>;
TYPED_TEST_SUITE(NumberTest, Numbers);

template <typename T>
class IntegerTest : public ::testing::Test {};
using Integers = ::testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(IntegerTest, Integers);

template <typename T>
class FloatTest : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FloatTest, Floats);

// Numbers of every dtype.

TYPED_TEST(NumberTest, DoesArithmetic) {
  using T = TypeParam;
  Expect<T, T>("Add", {2, 3}, 5);
  Expect<T, T>("AddV2", {-2, 3}, 1);
  Expect<T, T>("Sub", {2, 3}, -1);
  Expect<T, T>("Mul", {-2, 3}, -6);
  Expect<T, T>("Neg", {3}, -3);
  Expect<T, T>("Abs", {-3}, 3);
  Expect<T, T>("Abs", {3}, 3);
  Expect<T, T>("Square", {-3}, 9);
  Expect<T, T>("Maximum", {2, 3}, 3);
  Expect<T, T>("Maximum", {3, -2}, 3);
  Expect<T, T>("Minimum", {2, 3}, 2);
  Expect<T, T>("Minimum", {3, -2}, -2);
  Expect<T, T>("Squeeze", {4}, 4);
  Expect<T, T>("EnsureShape", {4}, 4);
}

TYPED_TEST(NumberTest, Compares) {
  using T = TypeParam;
  const std::vector<std::vector<T>> pairs = {{1, 2}, {2, 2}, {2, 1}, {-1, 1}};
  for (const std::vector<T>& pair : pairs) {
    Expect<bool, T>("Less", pair, pair[0] < pair[1]);
    Expect<bool, T>("LessEqual", pair, pair[0] <= pair[1]);
    Expect<bool, T>("Greater", pair, pair[0] > pair[1]);
    Expect<bool, T>("GreaterEqual", pair, pair[0] >= pair[1]);
    Expect<bool, T>("Equal", pair, pair[0] == pair[1]);
    Expect<bool, T>("NotEqual", pair, pair[0] != pair[1]);
  }
}

TYPED_TEST(NumberTest, RoundsQuotientsDown) {
  using T = TypeParam;
  Expect<T, T>("FloorDiv", {7, 2}, 3);
  Expect<T, T>("FloorDiv", {-7, 2}, -4);
  Expect<T, T>("FloorDiv", {7, -2}, -4);
  Expect<T, T>("FloorDiv", {-7, -2}, 3);
  Expect<T, T>("FloorDiv", {6, -2}, -3);
}

TYPED_TEST(NumberTest, SelectsByTheCondition) {
  for (const char* op : {"Select", "SelectV2"}) {
    const DataType dtype = TypeOf<TypeParam>();
    const ScalarFunction select = FindScalarFunction(op, {kBool, dtype, dtype}, {dtype});
    ASSERT_NE(select, nullptr);
    for (const bool condition : {true, false}) {
      const Value in[] = {Scalar(condition), Scalar<TypeParam>(1), Scalar<TypeParam>(2)};
      Value out = Value::Empty();
      ASSERT_TRUE(select(in, &out));
      EXPECT_EQ(Number<TypeParam>(out), condition ? 1 : 2);
    }
  }
}

// Integers.

TYPED_TEST(IntegerTest, WrapsAround) {
  using T = TypeParam;
  constexpr T kMin = std::numeric_limits<T>::min();
  constexpr T kMax = std::numeric_limits<T>::max();
  Expect<T, T>("AddV2", {kMax, 1}, kMin);
  Expect<T, T>("Sub", {kMin, 1}, kMax);
  Expect<T, T>("Mul", {kMax, 2}, -2);
  Expect<T, T>("Mul", {kMin, -1}, kMin);
  Expect<T, T>("Neg", {kMin}, kMin);
  Expect<T, T>("Abs", {kMin}, kMin);
  Expect<T, T>("Square", {kMin}, 0);
}

TYPED_TEST(IntegerTest, GivesModuliTheSignThatTheirOperatorSays) {
  using T = TypeParam;
  Expect<T, T>("FloorMod", {7, 3}, 1);
  Expect<T, T>("FloorMod", {-7, 3}, 2);
  Expect<T, T>("FloorMod", {7, -3}, -2);
  Expect<T, T>("FloorMod", {-7, -3}, -1);
  Expect<T, T>("FloorMod", {-6, 3}, 0);
  for (const char* op : {"Mod", "TruncateMod"}) {
    Expect<T, T>(op, {-7, 3}, -1);
    Expect<T, T>(op, {7, -3}, 1);
  }
  for (const char* op : {"Div", "TruncateDiv"}) {
    Expect<T, T>(op, {-7, 2}, -3);
    Expect<T, T>(op, {7, -2}, -3);
  }
}

TYPED_TEST(IntegerTest, LeavesDivisionThatTrapsToTheKernel) {
  using T = TypeParam;
  for (const char* op : {"Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod"}) {
    ExpectLeftToKernel<T>(op, {5, 0});
    ExpectLeftToKernel<T>(op, {0, 0});
    ExpectLeftToKernel<T>(op, {std::numeric_limits<T>::min(), -1});
  }
}

// Floating point.

TYPED_TEST(FloatTest, DividesByZeroAsIeeeSays) {
  using T = TypeParam;
  Expect<T, T>("RealDiv", {7, 2}, 3.5);
  Expect<T, T>("RealDiv", {1, 0}, kInfinity);
  Expect<T, T>("RealDiv", {-1, 0}, -kInfinity);
  Expect<T, T>("RealDiv", {0, 0}, kNan);
  Expect<T, T>("FloorDiv", {1, 0}, kInfinity);
  Expect<T, T>("FloorDiv", {-0.5, 2}, -1);
}

TYPED_TEST(FloatTest, TreatsZerosAndNanAsIeeeSays) {
  using T = TypeParam;
  Expect<T, T>("Neg", {0.0}, -0.0);
  Expect<T, T>("Abs", {-0.0}, 0.0);
  Expect<T, T>("AddV2", {static_cast<T>(kNan), 1}, kNan);
  Expect<bool, T>("Equal", {static_cast<T>(kNan), static_cast<T>(kNan)}, false);
  Expect<bool, T>("NotEqual", {static_cast<T>(kNan), static_cast<T>(kNan)}, true);
  Expect<bool, T>("Less", {static_cast<T>(kNan), 1}, false);
  Expect<bool, T>("GreaterEqual", {static_cast<T>(kNan), 1}, false);
  Expect<bool, T>("Equal", {-0.0, 0.0}, true);
}

TYPED_TEST(FloatTest, LeavesMaximaOfNanAndOfTwoZerosToTheKernel) {
  using T = TypeParam;
  for (const char* op : {"Maximum", "Minimum"}) {
    ExpectLeftToKernel<T>(op, {static_cast<T>(kNan), 1});
    ExpectLeftToKernel<T>(op, {1, static_cast<T>(kNan)});
    ExpectLeftToKernel<T>(op, {T{0}, -T{0}});
  }
  Expect<T, T>("Maximum", {static_cast<T>(-kInfinity), 1}, 1);
}

// Booleans.

TEST(BoolTest, DoesLogic) {
  for (const bool x : {false, true}) {
    Expect<bool, bool>("LogicalNot", {x}, !x);
    for (const bool y : {false, true}) {
      Expect<bool, bool>("LogicalAnd", {x, y}, x && y);
      Expect<bool, bool>("LogicalOr", {x, y}, x || y);
      Expect<bool, bool>("Equal", {x, y}, x == y);
      Expect<bool, bool>("NotEqual", {x, y}, x != y);
    }
  }
}

// Casts.

template <typename From, typename To>
void ExpectCast(From from, To expected) {
  SCOPED_TRACE(tensorflow::DataTypeString(TypeOf<From>()) + " to " + tensorflow::DataTypeString(TypeOf<To>()));
  Expect<To, From>("Cast", {from}, expected);
}

template <typename From, typename To>
void ExpectCastLeftToKernel(From from) {
  To result{};
  EXPECT_FALSE((Compute<To, From>("Cast", {from}, &result))) << "of " << from;
}

template <typename From>
void ExpectCastsOfThree() {
  ExpectCast<From, bool>(3, true);
  ExpectCast<From, bool>(0, false);
  ExpectCast<From, int32_t>(3, 3);
  ExpectCast<From, int64_t>(3, 3);
  ExpectCast<From, float>(3, 3);
  ExpectCast<From, double>(3, 3);
}

TEST(CastTest, ConvertsBetweenAllDtypes) {
  ExpectCastsOfThree<int32_t>();
  ExpectCastsOfThree<int64_t>();
  ExpectCastsOfThree<float>();
  ExpectCastsOfThree<double>();
  ExpectCast<bool, bool>(true, true);
  ExpectCast<bool, int32_t>(true, 1);
  ExpectCast<bool, int64_t>(true, 1);
  ExpectCast<bool, float>(false, 0);
  ExpectCast<bool, double>(true, 1);
}

TEST(CastTest, RoundsTowardsZero) {
  ExpectCast<float, int32_t>(-1.9f, -1);
  ExpectCast<double, int64_t>(1.9, 1);
  ExpectCast<double, int32_t>(2147483647.5, 2147483647);
}

TEST(CastTest, KeepsTheLowBitsOfIntegers) {
  ExpectCast<int64_t, int32_t>((int64_t{1} << 32) + 5, 5);
  ExpectCast<int64_t, int32_t>(int64_t{1} << 31, std::numeric_limits<int32_t>::min());
}

TEST(CastTest, LeavesWhatIsOutOfRangeToTheKernel) {
  ExpectCastLeftToKernel<float, int32_t>(2147483648.0f);
  ExpectCastLeftToKernel<float, int32_t>(static_cast<float>(kNan));
  ExpectCastLeftToKernel<double, int32_t>(-kInfinity);
  ExpectCastLeftToKernel<double, int64_t>(9223372036854775808.0);
  ExpectCastLeftToKernel<double, float>(1e300);
  ExpectCast<double, float>(kNan, static_cast<float>(kNan));
}

// Elements of vectors.

template <typename T, typename Index>
void ExpectGathers(const std::vector<T>& elements) {
  Tensor vector(TypeOf<T>(), tensorflow::TensorShape({static_cast<int64_t>(elements.size())}));
  for (size_t i = 0; i < elements.size(); ++i) vector.flat<T>()(i) = elements[i];
  const ScalarFunction gather = FindScalarFunction("GatherV2", {TypeOf<T>(), TypeOf<Index>(), kInt32}, {TypeOf<T>()});
  ASSERT_NE(gather, nullptr);
  auto at = [&](Index index, int32_t axis, Value* out) {
    const Value in[] = {Value::Borrow(&vector), Scalar<Index>(index), Scalar<int32_t>(axis)};
    return gather(in, out);
  };
  Value out = Value::Empty();
  for (size_t i = 0; i < elements.size(); ++i) {
    ASSERT_TRUE(at(static_cast<Index>(i), 0, &out));
    EXPECT_EQ(Number<T>(out), elements[i]);
  }
  EXPECT_FALSE(at(-1, 0, &out));
  EXPECT_FALSE(at(static_cast<Index>(elements.size()), 0, &out));
  EXPECT_FALSE(at(0, 1, &out));
  EXPECT_FALSE(at(0, -1, &out));
}

TEST(GatherTest, ReadsOneElementOfAVector) {
  ExpectGathers<int32_t, int32_t>({3, -4});
  ExpectGathers<int64_t, int64_t>({int64_t{1} << 40});
  ExpectGathers<float, int32_t>({0.5f, 1.5f, 2.5f});
  ExpectGathers<double, int64_t>({0.25, 1e300});
  ExpectGathers<bool, int32_t>({true, false});
}

TEST(GatherTest, LeavesEverythingElseToTheKernel) {
  const ScalarFunction gather = FindScalarFunction("GatherV2", {kFloat, kInt32, kInt32}, {kFloat});
  const Tensor matrix(kFloat, tensorflow::TensorShape({2, 2}));
  const Tensor indices(kInt32, tensorflow::TensorShape({1}));
  const Value zero = Scalar<int32_t>(0);
  Value out = Value::Empty();
  const Value of_matrix[] = {Value::Constant(&matrix), zero, zero};
  EXPECT_FALSE(gather(of_matrix, &out));
  const Value by_vector[] = {Value::Constant(&matrix), Value::Constant(&indices), zero};
  EXPECT_FALSE(gather(by_vector, &out));
  EXPECT_EQ(FindScalarFunction("GatherV2", {tensorflow::DT_STRING, kInt32, kInt32}, {tensorflow::DT_STRING}), nullptr);
}

// Operands that are tensors.

TEST(ScalarFunctionTest, LeavesTensorsToTheKernel) {
  const Tensor tensor(kInt32, tensorflow::TensorShape({1}));
  const Value in[] = {Scalar<int32_t>(1), Value::Constant(&tensor), Scalar<int32_t>(1)};
  Value out = Value::Empty();
  EXPECT_FALSE(FindScalarFunction("AddV2", {kInt32, kInt32}, {kInt32})(in, &out));
  EXPECT_FALSE(FindScalarFunction("Less", {kInt32, kInt32}, {kBool})(in, &out));
  for (const char* op : {"Neg", "Squeeze"}) EXPECT_FALSE(FindScalarFunction(op, {kInt32}, {kInt32})(in + 1, &out));
  EXPECT_FALSE(FindScalarFunction("Cast", {kInt32}, {kFloat})(in + 1, &out));
  const Value select[] = {Scalar(true), Scalar<int32_t>(1), Value::Constant(&tensor)};
  EXPECT_FALSE(FindScalarFunction("Select", {kBool, kInt32, kInt32}, {kInt32})(select, &out));
}

// What there is no function for.

TEST(FindScalarFunctionTest, LeavesOtherOperatorsToTheKernel) {
  EXPECT_EQ(FindScalarFunction("MatMul", {kFloat, kFloat}, {kFloat}), nullptr);
  EXPECT_EQ(FindScalarFunction("RandomUniform", {kInt32}, {kFloat}), nullptr);
  EXPECT_EQ(FindScalarFunction("NoOp", {}, {}), nullptr);
  EXPECT_EQ(FindScalarFunction("IdentityN", {kInt32, kInt32}, {kInt32, kInt32}), nullptr);
}

TEST(FindScalarFunctionTest, LeavesOtherDtypesToTheKernel) {
  EXPECT_EQ(FindScalarFunction("AddV2", {tensorflow::DT_STRING, tensorflow::DT_STRING}, {tensorflow::DT_STRING}),
            nullptr);
  EXPECT_EQ(FindScalarFunction("AddV2", {tensorflow::DT_HALF, tensorflow::DT_HALF}, {tensorflow::DT_HALF}), nullptr);
  EXPECT_EQ(FindScalarFunction("RealDiv", {kInt32, kInt32}, {kInt32}), nullptr);
  EXPECT_EQ(FindScalarFunction("Less", {kBool, kBool}, {kBool}), nullptr);
  EXPECT_EQ(FindScalarFunction("Cast", {tensorflow::DT_HALF}, {kInt64}), nullptr);
  EXPECT_EQ(FindScalarFunction("Cast", {kDouble}, {tensorflow::DT_HALF}), nullptr);
  EXPECT_EQ(
      FindScalarFunction("Select", {kBool, tensorflow::DT_STRING, tensorflow::DT_STRING}, {tensorflow::DT_STRING}),
      nullptr);
}

}  // namespace
}  // namespace tensorflow_recursion
