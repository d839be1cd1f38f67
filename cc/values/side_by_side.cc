// SPDX-License-Identifier: Apache-2.0
#include "cc/values/side_by_side.h"

#include <cstdint>
#include <cstring>

#include "tensorflow/core/util/work_sharder.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::thread::ThreadPool;

// What it takes to copy a piece, in cycles, besides its bytes; and how many bytes are copied in a cycle. The pieces lie
// apart from each other, so that each begins with a wait for memory.
constexpr int64_t kCyclesOfPiece = 100;
constexpr int64_t kBytesOfCycle = 4;

}  // namespace

void CopySideBySide(const std::vector<absl::string_view>& pieces, void* to, ThreadPool* threads) {
  std::vector<char*> places(pieces.size());
  auto* end = static_cast<char*>(to);
  for (size_t i = 0; i < pieces.size(); ++i) {
    places[i] = end;
    end += pieces[i].size();
  }
  const auto copy = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      if (!pieces[i].empty()) std::memcpy(places[i], pieces[i].data(), pieces[i].size());
    }
  };
  const auto count = static_cast<int64_t>(pieces.size());
  if (threads == nullptr || count < 2) return copy(0, count);
  const int64_t cycles = kCyclesOfPiece + (end - static_cast<char*>(to)) / count / kBytesOfCycle;
  tensorflow::Shard(threads->NumThreads(), threads, count, cycles, copy);
}

}  // namespace tensorflow_recursion
