// What flows along an edge: a number held in place, or a tensor owned by whoever holds the Value.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_VALUE_H_
#define TENSORFLOW_RECURSION_CC_VALUES_VALUE_H_

#include <cstdint>
#include <cstring>

#include "cc/values/tensor_memory.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {

class Invariants;
class Record;
class Rope;
struct ContributionTerm;

// A plain 16-byte record, so that frames can be copied from templates and moved without calls.
// Ownership is by convention: a Value of kind kTensor or kRef owns its heap object, one of kind
// kRecord, kContributions or kRope a reference on it (and in the frame that enters a recursion kInvariants its
// invariants, which are never copied), and whoever takes the Value over must in the end Release() it or move it on.
// kConstant points into the Program, kBorrowed to what a frame around the one that reads it keeps, or the run; copying
// either is free.
// kScalar holds the number itself; its dtype is a static fact of the edge.
struct Value {
  enum class Kind : uint8_t {
    kEmpty,
    kScalar,
    kConstant,
    kBorrowed,
    kDead,
    kTensor,
    kRef,
    kRecord,
    kContributions,
    kRope,
    kInvariants
  };

  union {
    uint64_t bits;
    bool boolean;
    int32_t int32;
    int64_t int64;
    float float32;
    double float64;
    tensorflow::Tensor* tensor;
    const tensorflow::Tensor* constant;  // of kConstant and kBorrowed
    tensorflow::TensorValue* ref;        // a variable's tensor and its lock (TF1 ref dtypes)
    Record* record;                      // nullptr: that of a call that was not made, in a branch that was not taken
    Invariants* invariants;
    ContributionTerm* contributions;  // a gradient that is not summed up yet; nullptr: zero
    Rope* rope;                       // a tensor that is not put together yet
  };
  Kind kind;
  uint32_t position;  // in a merge's slot: which input won; in a table of inputs: the slot, or the invariant

  static Value Empty() { return Make(Kind::kEmpty); }
  static Value Dead() { return Make(Kind::kDead); }
  static Value Scalar(uint64_t bits) {
    Value value = Make(Kind::kScalar);
    value.bits = bits;
    return value;
  }
  static Value Constant(const tensorflow::Tensor* tensor) {
    Value value = Make(Kind::kConstant);
    value.constant = tensor;
    return value;
  }
  static Value Borrow(const tensorflow::Tensor* tensor) {
    Value value = Make(Kind::kBorrowed);
    value.constant = tensor;
    return value;
  }
  static Value Own(tensorflow::Tensor* tensor) {
    Value value = Make(Kind::kTensor);
    value.tensor = tensor;
    return value;
  }
  static Value Ref(const tensorflow::TensorValue& ref) {
    Value value = Make(Kind::kRef);
    value.ref = new tensorflow::TensorValue(ref);
    return value;
  }
  static Value Own(Record* record) {  // takes the reference over
    Value value = Make(Kind::kRecord);
    value.record = record;
    return value;
  }

  static Value Own(ContributionTerm* contributions) {  // takes the reference over
    Value value = Make(Kind::kContributions);
    value.contributions = contributions;
    return value;
  }

  static Value Own(Rope* rope) {  // takes the reference over
    Value value = Make(Kind::kRope);
    value.rope = rope;
    return value;
  }

  static Value Own(Invariants* invariants) {
    Value value = Make(Kind::kInvariants);
    value.invariants = invariants;
    return value;
  }

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_empty() const { return kind == Kind::kEmpty; }
  bool is_dead() const { return kind == Kind::kDead; }
  // Whether Release() has something to free.
  bool owns() const { return kind >= Kind::kTensor; }

  // A second, independent Value: its tensor shares the buffer and counts as one more reference, so
  // a kernel forwards a buffer in place only when no other consumer can still see it.
  Value Copy() const { return owns() ? CopyOwned() : *this; }

  // The same Value for a reader that ends before this one does: a tensor is borrowed.
  Value Lend() const { return kind == Kind::kTensor ? Borrow(tensor) : Copy(); }

  // The same Value, but owned: for one that leaves the frames which may borrow.
  Value Escape() const { return kind == Kind::kBorrowed ? Own(NewTensor(*constant)) : *this; }

  // The tensor it holds or points to; nullptr if it is of another kind.
  const tensorflow::Tensor* tensor_or_null() const {
    if (kind == Kind::kTensor) return tensor;
    return kind == Kind::kConstant || kind == Kind::kBorrowed ? constant : nullptr;
  }

  // Makes a rope the tensor that it stands for, which is what most readers need; leaves others as they are.
  void Flatten() {
    if (kind == Kind::kRope) FlattenRope();
  }

  void Release() {
    if (owns()) ReleaseOwned();
    kind = Kind::kEmpty;
  }

  // *to = *this, by words. Compilers copy 16 bytes at once, and a processor that has just written the halves one by
  // one waits a dozen cycles before it reads them as a whole.
  void CopyTo(Value* to) const {
    uint64_t words[2];
    std::memcpy(words, this, sizeof(words));
    asm("" : "+r"(words[0]), "+r"(words[1]));  // keeps them in registers of their own
    std::memcpy(static_cast<void*>(to), words, sizeof(words));
  }

  // Leaves *this empty and hands what it held to the caller.
  Value Take() {
    Value value = *this;
    kind = Kind::kEmpty;
    return value;
  }

 private:
  Value CopyOwned() const;
  void ReleaseOwned();
  void FlattenRope();

  static Value Make(Kind kind) {
    Value value;
    value.bits = 0;
    value.kind = kind;
    value.position = 0;
    return value;
  }
};

static_assert(sizeof(Value) == 16, "frames hold Values by the dozen");

// Whether rank 0 tensors of this dtype travel as Value::Kind::kScalar.
bool IsUnboxed(tensorflow::DataType dtype);

// Wraps a kernel's output, taking `tensor` over; scalars of unboxed dtypes lose their box.
Value ValueFromTensor(tensorflow::Tensor* tensor);

// The number of a rank 0 tensor of an unboxed dtype.
Value ScalarFromTensor(const tensorflow::Tensor& tensor);

// The tensor of a kScalar Value.
tensorflow::Tensor TensorFromScalar(const Value& value, tensorflow::DataType dtype);

// The tensor of any Value that holds one; locks when it is a reference.
tensorflow::Tensor TensorFromValue(const Value& value, tensorflow::DataType dtype);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_VALUE_H_
