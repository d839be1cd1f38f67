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

// A plain struct of 16 bytes, so that frames can be copied from templates and moved without calls of constructors.
//
// What a Value owns depends on its kind, and nothing enforces it: whoever takes a Value over has to Release() it in the
// end, or to hand it on.
//   kTensor, kRef                   own the object on the heap.
//   kRecord, kContributions, kRope  own a counted reference.
//   kInvariants                     owns the invariants. It is in the frame that enters a recursion, and never copied.
//   kConstant, kBorrowed            point to a tensor of the program, the run, or a frame that ends later.
//   kScalar                         holds the number itself, but not its dtype, which is a static fact of the edge.
struct Value {
  // What the Value is, and so which member of the union is set. Kinds from kTensor on own something.
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
    Record* record;                      // nullptr: of a call that was not made, in a branch that was not taken
    Invariants* invariants;
    ContributionTerm* contributions;  // a sum that is not computed yet; nullptr: zero
    Rope* rope;                       // a tensor in parts
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

  // The same Value, for use outside the frames that may borrow: a borrowed tensor becomes an owned one.
  Value Escape() const { return kind == Kind::kBorrowed ? Own(NewTensor(*constant)) : *this; }

  // The tensor that it owns or points to; nullptr if it is of another kind.
  const tensorflow::Tensor* tensor_or_null() const {
    if (kind == Kind::kTensor) return tensor;
    return kind == Kind::kConstant || kind == Kind::kBorrowed ? constant : nullptr;
  }

  // Turns a rope into the tensor that it stands for, which most readers need. Leaves other kinds as they are.
  // If `threads` are given, they share the copy of a large one.
  void Flatten(tensorflow::thread::ThreadPool* threads = nullptr) {
    if (kind == Kind::kRope) FlattenRope(threads);
  }

  void Release() {
    if (owns()) ReleaseOwned();
    kind = Kind::kEmpty;
  }

  // Does *to = *this in two words of 8 bytes. Compilers would copy 16 bytes at once, and a processor that has just
  // written the halves one by one waits a dozen cycles before it can read them as a whole.
  void CopyTo(Value* to) const {
    uint64_t words[2];
    std::memcpy(words, this, sizeof(words));
    asm("" : "+r"(words[0]), "+r"(words[1]));  // keeps them in registers of their own
    std::memcpy(static_cast<void*>(to), words, sizeof(words));
  }

  // Hands the Value over to the caller, and leaves this one empty.
  Value Take() {
    Value value = *this;
    kind = Kind::kEmpty;
    return value;
  }

 private:
  Value CopyOwned() const;
  void ReleaseOwned();
  void FlattenRope(tensorflow::thread::ThreadPool* threads);

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

// The Value of a kernel's output. Takes `tensor` over: a number of an unboxed dtype becomes a kScalar, and its tensor
// is freed.
Value ValueFromTensor(tensorflow::Tensor* tensor);

// The number of a rank 0 tensor of an unboxed dtype.
Value ScalarFromTensor(const tensorflow::Tensor& tensor);

// The tensor of a kScalar Value.
tensorflow::Tensor TensorFromScalar(const Value& value, tensorflow::DataType dtype);

// The tensor that a Value of any kind stands for, for example a scalar of DT_VARIANT for a record; an empty tensor for
// kEmpty, kDead and kInvariants. Takes the lock of a kRef.
tensorflow::Tensor TensorFromValue(const Value& value, tensorflow::DataType dtype);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_VALUE_H_
