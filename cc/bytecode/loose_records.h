// The records that a running call of compiled code has made and that are not in another one yet.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_LOOSE_RECORDS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_LOOSE_RECORDS_H_

#include <vector>

#include "cc/values/record.h"

namespace tensorflow_recursion {

// Registers do not count references: what they refer to lives as long as the outermost call. Records that it was given
// are its arguments', the others are here. A record moves out of here into the one that keeps it. In a recursion that
// is one of the newest, so there are few at a time, and nothing is counted at all.
class LooseRecords {
 public:
  LooseRecords() = default;
  ~LooseRecords() { Clear(); }
  LooseRecords(const LooseRecords&) = delete;
  LooseRecords& operator=(const LooseRecords&) = delete;

  // Takes the reference over.
  Record* Add(Record* record) {
    records_.push_back(record);
    return record;
  }

  // Gives a reference to the caller: its own if the record is among the newest, otherwise another one. nullptr is no
  // record.
  Record* Take(Record* record);

  bool empty() const { return records_.empty(); }
  void Clear();

 private:
  std::vector<Record*> records_;  // newest last
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_LOOSE_RECORDS_H_
