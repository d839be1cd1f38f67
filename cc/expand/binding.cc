// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/binding.h"

#include <string>
#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/copies.h"
#include "cc/expand/handles.h"
#include "cc/expand/load_body.h"
#include "cc/expand/name_table.h"
#include "cc/expand/placement.h"
#include "cc/expand/verify_call_sites.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::Graph;
using tensorflow::Node;

// Binds calls one by one. The first call of a function, or the first with resources of other devices, adds a body.
class CallBinder {
 public:
  CallBinder(BodyFactory* bodies, CallProgram* program)
      : bodies_(bodies), program_(program), copies_([this](const std::string& name) { return IsFunction(name); }) {}

  // Binds the calls of a body; of the main graph if `caller` is null.
  absl::Status BindCallsOf(const CalledFunction* caller, Graph* graph) {
    for (Node* node : graph->op_nodes()) {
      if (IsInvoke(node->def())) TFR_RETURN_IF_ERROR(BindWithProducers({caller, node}));
    }
    return absl::OkStatus();
  }

 private:
  bool IsFunction(const std::string& name) const {
    return bodies_->library().Find(name) != nullptr || program_->functions.count(name) > 0;
  }

  // Binds a call, but first the calls that return a handle which it takes. These are kept in a list rather than on the
  // C++ stack, because there may be many.
  absl::Status BindWithProducers(const LocatedNode& first) {
    if (bound_.count(first.node) > 0) return absl::OkStatus();
    std::vector<LocatedNode> pending = {first};
    while (!pending.empty()) {
      TFR_RETURN_IF_ERROR(VerifyCallSite(*pending.back().node, bodies_->library()));
      LocatedNode producer;
      std::vector<Handle> handles = FindHandles(pending, &producer);
      if (producer.node != nullptr) {
        pending.push_back(producer);
      } else {
        TFR_RETURN_IF_ERROR(Bind(pending.back(), std::move(handles)));
        pending.pop_back();
      }
    }
    return absl::OkStatus();
  }

  // The handles that the last call in `pending` passes, by argument. If one comes from a call that has to be bound
  // before, stops and sets `*producer` to that.
  std::vector<Handle> FindHandles(const std::vector<LocatedNode>& pending, LocatedNode* producer) const {
    const HandleFinder finder(*program_, bound_);
    const LocatedNode& call = pending.back();
    std::vector<Handle> handles(call.node->num_inputs());
    for (int i = 0; i < call.node->num_inputs() && producer->node == nullptr; ++i) {
      if (IsHandle(call.node->input_type(i))) handles[i] = finder.Find(call, i, pending, producer);
    }
    return handles;
  }

  absl::Status Bind(const LocatedNode& call, std::vector<Handle> handles) {
    const FunctionDef& definition = *bodies_->library().Find(CalleeOf(call.node->def()));
    std::string name;
    bool is_new = false;
    TFR_RETURN_IF_ERROR(copies_.Find(definition, handles, &name, &is_new));
    SetCallee(call, name);
    return is_new ? AddFunction(call, name, definition, std::move(handles)) : absl::OkStatus();
  }

  // Adds the function, or the copy, that `call` is the first to call.
  absl::Status AddFunction(const LocatedNode& call, const std::string& name, const FunctionDef& definition,
                           std::vector<Handle> handles) {
    CalledFunction& function = program_->functions[name];
    function.definition = &definition;
    function.name = name;
    function.device = IsPinned(call) ? DeviceOf(*call.node) : bodies_->PreferredBeside(DeviceOf(*call.node));
    function.record_device = call.function == nullptr ? function.device : call.function->record_device;
    function.handles = std::move(handles);
    function.prefix = PrefixFor(name);
    function.needed.assign(function.num_outputs(), false);
    program_->order.push_back(name);
    const auto device_of_handle = [&](const tensorflow::Edge& edge) {
      LocatedNode unbound;
      return HandleFinder(*program_, bound_).Find({&function, edge.dst()}, edge.dst_input(), {}, &unbound).device;
    };
    return LoadBody(bodies_, device_of_handle, &function);
  }

  // Whether the user has asked for the call to be on a type of device.
  static bool IsPinned(const LocatedNode& call) {
    return call.function == nullptr ? call.node->attrs().Find(kPinnedAttr) != nullptr
                                    : AsksForType(call.node->requested_device());
  }

  void SetCallee(const LocatedNode& call, const std::string& name) {
    bound_.insert(call.node);
    if (call.function != nullptr) program_->functions.at(call.function->name).callees.push_back(name);
    if (CalleeOf(call.node->def()) == name) return;
    tensorflow::NameAttrList function;
    function.set_name(name);
    call.node->ClearAttr(kCalleeAttr);
    call.node->AddAttr(kCalleeAttr, function);
  }

  BodyFactory* const bodies_;
  CallProgram* const program_;
  BoundCalls bound_;
  CopyTable copies_;
};

}  // namespace

absl::Status BindCalls(Graph* main, BodyFactory* bodies, CallProgram* program) {
  CallBinder binder(bodies, program);
  TFR_RETURN_IF_ERROR(binder.BindCallsOf(nullptr, main));
  for (size_t i = 0; i < program->order.size(); ++i) {  // `order` grows on the way
    const CalledFunction& function = program->functions.at(program->order[i]);
    TFR_RETURN_IF_ERROR(binder.BindCallsOf(&function, function.graph.get()));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
