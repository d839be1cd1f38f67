// SPDX-License-Identifier: Apache-2.0
#include "cc/values/record.h"

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cc/base/status.h"
#include "cc/base/thread_locals.h"
#include "cc/values/slabs.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeString;
using tensorflow::Tensor;
using tensorflow::Variant;

constexpr size_t kRecordUnit = 8;
// Larger records get memory of their own, because they would waste the end of a slab.
constexpr size_t kLargestInSlab = 8 << 10;

// The header of a slab that one thread fills with records, one after the other. Any thread may free the records. The
// slab is given back when its maker has filled it and all its records are freed. The records of a recursion are freed
// together, or in the reverse order of their making, so that one record rarely keeps a slab of dead ones.
struct RecordSlab {
  // How many records have to be freed before the slab goes. While the maker fills it: kFilling less those freed.
  static constexpr uint32_t kFilling = 1u << 31;
  std::atomic<uint32_t> live;
  uint32_t made;
  size_t used;  // bytes, this header included

  static RecordSlab* New() {
    auto* slab = new (TakeSlab()) RecordSlab;
    slab->live.store(kFilling, std::memory_order_relaxed);
    slab->Clear();
    return slab;
  }
  void Clear() {
    made = 0;
    used = sizeof(RecordSlab);
  }
  // Release and acquire: the thread that gives the slab back sees all that others did to its records.
  void Subtract(uint32_t count) {
    if (live.fetch_sub(count, std::memory_order_acq_rel) == count) GiveSlab(reinterpret_cast<unsigned char*>(this));
  }
  void Close() { Subtract(kFilling - made); }
};
static_assert(kSlabBytes / kRecordUnit <= (1 << 16), "slab_offset_ has 16 bits");

// What one thread has of its own: its share of the count of records, which it alone writes (to increment one counter
// that all threads share would cost as much as the rest of making a record), the slab that it fills, and the records
// that it is about to free.
struct ThreadState {
  std::atomic<int64_t> count;
  RecordSlab* slab;
  std::vector<Record*>* dying;  // nullptr: the thread is not freeing records
  bool is_registered;
};

// Adds up the counts of the threads that live and of those that have ended.
class Totals {
 public:
  static Totals& Get() {
    static auto* totals = new Totals;  // threads may end after static destructors have run
    return *totals;
  }

  void Add(ThreadState* state) {
    std::lock_guard<std::mutex> lock(mutex_);
    states_.push_back(state);
  }

  void Remove(ThreadState* state) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (ThreadState*& other : states_) {
      if (other != state) continue;
      other = states_.back();
      states_.pop_back();
      break;
    }
    count_ += state->count.load(std::memory_order_relaxed);
  }

  int64_t Count() {
    std::lock_guard<std::mutex> lock(mutex_);
    int64_t sum = count_;
    for (const ThreadState* state : states_) sum += state->count.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  std::mutex mutex_;
  std::vector<ThreadState*> states_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

ABSL_CONST_INIT thread_local ThreadState thread_state TFR_INITIAL_EXEC = {};

// Moves a thread's counts to the totals when the thread ends; Register() makes one in each thread. What the thread
// frees after that isn't counted.
struct ThreadEnd {
  ~ThreadEnd() {
    Totals::Get().Remove(&thread_state);
    if (thread_state.slab != nullptr) std::exchange(thread_state.slab, nullptr)->Close();
  }
};

ABSL_ATTRIBUTE_NOINLINE void Register(ThreadState* state) {
  state->is_registered = true;
  thread_local ThreadEnd end;
  (void)end;
  Totals::Get().Add(state);
}

inline void Tally(ThreadState* state, int64_t count) {
  if (ABSL_PREDICT_FALSE(!state->is_registered)) Register(state);
  state->count.store(state->count.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

ABSL_ATTRIBUTE_NOINLINE void TakeNextSlab(ThreadState* state) {
  if (state->slab != nullptr) state->slab->Close();
  state->slab = RecordSlab::New();
}

std::string Subject(const RecordType& type) { return absl::StrCat("Gradient of '", type.function, "': "); }

absl::Status NoRecord(const Value& value, const RecordType& type) {
  const Tensor tensor = TensorFromValue(value, tensorflow::DT_VARIANT);
  std::string what;
  if (tensor.dtype() != tensorflow::DT_VARIANT || tensor.dims() != 0 || !tensor.IsInitialized()) {
    what =
        absl::StrCat("a tensor of type ", DataTypeString(tensor.dtype()), " and shape ", tensor.shape().DebugString());
  } else if (const auto& variant = tensor.scalar<Variant>()(); variant.is_empty()) {
    what = "an empty variant, which is what a call that keeps no record gives";
  } else if (variant.TypeId() == tensorflow::TypeIndex::Make<RecordVariant>()) {
    what = "that of one in another process; pin forward and backward calls to one";
  } else {
    what = absl::StrCat("a variant of type ", variant.TypeName());
  }
  return InvalidArgument(Subject(type), "its input is not the record of a forward call but ", what);
}

}  // namespace

size_t Record::BytesOf(uint32_t size) {
  const size_t bytes = sizeof(Record) + size * (sizeof(uint64_t) + sizeof(uint8_t));
  return (bytes + kRecordUnit - 1) / kRecordUnit * kRecordUnit;
}

Record* Record::New(uint32_t size) {
  ThreadState* const state = &thread_state;
  const size_t bytes = BytesOf(size);
  Tally(state, 1);
  Record* record = nullptr;
  if (ABSL_PREDICT_FALSE(bytes > kLargestInSlab)) {
    record = new (::operator new(bytes)) Record(size);
  } else {
    if (ABSL_PREDICT_FALSE(state->slab == nullptr || state->slab->used + bytes > kSlabBytes)) TakeNextSlab(state);
    RecordSlab* const slab = state->slab;
    record = new (reinterpret_cast<unsigned char*>(slab) + slab->used) Record(size);
    record->slab_offset_ = static_cast<uint16_t>(slab->used / kRecordUnit);
    slab->used += bytes;
    ++slab->made;
  }
  std::memset(record->tags(), 0, TagWords(size) * sizeof(uint64_t));
  return record;
}

// A constant is copied as well, because it belongs to a program, which the record may outlive. That costs little: few
// constants that are retained are more than a number.
Value Record::Own(Value value, DataType dtype) {
  auto* const tensor = NewTensor(TensorFromValue(value, dtype));
  // What a variable holds now is read, as it may change, and a number in it is unboxed. Other numbers already are.
  const Value owned = value.kind == Value::Kind::kRef ? ValueFromTensor(tensor) : Value::Own(tensor);
  value.Release();
  return owned;
}

void Record::Unref() {
  // Nobody can add a reference to a record that has only the caller's, so the atomic write is saved.
  if (!IsUnshared() && references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  FreeAll(this);
}

// A value of the record may hold a reference on another record, itself or in a tensor of DT_VARIANT. Where it was the
// last reference, releasing the value calls FreeAll again, which then only adds that record to the list of this loop.
void Record::FreeAll(Record* first) {
  ThreadState* const state = &thread_state;
  if (state->dying != nullptr) return state->dying->push_back(first);
  std::vector<Record*> dying;
  state->dying = &dying;
  int64_t count = 0;
  for (Record* record = first; record != nullptr;) {
    for (uint32_t i = 0; i < record->size_; ++i) record->Take(i).Release();
    ++count;
    Free(record);
    record = dying.empty() ? nullptr : dying.back();
    if (record != nullptr) dying.pop_back();
  }
  state->dying = nullptr;
  Tally(state, -count);
}

// If the slab is the one that this thread still fills, and no record is left in it, the thread fills it from the start.
void Record::Free(Record* record) {
  if (ABSL_PREDICT_FALSE(record->slab_offset_ == 0)) return ::operator delete(record);
  auto* at = reinterpret_cast<unsigned char*>(record);
  auto* slab = reinterpret_cast<RecordSlab*>(at - record->slab_offset_ * kRecordUnit);
  if (slab != thread_state.slab) return slab->Subtract(1);
  const uint32_t left = slab->live.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if (left != RecordSlab::kFilling - slab->made) return;
  slab->live.store(RecordSlab::kFilling, std::memory_order_relaxed);
  slab->Clear();
}

int64_t Record::LiveCount() { return Totals::Get().Count(); }

std::string RecordVariant::DebugString() const {
  if (record_ == nullptr) return "Record<none>";
  return absl::StrCat("Record<", record_->size(), " values>");
}

Tensor BoxRecord(Record* record) {
  Tensor tensor(tensorflow::DT_VARIANT, tensorflow::TensorShape({}));
  if (record == nullptr) return tensor;
  record->Ref();
  tensor.scalar<Variant>()() = RecordVariant(record);
  return tensor;
}

Record* RecordInTensor(const Tensor& tensor) {
  if (tensor.dtype() != tensorflow::DT_VARIANT || tensor.dims() != 0 || !tensor.IsInitialized()) return nullptr;
  const auto* variant = tensor.scalar<Variant>()().get<RecordVariant>();
  return variant == nullptr ? nullptr : variant->get();
}

namespace {

// A new record that is never freed. LiveCount() leaves it out, because tests look for records that leaked.
Record* NewForEver(uint32_t size) {
  Record* const record = Record::New(size);
  Tally(&thread_state, -1);
  return record;
}

// The record of zeros for these types: the number 0, and for DT_VARIANT Record::Zeros(). Each is made once.
Record* ZeroRecord(const tensorflow::DataTypeVector& types) {
  static auto* const mutex = new absl::Mutex;
  static auto* const made = new std::map<std::vector<DataType>, Record*>;
  absl::MutexLock lock(mutex);
  Record*& zeros = (*made)[std::vector<DataType>(types.begin(), types.end())];
  if (zeros != nullptr) return zeros;
  zeros = NewForEver(static_cast<uint32_t>(types.size()));
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (types[i] == tensorflow::DT_VARIANT) {
      Record::Zeros()->Ref();
      zeros->Set(i, Value::Own(Record::Zeros()), types[i]);
      continue;
    }
    Tensor zero(types[i], tensorflow::TensorShape({}));
    std::memset(zero.data(), 0, zero.TotalBytes());
    zeros->Set(i, IsUnboxed(types[i]) ? ScalarFromTensor(zero) : Value::Own(NewTensor(zero)), types[i]);
  }
  zeros->Ref();  // a second reference, because a reader that holds the only one takes the values out
  return zeros;
}

}  // namespace

Record* Record::Zeros() {
  static Record* const zeros = NewForEver(0);
  return zeros;
}

absl::Status FindRecord(const Value& value, const RecordType& type, Record** record) {
  if (value.kind == Value::Kind::kRecord) {
    *record = value.record;
  } else {
    const Tensor* tensor = value.tensor_or_null();
    *record = tensor == nullptr ? nullptr : RecordInTensor(*tensor);
  }
  if (*record == nullptr) return NoRecord(value, type);
  const uint32_t size = (*record)->size();
  if (size == 0 && !type.types.empty()) {
    *record = ZeroRecord(type.types);
    return absl::OkStatus();
  }
  if (size != type.types.size()) {
    return InvalidArgument(Subject(type), "the record of its forward call holds ", size, " values, expected ",
                           type.types.size());
  }
  for (uint32_t i = 0; i < size; ++i) {
    const DataType dtype = (*record)->dtype(i);
    if (ABSL_PREDICT_TRUE(dtype == type.types[i])) continue;
    return InvalidArgument(Subject(type), "value ", i, " of the record of its forward call is ", DataTypeString(dtype),
                           ", expected ", DataTypeString(type.types[i]));
  }
  return absl::OkStatus();
}

REGISTER_UNARY_VARIANT_DECODE_FUNCTION(RecordVariant, "tensorflow_recursion::Record");

}  // namespace tensorflow_recursion
