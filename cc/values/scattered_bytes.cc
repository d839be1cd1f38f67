// SPDX-License-Identifier: Apache-2.0
#include "cc/values/scattered_bytes.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/base/prefetch.h"

namespace tensorflow_recursion {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kBytesAhead = 2048;  // of later pieces, asked for before one is copied: about what a core can await

void Prefetch(absl::string_view piece) {
  const size_t bytes = std::min(piece.size(), kBytesAhead);
  for (size_t at = 0; at < bytes; at += kCacheLine) absl::PrefetchToLocalCache(piece.data() + at);
}

}  // namespace

absl::string_view TensorBytes(const tensorflow::Tensor& tensor) {
  const size_t bytes = tensor.NumElements() * tensorflow::DataTypeSize(tensor.dtype());
  return bytes == 0 ? absl::string_view() : absl::string_view(static_cast<const char*>(tensor.data()), bytes);
}

void CopyPieces(const std::vector<absl::string_view>& pieces, void* to) {
  char* end = static_cast<char*>(to);
  size_t ahead = 0;        // the first piece that has not been asked for
  size_t bytes_ahead = 0;  // of the pieces from the current one up to `ahead`
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (; ahead < pieces.size() && bytes_ahead < kBytesAhead; ++ahead) {
      Prefetch(pieces[ahead]);
      bytes_ahead += pieces[ahead].size();
    }
    bytes_ahead -= pieces[i].size();
    if (!pieces[i].empty()) std::memcpy(end, pieces[i].data(), pieces[i].size());
    end += pieces[i].size();
  }
}

}  // namespace tensorflow_recursion
