// Keeps the records that a running call of compiled code has made and that are not in another one yet.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_LOOSE_RECORDS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_LOOSE_RECORDS_H_

#include <vector>

#include "cc/values/record.h"

namespace tensorflow_recursion {

// Registers do not count references, because the records that they refer to live as long as the outermost call. Records
// that this call was given belong to its arguments, and the others are here. A record moves out of here into the one
// that keeps it. In a recursion that happens soon after it was made, so there are few here at a time, and no references
// are counted at all.
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

  // Gives the caller a reference to the record: the one that is kept here if the record is among the newest, otherwise
  // a further one. Does nothing for nullptr.
  Record* Take(Record* record);

  bool empty() const { return records_.empty(); }
  void Clear();

 private:
  // The newest comes last.
  std::vector<Record*> records_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_LOOSE_RECORDS_H_
