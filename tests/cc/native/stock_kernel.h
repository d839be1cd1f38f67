// One operator as its stock kernel and as its native one, to compare what they make of the same inputs.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_NATIVE_STOCK_KERNEL_H_
#define TENSORFLOW_RECURSION_TESTS_CC_NATIVE_STOCK_KERNEL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/native/native_kernel.h"
#include "cc/values/value.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session.h"
#include "tests/cc/values/stock_session.h"

namespace tensorflow_recursion {

using Attributes = std::function<void(tensorflow::NodeDefBuilder*)>;

class OneOperator {
 public:
  // Inputs of these types; operators with one list input take them all in it.
  OneOperator(const std::string& op, const tensorflow::DataTypeVector& inputs, int list_inputs,
              const Attributes& attributes)
      : graph_(tensorflow::OpRegistry::Global()) {
    tensorflow::GraphDef graph;
    for (size_t i = 0; i < inputs.size(); ++i) {
      TF_CHECK_OK(tensorflow::NodeDefBuilder(absl::StrCat("x", i), "Placeholder")
                      .Attr("dtype", inputs[i])
                      .Finalize(graph.add_node()));
      callable_.add_feed(absl::StrCat("x", i));
    }
    tensorflow::NodeDefBuilder builder("op", op);
    AddInputs(inputs, list_inputs, &builder);
    attributes(&builder);
    TF_CHECK_OK(builder.Device("/cpu:0").Finalize(graph.add_node()));
    TF_CHECK_OK(tensorflow::ConvertGraphDefToGraph({}, graph, &graph_));
    for (const tensorflow::Node* node : graph_.op_nodes()) {
      if (node->name() == "op") node_ = node;
    }
    for (int i = 0; i < node_->num_outputs(); ++i) callable_.add_fetch(absl::StrCat("op:", i));
    TF_CHECK_OK(session_->Create(graph));
    TF_CHECK_OK(session_->MakeCallable(callable_, &handle_));
    kernel_ = FindNativeKernel(*node_);
  }

  bool is_native() const { return kernel_.run != nullptr; }

  // What the stock kernel makes of them.
  absl::Status RunStock(const std::vector<tensorflow::Tensor>& inputs, std::vector<tensorflow::Tensor>* outputs) {
    return session_->RunCallable(handle_, inputs, outputs, nullptr);
  }

  // What the native one does; false if it leaves them to the other. With `are_owned` the kernel has the only reference
  // on each tensor, else others look at them too.
  bool RunNative(const std::vector<tensorflow::Tensor>& inputs, bool are_owned,
                 std::vector<tensorflow::Tensor>* outputs) {
    std::vector<Value> values, results(node_->num_outputs(), Value::Empty());
    for (const tensorflow::Tensor& input : inputs) {
      auto* const tensor = are_owned ? NewTensor(tensorflow::tensor::DeepCopy(input)) : NewTensor(input);
      values.push_back(ValueFromTensor(tensor));
    }
    const bool is_done = kernel_.run(kernel_, NativeContext(), values.data(), results.data());
    outputs->clear();
    for (size_t i = 0; i < results.size() && is_done; ++i) {
      outputs->push_back(TensorFromValue(results[i], node_->output_type(static_cast<int>(i))));
    }
    for (Value& value : values) value.Release();
    for (Value& value : results) value.Release();
    return is_done;
  }

  // The first output of several calls at once; false if they have to be made one by one.
  bool RunTogether(const std::vector<std::vector<tensorflow::Tensor>>& calls,
                   std::vector<tensorflow::Tensor>* outputs) {
    std::vector<std::vector<Value>> inputs;
    std::vector<Value> results(calls.size(), Value::Empty());
    std::vector<NativeCall> native_calls;
    inputs.reserve(calls.size());
    native_calls.reserve(calls.size());
    for (const std::vector<tensorflow::Tensor>& call : calls) inputs.push_back(ValuesOf(call));
    for (size_t i = 0; i < calls.size(); ++i) native_calls.push_back({inputs[i].data(), &results[i]});
    const bool is_done = kernel_.run_together(kernel_, native_calls);
    outputs->clear();
    for (Value& result : results) {
      if (is_done) outputs->push_back(TensorFromValue(result, node_->output_type(0)));
      result.Release();
    }
    for (std::vector<Value>& values : inputs) {
      for (Value& value : values) value.Release();
    }
    return is_done;
  }

  NativeShare ShareOf(const std::vector<tensorflow::Tensor>& inputs) const {
    std::vector<Value> values = ValuesOf(inputs);
    const NativeShare share = kernel_.share(kernel_, values.data());
    for (Value& value : values) value.Release();
    return share;
  }

 private:
  static std::vector<Value> ValuesOf(const std::vector<tensorflow::Tensor>& tensors) {
    std::vector<Value> values;
    values.reserve(tensors.size());
    for (const tensorflow::Tensor& tensor : tensors) values.push_back(ValueFromTensor(NewTensor(tensor)));
    return values;
  }

  static void AddInputs(const tensorflow::DataTypeVector& inputs, int list_inputs,
                        tensorflow::NodeDefBuilder* builder) {
    // A list is the first `list_inputs` inputs, or the last if the number is negative.
    const int count = static_cast<int>(inputs.size());
    const int begin = list_inputs < 0 ? count + list_inputs : 0;
    const int end = list_inputs < 0 ? count : list_inputs;
    std::vector<tensorflow::NodeDefBuilder::NodeOut> list;
    for (int i = 0; i < count; ++i) {
      if (i < begin || i >= end) {
        if (i == end && !list.empty()) builder->Input(list);
        builder->Input(absl::StrCat("x", i), 0, inputs[i]);
      } else {
        list.emplace_back(absl::StrCat("x", i), 0, inputs[i]);
        if (i + 1 == count) builder->Input(list);
      }
    }
  }

  tensorflow::Graph graph_;
  const tensorflow::Node* node_ = nullptr;
  NativeKernel kernel_;
  const std::unique_ptr<tensorflow::Session> session_ = NewStockSession();
  tensorflow::CallableOptions callable_;
  tensorflow::Session::CallableHandle handle_ = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_NATIVE_STOCK_KERNEL_H_
