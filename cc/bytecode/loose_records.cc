// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/loose_records.h"

#include <algorithm>
#include <cstddef>

namespace tensorflow_recursion {
namespace {

// How many of the newest records are searched. They suffice, because a body makes few calls between two records of its
// own.
constexpr size_t kSearched = 8;
// For how many records room is kept from one call to the next.
constexpr size_t kKeptRecords = 1024;

}  // namespace

Record* LooseRecords::Take(Record* record) {
  if (record == nullptr) return nullptr;
  const size_t searched = std::min(records_.size(), kSearched);
  for (auto at = records_.end(); at != records_.end() - static_cast<std::ptrdiff_t>(searched);) {
    if (*--at != record) continue;
    records_.erase(at);
    return record;
  }
  record->Ref();
  return record;
}

void LooseRecords::Clear() {
  for (Record* record : records_) record->Unref();
  records_.clear();
  if (records_.capacity() > kKeptRecords) records_.shrink_to_fit();
}

}  // namespace tensorflow_recursion
