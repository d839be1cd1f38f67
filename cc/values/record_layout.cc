// SPDX-License-Identifier: Apache-2.0
#include "cc/values/record_layout.h"

#include <utility>

#include "cc/values/value.h"

namespace tensorflow_recursion {

// Makes an example and copies its tags, because only Record knows how tags are written.
RecordLayout::RecordLayout(RecordType type) : type_(std::move(type)), size_(static_cast<uint32_t>(type_.types.size())) {
  Record* const example = Record::New(size_);
  for (uint32_t i = 0; i < size_; ++i) {
    const bool is_record = type_.types[i] == tensorflow::DT_VARIANT;
    example->Set(i, is_record ? Value::Own(static_cast<Record*>(nullptr)) : Value::Scalar(0), type_.types[i]);
  }
  tag_words_.assign(example->tag_words(), example->tag_words() + Record::TagWords(size_));
  example->Unref();
}

bool RecordLayout::MayHold(tensorflow::DataType dtype) { return dtype == tensorflow::DT_VARIANT || IsUnboxed(dtype); }

Record* RecordLayout::Find(Record* record) const {
  Record* found = nullptr;
  const bool is_found = FindRecord(Value::Own(record), type_, &found).ok();
  return is_found && IsOf(*found) ? found : nullptr;
}

}  // namespace tensorflow_recursion
