// Kernels that make contributions and add them up, which only moves pointers.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cc/base/names.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "cc/values/contributions.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;

Value OwnValue(Contributions contributions) { return Value::Own(contributions.Release()); }

// Inputs: the two tensors of a term. Numbers: its part.
bool RunContribute(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const first = inputs[0].tensor_or_null();
  const Tensor* const second = inputs[1].tensor_or_null();
  if (first == nullptr || second == nullptr) return false;
  outputs[0] = OwnValue(Contributions(*first, *second, static_cast<int>(kernel.numbers[0])));
  return true;
}

bool BindContribute(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->run = RunContribute;
  return tensorflow::GetNodeAttr(node.attrs(), kPartAttr, &kernel->numbers[0]).ok();
}

bool RunContributeNone(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* /*inputs*/,
                       Value* outputs) {
  outputs[0] = OwnValue(Contributions());
  return true;
}

bool BindContributeNone(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->run = RunContributeNone;
  return true;
}

// Reads the contributions in a value, also from a variant, as stock kernels and other devices give them. Returns false
// if there are none.
bool ReadContributions(const Value& value, Contributions* contributions) {
  if (value.kind == Value::Kind::kContributions) {
    *contributions = Contributions::Own(value.Copy().contributions);
    return true;
  }
  const Tensor* const tensor = value.tensor_or_null();
  const Contributions* const boxed = tensor == nullptr ? nullptr : ContributionsInTensor(*tensor);
  if (boxed == nullptr) return false;
  *contributions = *boxed;
  return true;
}

bool BindContributeView(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->run = AddContributions;  // of one
  return true;
}

}  // namespace

bool AddContributions(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  Contributions sum;
  for (int i = 0; i < kernel.num_inputs; ++i) {
    Contributions summand;
    if (!ReadContributions(inputs[i], &summand)) return false;
    sum = Contributions::Sum(sum, summand);
  }
  outputs[0] = OwnValue(std::move(sum));
  return true;
}

void AddContributionKernels(NativeTable* table) {
  table->insert({{kContributeOp, BindContribute},
                 {kContributeNoneOp, BindContributeNone},
                 {kContributeViewOp, BindContributeView}});
}

}  // namespace tensorflow_recursion
