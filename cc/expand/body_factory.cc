// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/body_factory.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/expandable.h"
#include "cc/expand/handle_stand_ins.h"
#include "cc/expand/hold_calls.h"
#include "cc/expand/verify_nodes.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/lower_functional_ops.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/common_runtime/placer.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::LowerFunctionalOpsPass;
using tensorflow::Node;

// The attribute that makes TensorFlow's lowering pass expand a node.
const char* MarkFor(Expansion kind) {
  return kind == Expansion::kInline ? LowerFunctionalOpsPass::kLowerAsMultiDeviceFunctionAttr
                                    : LowerFunctionalOpsPass::kLowerUsingSwitchMergeAttr;
}

constexpr Expansion kMarks[] = {Expansion::kControlFlow, Expansion::kInline};

void Unmark(Node* node) {
  for (const Expansion mark : kMarks) node->ClearAttr(MarkFor(mark));
}

// The functions that are bodies of loops.
std::unordered_set<std::string> LoopBodies(const FunctionDefLibrary& functions) {
  std::unordered_set<std::string> bodies;
  for (const FunctionDef& function : functions.function()) {
    for (const tensorflow::NodeDef& node : function.node_def()) {
      const auto body = node.attr().find("body");
      if (body != node.attr().end()) bodies.insert(body->second.func().name());
    }
  }
  return bodies;
}

// Puts an Identity between an argument that is a handle and a result at another place: in a loop that swaps two
// handles,
//   p, q = q, p
// TensorFlow's lowering pass takes an argument that the body returns, at whichever place, for one that never changes.
void PartSwappedHandles(FunctionDef* body) {
  const tensorflow::OpDef& signature = body->signature();
  std::unordered_map<std::string, int> handles;
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    const tensorflow::OpDef::ArgDef& argument = signature.input_arg(i);
    if (argument.type() == tensorflow::DT_RESOURCE) handles[argument.name()] = i;
  }
  for (int i = 0; i < signature.output_arg_size(); ++i) {
    std::string& result = (*body->mutable_ret())[signature.output_arg(i).name()];
    const auto handle = handles.find(result);
    if (handle == handles.end() || handle->second == i) continue;
    tensorflow::NodeDef* const same = body->add_node_def();
    same->set_name(absl::StrCat(kHandleNodeName, "_", i));
    same->set_op("Identity");
    same->add_input(result);
    (*same->mutable_attr())["T"].set_type(tensorflow::DT_RESOURCE);
    result = absl::StrCat(same->name(), ":output:0");
  }
}

// Prepares the functions for TensorFlow's lowering pass.
//
// It lowers nodes inside of branches only if they are marked, so nodes are marked in every function. It crashes on
// nodes that do not fit, so these lose the mark that they may have. And it takes some
// calls out of their loops if these have been lowered before, unless they are held there.
//
// An operator that hands a value into a branch asks for the device that the value's operator asks for, and has to be
// beside it. But records are where the outermost call is, whatever the scope of a tf.device was when a gradient was
// built. So operators that pack or unpack them ask for no device.
FunctionDefLibrary Prepared(FunctionDefLibrary functions) {
  const FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), functions);
  const std::unordered_set<std::string> loop_bodies = LoopBodies(functions);
  for (FunctionDef& function : *functions.mutable_function()) {
    for (tensorflow::NodeDef& node : *function.mutable_node_def()) {
      if (IsPureGradientOp(node.op())) node.clear_device();
      const Expansion kind = FindExpandable(node, library).kind;
      for (const Expansion mark : kMarks) node.mutable_attr()->erase(MarkFor(mark));
      if (kind != Expansion::kNone) (*node.mutable_attr())[MarkFor(kind)].set_b(true);
    }
    if (loop_bodies.count(function.signature().name()) > 0) PartSwappedHandles(&function);
    HoldCalls(library, [](const tensorflow::NodeDef&) { return true; }, function.mutable_node_def());
  }
  return functions;
}

absl::Status InFunction(const std::string& function, const absl::Status& status) {
  if (status.ok()) return status;
  return InvalidArgument("Function '", function, "': ", status.message());
}

// Fills in from `device` what `requested` leaves open. For example, "/gpu:0" gets the process of the device.
std::string CompleteDevice(const std::string& requested, const std::string& device) {
  using tensorflow::DeviceNameUtils;
  DeviceNameUtils::ParsedName wanted, base;
  if (requested.empty() || !DeviceNameUtils::ParseFullName(requested, &wanted)) return device;
  if (!DeviceNameUtils::ParseFullName(device, &base)) return requested;
  if (!DeviceNameUtils::MergeOverrideDevNames(&base, wanted).ok()) return requested;
  return DeviceNameUtils::ParsedNameToString(base);
}

}  // namespace

BodyFactory::BodyFactory(const FunctionDefLibrary& functions, const Placement& placement)
    : placement_(placement),
      library_(tensorflow::OpRegistry::Global(), Prepared(functions)),
      with_invoke_(FunctionsWithInvoke(functions, library_)) {}

absl::Status BodyFactory::Instantiate(const std::string& function, std::unique_ptr<Graph>* body) {
  TFR_RETURN_IF_ERROR(VerifyLoweringEnds(function));
  std::unique_ptr<tensorflow::FunctionBody> instance;
  TFR_RETURN_IF_ERROR(InFunction(
      function, FunctionDefToBodyHelper(*library_.Find(function), tensorflow::AttrSlice(), &library_, &instance)));
  body->reset(std::exchange(instance->graph, nullptr));
  TFR_RETURN_IF_ERROR(InFunction(function, VerifyGraph(**body)));
  return InFunction(function, Lower(body));
}

absl::Status BodyFactory::Place(const std::string& function, const std::string& device,
                                const DeviceOfHandle& device_of_handle, Graph* body) {
  return InFunction(function, Assign(function, device, device_of_handle, body));
}

std::string BodyFactory::PreferredBeside(const std::string& device) const {
  const tensorflow::Device* best =
      placement_.devices == nullptr ? nullptr : placement_.devices->FindDeviceByName(device);
  if (best == nullptr) return device;
  const auto order = [](const tensorflow::Device* of) {
    return tensorflow::DeviceSet::DeviceTypeOrder(tensorflow::DeviceType(of->device_type()));
  };
  for (const tensorflow::Device* other : placement_.devices->devices()) {
    const bool is_beside = tensorflow::DeviceNameUtils::IsSameAddressSpace(other->parsed_name(), best->parsed_name());
    if (is_beside && order(other) > order(best)) best = other;
  }
  return best->name();
}

void BodyFactory::HoldMain(tensorflow::GraphDef* graph) const {
  const auto is_expanded = [&](const tensorflow::NodeDef& node) { return HasCalls(FindExpandable(node, library_)); };
  HoldCalls(library_, is_expanded, graph->mutable_node());
}

absl::Status BodyFactory::ExpandMain(std::unique_ptr<Graph>* graph) {
  bool any = false;
  std::string device;
  for (Node* node : (*graph)->op_nodes()) {
    const Expandable expandable = FindExpandable(node->def(), library_);
    const bool marked = IsMarkedForLowering(node->def());
    if (expandable.kind == Expansion::kNone) {
      if (marked) Unmark(node);
      continue;
    }
    const bool has_calls = HasCalls(expandable);
    if (!has_calls && !marked) continue;
    for (const std::string& function : expandable.functions) TFR_RETURN_IF_ERROR(VerifyLoweringEnds(function));
    Unmark(node);
    node->AddAttr(MarkFor(expandable.kind), true);
    any = any || has_calls;
    if (device.empty()) device = node->requested_device();
  }
  if (!any) return absl::OkStatus();
  TFR_RETURN_IF_ERROR(Lower(graph));
  return Assign("", device, nullptr, graph->get());
}

bool BodyFactory::HasCalls(const Expandable& expandable) const {
  return std::any_of(expandable.functions.begin(), expandable.functions.end(),
                     [&](const std::string& name) { return with_invoke_.count(name) > 0; });
}

absl::Status BodyFactory::VerifyLoweringEnds(const std::string& function) const {
  const std::string endless = FindEndlessLowering(function, library_);
  if (endless.empty()) return absl::OkStatus();
  return InvalidArgument("Function '", function, "': '", endless,
                         "' contains itself through branches or ordinary calls; recursion must go through a declared "
                         "function");
}

absl::Status BodyFactory::Lower(std::unique_ptr<Graph>* graph) {
  tensorflow::GraphOptimizationPassOptions options;
  options.graph = graph;
  options.flib_def = &library_;
  return LowerFunctionalOpsPass().Run(options);
}

absl::Status BodyFactory::Assign(const std::string& function, const std::string& device,
                                 const DeviceOfHandle& device_of_handle, Graph* graph) {
  if (placement_.devices == nullptr) {
    for (Node* node : graph->op_nodes()) {
      node->set_requested_device(CompleteDevice(node->requested_device(), device));
    }
    return absl::OkStatus();
  }
  tensorflow::Placer placer(graph, function, &library_, placement_.devices,
                            placement_.devices->FindDeviceByName(device), placement_.allow_soft_placement,
                            /*log_device_placement=*/false);
  if (device_of_handle != nullptr) TFR_RETURN_IF_ERROR(DetachChosenHandles(device_of_handle, graph));
  TFR_RETURN_IF_ERROR(DetachHandles(graph));
  if (device_of_handle != nullptr) TFR_RETURN_IF_ERROR(DetachRecalledHandles(device_of_handle, graph));
  TFR_RETURN_IF_ERROR(placer.Run());
  return AttachHandles(graph);
}

}  // namespace tensorflow_recursion
