// SPDX-License-Identifier: Apache-2.0
#include "cc/values/slabs.h"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace tensorflow_recursion {
namespace {

constexpr size_t kMostSpareSlabs = 256;  // 64 MiB

// The slabs that nobody uses at present, shared by all threads.
class SpareSlabs {
 public:
  static SpareSlabs& Get() {
    static auto* const slabs = new SpareSlabs;  // threads may end after static destructors have run
    return *slabs;
  }

  unsigned char* Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.empty()) return nullptr;
    unsigned char* slab = spare_.back();
    spare_.pop_back();
    return slab;
  }

  bool Give(unsigned char* slab) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.size() == kMostSpareSlabs) return false;
    spare_.push_back(slab);
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<unsigned char*> spare_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

unsigned char* TakeSlab() {
  if (unsigned char* slab = SpareSlabs::Get().Take(); slab != nullptr) return slab;
  void* memory = mmap(nullptr, kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<unsigned char*>(memory);
}

void GiveSlab(unsigned char* slab) {
  if (!SpareSlabs::Get().Give(slab)) munmap(slab, kSlabBytes);
}

}  // namespace tensorflow_recursion
