// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/emission.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/expand/call_graph.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::AddNodeAttr;
using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::TensorId;
using tensorflow::TensorShapeProto;

std::string Control(const std::string& node) { return absl::StrCat("^", node); }

// Names of the nodes that stand for one call. `returns` is empty where an output has no Return;
// the one after the outputs says that the side effects are done.
struct Site {
  int64_t call_id;
  std::vector<std::string> calls;
  std::vector<std::string> returns;

  const std::string& done() const { return returns.back(); }
};

// Names and devices of one body's boundary.
struct Boundary {
  std::string frame_start;
  std::vector<std::string> results;  // those that exist, side effects included
  std::vector<std::string> argument_devices;
  std::vector<DataType> argument_types;
  std::vector<std::string> output_devices;
  std::vector<DataType> output_types;
};

// The shape at `index` of a list, or of a list of one; unknown when nothing is stated.
TensorShapeProto StatedShape(const NodeDef& node, const char* attr, int index, int expected_count) {
  const auto it = node.attr().find(attr);
  if (it != node.attr().end() && it->second.list().shape_size() == expected_count) {
    return it->second.list().shape(index);
  }
  TensorShapeProto unknown;
  unknown.set_unknown_rank(true);
  return unknown;
}

class Emitter {
 public:
  Emitter(const CallProgram& program, const Options& options, int64_t first_call_id, NameTable* names, GraphDef* graph)
      : program_(program),
        options_(options),
        next_call_id_(first_call_id),
        names_(names),
        graph_(graph),
        call_graph_(LiveCalls(program)) {}

  void Run() {
    NameBoundaries();
    NameSites(program_.main);
    for (const std::string& name : live_) NameSites(program_.functions.at(name).body);
    EmitSection(program_.main, nullptr);
    for (const std::string& name : live_) EmitFunction(program_.functions.at(name));
    for (const auto& [component, keep_alive] : keep_alives_) EmitKeepAlive(component, keep_alive);
  }

 private:
  static CallGraph::Calls LiveCalls(const CallProgram& program) {
    CallGraph::Calls calls;
    for (const auto& [name, function] : program.functions) {
      if (!function.live) continue;
      std::vector<std::string>& callees = calls[name];
      for (size_t i = 0; i < function.body.nodes.size(); ++i) {
        if (function.body.live[i] && IsInvoke(function.body.nodes[i])) {
          callees.push_back(CalleeOf(function.body.nodes[i]));
        }
      }
    }
    return calls;
  }

  // Names. All are given before the first node is written, because edges run both ways.

  void NameBoundaries() {
    for (const std::string& name : program_.order) {
      const CalledFunction& function = program_.functions.at(name);
      if (!function.live) continue;
      live_.push_back(name);
      Boundary& boundary = boundaries_[name];
      boundary.frame_start = names_->Unique(function.prefix + "recursion_frame_start");
      for (int argument : function.arguments) {
        const NodeDef& node = function.body.nodes[argument];
        boundary.argument_devices.push_back(node.device());
        boundary.argument_types.push_back(node.attr().at("T").type());
      }
      if (function.arguments.empty()) {
        boundary.argument_devices.push_back(function.device);
        boundary.argument_types.push_back(tensorflow::DT_BOOL);
      }
      for (int output : function.outputs) {
        const NodeDef& node = function.body.nodes[output];
        boundary.output_devices.push_back(node.device());
        boundary.output_types.push_back(node.attr().at("T").type());
      }
      boundary.output_devices.push_back(boundary.argument_devices[0]);
      boundary.output_types.push_back(tensorflow::DT_BOOL);
    }
  }

  void NameSites(const Section& section) {
    for (size_t i = 0; i < section.nodes.size(); ++i) {
      const NodeDef& node = section.nodes[i];
      if (section.live[i] && IsRecall(node)) recalls_[node.name()] = RecordOwner(node);
      if (!section.live[i] || !IsInvoke(node)) continue;
      const CalledFunction& callee = program_.functions.at(CalleeOf(node));
      Site& site = sites_[node.name()];
      site.call_id = next_call_id_++;
      for (size_t j = 0; j < boundaries_.at(CalleeOf(node)).argument_types.size(); ++j) {
        site.calls.push_back(names_->Unique(absl::StrCat(node.name(), "/call_", j)));
      }
      for (int j = 0; j <= callee.num_outputs(); ++j) {
        const bool exists = j < callee.num_outputs() ? callee.needed[j] : callee.needs_done;
        site.returns.push_back(exists ? names_->Unique(absl::StrCat(node.name(), "/return_", j)) : "");
      }
    }
  }

  // Nodes.

  NodeDef* AddNode(const std::string& name, const char* op, const std::string& device) {
    NodeDef* node = graph_->add_node();
    node->set_name(name);
    node->set_op(op);
    node->set_device(device);
    return node;
  }

  NodeDef* AddTrue(const std::string& name, const std::string& device) {
    NodeDef* node = AddNode(name, "Const", device);
    AddNodeAttr("dtype", tensorflow::DT_BOOL, node);
    AddNodeAttr("value", tensorflow::Tensor(true), node);
    return node;
  }

  NodeDef* AddPort(const std::string& name, const char* op, const std::string& device, DataType type,
                   const std::string& function, int index) {
    NodeDef* node = AddNode(name, op, device);
    AddNodeAttr(kTypeAttr, type, node);
    AddNodeAttr(kFunctionAttr, function, node);
    AddNodeAttr(kIndexAttr, index, node);
    return node;
  }

  // `function` is null in the main graph.
  void EmitSection(const Section& section, const CalledFunction* function) {
    for (size_t i = 0; i < section.nodes.size(); ++i) {
      const NodeDef& node = section.nodes[i];
      if (!section.live[i] || node.op() == "_Arg" || node.op() == "_Retval") continue;
      const int first = graph_->node_size();
      if (IsInvoke(node)) {
        EmitSite(section, static_cast<int>(i), function);
      } else {
        NodeDef* copy = graph_->add_node();
        *copy = node;
        copy->clear_input();
        AddInputs(node, copy);
        if (IsRetain(node) || IsRecall(node)) {
          DropUnread(node, copy);
          SayWhatIsOnHost(copy);
        }
      }
      if (function != nullptr) StartWithFrame(*function, first);
    }
  }

  // What has no input fires once per frame, and is known to belong to the function, by an edge from its FrameStart.
  void StartWithFrame(const CalledFunction& function, int first) {
    for (int i = first; i < graph_->node_size(); ++i) {
      NodeDef* node = graph_->mutable_node(i);
      if (node->input_size() == 0) node->add_input(Control(boundaries_.at(function.name).frame_start));
    }
  }

  // Inputs that came from calls come from their Returns now.
  void AddInputs(const NodeDef& node, NodeDef* copy) {
    const std::vector<bool>* needed = IsRetain(node) ? &program_.retained.at(RecordOwner(node)).needed : nullptr;
    for (int i = 0; i < node.input_size(); ++i) {
      const bool is_control = tensorflow::IsTensorIdControl(tensorflow::ParseTensorName(node.input(i)));
      if (needed == nullptr || is_control || IsNeeded(*needed, i)) copy->add_input(Rewired(node.input(i)));
    }
  }

  static bool IsNeeded(const std::vector<bool>& needed, int value) {
    return value < static_cast<int>(needed.size()) && needed[value];
  }

  // Types and shapes of the values of a record that nobody reads: they are neither written nor read.
  void DropUnread(const NodeDef& node, NodeDef* copy) const {
    const auto retained = program_.retained.find(RecordOwner(node));
    const std::vector<bool> needed =
        retained == program_.retained.end() ? std::vector<bool>() : retained->second.needed;
    const auto types = node.attr().find("T");
    const auto shapes = node.attr().find("shapes");
    if (types == node.attr().end()) return;
    const int count = types->second.list().type_size();
    auto* kept_types = (*copy->mutable_attr())["T"].mutable_list();
    kept_types->clear_type();
    const bool has_shapes = shapes != node.attr().end() && shapes->second.list().shape_size() == count;
    if (shapes != node.attr().end()) (*copy->mutable_attr())["shapes"].mutable_list()->clear_shape();
    for (int i = 0; i < count; ++i) {
      if (!IsNeeded(needed, i)) continue;
      kept_types->add_type(types->second.list().type(i));
      if (has_shapes) *(*copy->mutable_attr())["shapes"].mutable_list()->add_shape() = shapes->second.list().shape(i);
    }
  }

  // For any device TensorFlow keeps int32 in the host's memory. A record is not to move it to the device's.
  static void SayWhatIsOnHost(NodeDef* node) {
    const auto types = node->attr().find("T");
    if (types == node->attr().end()) return;
    auto* on_host = (*node->mutable_attr())[IsRetain(*node) ? kInputsOnHostAttr : kOutputsOnHostAttr].mutable_list();
    on_host->clear_i();
    for (int i = 0; i < types->second.list().type_size(); ++i) {
      if (types->second.list().type(i) == tensorflow::DT_INT32) on_host->add_i(i);
    }
  }

  // Where output `index` of a Recall is once unread ones are dropped.
  int RecalledIndex(const std::string& function, int index) const {
    const std::vector<bool>& needed = program_.retained.at(function).needed;
    return static_cast<int>(std::count(needed.begin(), needed.begin() + index, true));
  }

  std::string Rewired(const std::string& input) {
    const TensorId id = tensorflow::ParseTensorName(input);
    if (tensorflow::IsTensorIdControl(id)) return input;
    const std::string name(id.node());
    const auto recall = recalls_.find(name);
    if (recall != recalls_.end()) return TensorId(name, RecalledIndex(recall->second, id.index())).ToString();
    const auto site = sites_.find(name);
    if (site == sites_.end() || program_.feeds.count(name)) return input;
    return site->second.returns[id.index()];
  }

  void EmitSite(const Section& section, int index, const CalledFunction* caller) {
    const NodeDef& invoke = section.nodes[index];
    EmitCalls(section, invoke);
    EmitReturns(invoke, caller);
    const auto fetch = caller == nullptr ? program_.fetches.find(invoke.name()) : program_.fetches.end();
    const bool awaited = section.awaited.count(index) > 0;
    if (fetch != program_.fetches.end()) {
      EmitFetched(invoke, fetch->second, awaited);
    } else if (awaited) {
      AwaitSite(sites_.at(invoke.name()), {}, AddNode(invoke.name(), "NoOp", invoke.device()));
    }
  }

  void EmitCalls(const Section& section, const NodeDef& invoke) {
    const std::string& function = CalleeOf(invoke);
    const Boundary& callee = boundaries_.at(function);
    const Site& site = sites_.at(invoke.name());
    std::vector<std::string> arguments, controls;
    for (const std::string& input : invoke.input()) {
      (input[0] == '^' ? controls : arguments).push_back(Rewired(input));
    }
    std::vector<bool> from_outside;
    for (size_t i = 0; i < arguments.size(); ++i) {
      from_outside.push_back(ComesFromOutside(section, invoke.input(static_cast<int>(i))));
    }
    const bool any_from_outside = std::find(from_outside.begin(), from_outside.end(), true) != from_outside.end();
    const std::string condition = any_from_outside ? FindCondition(section, invoke) : "";
    if (arguments.empty()) {
      NodeDef* value = AddTrue(names_->Unique(invoke.name() + "/call"), callee.argument_devices[0]);
      for (const std::string& control : controls) value->add_input(control);
      arguments.push_back(value->name());
      from_outside.push_back(false);
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      std::string pivot;  // taken first: it may add nodes
      if (from_outside[i] && !condition.empty()) pivot = PivotOf(condition, callee.argument_devices[i]);
      NodeDef* call = AddPort(site.calls[i], kCallOp, callee.argument_devices[i], callee.argument_types[i], function,
                              static_cast<int>(i));
      AddNodeAttr(kCallIdAttr, site.call_id, call);
      call->add_input(arguments[i]);
      for (const std::string& control : controls) call->add_input(control);
      if (!pivot.empty()) call->add_input(Control(pivot));
    }
  }

  // In control flow v1 what a loop's body reads from outside lives in every iteration, in the one too that finds the
  // condition false. An operator does not run then, as another input of it is dead. A call would, so such an argument
  // waits for the condition. Returns the LoopCond, or nothing for a call that is not in a loop's body.
  static std::string FindCondition(const Section& section, const NodeDef& invoke) {
    struct Place {
      std::string node;
      int depth;  // of loops inside the one that the call stands in
      bool operator<(const Place& other) const { return std::tie(node, depth) < std::tie(other.node, other.depth); }
    };
    std::vector<Place> work = {{invoke.name(), 0}};
    std::set<Place> seen;
    while (!work.empty()) {
      const Place place = work.back();
      work.pop_back();
      const NodeDef& node = section.nodes[section.index.at(place.node)];
      const bool enters = IsEnter(node);
      if (node.op() == "LoopCond" && place.depth == 0) return node.name();
      const bool repeats = node.op() == "NextIteration" || node.op() == "RefNextIteration";
      if (repeats || (enters && place.depth == 0)) continue;
      const int depth = place.depth + (node.op() == "Exit" || node.op() == "RefExit" ? 1 : 0) - (enters ? 1 : 0);
      for (const std::string& input : node.input()) {
        Place before{std::string(tensorflow::ParseTensorName(input).node()), depth};
        if (seen.insert(before).second) work.push_back(std::move(before));
      }
    }
    return "";
  }

  // Whether the value comes from outside of the loop it is in, through conditionals in the loop if need be.
  static bool ComesFromOutside(const Section& section, std::string input) {
    while (true) {
      const NodeDef& node = section.nodes[section.index.at(std::string(tensorflow::ParseTensorName(input).node()))];
      if (IsEnter(node)) {
        const auto is_constant = node.attr().find("is_constant");
        return is_constant != node.attr().end() && is_constant->second.b();
      }
      const bool passes_on = node.op() == "Identity" || node.op() == "Switch" || node.op() == "RefSwitch";
      if (!passes_on || node.input_size() == 0) return false;
      input = node.input(0);
    }
  }

  static bool IsEnter(const NodeDef& node) { return node.op() == "Enter" || node.op() == "RefEnter"; }

  // What lives in the iterations in which the condition holds, on `device`.
  std::string PivotOf(const std::string& condition, const std::string& device) {
    std::string& pivot = pivots_[{condition, device}];
    if (!pivot.empty()) return pivot;
    NodeDef* branch = AddNode(names_->Unique(condition + "/call_switch"), "Switch", device);
    for (int i = 0; i < 2; ++i) branch->add_input(condition);
    AddNodeAttr("T", tensorflow::DT_BOOL, branch);
    const std::string holds = branch->name() + ":1";
    NodeDef* node = AddNode(names_->Unique(condition + "/call_pivot"), "Identity", device);
    node->add_input(holds);
    AddNodeAttr("T", tensorflow::DT_BOOL, node);
    pivot = node->name();
    return pivot;
  }

  void EmitReturns(const NodeDef& invoke, const CalledFunction* caller) {
    const std::string& function = CalleeOf(invoke);
    const Boundary& callee = boundaries_.at(function);
    const Site& site = sites_.at(invoke.name());
    const int num_outputs = static_cast<int>(site.returns.size()) - 1;
    for (int i = 0; i <= num_outputs; ++i) {
      if (site.returns[i].empty()) continue;
      // Taken first: it may add nodes of its own.
      const std::string token = caller == nullptr ? TokenFor(invoke) : "";
      NodeDef* node =
          AddPort(site.returns[i], kReturnOp, callee.output_devices[i], callee.output_types[i], function, i);
      AddNodeAttr(kCallIdAttr, site.call_id, node);
      AddNodeAttr("N", token.empty() ? 0 : 1, node);
      AddNodeAttr(kShapeAttr,
                  i < num_outputs ? StatedShape(invoke, kOutputShapesAttr, i, num_outputs) : TensorShapeProto(), node);
      if (!token.empty()) node->add_input(token);
      for (const std::string& call : site.calls) node->add_input(Control(call));
    }
  }

  // The node that bears the call's name for those who fetch or feed it. Outputs up to the last one wanted; a gap
  // repeats a wanted one, so that nobody waits for an output that was not asked for.
  void EmitFetched(const NodeDef& invoke, const Fetch& fetch, bool awaited) {
    const Site& site = sites_.at(invoke.name());
    const Boundary& callee = boundaries_.at(CalleeOf(invoke));
    std::vector<int> outputs;
    if (fetch.whole) {
      for (size_t i = 0; i + 1 < site.returns.size(); ++i) outputs.push_back(static_cast<int>(i));
    } else {
      for (int i = 0; i <= *fetch.outputs.rbegin(); ++i) {
        outputs.push_back(fetch.outputs.count(i) ? i : *fetch.outputs.begin());
      }
    }
    const char* op = outputs.empty() ? "NoOp" : outputs.size() == 1 ? "Identity" : "IdentityN";
    NodeDef* node = AddNode(invoke.name(), op, invoke.device());
    std::vector<DataType> types;
    for (int output : outputs) {
      node->add_input(site.returns[output]);
      types.push_back(callee.output_types[output]);
    }
    if (outputs.size() == 1) AddNodeAttr("T", types[0], node);
    if (outputs.size() > 1) AddNodeAttr("T", types, node);
    if (awaited) AwaitSite(site, outputs, node);
  }

  // Control edges from the Returns of all outputs but those in `inputs`, which `node` reads anyway.
  void AwaitSite(const Site& site, const std::vector<int>& inputs, NodeDef* node) {
    for (size_t i = 0; i < site.returns.size(); ++i) {
      const bool read = std::count(inputs.begin(), inputs.end(), static_cast<int>(i)) > 0;
      if (!read && !site.returns[i].empty()) node->add_input(Control(site.returns[i]));
    }
  }

  void EmitFunction(const CalledFunction& function) {
    Boundary& boundary = boundaries_.at(function.name);
    NodeDef* frame_start = AddNode(boundary.frame_start, kFrameStartOp, boundary.argument_devices[0]);
    AddNodeAttr(kFunctionAttr, function.name, frame_start);
    AddNodeAttr(kMaxDepthAttr, options_.max_depth, frame_start);
    AddNodeAttr(kWorkersAttr, options_.workers, frame_start);
    EmitEntries(function, boundary);
    EmitSection(function.body, &function);
    EmitResults(function, &boundary);
    if (function.needs_done) EmitDone(function, &boundary);
  }

  void EmitEntries(const CalledFunction& function, const Boundary& boundary) {
    for (size_t i = 0; i < boundary.argument_types.size(); ++i) {
      const bool real = !function.arguments.empty();
      const NodeDef* argument = real ? &function.body.nodes[function.arguments[i]] : nullptr;
      NodeDef* entry =
          AddPort(real ? argument->name() : names_->Unique(function.prefix + "recursion_start"), kEntryOp,
                  boundary.argument_devices[i], boundary.argument_types[i], function.name, static_cast<int>(i));
      AddNodeAttr(kShapeAttr, real ? StatedShape(*argument, "_output_shapes", 0, 1) : TensorShapeProto(), entry);
    }
  }

  void EmitResults(const CalledFunction& function, Boundary* boundary) {
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      if (!function.needed[i]) continue;
      const NodeDef& output = function.body.nodes[function.outputs[i]];
      NodeDef* result = AddPort(output.name(), kResultOp, boundary->output_devices[i], boundary->output_types[i],
                                function.name, static_cast<int>(i));
      AddInputs(output, result);
      boundary->results.push_back(result->name());
    }
  }

  // One more Result, which waits for all side effects of the frame. The ControlTrigger in front of it is live even
  // if some of them are dead, as those of an untaken branch are.
  void EmitDone(const CalledFunction& function, Boundary* boundary) {
    const std::string& device = boundary->argument_devices[0];
    const std::string name = names_->Unique(function.prefix + "recursion_done");
    std::string start = boundary->frame_start;
    if (!function.effects.empty()) {
      start = names_->Unique(name + "/effects");
      NodeDef* join = AddNode(start, "ControlTrigger", device);
      for (const std::string& effect : function.effects) {
        const auto site = sites_.find(effect);
        join->add_input(Control(site == sites_.end() ? effect : site->second.done()));
      }
    }
    const std::string value = names_->Unique(name + "/true");
    AddTrue(value, device)->add_input(Control(start));
    AddPort(name, kResultOp, device, tensorflow::DT_BOOL, function.name, function.num_outputs())->add_input(value);
    boundary->results.push_back(name);
  }

  // KeepAlives.

  // The tensor that makes a Return in the main graph depend on all bodies its call may run, in the call's frame.
  std::string TokenFor(const NodeDef& invoke) {
    const int component = call_graph_.ComponentOf(CalleeOf(invoke));
    std::string& keep_alive = keep_alives_[component];
    if (keep_alive.empty()) {
      keep_alive = names_->Unique("recursion_keep_alive/" + call_graph_.components()[component][0]);
    }
    const auto frame = program_.frame_of.find(invoke.name());
    return frame == program_.frame_of.end() ? keep_alive : EnterFrame(component, keep_alive, frame->second);
  }

  // Takes the token through the Enters of `frame` and all loops around it. Each loop has one, for all its calls.
  std::string EnterFrame(int component, const std::string& keep_alive, int frame) {
    std::vector<int> path;  // innermost first
    for (; frame != kNoLoop; frame = program_.frames[frame].parent) path.push_back(frame);
    std::string token = keep_alive;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      std::string& entered = entered_[{component, *it}];
      if (entered.empty()) {
        const LoopFrame& loop = program_.frames[*it];
        entered = names_->Unique(absl::StrCat(keep_alive, "/enter/", loop.name));
        NodeDef* enter = AddNode(entered, "Enter", loop.device);
        enter->add_input(token);
        AddNodeAttr("T", tensorflow::DT_INT32, enter);
        AddNodeAttr("frame_name", loop.name, enter);
        AddNodeAttr("is_constant", true, enter);
        AddNodeAttr("parallel_iterations", loop.parallel_iterations, enter);
      }
      token = entered;
    }
    return token;
  }

  void EmitKeepAlive(int component, const std::string& name) {
    const std::vector<std::string> functions = call_graph_.ReachableFrom(component);
    NodeDef* keep_alive = AddNode(name, kKeepAliveOp, boundaries_.at(functions[0]).output_devices[0]);
    for (const std::string& function : functions) {
      const Boundary& boundary = boundaries_.at(function);
      keep_alive->add_input(Control(boundary.frame_start));
      for (const std::string& result : boundary.results) keep_alive->add_input(Control(result));
      for (const std::string& effect : program_.functions.at(function).effects) KeepEffectAlive(effect, keep_alive);
    }
  }

  void KeepEffectAlive(const std::string& effect, NodeDef* keep_alive) {
    const auto site = sites_.find(effect);
    if (site == sites_.end()) {
      keep_alive->add_input(Control(effect));
    } else {
      for (const std::string& call : site->second.calls) keep_alive->add_input(Control(call));
    }
  }

  const CallProgram& program_;
  const Options options_;
  int64_t next_call_id_;
  NameTable* const names_;
  GraphDef* const graph_;
  const CallGraph call_graph_;

  std::vector<std::string> live_;  // functions, in the order they were found
  std::map<std::string, Boundary> boundaries_;
  std::map<std::string, Site> sites_;                                  // by name of the call
  std::map<std::pair<std::string, std::string>, std::string> pivots_;  // by LoopCond and device
  std::map<std::string, std::string> recalls_;                         // owner of the record by name of the Recall
  std::map<int, std::string> keep_alives_;                             // by component
  std::map<std::pair<int, int>, std::string> entered_;                 // tokens by component and frame
};

}  // namespace

std::string NameTable::Unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !taken_.insert(name).second; ++i) name = absl::StrCat(wanted, "_", i);
  return name;
}

void Emit(const CallProgram& program, const Options& options, int64_t first_call_id, NameTable* names,
          GraphDef* graph) {
  Emitter(program, options, first_call_id, names, graph).Run();
}

}  // namespace tensorflow_recursion
