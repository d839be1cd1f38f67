// SPDX-License-Identifier: Apache-2.0
#include "cc/values/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace tensorflow_recursion {
namespace {

bool IsAligned(const void* block) { return reinterpret_cast<uintptr_t>(block) % kBlockAlignment == 0; }

TEST(BlockPoolTest, BlocksAreAlignedAndApart) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes : {1, 32, 33, 64, 65, 1000, 1024, 1025, 1281, 5000, 70000, 400000, 524288, 600000}) {
    for (int i = 0; i < 3; ++i) {
      auto* const block = static_cast<unsigned char*>(TakeBlock(bytes));
      EXPECT_TRUE(bytes <= kHeaderBlockBytes || IsAligned(block)) << bytes;
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].first[0], i);
    EXPECT_EQ(blocks[i].first[blocks[i].second - 1], i);
    GiveBlock(blocks[i].first, blocks[i].second);
  }
}

TEST(BlockPoolTest, GivenBlocksAreTakenAgain) {
  void* const block = TakeBlock(500);
  GiveBlock(block, 500);
  void* const again = TakeBlock(460);  // of the same class
  EXPECT_EQ(again, block);
  GiveBlock(again, 460);
}

// One thread takes, another gives: what the second cannot keep goes to the store, from where the first has it again.
TEST(BlockPoolTest, BlocksComeBackFromOtherThreads) {
  constexpr int kCount = 1000;
  constexpr size_t kBytes = 5000;
  std::set<void*> first, second;
  for (int i = 0; i < kCount; ++i) first.insert(TakeBlock(kBytes));
  std::thread([&] {
    for (void* block : first) GiveBlock(block, kBytes);
  }).join();
  for (int i = 0; i < kCount; ++i) second.insert(TakeBlock(kBytes));
  int returned = 0;
  for (void* block : second) {
    returned += static_cast<int>(first.count(block));
    GiveBlock(block, kBytes);
  }
  EXPECT_GT(returned, kCount / 2);
}

TEST(BlockPoolTest, TheStoreIsBounded) {
  constexpr size_t kBytes = 300000;
  std::vector<void*> blocks;
  for (int64_t bytes = 0; bytes < 2 * kMostSpareBlockBytes; bytes += kBytes) blocks.push_back(TakeBlock(kBytes));
  for (void* block : blocks) GiveBlock(block, kBytes);
  EXPECT_LE(SpareBlockBytes(), kMostSpareBlockBytes);
  EXPECT_GT(SpareBlockBytes(), kMostSpareBlockBytes / 2);
  const int64_t kept = SpareBlockBytes();
  for (void*& block : blocks) block = TakeBlock(kBytes);
  EXPECT_LT(SpareBlockBytes(), kept) << "nothing came from the store";
  std::thread([&] {
    for (void* block : blocks) GiveBlock(block, kBytes);
  }).join();
}

// A deep recursion fills the store with small blocks. What comes after it has other sizes.
TEST(BlockPoolTest, BlocksThatNobodyWantsMakeRoom) {
  constexpr size_t kOld = 200, kNew = 9000;
  constexpr int64_t kOldBytes = 2 * kMostSpareBlockBytes, kNewBytes = kMostSpareBlockBytes / 4;
  std::vector<void*> old, blocks;
  for (int64_t bytes = 0; bytes < kOldBytes; bytes += kOld) old.push_back(TakeBlock(kOld));
  for (void* block : old) GiveBlock(block, kOld);
  for (int64_t bytes = 0; bytes < kNewBytes; bytes += kNew) blocks.push_back(TakeBlock(kNew));
  const std::set<void*> given(blocks.begin(), blocks.end());
  for (void* block : blocks) GiveBlock(block, kNew);
  size_t again = 0;
  for (void*& block : blocks) again += given.count(block = TakeBlock(kNew));
  EXPECT_GT(again, blocks.size() / 2);
  for (void* block : blocks) GiveBlock(block, kNew);
  EXPECT_LE(SpareBlockBytes(), kMostSpareBlockBytes);
}

TEST(BlockPoolTest, ServesManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::vector<std::pair<unsigned char*, size_t>> mine;
      for (size_t i = 0; i < 20000; ++i) {
        const size_t bytes = 16 + (i * 37) % 3000;
        auto* const block = static_cast<unsigned char*>(TakeBlock(bytes));
        std::memset(block, t, bytes);
        mine.emplace_back(block, bytes);
        if (mine.size() < 200) continue;
        for (const auto& [other, size] : mine) {
          ASSERT_EQ(other[0], t);
          ASSERT_EQ(other[size - 1], t);
          GiveBlock(other, size);
        }
        mine.clear();
      }
      for (const auto& [other, size] : mine) GiveBlock(other, size);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What a thread does with blocks while it ends, after the pool's own part of its end.
struct UsesBlocksAtTheEnd {
  ~UsesBlocksAtTheEnd() {
    GiveBlock(held, 200);
    for (size_t bytes : {16, 200, 70000}) {
      auto* const block = static_cast<unsigned char*>(TakeBlock(bytes));
      std::memset(block, 7, bytes);
      last_byte += block[bytes - 1];
      GiveBlock(block, bytes);
    }
    *sum = last_byte;
  }

  void* held = nullptr;
  int* sum = nullptr;
  int last_byte = 0;
};

TEST(BlockPoolTest, AThreadMayUseBlocksWhileItEnds) {
  int sum = 0;
  std::thread([&] {
    thread_local UsesBlocksAtTheEnd user;  // made before the thread's first block, so it is destroyed after the pool's
    user.sum = &sum;
    user.held = TakeBlock(200);
    GiveBlock(TakeBlock(200), 200);
  }).join();
  EXPECT_EQ(sum, 3 * 7);
}

}  // namespace
}  // namespace tensorflow_recursion
