// What one invocation of a function keeps for its gradient: the values that its backward function reads.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_RECORD_H_
#define TENSORFLOW_RECURSION_CC_VALUES_RECORD_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace tensorflow_recursion {

// Records nest: among the values are the records of the calls that the invocation made, so that those of
// a whole recursion hang from one. 8 bytes, and 9 for each value: its content, its dtype and its kind, which is
// kScalar, kTensor, kRecord or kRope: a record outlives frames and programs, so it borrows nothing. Shared by counted
// references; immutable once shared, so that any number of threads may read it.
class Record {
 public:
  static constexpr int kMaxSize = 0xffff;

  // A new record of empty values, with one reference, which is the caller's.
  static Record* New(uint32_t size);

  // A record without values, which stands for zeros: see FindRecord(). There for ever.
  static Record* Zeros();

  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  uint32_t size() const { return size_; }
  tensorflow::DataType dtype(uint32_t index) const {
    return static_cast<tensorflow::DataType>(tags()[index] & kDtypeMask);
  }

  // The value as it is, which stays the record's.
  Value Get(uint32_t index) const {
    static constexpr Value::Kind kKinds[] = {Value::Kind::kEmpty, Value::Kind::kScalar, Value::Kind::kTensor,
                                             Value::Kind::kRope};
    Value value = Value::Scalar(contents()[index]);
    const uint8_t tag = tags()[index];
    value.kind = tag == kRecordTag ? Value::Kind::kRecord : kKinds[tag >> kKindShift];
    return value;
  }
  // Leaves it to the caller.
  Value Take(uint32_t index) {
    const Value value = Get(index);
    tags()[index] &= kDtypeMask;
    return value;
  }

  // Takes `value` over, of an edge of type `dtype`.
  void Set(uint32_t index, Value value, tensorflow::DataType dtype) {
    uint8_t kind = KindTag(value.kind);
    if (ABSL_PREDICT_FALSE(kind == 0)) {
      value = Own(value, dtype);
      kind = KindTag(value.kind);
    }
    contents()[index] = value.bits;
    tags()[index] = static_cast<uint8_t>(kind << kKindShift | dtype);
  }

  // These are for records that hold only numbers and records, and of which compiled code knows the tags (RecordLayout).
  // They give a value as 64 bits, a number or a Record*, whose reference is the record's.
  uint64_t bits(uint32_t index) const { return contents()[index]; }
  void set_bits(uint32_t index, uint64_t bits) { contents()[index] = bits; }
  // All tags of `size` values, in words of which the rest is 0.
  static constexpr uint32_t TagWords(uint32_t size) { return (size + 7) / 8; }
  uint64_t* tag_words() { return contents() + size_; }
  const uint64_t* tag_words() const { return contents() + size_; }

  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  // Frees the record with its last reference, and whatever hangs from it: by a worklist, as a chain of
  // records may be as long as the recursion was deep.
  void Unref();
  // Whether the caller's reference is the only one: nobody else can get at the values.
  bool IsUnshared() const { return references_.load(std::memory_order_acquire) == 1; }

  // How many records there are in this process, over all threads, for tests.
  static int64_t LiveCount();
  static int64_t LiveBytes();

 private:
  // A tag is a dtype, which is no reference, and a kind above it; 0 is empty.
  static constexpr uint8_t kKindShift = 6;
  static constexpr uint8_t kDtypeMask = (1 << kKindShift) - 1;
  // Records and ropes are of one kind in tags: a rope is of plain numbers, a record of DT_VARIANT.
  static constexpr uint8_t kRecordTag = 3 << kKindShift | tensorflow::DT_VARIANT;

  explicit Record(uint32_t size) : references_(1), size_(static_cast<uint16_t>(size)), slab_offset_(0) {}
  ~Record() = default;

  static constexpr uint8_t KindTag(Value::Kind kind) {
    switch (kind) {
      case Value::Kind::kScalar:
        return 1;
      case Value::Kind::kTensor:
        return 2;
      case Value::Kind::kRecord:
      case Value::Kind::kRope:
        return 3;
      default:
        return 0;
    }
  }

  uint64_t* contents() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* contents() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  uint8_t* tags() { return reinterpret_cast<uint8_t*>(contents() + size_); }
  const uint8_t* tags() const { return reinterpret_cast<const uint8_t*>(contents() + size_); }

  // The same number or tensor, independent of programs and frames.
  static Value Own(Value value, tensorflow::DataType dtype);
  static void FreeAll(Record* first);
  static void Free(Record* record);

  std::atomic<uint32_t> references_;
  const uint16_t size_;
  uint16_t slab_offset_;  // in its slab, in kRecordUnit bytes; 0: it has memory of its own
};

static_assert(sizeof(Record) == 8, "a record of four values has 48 bytes");

// A reference on a record, as tensors of DT_VARIANT hold it. Can't be copied to another process or device.
class RecordVariant {
 public:
  RecordVariant() = default;
  explicit RecordVariant(Record* record) : record_(record) {}  // takes the reference over
  RecordVariant(const RecordVariant& other) : record_(other.record_) {
    if (record_ != nullptr) record_->Ref();
  }
  RecordVariant(RecordVariant&& other) noexcept : record_(other.Release()) {}
  RecordVariant& operator=(RecordVariant other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~RecordVariant() {
    if (record_ != nullptr) record_->Unref();
  }

  Record* get() const { return record_; }
  // Leaves the reference to the caller.
  Record* Release() { return std::exchange(record_, nullptr); }

  // What tensorflow::Variant asks of its values.
  std::string TypeName() const { return "tensorflow_recursion::Record"; }
  void Encode(tensorflow::VariantTensorData* data) const { data->set_type_name(TypeName()); }
  // In another process there is nothing to refer to. Recall says so; a failure here would be one to parse a message.
  bool Decode(const tensorflow::VariantTensorData& /*data*/) { return true; }
  std::string DebugString() const;

 private:
  Record* record_ = nullptr;
};

// The scalar of DT_VARIANT that stands for `record` outside the executor; takes a reference of its own. An empty
// variant if `record` is nullptr.
tensorflow::Tensor BoxRecord(Record* record);

// The record that a tensor of any type holds, or nullptr.
Record* RecordInTensor(const tensorflow::Tensor& tensor);

// A Retain or Recall operator: whose records they are, and of what types the values.
struct RecordType {
  std::string name;      // of the node
  std::string function;  // as users know it
  tensorflow::DataTypeVector types;
};

// Makes *record refer to the record in `value`, a Recall's input, whose reference stays the value's.
// InvalidArgument if it is none, or not one of `type`.
absl::Status FindRecord(const Value& value, const RecordType& type, Record** record);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_RECORD_H_
