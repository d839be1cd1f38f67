// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/waves.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

// F(x, w) = product(x, w), and another node of the kind.
class WavesTest : public WorkerPartsTest {
 protected:
  void SetUp() override {
    StaticGraph graph;
    graph.Function("F", {"x", "w"}).Kernel("F/product", {"F/x", "F/w"}).Kernel("F/other", {"F/product", "F/w"});
    graph.Result("F", "F/other");
    SetProgram(graph);
    for (const OpId op : OpsOf(RegionOf("F"), OpKind::kKernel)) {
      const bool is_product = NodeOf(op).name == "F/product";
      (is_product ? product_ : other_) = op;
    }
  }

  const KernelNode& NodeOf(OpId op) const { return built_->kernels[RegionOf("F").ops[op].index]; }

  Wave* Add(OpId op, int rows, const void* operand) {
    Value inputs[] = {live_.Make(rows), live_.Make(0)};
    Frame* const frame = NewFrame(RegionOf("F"));
    Wave* const wave = waves_.Add(NodeOf(op), {operand, rows}, frame, op, RegionOf("F").ops[op], inputs);
    EXPECT_EQ(frame->live, wave == nullptr ? 1 : 2);
    EXPECT_EQ(inputs[0].is_empty(), wave != nullptr);
    for (Value& input : inputs) input.Release();
    return wave;
  }

  Waves waves_;
  OpId product_, other_;
  const int weight_ = 0;
};

TEST_F(WavesTest, CallsWaitWithOthersOfTheirNode) {
  EXPECT_TRUE(waves_.empty());
  EXPECT_FALSE(Add(product_, 1, &weight_)->is_full());
  EXPECT_FALSE(Add(other_, 1, &weight_)->is_full());
  EXPECT_FALSE(Add(product_, 4, &weight_)->is_full());
  EXPECT_EQ(waves_.fullest()->rows, 5);
  Wave* const full = Add(product_, 3, &weight_);
  ASSERT_TRUE(full->is_full());
  const Wave wave = waves_.Take(full);
  ASSERT_EQ(wave.calls.size(), 3);
  EXPECT_EQ(wave.node, &NodeOf(product_));
  EXPECT_EQ(LiveTensors::Number(wave.calls[1].inputs[0]), 4);
  for (WaitingCall call : wave.calls) {
    for (int i : {0, 1}) call.inputs[i].Release();
  }
  EXPECT_EQ(waves_.fullest()->node, &NodeOf(other_));
  waves_.Clear();
  EXPECT_TRUE(waves_.empty());
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(WavesTest, OthersRunByThemselves) {
  EXPECT_EQ(Add(product_, 1, nullptr), nullptr);
  EXPECT_NE(Add(product_, 1, &weight_), nullptr);
  const int another = 0;
  EXPECT_EQ(Add(product_, 1, &another), nullptr);
  waves_.Clear();
  EXPECT_NE(Add(product_, 1, &another), nullptr);
  waves_.Clear();
  EXPECT_EQ(live_.count(), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
