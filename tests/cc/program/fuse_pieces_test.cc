// SPDX-License-Identifier: Apache-2.0
#include "cc/program/fuse_pieces.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/program/built_programs.h"

namespace tensorflow_recursion {
namespace {

// F(n, x) = k(a) if a * 2 < n else x, where a = n + 1.
StaticGraph Mixed() {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "x"}).Const("F/one", 1, {"^F/frame_start"}).Const("F/two", 2, {"^F/frame_start"});
  graph.Op("F/a", "AddV2", {"F/n", "F/one"}).Op("F/double", "Mul", {"F/a", "F/two"});
  graph.Op("F/less", "Less", {"F/double", "F/n"}).Op("F/sa", "Switch", {"F/a", "F/less"});
  graph.Op("F/sx", "Switch", {"F/x", "F/less"}).Kernel("F/k", {"F/sa:1"});
  return Merge(&graph, "F/merge", {"F/sx", "F/k"}).Result("F", "F/merge");
}

TEST(FusePiecesTest, MembersBecomeOneOperator) {
  const BuiltProgram program = BuildCompiled(Mixed());
  const Region& region = RegionOf(program, "F");
  EXPECT_TRUE(OpsOf(region, OpKind::kScalar).empty());
  const Op& op = OnlyOp(region, OpKind::kPiece);
  EXPECT_EQ(op.num_inputs, 1);
  EXPECT_EQ(op.num_ports, 2);  // the predicate, and what the kernel reads
  EXPECT_EQ(op.num_tokens, 1);
  const Piece& piece = program->pieces.at(op.index);
  EXPECT_EQ(piece.members.size(), 3);
  EXPECT_EQ(piece.outputs, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(program->piece_code->functions.at(piece.function).results.size(), 2);
}

TEST(FusePiecesTest, MembersSayWhatTheyRead) {
  const BuiltProgram program = BuildCompiled(Mixed());
  const Piece& piece = program->pieces.at(0);
  EXPECT_EQ(piece.members[0].operands[0].input, 0);
  EXPECT_EQ(piece.members[0].operands[1].constant.bits, 1);
  EXPECT_EQ(piece.members[1].operands[0].member, 0);
  EXPECT_EQ(piece.members[2].operands[0].member, 1);
  EXPECT_EQ(piece.members[2].operands[1].input, 0);
}

TEST(FusePiecesTest, APieceHasATellingName) {
  const BuiltProgram program = BuildCompiled(Mixed());
  EXPECT_EQ(program->pieces.at(0).name, "F/less (+ 2)");
}

TEST(FusePiecesTest, TheMainGraphIsLeftAlone) {
  StaticGraph graph;
  graph.Arg("x").Const("one", 1).Op("a", "AddV2", {"x", "one"}).Op("less", "Less", {"a", "x"});
  graph.Op("switch", "Switch", {"x", "less"}).Kernel("f", {"switch"}).Kernel("t", {"switch:1"});
  Merge(&graph, "m", {"f", "t"}).Retval("m");
  EXPECT_TRUE(BuildCompiled(graph)->pieces.empty());
}

}  // namespace
}  // namespace tensorflow_recursion
