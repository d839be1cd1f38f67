// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/emission.h"

#include <algorithm>
#include <string>

#include "cc/base/names.h"
#include "cc/expand/call_emission.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/emission_names.h"
#include "cc/expand/keep_alives.h"
#include "cc/expand/node_writer.h"
#include "cc/expand/wiring.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::AddNodeAttr;
using tensorflow::NodeDef;
using tensorflow::TensorShapeProto;

bool HoldsBodies(const NodeList& list) {
  return std::any_of(list.nodes.begin(), list.nodes.end(), [](const NodeDef& node) {
    return node.op() == kEntryOp || node.op() == kFrameStartOp || node.op() == kResultOp;
  });
}

// Writes the main graph first, then the bodies, and at last the KeepAlives, which wait for nodes of the bodies.
class GraphEmitter {
 public:
  GraphEmitter(const CallProgram& program, const Options& options, int64_t first_call_id, NameTable* names,
               tensorflow::GraphDef* graph)
      : program_(program),
        options_(options),
        names_(program, first_call_id, names),
        wiring_(program, names_),
        writer_(names, graph),
        keep_alives_(program, names_, &writer_),
        calls_(program, names_, wiring_, &keep_alives_, &writer_) {}

  void Run() {
    EmitMain();
    for (const std::string& name : names_.functions()) EmitFunction(program_.functions.at(name));
    writer_.SetOwner("");
    keep_alives_.Emit();
  }

 private:
  void EmitMain() {
    const bool holds_bodies = HoldsBodies(program_.main);
    const int count = static_cast<int>(program_.main.nodes.size());
    for (int i = 0; i < count; ++i) EmitNode(program_.main, i, /*keeps_owner=*/holds_bodies);
  }

  void EmitFunction(const CalledFunction& function) {
    const BodyBoundary& boundary = names_.boundary(function.name);
    writer_.SetOwner(function.name);
    NodeDef* frame_start = writer_.Add(boundary.frame_start, kFrameStartOp, boundary.argument_devices[0]);
    AddNodeAttr(kFunctionAttr, function.name, frame_start);
    AddNodeAttr(kMaxDepthAttr, options_.max_depth, frame_start);
    if (options_.depth_setting == kDepthSettingOfCall) AddNodeAttr(kStaticAttr, true, frame_start);
    AddNodeAttr(kWorkersAttr, options_.workers, frame_start);
    AddNodeAttr(kCompileAttr, options_.compile, frame_start);
    EmitEntries(function, boundary);
    EmitBody(function, boundary);
    EmitResults(function, boundary);
    if (function.needs_done) EmitDone(function, boundary);
  }

  // A node without any input gets a control edge from the FrameStart, so that it runs once in every frame.
  void EmitBody(const CalledFunction& function, const BodyBoundary& boundary) {
    const int first = writer_.size();
    const int count = static_cast<int>(function.body.nodes.size());
    for (int i = 0; i < count; ++i) EmitNode(function.body, i, /*keeps_owner=*/false);
    writer_.StartWith(boundary.frame_start, first);
  }

  void EmitNode(const NodeList& list, int position, bool keeps_owner) {
    const NodeDef& node = list.nodes[position];
    const bool is_boundary = node.op() == "_Arg" || node.op() == "_Retval";
    if (!list.reachable[position] || (is_boundary && &list != &program_.main)) return;
    if (IsInvoke(node)) return calls_.Emit(list, position);
    NodeDef* copy = keeps_owner ? writer_.AddOwned(node) : writer_.AddCopy(node);
    wiring_.AddInputs(node, copy);
    if (IsRetain(node) || IsRecall(node)) wiring_.FinishRecord(node, copy);
  }

  void EmitEntries(const CalledFunction& function, const BodyBoundary& boundary) {
    for (size_t i = 0; i < boundary.argument_types.size(); ++i) {
      const NodeDef* argument = function.arguments.empty() ? nullptr : &function.body.nodes[function.arguments[i]];
      const std::string name =
          argument == nullptr ? writer_.Unique(function.prefix + kStartNodeName) : argument->name();
      NodeDef* entry = writer_.AddPort(name, kEntryOp, boundary.argument_devices[i], boundary.argument_types[i],
                                       function.name, static_cast<int>(i));
      AddNodeAttr(kShapeAttr, argument == nullptr ? TensorShapeProto() : StatedShape(*argument, "_output_shapes", 0, 1),
                  entry);
    }
  }

  void EmitResults(const CalledFunction& function, const BodyBoundary& boundary) {
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      if (!function.needed[i]) continue;
      const NodeDef& output = function.body.nodes[function.outputs[i]];
      NodeDef* result = writer_.AddPort(output.name(), kResultOp, boundary.output_devices[i], boundary.output_types[i],
                                        function.name, static_cast<int>(i));
      wiring_.AddInputs(output, result);
      keep_alives_.AddResult(function.name, result->name());
    }
  }

  // Writes one more Result, which waits for all side effects of the frame. The ControlTrigger in front of it lives even
  // if some of them are dead, as those of a branch are that is not taken.
  void EmitDone(const CalledFunction& function, const BodyBoundary& boundary) {
    const std::string& device = boundary.argument_devices[0];
    const std::string name = writer_.Unique(function.prefix + kDoneNodeName);
    std::string start = boundary.frame_start;
    if (!function.effects.empty()) {
      start = writer_.Unique(name + kEffectsSuffix);
      NodeDef* join = writer_.Add(start, "ControlTrigger", device);
      for (const std::string& effect : function.effects) {
        const SiteNames* site = names_.FindSite(effect);
        join->add_input(Control(site == nullptr ? effect : site->done()));
      }
    }
    const std::string value = writer_.Unique(name + "/true");
    writer_.AddTrue(value, device)->add_input(Control(start));
    writer_.AddPort(name, kResultOp, device, tensorflow::DT_BOOL, function.name, function.num_outputs())
        ->add_input(value);
    keep_alives_.AddResult(function.name, name);
  }

  const CallProgram& program_;
  const Options options_;
  const EmissionNames names_;
  const Wiring wiring_;
  NodeWriter writer_;
  KeepAlives keep_alives_;
  CallEmitter calls_;
};

}  // namespace

void Emit(const CallProgram& program, const Options& options, int64_t first_call_id, NameTable* names,
          tensorflow::GraphDef* graph) {
  GraphEmitter(program, options, first_call_id, names, graph).Run();
}

}  // namespace tensorflow_recursion
