// What one invocation of a function keeps for its gradient: the values that its backward function reads.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_RECORD_H_
#define TENSORFLOW_RECURSION_CC_VALUES_RECORD_H_

#include <atomic>
#include <cstddef>
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

// The values that one Retain operator has packed. Records nest: among the values are the records of the calls that the
// invocation made, so that one record holds those of a whole recursion. A record takes 8 bytes, and 9 for each value:
// its content, its dtype and its kind. The kind is kScalar, kTensor, kRecord or kRope: a record may outlive frames and
// programs, so it borrows nothing from them. Records are shared by counted references, and immutable once they are
// shared, so that any number of threads may read them.
class Record {
 public:
  static constexpr int kMaxSize = 0xffff;

  // A new record of empty values, with one reference, which is the caller's.
  static Record* New(uint32_t size);

  // The record without values, which stands for zeros: see FindRecord(). It is never freed.
  static Record* Zeros();

  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  uint32_t size() const { return size_; }
  tensorflow::DataType dtype(uint32_t index) const {
    return static_cast<tensorflow::DataType>(tags()[index] & kDtypeMask);
  }

  // The value; the record goes on owning what it refers to.
  Value Get(uint32_t index) const {
    static constexpr Value::Kind kKinds[] = {Value::Kind::kEmpty, Value::Kind::kScalar, Value::Kind::kTensor,
                                             Value::Kind::kRope};
    Value value = Value::Scalar(contents()[index]);
    const uint8_t tag = tags()[index];
    value.kind = tag == kRecordTag ? Value::Kind::kRecord : kKinds[tag >> kKindShift];
    return value;
  }
  // The value, which the caller owns from now on; the record's is empty.
  Value Take(uint32_t index) {
    const Value value = Get(index);
    tags()[index] &= kDtypeMask;
    return value;
  }

  // Takes over `value`, which came along an edge of type `dtype`.
  void Set(uint32_t index, Value value, tensorflow::DataType dtype) {
    uint8_t kind = KindTag(value.kind);
    if (ABSL_PREDICT_FALSE(kind == 0)) {
      value = Own(value, dtype);
      kind = KindTag(value.kind);
    }
    contents()[index] = value.bits;
    tags()[index] = static_cast<uint8_t>(kind << kKindShift | dtype);
  }

  // These are for compiled code, whose records hold only numbers and records, with tags that it knows (RecordLayout).
  // A value is 64 bits here: a number, or a Record*, the reference to which belongs to this record.
  uint64_t bits(uint32_t index) const { return contents()[index]; }
  void set_bits(uint32_t index, uint64_t bits) { contents()[index] = bits; }
  // The tags of `size` values take this many words, of which the unused bytes are 0.
  static constexpr uint32_t TagWords(uint32_t size) { return (size + 7) / 8; }
  uint64_t* tag_words() { return contents() + size_; }
  const uint64_t* tag_words() const { return contents() + size_; }

  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  // Frees the record when this was the last reference, and with it the records that only it refers to. That takes a
  // list of work instead of recursive calls, because a chain of records may be as long as the recursion was deep.
  void Unref();
  // Whether the caller's reference is the only one, so that nobody else can read the values.
  bool IsUnshared() const { return references_.load(std::memory_order_acquire) == 1; }

  // How many bytes a record of `size` values takes.
  static size_t BytesOf(uint32_t size);

  // How many records there are in this process, over all threads; for tests.
  static int64_t LiveCount();

 private:
  // A tag is a dtype in the lower 6 bits (never a reference dtype), and a kind above it; kind 0 is empty.
  static constexpr uint8_t kKindShift = 6;
  static constexpr uint8_t kDtypeMask = (1 << kKindShift) - 1;
  // Records and ropes have the same kind in tags, 3. Their dtypes tell them apart: only a record is of DT_VARIANT.
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
  uint16_t slab_offset_;  // where it lies in its slab, in units of kRecordUnit bytes; 0: it has memory of its own
};

static_assert(sizeof(Record) == 8, "a record of four values has 48 bytes");

// A reference to a record, as a tensor of DT_VARIANT holds it. It can't be copied to another process or device.
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
  // Hands the reference over to the caller.
  Record* Release() { return std::exchange(record_, nullptr); }

  // What tensorflow::Variant asks of its values.
  std::string TypeName() const { return "tensorflow_recursion::Record"; }
  void Encode(tensorflow::VariantTensorData* data) const { data->set_type_name(TypeName()); }
  // Another process has no such record. Decode succeeds all the same, so that Recall can report it (FindRecord): if
  // Decode failed, the user would only hear that a message could not be parsed.
  bool Decode(const tensorflow::VariantTensorData& /*data*/) { return true; }
  std::string DebugString() const;

 private:
  Record* record_ = nullptr;
};

// The scalar of DT_VARIANT that stands for `record` outside the executor, with a reference of its own. If `record` is
// nullptr, the variant is empty.
tensorflow::Tensor BoxRecord(Record* record);

// The record that a tensor of any type holds, or nullptr.
Record* RecordInTensor(const tensorflow::Tensor& tensor);

// What a Retain or Recall operator says of its records: the function they belong to, and the dtypes of the values.
struct RecordType {
  std::string name;      // of the node
  std::string function;  // as users know it
  tensorflow::DataTypeVector types;
};

// Finds the record in `value`, the input of a Recall. The reference stays the value's. A record without values stands
// for zeros, as the gradient of a call in a branch that was not taken gets it: *record is then a record of zeros of
// `type`. InvalidArgument if `value` holds no record, or one of another type.
absl::Status FindRecord(const Value& value, const RecordType& type, Record** record);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_RECORD_H_
