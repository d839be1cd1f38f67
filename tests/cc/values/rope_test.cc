// SPDX-License-Identifier: Apache-2.0
#include "cc/values/rope.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "cc/values/record.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/values/live_tensors.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

Tensor Counted(int32_t first, int64_t count) {
  Tensor tensor(kInt, TensorShape({count}));
  std::iota(tensor.flat<int32_t>().data(), tensor.flat<int32_t>().data() + count, first);
  return tensor;
}

std::vector<int32_t> ElementsOf(const Tensor& tensor) {
  const auto* const data = static_cast<const int32_t*>(tensor.data());
  return {data, data + tensor.NumElements()};
}

class RopeTest : public ::testing::Test {
 protected:
  Value Part(int32_t first, int64_t count) { return Value::Own(NewTensor(Counted(first, count))); }
  Value Join(std::vector<Value> parts, const TensorShape& shape) {
    return Value::Own(Rope::New(parts.data(), static_cast<uint32_t>(parts.size()), kInt, shape));
  }

  LiveTensors tensors_;
};

TEST_F(RopeTest, ReadsItsPartsOneBehindTheOther) {
  Value inner = Join({Part(2, 3), Part(0, 0), Part(5, 1)}, TensorShape({4, 1}));
  Value rope = Join({Part(0, 2), inner, Part(6, 4)}, TensorShape({2, 5}));
  EXPECT_EQ(rope.tensor_or_null(), nullptr);
  const Tensor flat = TensorFromValue(rope, kInt);
  EXPECT_EQ(flat.shape(), TensorShape({2, 5}));
  EXPECT_EQ(ElementsOf(flat), ElementsOf(Counted(0, 10)));
  EXPECT_TRUE(flat.SharesBufferWith(TensorFromValue(rope, kInt)));  // made once
  rope.Release();
}

TEST_F(RopeTest, WithoutNumbersIsEmpty) {
  Value rope = Join({Part(0, 0)}, TensorShape({0, 3}));
  EXPECT_EQ(TensorFromValue(rope, kInt).shape(), TensorShape({0, 3}));
  rope.Release();
}

// Kernels of TensorFlow end the process if a tensor is not aligned.
TEST_F(RopeTest, CopiesAViewThatIsNotAligned) {
  const Tensor whole = Counted(0, 64);
  for (const int64_t begin : {0, 16, 1, 5}) {
    Value part = Value::Own(NewTensor(whole.Slice(begin, begin + 8)));
    Value rope = Value::Own(Rope::New(&part, 1, kInt, TensorShape({8})));
    EXPECT_TRUE(rope.rope->View().SharesBufferWith(whole));
    const Tensor flat = TensorFromValue(rope, kInt);
    EXPECT_TRUE(flat.IsAligned());
    EXPECT_EQ(ElementsOf(flat), ElementsOf(Counted(static_cast<int32_t>(begin), 8)));
    EXPECT_EQ(flat.SharesBufferWith(whole), whole.Slice(begin, begin + 8).IsAligned());
    rope.Release();
  }
}

TEST_F(RopeTest, FlattenedValueIsTheOnlyOneThatSeesItsTensor) {
  Value rope = Join({Part(0, 2), Part(2, 2)}, TensorShape({4}));
  rope.Flatten();
  ASSERT_EQ(rope.kind, Value::Kind::kTensor);
  EXPECT_TRUE(rope.tensor->RefCountIsOne());
  EXPECT_EQ(ElementsOf(*rope.tensor), ElementsOf(Counted(0, 4)));
  rope.Release();
}

TEST_F(RopeTest, CopiesShareParts) {
  Value rope = Join({tensors_.Make(1), tensors_.Make(2)}, TensorShape({2}));
  Value copy = rope.Copy();
  rope.Release();
  EXPECT_EQ(tensors_.count(), 2);
  Value larger = Join({copy, tensors_.Make(3)}, TensorShape({3}));
  EXPECT_EQ(ElementsOf(TensorFromValue(larger, kInt)), ElementsOf(Counted(1, 3)));
  larger.Release();
  EXPECT_EQ(tensors_.count(), 0);
}

// Else a recursion that reads its rows at each level would hold those of each level twice.
TEST_F(RopeTest, DropsItsPartsOnceItIsFlat) {
  Value inner = Join({tensors_.Make(1), tensors_.Make(2)}, TensorShape({2}));
  Value copy = inner.Copy();
  Value outer = Join({inner, tensors_.Make(3)}, TensorShape({3}));
  EXPECT_EQ(ElementsOf(TensorFromValue(copy, kInt)), ElementsOf(Counted(1, 2)));
  EXPECT_EQ(tensors_.count(), 1);
  EXPECT_EQ(ElementsOf(TensorFromValue(outer, kInt)), ElementsOf(Counted(1, 3)));
  EXPECT_EQ(tensors_.count(), 0);
  EXPECT_EQ(ElementsOf(outer.rope->View()), ElementsOf(Counted(1, 3)));
  copy.Release();
  outer.Release();
}

// A rope may outlive the program and the frame that lent a tensor.
TEST_F(RopeTest, OwnsWhatItsPartsBorrow) {
  Value rope;
  {
    const Tensor constant = Counted(0, 2), lent = Counted(2, 2);
    rope = Join({Value::Constant(&constant), Value::Borrow(&lent)}, TensorShape({4}));
  }
  EXPECT_EQ(ElementsOf(TensorFromValue(rope, kInt)), ElementsOf(Counted(0, 4)));
  rope.Release();
}

TEST_F(RopeTest, AsDeepAsARecursionNeedsNoStack) {
  SmallStackThreads threads;
  threads.Schedule([this] {
    for (const bool is_left : {true, false}) {
      Value rope = Part(0, 1);
      for (int i = 1; i < kDeepForSmallStacks; ++i) {
        const Value next = Part(i, 1);
        rope = Join(is_left ? std::vector<Value>{rope, next} : std::vector<Value>{next, rope}, TensorShape({i + 1}));
      }
      const std::vector<int32_t> numbers = ElementsOf(TensorFromValue(rope, kInt));
      EXPECT_EQ(numbers.front(), is_left ? 0 : kDeepForSmallStacks - 1);
      EXPECT_EQ(numbers.back(), is_left ? kDeepForSmallStacks - 1 : 0);
      rope.Release();
    }
  });
}

TEST_F(RopeTest, ManyThreadsGetOneTensor) {
  Value rope = Join({Part(0, 500), Part(500, 500)}, TensorShape({1000}));
  std::vector<Tensor> seen(8);
  {
    SmallStackThreads threads;
    for (Tensor& tensor : seen) {
      threads.Schedule([&rope, &tensor] {
        Value copy = rope.Copy();
        tensor = TensorFromValue(copy, kInt);
        copy.Release();
      });
    }
  }
  for (const Tensor& tensor : seen) EXPECT_TRUE(tensor.SharesBufferWith(seen[0]));
  EXPECT_EQ(ElementsOf(seen[0]), ElementsOf(Counted(0, 1000)));
  rope.Release();
}

// The parts of a rope that nobody else reads are taken out of it; what others read stays whole.
TEST_F(RopeTest, LeavesPartsToOthersThatReadThem) {
  Value shared = Join({tensors_.Make(1), tensors_.Make(2)}, TensorShape({2}));
  Value own = Join({tensors_.Make(3), shared.Copy()}, TensorShape({3}));
  Value rope = Join({own, tensors_.Make(4)}, TensorShape({4}));
  EXPECT_EQ(ElementsOf(TensorFromValue(rope, kInt)), (std::vector<int32_t>{3, 1, 2, 4}));
  EXPECT_EQ(tensors_.count(), 2);
  EXPECT_EQ(ElementsOf(TensorFromValue(shared, kInt)), ElementsOf(Counted(1, 2)));
  EXPECT_EQ(tensors_.count(), 0);
  rope.Release();
  shared.Release();
}

// Some make flat what others copy as a part of more.
TEST_F(RopeTest, PartsMayBecomeFlatWhileTheWholeIsCopied) {
  for (int repeat = 0; repeat < 200; ++repeat) {
    // Kept to the end: the thread sanitizer does not see how TensorFlow counts references before it frees memory.
    std::vector<Tensor> numbers;
    numbers.reserve(12);
    for (int32_t i = 0; i < 12; ++i) numbers.push_back(Counted(i, 1));
    auto part = [&numbers](int i) { return Value::Own(NewTensor(numbers[i])); };
    std::vector<Value> ropes = {Join({part(0), part(1)}, TensorShape({2}))};
    for (int i = 2; i < 12; ++i) ropes.push_back(Join({ropes.back().Copy(), part(i)}, TensorShape({i + 1})));
    {
      SmallStackThreads threads;
      for (int first = 0; first < 3; ++first) {
        threads.Schedule([&ropes, first] {
          for (size_t i = first; i < ropes.size(); i += 3) {
            EXPECT_EQ(ElementsOf(TensorFromValue(ropes[i], kInt)), ElementsOf(Counted(0, static_cast<int64_t>(i) + 2)));
          }
        });
      }
    }
    for (Value& rope : ropes) rope.Release();
  }
}

// Records and ropes are of one kind in a record's tags.
TEST_F(RopeTest, LiesInRecordsBesideOthers) {
  Record* const record = Record::New(3);
  Record* const inner = Record::New(0);
  record->Set(0, Join({tensors_.Make(1), tensors_.Make(2)}, TensorShape({2})), kInt);
  record->Set(1, Value::Own(inner), tensorflow::DT_VARIANT);
  record->Set(2, tensors_.Make(3), kInt);
  EXPECT_EQ(record->Get(0).kind, Value::Kind::kRope);
  EXPECT_EQ(record->dtype(0), kInt);
  EXPECT_EQ(record->Get(1).record, inner);
  EXPECT_EQ(record->Get(1).kind, Value::Kind::kRecord);
  Value copy = record->Get(0).Copy();
  record->Unref();
  EXPECT_EQ(tensors_.count(), 2);
  EXPECT_EQ(ElementsOf(TensorFromValue(copy, kInt)), ElementsOf(Counted(1, 2)));
  copy.Release();
  EXPECT_EQ(tensors_.count(), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
