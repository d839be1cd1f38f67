// What a record of numbers and other records looks like, as compiled code makes and reads it without looking at values.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_RECORD_LAYOUT_H_
#define TENSORFLOW_RECURSION_CC_VALUES_RECORD_LAYOUT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cc/values/record.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// The layout of the records of one Retain or Recall. Bytecode that makes a record writes the tags of all its values at
// once, and bytecode that reads one compares all of them at once.
class RecordLayout {
 public:
  // MayHold() must be true of each dtype in `type`.
  explicit RecordLayout(RecordType type);

  // Whether values of this dtype are numbers, or may be records.
  static bool MayHold(tensorflow::DataType dtype);

  const RecordType& type() const { return type_; }

  // A new record with one reference, which is the caller's. The caller has to set its values by set_bits().
  Record* New() const {
    Record* const record = Record::New(size_);
    if (tag_words_.size() == 1) {
      record->tag_words()[0] = tag_words_[0];
    } else {
      std::copy(tag_words_.begin(), tag_words_.end(), record->tag_words());
    }
    return record;
  }

  // Whether the record has this layout, so that bits() may be read. The values of DT_VARIANT are then Record* or
  // nullptr.
  bool IsOf(const Record& record) const {
    if (record.size() != size_) return false;
    if (tag_words_.size() == 1) return record.tag_words()[0] == tag_words_[0];  // of up to eight values, as most are
    return std::equal(tag_words_.begin(), tag_words_.end(), record.tag_words());
  }

  // `record` if it has this layout; a record of zeros if it is the record without values, which stands for zeros; else
  // nullptr. No reference is added.
  Record* Find(Record* record) const;

 private:
  RecordType type_;
  uint32_t size_;
  std::vector<uint64_t> tag_words_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_RECORD_LAYOUT_H_
