// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/move_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace tensorflow_recursion {
namespace {

using Moves = std::vector<RegisterMove>;

constexpr int kSpare = 8;

TEST(MoveOrderTest, ARegisterThatIsReadIsOverwrittenAfterThat) {
  EXPECT_EQ(OrderMoves({{1, 0}, {2, 1}}, kSpare), Moves({{2, 1}, {1, 0}}));
}

TEST(MoveOrderTest, NothingIsLeftOfMovesThatStayWhereTheyAre) {
  EXPECT_TRUE(OrderMoves({{1, 1}, {2, 2}}, kSpare).empty());
}

TEST(MoveOrderTest, NeighboursComeAfterOneAnother) {
  EXPECT_EQ(OrderMoves({{1, 5}, {4, 6}, {2, 7}}, kSpare), Moves({{1, 5}, {2, 7}, {4, 6}}));
}

TEST(MoveOrderTest, ACircleIsCutInTheSpareRegister) {
  EXPECT_EQ(OrderMoves({{1, 2}, {2, 1}}, kSpare), Moves({{kSpare, 1}, {1, 2}, {2, kSpare}}));
}

TEST(MoveOrderTest, RandomMovesDoTheSameAsIfAtOnce) {
  std::mt19937 random(0);
  for (int round = 0; round < 1000; ++round) {
    std::vector<int> targets(kSpare);
    std::iota(targets.begin(), targets.end(), 0);
    std::shuffle(targets.begin(), targets.end(), random);
    Moves moves;
    for (int i = 0; i < static_cast<int>(random() % kSpare); ++i) {
      moves.push_back({targets[i], static_cast<int>(random() % kSpare)});
    }
    std::vector<int> expected(kSpare + 1);
    std::iota(expected.begin(), expected.end(), 0);
    std::vector<int> registers = expected;
    for (const RegisterMove& move : moves) expected[move.to] = move.from;
    for (const RegisterMove& move : OrderMoves(moves, kSpare)) registers[move.to] = registers[move.from];
    expected.resize(kSpare);
    registers.resize(kSpare);
    EXPECT_EQ(registers, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace tensorflow_recursion
