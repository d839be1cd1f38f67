// SPDX-License-Identifier: Apache-2.0
#include "cc/values/block_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"
#include "cc/base/thread_locals.h"

namespace tensorflow_recursion {
namespace {

// --- Sizes ----------------------------------------------------------------------------------------

// Class 0 serves headers of tensors. Classes 1 to 16 are the multiples of 64 bytes up to 1 KiB. Above that, four
// classes cover each doubling, so that a block is at most a quarter larger than what was asked for.
constexpr int kLinearClasses = 16;
constexpr int kNumClasses = kLinearClasses + 4 * 9 + 1;

constexpr int HighestBit(size_t number) { return 63 - __builtin_clzll(number); }

constexpr int ClassOf(size_t bytes) {
  if (bytes <= kHeaderBlockBytes) return 0;
  const size_t last = (bytes - 1) / kBlockAlignment;  // the number of the last unit, from 0
  if (last < kLinearClasses) return static_cast<int>(last) + 1;
  const int bit = HighestBit(last);
  return kLinearClasses + (bit - 4) * 4 + static_cast<int>(last >> (bit - 2)) - 3;
}

constexpr size_t BytesOfClass(int size_class) {
  if (size_class == 0) return kHeaderBlockBytes;
  if (size_class <= kLinearClasses) return size_class * kBlockAlignment;
  const int above = size_class - kLinearClasses - 1;
  return (size_t{5} + above % 4) << (above / 4 + 2) << HighestBit(kBlockAlignment);
}

static_assert(ClassOf(kLargestBlock) == kNumClasses - 1 && BytesOfClass(kNumClasses - 1) == kLargestBlock);
static_assert(ClassOf(1024) == 16 && ClassOf(1025) == 17 && BytesOfClass(17) == 1280 && ClassOf(1281) == 18);

// How many blocks make a batch. Threads and the store exchange whole batches: 64 small blocks, or one large block.
constexpr uint32_t BatchOf(int size_class) {
  return static_cast<uint32_t>(std::clamp<size_t>((32 << 10) / BytesOfClass(size_class), 1, 64));
}

// --- Blocks ---------------------------------------------------------------------------------------

// What a block holds while nobody uses it: the links of the lists that it is in.
struct Spare {
  Spare* next;        // the next block of its batch
  Spare* next_batch;  // in the first block of a batch in the store: the next batch
};
static_assert(sizeof(Spare) <= kHeaderBlockBytes);

void* Allocate(int size_class, size_t bytes) {
  return size_class == 0 ? ::operator new(bytes) : ::operator new(bytes, std::align_val_t(kBlockAlignment));
}

void Free(int size_class, void* block) {
  size_class == 0 ? ::operator delete(block) : ::operator delete(block, std::align_val_t(kBlockAlignment));
}

void FreeBatch(int size_class, Spare* batch) {
  while (batch != nullptr) Free(size_class, std::exchange(batch, batch->next));
}

// The batches of spare blocks that all threads share, a list for each size.
class Store {
 public:
  static Store& Get() {
    static auto* const store = new Store;  // threads may end after static destructors have run
    return *store;
  }

  Spare* Take(int size_class) {
    Shelf& shelf = shelves_[size_class];
    if (shelf.first.load(std::memory_order_relaxed) == nullptr) return nullptr;
    std::lock_guard<std::mutex> lock(shelf.mutex);
    Spare* const batch = shelf.first.load(std::memory_order_relaxed);
    if (batch == nullptr) return nullptr;
    shelf.first.store(batch->next_batch, std::memory_order_relaxed);
    shelf.bytes.fetch_sub(BatchBytes(size_class), std::memory_order_relaxed);
    bytes_.fetch_sub(BatchBytes(size_class), std::memory_order_relaxed);
    return batch;
  }

  // Adds a full batch. While the store holds more than kMostSpareBlockBytes, batches go back to the system, those of
  // the size that takes up most first: blocks that a deep recursion left behind make room for blocks of other sizes.
  void Give(int size_class, Spare* batch) {
    bytes_.fetch_add(BatchBytes(size_class), std::memory_order_relaxed);
    {
      Shelf& shelf = shelves_[size_class];
      std::lock_guard<std::mutex> lock(shelf.mutex);
      batch->next_batch = shelf.first.load(std::memory_order_relaxed);
      shelf.first.store(batch, std::memory_order_relaxed);
      shelf.bytes.fetch_add(BatchBytes(size_class), std::memory_order_relaxed);
    }
    while (bytes() > kMostSpareBlockBytes && FreeLargest()) continue;
  }

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // The batches of one size.
  struct Shelf {
    std::mutex mutex;
    std::atomic<Spare*> first{nullptr};  // written under the lock, as is `bytes`
    std::atomic<int64_t> bytes{0};
  };

  // Gives a batch of the size that takes up most of the store back to the system. False if there is no batch.
  bool FreeLargest() {
    int largest = 0;
    for (int i = 1; i < kNumClasses; ++i) {
      if (shelves_[i].bytes.load(std::memory_order_relaxed) > shelves_[largest].bytes.load(std::memory_order_relaxed)) {
        largest = i;
      }
    }
    Spare* const batch = Take(largest);
    FreeBatch(largest, batch);
    return batch != nullptr;
  }

  static int64_t BatchBytes(int size_class) {
    return static_cast<int64_t>(BatchOf(size_class) * BytesOfClass(size_class));
  }

  std::array<Shelf, kNumClasses> shelves_;
  std::atomic<int64_t> bytes_{0};  // of all shelves
};

// --- A thread's blocks ----------------------------------------------------------------------------

// A thread's spare blocks of one size. Blocks are taken from `current` and given back to it; `full` is nullptr or one
// full batch. Because there are two lists, a thread that takes and gives a block in turn, just where `current` is full
// or empty, needs the store for neither.
struct Stack {
  Spare* current;
  Spare* full;
  uint32_t room;  // how many blocks are still to come until `current` is a full batch
};

// All spare blocks of one thread.
struct ThreadBlocks {
  std::array<Stack, kNumClasses> stacks;
};

// What a thread has before its first block, and what it has once it is ending. Nobody writes to them: there is no block
// to take, and no room to give one.
ABSL_CONST_INIT ThreadBlocks none_yet = {};
ABSL_CONST_INIT ThreadBlocks none_any_more = {};

ABSL_CONST_INIT thread_local ThreadBlocks* thread_blocks TFR_INITIAL_EXEC = &none_yet;

// Gives up a thread's spare blocks when the thread ends: OwnBlocks() makes one in each thread.
struct ThreadBlocksEnd {
  ~ThreadBlocksEnd() {
    const std::unique_ptr<ThreadBlocks> blocks(std::exchange(thread_blocks, &none_any_more));
    for (int i = 0; i < kNumClasses; ++i) {
      const Stack& stack = blocks->stacks[i];
      if (stack.full != nullptr) Store::Get().Give(i, stack.full);
      FreeBatch(i, stack.current);
    }
  }
};

// Returns the blocks of this thread, which keeps some from now on. Returns nullptr if the thread is ending and keeps
// none any more: what it still frees goes to the system.
ThreadBlocks* OwnBlocks() {
  if (thread_blocks == &none_any_more) return nullptr;
  if (thread_blocks == &none_yet) {
    thread_blocks = new ThreadBlocks{};
    for (int i = 0; i < kNumClasses; ++i) thread_blocks->stacks[i].room = BatchOf(i);
    thread_local ThreadBlocksEnd end;
    (void)end;
  }
  return thread_blocks;
}

// Takes a block for a thread that has none in `current`.
ABSL_ATTRIBUTE_NOINLINE void* TakeFromStore(int size_class) {
  ThreadBlocks* const blocks = OwnBlocks();
  if (blocks == nullptr) return Allocate(size_class, BytesOfClass(size_class));
  Stack& stack = blocks->stacks[size_class];
  Spare* batch = std::exchange(stack.full, nullptr);
  if (batch == nullptr) batch = Store::Get().Take(size_class);
  if (batch == nullptr) return Allocate(size_class, BytesOfClass(size_class));
  stack.current = batch->next;
  stack.room = 1;
  return batch;
}

// Returns the thread's blocks of one size, where there was no room, with room. Returns nullptr if the thread is ending.
ABSL_ATTRIBUTE_NOINLINE Stack* MakeRoom(int size_class) {
  ThreadBlocks* const blocks = OwnBlocks();
  if (blocks == nullptr) return nullptr;
  Stack* const stack = &blocks->stacks[size_class];
  if (stack->room > 0) return stack;  // these are new
  if (stack->full != nullptr) Store::Get().Give(size_class, stack->full);
  stack->full = std::exchange(stack->current, nullptr);
  stack->room = BatchOf(size_class);
  return stack;
}

}  // namespace

void* TakeBlock(size_t bytes) {
  if (ABSL_PREDICT_FALSE(bytes > kLargestBlock)) return Allocate(1, bytes);
  const int size_class = ClassOf(bytes);
  Stack* const stack = &thread_blocks->stacks[size_class];
  Spare* const block = stack->current;
  if (ABSL_PREDICT_FALSE(block == nullptr)) return TakeFromStore(size_class);
  stack->current = block->next;
  // After a deep recursion the spare blocks are scattered over memory: fetch the next one into the cache now.
  __builtin_prefetch(stack->current, /*rw=*/1);
  ++stack->room;
  return block;
}

void GiveBlock(void* block, size_t bytes) {
  if (ABSL_PREDICT_FALSE(bytes > kLargestBlock)) return Free(1, block);
  const int size_class = ClassOf(bytes);
  Stack* stack = &thread_blocks->stacks[size_class];
  if (ABSL_PREDICT_FALSE(stack->room == 0)) stack = MakeRoom(size_class);
  if (ABSL_PREDICT_FALSE(stack == nullptr)) return Free(size_class, block);
  auto* const spare = static_cast<Spare*>(block);
  spare->next = stack->current;
  stack->current = spare;
  --stack->room;
}

int64_t SpareBlockBytes() { return Store::Get().bytes(); }

}  // namespace tensorflow_recursion
