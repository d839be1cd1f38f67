// Kernels of sums and other reductions, and of softmax and cross entropy, which consist of them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cc/native/loops.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// --- AddN -----------------------------------------------------------------------------------------

template <typename T>
bool RunAddN(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const first = TensorIn(inputs[0]);
  if (first == nullptr) return false;
  for (int i = 1; i < kernel.num_inputs; ++i) {
    const Tensor* const x = TensorIn(inputs[i]);
    if (x == nullptr || x->shape() != first->shape()) return false;
  }
  if (kernel.num_inputs == 1) {
    HandOn(&inputs[0], &outputs[0]);
    return true;
  }
  const int64_t count = first->NumElements();
  const T* const a = DataOf<T>(*first);
  const T* const b = DataOf<T>(*inputs[1].tensor_or_null());
  T* const to = ReuseOrNew<T>(IsUnshared(inputs[0]) ? &inputs[0] : &inputs[1], &outputs[0]);
  const auto add = BestLoops<T>().of(Binary::kAdd, Meeting::kBoth);
  add(a, b, to, count);
  for (int i = 2; i < kernel.num_inputs; ++i) add(to, DataOf<T>(*inputs[i].tensor_or_null()), to, count);
  return true;
}

bool BindAddN(const tensorflow::Node& node, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunAddN);
  if (kernel->dtype == tensorflow::DT_VARIANT) kernel->run = AddContributions;
  return node.num_inputs() > 0;
}

// --- Softmax --------------------------------------------------------------------------------------

// The rows of a tensor: how many, and how many numbers each has.
bool ReadRows(const Tensor* x, int64_t* rows, int64_t* columns) {
  if (x == nullptr || x->dims() < 1 || x->NumElements() == 0) return false;
  *columns = x->dim_size(x->dims() - 1);
  *rows = x->NumElements() / *columns;
  return true;
}

// Many rows of a few numbers: stock kernels, which take each step for all rows at once, need less time for these. With
// rows of 5 numbers, 300 rows took 22 us against 8; 5 rows take half a microsecond.
bool AreManyShortRows(int64_t rows, int64_t columns) { return rows > 32 && columns < 16; }

// Subtracts a row's largest number from each of its numbers, so that no exponential overflows.
template <typename T>
void ShiftRow(const T* x, T* shifted, int64_t columns) {
  const Loops<T>& loops = BestLoops<T>();
  const T largest = loops.maximum(x, columns);
  loops.of(Binary::kSub, Meeting::kOneRight)(x, &largest, shifted, columns);
}

template <typename T>
void WriteSoftmax(const T* from, T* to, int64_t columns) {
  const Loops<T>& loops = BestLoops<T>();
  ShiftRow(from, to, columns);
  loops.of(Unary::kExp)(to, to, columns);
  const T scale = T(1) / loops.sum(to, columns);
  loops.of(Binary::kMul, Meeting::kOneRight)(to, &scale, to, columns);
}

// Writes the logarithm of a row's softmax. `scratch` has room for a row.
template <typename T>
void WriteLogSoftmax(const T* from, T* to, T* scratch, int64_t columns) {
  const Loops<T>& loops = BestLoops<T>();
  ShiftRow(from, to, columns);
  loops.of(Unary::kExp)(to, scratch, columns);
  const T log_of_sum = std::log(loops.sum(scratch, columns));
  loops.of(Binary::kSub, Meeting::kOneRight)(to, &log_of_sum, to, columns);
}

template <typename T>
bool RunSoftmax(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  int64_t rows = 0, columns = 0;
  if (!ReadRows(x, &rows, &columns) || AreManyShortRows(rows, columns)) return false;
  const T* from = DataOf<T>(*x);
  T* to = ReuseOrNew<T>(&inputs[0], &outputs[0]);
  for (int64_t row = 0; row < rows; ++row) WriteSoftmax(from + row * columns, to + row * columns, columns);
  return true;
}

bool BindSoftmax(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunSoftmax);
  return true;
}

// Memory for a row of intermediate results, from the pool of blocks.
template <typename T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : bytes_(count * sizeof(T)), numbers_(static_cast<T*>(TakeBlock(bytes_))) {}
  ~Scratch() { GiveBlock(numbers_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return numbers_; }

 private:
  const size_t bytes_;
  T* const numbers_;
};

template <typename T>
bool RunLogSoftmax(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  int64_t rows = 0, columns = 0;
  if (!ReadRows(x, &rows, &columns) || AreManyShortRows(rows, columns)) return false;
  const T* from = DataOf<T>(*x);
  T* to = ReuseOrNew<T>(&inputs[0], &outputs[0]);
  const Scratch<T> scratch(columns);
  for (int64_t row = 0; row < rows; ++row) {
    WriteLogSoftmax(from + row * columns, to + row * columns, scratch.get(), columns);
  }
  return true;
}

bool BindLogSoftmax(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  TFR_NATIVE_OF_FLOATS(kernel, RunLogSoftmax);
  return true;
}

// Inputs: logits, a label for each row. Outputs: the cross entropy of each row, and its gradient by the logits.
template <typename T, typename Label>
bool RunCrossEntropy(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const logits = TensorIn(inputs[0]);
  const Tensor* const labels = TensorIn(inputs[1]);
  int64_t rows = 0, columns = 0;
  if (labels == nullptr || labels->dims() != 1) return false;
  if (!ReadRows(logits, &rows, &columns) || logits->dims() != 2 || labels->dim_size(0) != rows) return false;
  const Label* const label = DataOf<Label>(*labels);
  for (int64_t row = 0; row < rows; ++row) {
    if (label[row] < 0 || label[row] >= columns) return false;
  }
  const T* from = DataOf<T>(*logits);
  T* const losses = NewOutput<T>(kernel.dtype, labels->shape(), &outputs[0]);
  T* gradient = NewOutput<T>(kernel.dtype, logits->shape(), &outputs[1]);
  const Scratch<T> scratch(columns);
  for (int64_t row = 0; row < rows; ++row, from += columns, gradient += columns) {
    WriteLogSoftmax(from, scratch.get(), gradient, columns);
    losses[row] = -scratch.get()[label[row]];
    WriteSoftmax(from, gradient, columns);
    gradient[label[row]] -= T(1);
  }
  return true;
}

template <typename T>
NativeFunction CrossEntropyWith(tensorflow::DataType labels) {
  if (labels == tensorflow::DT_INT32) return RunCrossEntropy<T, int32_t>;
  return labels == tensorflow::DT_INT64 ? static_cast<NativeFunction>(RunCrossEntropy<T, int64_t>) : nullptr;
}

bool BindCrossEntropy(const tensorflow::Node& node, NativeKernel* kernel) {
  if (kernel->dtype == tensorflow::DT_FLOAT) kernel->run = CrossEntropyWith<float>(node.input_type(1));
  if (kernel->dtype == tensorflow::DT_DOUBLE) kernel->run = CrossEntropyWith<double>(node.input_type(1));
  return true;
}

// --- Reductions -----------------------------------------------------------------------------------

// Reads which dimensions are reduced: bit d stands for dimension d. Returns false if the kernel does not serve `axes`.
bool ReadAxes(const Value& axes, tensorflow::DataType dtype, int dims, uint32_t* reduced) {
  const Tensor* const tensor = TensorIn(axes);
  if (tensor == nullptr && !axes.is_scalar()) return false;
  const int64_t count = tensor == nullptr ? 1 : tensor->NumElements();
  *reduced = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = tensor == nullptr ? IntegerOf(axes, dtype) : IntegerAt(*tensor, i);
    if (axis < 0) axis += dims;
    if (axis < 0 || axis >= dims || (*reduced >> axis & 1) != 0) return false;
    *reduced |= uint32_t{1} << axis;
  }
  return true;
}

// A tensor [outer, count, inner] by what its dimensions are reduced to: one number of `count`.
struct Reduced {
  int64_t outer = 1, count = 1, inner = 1;

  // Returns false if there are dimensions between the reduced ones. Those of one element may lie anywhere.
  bool Read(const Tensor& x, uint32_t reduced) {
    bool is_behind = false;
    for (int d = 0; d < x.dims(); ++d) {
      const int64_t size = x.dim_size(d);
      if (size == 1) continue;
      if ((reduced >> d & 1) != 0) {
        if (is_behind) return false;
        count *= size;
      } else {
        is_behind = is_behind || count > 1;
        (is_behind ? inner : outer) *= size;
      }
    }
    return reduced != 0;
  }
};

// What the numbers of the reduced dimensions become.
enum class Reduction { kSum, kMean, kMaximum };

template <typename T>
T Reduce(Reduction reduction, const T* x, int64_t count) {
  if (reduction == Reduction::kMaximum) return BestLoops<T>().maximum(x, count);
  const T sum = BestLoops<T>().sum(x, count);
  return reduction == Reduction::kMean ? sum / static_cast<T>(count) : sum;
}

// Reduces `count` rows of `columns` numbers to one row. A sum begins with 0, as in stock kernels.
template <typename T>
void ReduceRows(Reduction reduction, const T* from, int64_t count, int64_t columns, T* to) {
  const Loops<T>& loops = BestLoops<T>();
  const bool is_maximum = reduction == Reduction::kMaximum;
  const T zero = 0, divisor = static_cast<T>(count);
  if (is_maximum) {
    std::copy_n(from, columns, to);
  } else {
    loops.of(Binary::kAdd, Meeting::kOneRight)(from, &zero, to, columns);
  }
  const auto join = loops.of(is_maximum ? Binary::kMaximum : Binary::kAdd, Meeting::kBoth);
  for (int64_t row = 1; row < count; ++row) join(to, from + row * columns, to, columns);
  if (reduction == Reduction::kMean) loops.of(Binary::kDiv, Meeting::kOneRight)(to, &divisor, to, columns);
}

// Inputs: a tensor, the dimensions that are reduced. numbers[0] is the Reduction, numbers[1] says whether the
// dimensions stay, with size 1, and numbers[2] is the dtype of the second input.
template <typename T>
bool RunReduction(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  uint32_t reduced = 0;
  if (x == nullptr || x->NumElements() == 0 || x->dims() > kMostDimensions) return false;
  if (!ReadAxes(inputs[1], static_cast<tensorflow::DataType>(kernel.numbers[2]), x->dims(), &reduced)) return false;
  Reduced sizes;
  if (!sizes.Read(*x, reduced)) return false;
  TensorShape shape;
  for (int d = 0; d < x->dims(); ++d) {
    const bool goes = (reduced >> d & 1) != 0;
    if (!goes || kernel.numbers[1] != 0) shape.AddDim(goes ? 1 : x->dim_size(d));
  }
  if (sizes.count == 1) {  // nothing but dimensions of one element is reduced
    ViewAs(&inputs[0], shape, &outputs[0]);
    return true;
  }
  const auto reduction = static_cast<Reduction>(kernel.numbers[0]);
  const T* from = DataOf<T>(*x);
  if (shape.dims() == 0) {
    const T number = Reduce(reduction, from, sizes.count);
    outputs[0] = Value::Scalar(0);
    std::memcpy(&outputs[0].bits, &number, sizeof(T));
    return true;
  }
  T* to = NewOutput<T>(kernel.dtype, shape, &outputs[0]);
  for (int64_t i = 0; i < sizes.outer; ++i, from += sizes.count * sizes.inner, to += sizes.inner) {
    if (sizes.inner == 1) {
      *to = Reduce(reduction, from, sizes.count);
    } else {
      ReduceRows(reduction, from, sizes.count, sizes.inner, to);
    }
  }
  return true;
}

template <Reduction kReduction>
bool BindReduction(const tensorflow::Node& node, NativeKernel* kernel) {
  bool keeps = false;
  if (!tensorflow::TryGetNodeAttr(node.attrs(), "keep_dims", &keeps) || !IsIndexType(node.input_type(1))) return false;
  kernel->numbers[0] = static_cast<int64_t>(kReduction);
  kernel->numbers[1] = keeps ? 1 : 0;
  kernel->numbers[2] = node.input_type(1);
  TFR_NATIVE_OF_FLOATS(kernel, RunReduction);
  return true;
}

}  // namespace

void AddSums(NativeTable* table) {
  table->insert({{"AddN", BindAddN},
                 {"Softmax", BindSoftmax},
                 {"LogSoftmax", BindLogSoftmax},
                 {"SparseSoftmaxCrossEntropyWithLogits", BindCrossEntropy},
                 {"Sum", BindReduction<Reduction::kSum>},
                 {"Mean", BindReduction<Reduction::kMean>},
                 {"Max", BindReduction<Reduction::kMaximum>}});
}

}  // namespace tensorflow_recursion
