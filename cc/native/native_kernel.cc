// SPDX-License-Identifier: Apache-2.0
#include "cc/native/native_kernel.h"

#include <cstdlib>
#include <cstring>

#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

const NativeTable& Table() {
  static const auto* const table = [] {
    auto* made = new NativeTable;
    AddContributionKernels(made);
    AddEinsums(made);
    AddElementwise(made);
    AddGathers(made);
    AddProducts(made);
    AddRowKernels(made);
    AddSelections(made);
    AddShapeKernels(made);
    AddSums(made);
    return made;
  }();
  return *table;
}

}  // namespace

NativeKernel FindNativeKernel(const tensorflow::Node& node) {
  const auto found = Table().find(node.type_string());
  NativeKernel kernel;
  if (found == Table().end()) return kernel;
  kernel.num_inputs = node.num_inputs();
  kernel.num_outputs = node.num_outputs();
  if (!tensorflow::TryGetNodeAttr(node.attrs(), "T", &kernel.dtype)) {
    if (node.num_outputs() == 0) return kernel;
    kernel.dtype = node.output_type(0);
  }
  if (!found->second(node, &kernel)) kernel.run = nullptr;
  if (kernel.run == nullptr) kernel.share = nullptr;
  return kernel;
}

bool NativeKernelsAreOn() {
  const char* const value = std::getenv(kNativeKernelsVariable);
  return value == nullptr || std::strcmp(value, "0") != 0;
}

void ViewAs(Value* input, const tensorflow::TensorShape& shape, Value* output) {
  const tensorflow::Tensor& from = *input->tensor_or_null();
  if (shape.dims() == 0 && IsUnboxed(from.dtype())) {
    *output = Value::Scalar(0);
    std::memcpy(&output->bits, from.data(), tensorflow::DataTypeSize(from.dtype()));
    return;
  }
  tensorflow::Tensor* const view = NewTensor();
  if (!view->CopyFrom(from, shape)) return DeleteTensor(view);  // never: the caller has compared the sizes
  *output = Value::Own(view);
  input->Release();
}

}  // namespace tensorflow_recursion
