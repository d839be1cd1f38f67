// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/dynamic_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "cc/analysis/function_attributes.h"
#include "cc/base/names.h"
#include "cc/base/notices.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::Node;
using tensorflow::NodeDef;

// The functions that a node's kernel may run. A call counts as having none, because its own kernel looks after its
// callee.
std::vector<std::string> FunctionsOf(const NodeDef& node, const FunctionLibraryDefinition& library) {
  std::vector<std::string> functions;
  if (IsInvoke(node)) return functions;
  if (library.Find(node.op()) != nullptr) functions.push_back(node.op());
  for (const tensorflow::NameAttrList& function : FunctionsInAttributes(node)) functions.push_back(function.name());
  return functions;
}

// Whether the node is a call that is not marked to be made static by its kernel.
bool IsDynamicCall(const NodeDef& node) {
  bool is_static = false;
  return IsInvoke(node) && !(tensorflow::TryGetNodeAttr(node, kStaticAttr, &is_static) && is_static);
}

bool HoldsDynamicCall(const tensorflow::FunctionDef& function) {
  return std::any_of(function.node_def().begin(), function.node_def().end(), IsDynamicCall);
}

// Finds the calls in the functions that nodes run. Each function of the library is looked at once, for the first node
// that runs it.
class NestedCalls {
 public:
  explicit NestedCalls(const FunctionLibraryDefinition& library) : library_(library) {}

  // The functions that hold calls.
  std::vector<const tensorflow::FunctionDef*> Of(const NodeDef& node) {
    std::vector<const tensorflow::FunctionDef*> holders;
    std::vector<std::string> work = FunctionsOf(node, library_);
    while (!work.empty()) {
      const std::string name = std::move(work.back());
      work.pop_back();
      const tensorflow::FunctionDef* function = library_.Find(name);
      if (function == nullptr || !seen_.insert(name).second) continue;
      if (HoldsDynamicCall(*function)) holders.push_back(function);
      for (const NodeDef& inner : function->node_def()) {
        for (std::string& next : FunctionsOf(inner, library_)) work.push_back(std::move(next));
      }
    }
    return holders;
  }

 private:
  const FunctionLibraryDefinition& library_;
  std::unordered_set<std::string> seen_;
};

// Lets the call's kernel make it static, with the options of the session. The option on_fallback is always among its
// attributes, and so tells that a session has set them.
void LeaveToKernel(const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, NodeDef* call) {
  auto& attributes = *call->mutable_attr();
  attributes[kStaticAttr].set_b(true);
  attributes[absl::StrCat(kOptionAttrPrefix, kOnFallbackOption)].set_s("warn");
  for (const auto& [name, value] : entry.parameter_map()) attributes[absl::StrCat(kOptionAttrPrefix, name)] = value;
}

// The subjects of the notices that a session's user has got. It is a resource of one of the session's devices, so it
// lives as long as the session.
class SaidInSession : public tensorflow::ResourceBase {
 public:
  std::string DebugString() const override { return "what tensorflow_recursion has told the user"; }

  bool IsNew(const std::string& text) {
    std::lock_guard<std::mutex> lock(mu_);
    return said_.insert(text).second;
  }

 private:
  std::mutex mu_;  // steps of one session may be prepared at once
  std::set<std::string> said_;
};

// The resources of one of the session's devices in this process; nullptr if there is no such device. A device of
// another process would fail even if it were only asked whether it has resources.
tensorflow::ResourceMgr* ResourcesHere(const tensorflow::DeviceSet* devices) {
  if (devices == nullptr) return nullptr;
  for (tensorflow::Device* device : devices->devices()) {
    if (device->IsLocal()) return device->resource_manager();
  }
  return nullptr;
}

void SayOnce(NoticeKind kind, const std::string& subject, const std::string& text,
             const tensorflow::DeviceSet* devices) {
  tensorflow::ResourceMgr* const resources = ResourcesHere(devices);
  if (resources == nullptr) return Notify(kind, text);
  SaidInSession* said = nullptr;
  const absl::Status status =
      resources->LookupOrCreate<SaidInSession>("tensorflow_recursion", "said", &said, [](SaidInSession** made) {
        *made = new SaidInSession;
        return absl::OkStatus();
      });
  if (!status.ok()) return Notify(kind, text);
  const tensorflow::core::ScopedUnref unref(said);
  if (said->IsNew(subject)) Notify(kind, text);
}

bool IsAboutDevices(absl::string_view message) {
  return absl::StrContains(message, "Cannot colocate") || absl::StrContains(message, "Cannot assign a device") ||
         absl::StrContains(message, "Cannot place") || absl::StrContains(message, "combinations of devices");
}

// What an error says before TensorFlow lists what devices and kernels there are, on dozens of lines.
absl::string_view BeforeLists(absl::string_view message) {
  for (const char* list : {"Registered devices:", "Registered kernels:", ".  Registered:", "All kernels registered"}) {
    message = message.substr(0, message.find(list));
  }
  return absl::StripTrailingAsciiWhitespace(message);
}

// The operators that conditionals and loops of a static graph are made of. They have kernels for most dtypes.
bool IsOfControlFlow(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"Switch", "Merge", "Enter", "Exit", "NextIteration"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// What stands between `before` and the first of the characters `after` in a text; empty if `before` is not there.
absl::string_view Between(absl::string_view text, absl::string_view before, absl::string_view after) {
  const size_t start = text.find(before);
  if (start == absl::string_view::npos) return "";
  text.remove_prefix(start + before.size());
  return text.substr(0, text.find_first_of(after));
}

// Why a call is dynamic if its conditionals or loops hand on values of a dtype that there is no kernel for, and what to
// do about it; empty if `message` says something else.
std::string ExplanationOfType(absl::string_view message) {
  const absl::string_view op = Between(message, "No OpKernel was registered to support Op '", "'");
  const std::string dtype = absl::AsciiStrToLower(Between(message, "T=DT_", ",] \n"));
  if (!IsOfControlFlow(op) || dtype.empty()) return "";
  return absl::StrCat("its conditionals or loops hand on values of ", dtype, ", for which TensorFlow's operator ", op,
                      " has no kernel. Cast them around the call, with tf.cast, to ",
                      absl::StrContains(dtype, "int") ? "int32" : "bfloat16 or float32");
}

// Why a call is dynamic, and what to do about it.
std::string Explanation(const absl::Status& failure) {
  if (failure.ok()) return "its call was added to the graph too late to be transformed. Make it with Defun or Declare";
  if (std::string of_type = ExplanationOfType(failure.message()); !of_type.empty()) return of_type;
  return absl::StrCat(BeforeLists(failure.message()), ". ",
                      IsAboutDevices(failure.message())
                          ? "Pin its operators with tf.device to devices that have kernels for them, beside the "
                            "variables that they read, or set allow_soft_placement"
                          : "Change what this message names");
}

constexpr char kRemedyInSession[] =
    "tfr.session_config(on_fallback=\"error\") makes this an error, a session without tfr.session_config() runs "
    "everything dynamically";
constexpr char kRemedyElsewhere[] =
    "tfr.config.set_options(on_fallback=\"error\") makes this an error, tfr.config.set_static_execution(False) runs "
    "everything dynamically";

// The end of a notice: why something is not as static as it could be, and what to do about it.
std::string Because(const absl::Status& failure, bool is_of_session) {
  return absl::StrCat("because ", Explanation(failure), ". (", is_of_session ? kRemedyInSession : kRemedyElsewhere,
                      ")");
}

}  // namespace

DynamicCalls FindDynamicCalls(const tensorflow::Graph& graph, const FunctionLibraryDefinition& library) {
  DynamicCalls calls;
  NestedCalls nested(library);
  for (const Node* node : graph.op_nodes()) {
    if (IsDynamicCall(node->def())) calls.insert(UserName(CalleeOf(node->def())));
    for (const tensorflow::FunctionDef* holder : nested.Of(node->def())) {
      for (const NodeDef& inner : holder->node_def()) {
        if (IsDynamicCall(inner)) calls.insert(UserName(CalleeOf(inner)));
      }
    }
  }
  return calls;
}

absl::Status LeaveNestedCallsToKernels(const tensorflow::Graph& graph,
                                       const tensorflow::RewriterConfig_CustomGraphOptimizer& entry,
                                       FunctionLibraryDefinition* library) {
  std::map<std::string, tensorflow::FunctionDef> changed;
  NestedCalls nested(*library);
  for (const Node* node : graph.op_nodes()) {
    for (const tensorflow::FunctionDef* holder : nested.Of(node->def())) {
      tensorflow::FunctionDef function = *holder;
      for (NodeDef& inner : *function.mutable_node_def()) {
        if (IsDynamicCall(inner)) LeaveToKernel(entry, &inner);
      }
      changed[function.signature().name()] = std::move(function);
    }
  }
  for (const auto& [name, function] : changed) TFR_RETURN_IF_ERROR(library->ReplaceFunction(name, function));
  return absl::OkStatus();
}

absl::Status TellOfFallback(const DynamicCalls& calls, const absl::Status& failure, OnFallback on_fallback,
                            const tensorflow::DeviceSet* devices) {
  for (const std::string& function : calls) {
    const std::string text = FallbackText(function, failure, /*is_of_session=*/true);
    if (on_fallback == OnFallback::kError) return absl::FailedPreconditionError(text);
    SayOnce(NoticeKind::kFallback, function, text, devices);
  }
  return absl::OkStatus();
}

std::string FallbackText(const std::string& function, const absl::Status& failure, bool is_of_session) {
  return absl::StrCat("Function '", function, "' runs dynamically, many times slower than statically, ",
                      Because(failure, is_of_session));
}

std::string OneByOneText(const std::string& function, const absl::Status& failure, bool is_of_session) {
  return absl::StrCat("Calls of function '", function,
                      "' run one by one, each as a program of its own, which takes longer than one program of all that "
                      "is around them, ",
                      Because(failure, is_of_session));
}

void TellOfNoSwitch(const DynamicCalls& calls, const tensorflow::DeviceSet* devices) {
  std::vector<std::string> functions;
  for (const std::string& function : calls) functions.push_back(absl::StrCat("'", function, "'"));
  const std::string text = absl::StrCat(
      "Calls of ", absl::StrJoin(functions, ", "),
      " run dynamically, many times slower than statically, because the session was made without "
      "tfr.session_config(). Make it with tf.compat.v1.Session(config=tfr.session_config()); where dynamic execution "
      "is meant, the environment variable TENSORFLOW_RECURSION_SILENCE_DYNAMIC=1 silences this");
  SayOnce(NoticeKind::kNoSwitch, "", text, devices);
}

}  // namespace tensorflow_recursion
