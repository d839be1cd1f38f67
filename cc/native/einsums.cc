// Kernels of products of two tensors: MatMul, BatchMatMul, Einsum.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "cc/native/loops.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "cc/native/products.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TryGetNodeAttr;

// The dimensions of a tensor by their labels: small numbers, which stand for the letters of an equation.
struct Labels {
  static constexpr int kMostDims = 8;
  int count = 0;
  uint8_t labels[kMostDims] = {};

  // Returns false if there is no room for one more.
  bool Add(int label) {
    if (count == kMostDims) return false;
    labels[count++] = static_cast<uint8_t>(label);
    return true;
  }
  const uint8_t* begin() const { return labels; }
  const uint8_t* end() const { return labels + count; }
  bool Contains(int label) const { return std::find(begin(), end(), label) != end(); }
};

// Whether `all` are the labels of these blocks, one behind the other.
bool AreInOrder(const Labels& all, const Labels& first, const Labels& second, const Labels& third) {
  if (all.count != first.count + second.count + third.count) return false;
  const uint8_t* at = all.begin();
  for (const Labels* block : {&first, &second, &third}) {
    if (!std::equal(block->begin(), block->end(), at)) return false;
    at += block->count;
  }
  return true;
}

// A product of two tensors: the labels of each, and of the result.
struct Equation {
  Labels operands[2], result;
};

// A kernel keeps an equation in numbers[4] to numbers[6]: 4 bits a label, of each operand and of the result.
constexpr int kBits = 4;
constexpr int kMostLabels = 1 << kBits;

// How a product's dimensions lie. Both operands and the result begin with those of the batch. Behind these an operand
// has its own, which the other one lacks, and those that are summed over; the result has those of both operands. Where
// a dimension with a single element lies does not matter.
//
// For example, in "bjk,bj->bk" b is the batch, j is summed over, k is the first operand's own, and nothing is the
// second one's own. So it is in "jkb,bj->bk" if b has one element.
struct ProductLayout {
  Labels batch, summed, own[2];
  bool is_summed_first[2] = {false, false};  // of each operand: its own dimensions come last
  bool is_second_first = false;              // the result has the second operand's own dimensions first

  // `matters` tells whether a label does. Returns false if the equation's dimensions lie otherwise.
  template <typename Predicate>
  bool Read(const Equation& equation, Predicate matters) {
    Labels operands[2], result;
    for (const int label : equation.result) {
      if (matters(label)) result.Add(label);
    }
    for (int i = 0; i < 2; ++i) {
      for (const int label : equation.operands[i]) {
        if (!matters(label)) continue;
        operands[i].Add(label);
        if (!equation.operands[1 - i].Contains(label)) {
          own[i].Add(label);
        } else if (i == 0) {
          (equation.result.Contains(label) ? batch : summed).Add(label);
        }
      }
      is_summed_first[i] = !AreInOrder(operands[i], batch, own[i], summed);
      if (is_summed_first[i] && !AreInOrder(operands[i], batch, summed, own[i])) return false;
    }
    is_second_first = !AreInOrder(result, batch, own[0], own[1]);
    return !is_second_first || AreInOrder(result, batch, own[1], own[0]);
  }
};

// --- Operands ---------------------------------------------------------------------------------------

// The operands of a product, how they lie, and how many elements their dimensions of each kind have.
struct Operands {
  const Tensor* tensor[2] = {nullptr, nullptr};
  ProductLayout layout;
  int64_t batch = 1, depth = 1, own[2] = {1, 1};
  TensorShape shape;  // the result's

  // Returns false if these kernels do not serve the operands.
  bool Read(const Equation& equation, const Value* inputs) {
    int64_t sizes[kMostLabels] = {};
    for (int i = 0; i < 2; ++i) {
      tensor[i] = inputs[i].tensor_or_null();
      if (tensor[i] == nullptr || !tensor[i]->IsInitialized() || tensor[i]->NumElements() == 0) return false;
      if (tensor[i]->dims() != equation.operands[i].count) return false;
      for (int d = 0; d < tensor[i]->dims(); ++d) {
        int64_t& size = sizes[equation.operands[i].labels[d]];
        if (size != 0 && size != tensor[i]->dim_size(d)) return false;
        size = tensor[i]->dim_size(d);
      }
    }
    if (!layout.Read(equation, [&](int label) { return sizes[label] > 1; })) return false;
    for (const int label : layout.batch) batch *= sizes[label];
    for (const int label : layout.summed) depth *= sizes[label];
    for (int i = 0; i < 2; ++i) {
      for (const int label : layout.own[i]) own[i] *= sizes[label];
    }
    if (depth == 1 && own[0] == 1 && own[1] == 1) return false;  // elements are multiplied with elements
    int64_t left = kMostMultiplications;
    for (const int64_t factor : {batch, depth, own[0], own[1]}) left /= factor;
    if (left == 0) return false;
    for (const int label : equation.result) shape.AddDim(sizes[label]);
    return shape.dims() > 0 && shape.num_elements() <= kMostElements;
  }

  // Whether the elements of operand i can be the rows of x, with the other operand as the weight: its own dimensions
  // come first, in the result too.
  bool CanBeRows(int i) const {
    const int64_t rows = own[i], columns = own[1 - i];
    if (rows > kMostRows && depth > 1) return false;
    const bool is_first_in_result = (i == 1) == layout.is_second_first;
    return (rows == 1 || depth == 1 || !layout.is_summed_first[i]) && (rows == 1 || columns == 1 || is_first_in_result);
  }

  // The operand with fewer rows of those that can be x; -1 if neither can.
  int OperandOfRows() const {
    if (CanBeRows(0) && CanBeRows(1)) return own[1] < own[0] ? 1 : 0;
    return CanBeRows(0) ? 0 : CanBeRows(1) ? 1 : -1;
  }
};

// --- Kernels ----------------------------------------------------------------------------------------

// Multiplies `rows` rows of x, which have `depth` numbers each, with the weight: at most kMostRows at once.
template <typename T>
void MultiplyRows(const T* x, const T* w, T* to, int64_t rows, int64_t depth, int64_t columns, bool is_transposed) {
  const auto multiply = is_transposed ? BestLoops<T>().product_transposed : BestLoops<T>().product;
  for (int64_t begin = 0; begin < rows; begin += kMostRows) {
    const T* from[kMostRows];
    T* products[kMostRows];
    const int64_t count = std::min(rows - begin, kMostRows);
    for (int64_t r = 0; r < count; ++r) {
      from[r] = x + (begin + r) * depth;
      products[r] = to + (begin + r) * columns;
    }
    multiply(from, w, products, count, depth, columns);
  }
}

template <typename T>
bool RunEquation(const Equation& equation, const Value* inputs, Value* outputs) {
  Operands operands;
  if (!operands.Read(equation, inputs)) return false;
  const int rows_operand = operands.OperandOfRows(), weight = 1 - rows_operand;
  if (rows_operand < 0) return false;
  const int64_t rows = operands.own[rows_operand], columns = operands.own[weight], depth = operands.depth;
  const T* x = DataOf<T>(*operands.tensor[rows_operand]);
  const T* w = DataOf<T>(*operands.tensor[weight]);
  T* to = NewOutput<T>(operands.tensor[0]->dtype(), operands.shape, &outputs[0]);
  const bool is_transposed = columns > 1 && depth > 1 && !operands.layout.is_summed_first[weight];
  for (int64_t n = 0; n < operands.batch; ++n) {
    MultiplyRows(x, w, to, rows, depth, columns, is_transposed);
    x += rows * depth;
    w += depth * columns;
    to += rows * columns;
  }
  return true;
}

int64_t Packed(const Labels& labels) {
  int64_t packed = 1;  // in front of the first label
  for (const int label : labels) packed = packed << kBits | label;
  return packed;
}

Labels Unpacked(int64_t packed) {
  Labels labels;
  for (; packed > 1; packed >>= kBits) labels.Add(static_cast<int>(packed & (kMostLabels - 1)));
  std::reverse(labels.labels, labels.labels + labels.count);
  return labels;
}

template <typename T>
bool RunEinsum(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs) {
  if (kernel.share != nullptr && RunProduct<T>(kernel, context, inputs, outputs)) return true;
  const Equation equation{{Unpacked(kernel.numbers[4]), Unpacked(kernel.numbers[5])}, Unpacked(kernel.numbers[6])};
  return RunEquation<T>(equation, inputs, outputs);
}

// Binds `run` to products. Those of rows and a weight run in waves.
bool BindEquation(const Equation& equation, NativeKernel* kernel) {
  ProductLayout layout;
  const bool is_ordered = layout.Read(equation, [](int /*label*/) { return true; });
  const bool has_rows = layout.own[0].count > 0 && layout.own[1].count > 0 && layout.summed.count > 0;
  if (is_ordered && has_rows && layout.batch.count == 0 && !layout.is_summed_first[0] && !layout.is_second_first) {
    const FactorDims dims = {layout.own[0].count, layout.summed.count, layout.own[1].count};
    BindFactors(!layout.is_summed_first[1], dims, kernel);
  }
  kernel->numbers[4] = Packed(equation.operands[0]);
  kernel->numbers[5] = Packed(equation.operands[1]);
  kernel->numbers[6] = Packed(equation.result);
  TFR_NATIVE_OF_FLOATS(kernel, RunEinsum);
  return true;
}

// The label of each letter. Returns false if a letter is none, or occurs twice.
bool AddLetters(const std::string& letters, std::string* known, Labels* labels) {
  for (const char letter : letters) {
    if (!absl::ascii_isalpha(letter)) return false;
    size_t label = known->find(letter);
    if (label == std::string::npos) {
      label = known->size();
      known->push_back(letter);
    }
    if (known->size() > kMostLabels || labels->Contains(static_cast<int>(label))) return false;
    if (!labels->Add(static_cast<int>(label))) return false;
  }
  return true;
}

// Reads an equation such as "bi,ijk->bjk". Returns false if it is no product of two tensors, in which a dimension of
// one operand alone is in the result, too.
bool ReadEquation(const std::string& text, Equation* equation) {
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  const std::vector<std::string> operands = absl::StrSplit(sides[0], ',');
  std::string letters;
  if (sides.size() != 2 || operands.size() != 2) return false;
  for (int i = 0; i < 2; ++i) {
    if (!AddLetters(operands[i], &letters, &equation->operands[i])) return false;
  }
  const size_t count = letters.size();
  if (!AddLetters(sides[1], &letters, &equation->result) || letters.size() > count) return false;
  for (int i = 0; i < 2; ++i) {
    for (const int label : equation->operands[i]) {
      if (!equation->operands[1 - i].Contains(label) && !equation->result.Contains(label)) return false;
    }
  }
  return true;
}

bool BindEinsum(const tensorflow::Node& node, NativeKernel* kernel) {
  std::string text;
  Equation equation;
  if (node.num_inputs() != 2 || !TryGetNodeAttr(node.attrs(), "equation", &text)) return false;
  return ReadEquation(text, &equation) && BindEquation(equation, kernel);
}

// The labels of a batch of matrices: those of its last two dimensions come last.
Labels LabelsOfMatrices(int batch, int row, int column, bool is_transposed) {
  Labels labels;
  for (int d = 0; d < batch; ++d) labels.Add(d);
  labels.Add(is_transposed ? column : row);
  labels.Add(is_transposed ? row : column);
  return labels;
}

Equation ProductOfMatrices(int batch, bool is_x_transposed, bool is_y_transposed) {
  const int row = batch, summed = batch + 1, column = batch + 2;
  return {
      {LabelsOfMatrices(batch, row, summed, is_x_transposed), LabelsOfMatrices(batch, summed, column, is_y_transposed)},
      LabelsOfMatrices(batch, row, column, false)};
}

// numbers[4] and numbers[5] say whether the operands are transposed.
template <typename T>
bool RunMatMul(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs) {
  if (kernel.share != nullptr && RunProduct<T>(kernel, context, inputs, outputs)) return true;
  const Equation equation = ProductOfMatrices(/*batch=*/0, kernel.numbers[4] != 0, kernel.numbers[5] != 0);
  return RunEquation<T>(equation, inputs, outputs);
}

template <typename T>
bool RunBatchMatMul(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs) {
  const Tensor* const x = inputs[0].tensor_or_null();
  if (x == nullptr || x->dims() < 2 || x->dims() > Labels::kMostDims) return false;
  if (x->dims() == 2) return RunMatMul<T>(kernel, context, inputs, outputs);
  const Equation equation = ProductOfMatrices(x->dims() - 2, kernel.numbers[4] != 0, kernel.numbers[5] != 0);
  return RunEquation<T>(equation, inputs, outputs);
}

bool BindMatrices(const tensorflow::Node& node, const char* transpose_x, const char* transpose_y,
                  NativeKernel* kernel) {
  bool is_x_transposed = false, is_y_transposed = false;
  if (!TryGetNodeAttr(node.attrs(), transpose_x, &is_x_transposed)) return false;
  if (!TryGetNodeAttr(node.attrs(), transpose_y, &is_y_transposed)) return false;
  if (!is_x_transposed) BindFactors(is_y_transposed, FactorDims(), kernel);
  kernel->numbers[4] = is_x_transposed ? 1 : 0;
  kernel->numbers[5] = is_y_transposed ? 1 : 0;
  return true;
}

bool BindMatMul(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!BindMatrices(node, "transpose_a", "transpose_b", kernel)) return false;
  TFR_NATIVE_OF_FLOATS(kernel, RunMatMul);
  return true;
}

// Serves batches of the same dimensions, none among them: Grappler makes a BatchMatMul of a MatMul among reshapes.
bool BindBatchMatMul(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!BindMatrices(node, "adj_x", "adj_y", kernel)) return false;
  TFR_NATIVE_OF_FLOATS(kernel, RunBatchMatMul);
  return true;
}

}  // namespace

void AddEinsums(NativeTable* table) {
  table->insert({{"BatchMatMulV2", BindBatchMatMul}, {"Einsum", BindEinsum}, {"MatMul", BindMatMul}});
}

}  // namespace tensorflow_recursion
