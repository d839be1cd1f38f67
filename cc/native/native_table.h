// The table of native kernels by operator, to which each file of kernels adds its own.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_NATIVE_NATIVE_TABLE_H_
#define TENSORFLOW_RECURSION_CC_NATIVE_NATIVE_TABLE_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "cc/native/native_kernel.h"

namespace tensorflow_recursion {

// Fills in `kernel`, whose dtype and counts of inputs and outputs are set, from the node's attributes. Returns false,
// or leaves `run` nullptr, if no native kernel serves this node: a MatMul with transpose_a, for example.
using Binder = bool (*)(const tensorflow::Node& node, NativeKernel* kernel);

// The binders, by operator. The dtype that a binder is given is that of the attribute T, else of the first output.
using NativeTable = absl::flat_hash_map<std::string, Binder>;

void AddContributionKernels(NativeTable* table);  // contribution_kernels.cc
void AddEinsums(NativeTable* table);              // einsums.cc
void AddElementwise(NativeTable* table);          // elementwise.cc
void AddGathers(NativeTable* table);              // gathers.cc
void AddProducts(NativeTable* table);             // products.cc
void AddRowKernels(NativeTable* table);           // row_kernels.cc
void AddSelections(NativeTable* table);           // selections.cc
void AddShapeKernels(NativeTable* table);         // shape_kernels.cc
void AddSums(NativeTable* table);                 // sums.cc

// The kernel of an AddN of variants, which serves if all of them hold contributions.
bool AddContributions(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs);

// Binds function<float> or function<double>, as the kernel's dtype says.
#define TFR_NATIVE_OF_FLOATS(kernel, ...)                                                                       \
  (kernel)->run = (kernel)->dtype == tensorflow::DT_FLOAT    ? static_cast<NativeFunction>(__VA_ARGS__<float>)  \
                  : (kernel)->dtype == tensorflow::DT_DOUBLE ? static_cast<NativeFunction>(__VA_ARGS__<double>) \
                                                             : nullptr

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_NATIVE_TABLE_H_
