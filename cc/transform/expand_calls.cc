// SPDX-License-Identifier: Apache-2.0
#include "cc/transform/expand_calls.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/transform/call_graph.h"
#include "cc/transform/effects.h"
#include "cc/transform/emitter.h"
#include "cc/transform/liveness.h"
#include "cc/transform/placement.h"
#include "cc/transform/resolve_calls.h"
#include "cc/transform/sections.h"
#include "cc/transform/verify.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::TensorId;

absl::Status AsInvalidArgument(const absl::Status& status) {
  return status.ok() ? status : absl::InvalidArgumentError(status.message());
}

constexpr char kColocationPrefix[] = "loc:@";

std::string ProducerOf(const std::string& input) { return std::string(tensorflow::ParseTensorName(input).node()); }

// The parts of `graph` that its fetches need, all inputs checked to exist.
class Pruner {
 public:
  explicit Pruner(const GraphDef& graph) : graph_(graph) {}

  absl::Status Index() {
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (!index_.emplace(graph_.node(i).name(), i).second) {
        return InvalidArgument("Node '", graph_.node(i).name(), "' appears twice in the graph");
      }
    }
    return absl::OkStatus();
  }

  bool Has(const std::string& node) const { return index_.count(node) > 0; }
  const NodeDef& Find(const std::string& node) const { return graph_.node(index_.at(node)); }

  // Copies what `roots` need, in the graph's order; the whole library too.
  absl::Status Keep(const std::map<std::string, Fetch>& roots, GraphDef* kept) const {
    std::vector<bool> keep(graph_.node_size(), false);
    std::vector<int> work;
    auto reach = [&](int node) {
      if (!keep[node]) work.push_back(node);
      keep[node] = true;
    };
    for (const auto& root : roots) reach(index_.at(root.first));
    while (!work.empty()) {
      const NodeDef& node = graph_.node(work.back());
      work.pop_back();
      for (const std::string& input : node.input()) {
        const auto producer = index_.find(ProducerOf(input));
        if (producer == index_.end()) {
          return InvalidArgument("Node '", node.name(), "': input '", input, "' is not in the graph");
        }
        reach(producer->second);
      }
    }
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (keep[i]) *kept->add_node() = graph_.node(i);
    }
    *kept->mutable_library() = graph_.library();
    *kept->mutable_versions() = graph_.versions();
    return absl::OkStatus();
  }

 private:
  const GraphDef& graph_;
  std::unordered_map<std::string, int> index_;
};

// Node names start with a letter, a digit or a dot, and hold few other characters; function names may be anything.
std::string PrefixFor(const std::string& function) {
  std::string prefix = function;
  for (char& c : prefix) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("_.\\/>-", c)) c = '_';
  }
  if (!std::isalnum(static_cast<unsigned char>(prefix[0]))) prefix.insert(0, "function");
  return prefix + "/";
}

// Body node names before the prefix: what the FunctionDef says, as expansion only adds names below those.
std::unordered_set<std::string> TopNames(const FunctionDef& function) {
  std::unordered_set<std::string> names;
  auto add = [&](const std::string& name) { names.insert(name.substr(0, name.find('/'))); };
  for (const auto& arg : function.signature().input_arg()) add(arg.name());
  for (const auto& arg : function.signature().output_arg()) add(arg.name());
  for (const NodeDef& node : function.node_def()) add(node.name());
  return names;
}

class Loader {
 public:
  Loader(const GraphDef& graph, const ExpandOptions& options, CallProgram* program, NameTable* names)
      : graph_(graph),
        options_(options),
        program_(program),
        names_(names),
        bodies_(graph.library(), options.placement) {}

  absl::Status Load() {
    TFR_RETURN_IF_ERROR(LoadMain());
    TFR_RETURN_IF_ERROR(FindFunctions(*main_, /*caller=*/nullptr));
    for (size_t i = 0; i < program_->order.size(); ++i) {
      TFR_RETURN_IF_ERROR(LoadFunction(&program_->functions.at(program_->order[i])));
    }
    for (const std::string& name : program_->order) {
      TFR_RETURN_IF_ERROR(VerifyHandles(*program_->functions.at(name).graph));
    }
    TFR_RETURN_IF_ERROR(VerifyHandles(*main_));
    AlignBoundaries(program_);
    SpreadEffects();
    DropWaits(main_effects_, &program_->main);
    for (const std::string& name : program_->order) {
      TFR_RETURN_IF_ERROR(FinishFunction(&program_->functions.at(name)));
    }
    return absl::OkStatus();
  }

 private:
  // The main graph.

  absl::Status LoadMain() {
    TakeMainNames();
    Pruner pruner(graph_);
    TFR_RETURN_IF_ERROR(pruner.Index());
    TFR_RETURN_IF_ERROR(ReadFetches(pruner));
    GraphDef kept;
    TFR_RETURN_IF_ERROR(pruner.Keep(program_->fetches, &kept));
    TFR_RETURN_IF_ERROR(VerifyNodes(kept));
    auto graph = std::make_unique<Graph>(tensorflow::OpRegistry::Global());
    tensorflow::GraphConstructorOptions construction;
    construction.allow_internal_ops = true;
    TFR_RETURN_IF_ERROR(AsInvalidArgument(ConvertGraphDefToGraph(construction, std::move(kept), graph.get())));
    TFR_RETURN_IF_ERROR(VerifyGraph(*graph));
    TFR_RETURN_IF_ERROR(AsInvalidArgument(bodies_.ExpandMain(&graph)));
    TFR_RETURN_IF_ERROR(AsInvalidArgument(ResolveCalls(/*suffix=*/"", graph.get())));
    TFR_RETURN_IF_ERROR(FindFrames(graph.get()));
    main_effects_ = NodesWithEffect(*graph);
    GraphDef nodes;
    graph->ToGraphDef(&nodes, /*include_flib_def=*/false);
    for (NodeDef& node : *nodes.mutable_node()) {
      names_->Take(node.name());
      program_->main.Add(std::move(node));
    }
    main_ = std::move(graph);
    return absl::OkStatus();
  }

  // This graph may be pruned, but a body's names, which the state of its kernels hangs on, must not depend on what is
  // fetched: hence the marks of a pass that saw the whole graph.
  void TakeMainNames() {
    for (const NodeDef& node : graph_.node()) {
      names_->Take(node.name());
      const auto marked = node.attr().find(kTakenNamesAttr);
      if (marked != node.attr().end()) {
        for (const std::string& name : marked->second.list().s()) names_->Take(name);
      }
      const auto frame = node.attr().find("frame_name");
      if (frame != node.attr().end()) frames_.Take(frame->second.s());
    }
  }

  absl::Status ReadFetches(const Pruner& pruner) {
    for (const std::string& fetch : options_.fetches) TFR_RETURN_IF_ERROR(ReadFetch(fetch, pruner));
    if (options_.fetches.empty()) {
      for (const NodeDef& node : graph_.node()) program_->fetches[node.name()].whole = true;
    }
    for (const std::string& feed : options_.feeds) {
      const std::string node = ProducerOf(feed);
      if (!pruner.Has(node)) continue;
      program_->feeds.insert(node);
      program_->fetches[node].whole = true;
    }
    return absl::OkStatus();
  }

  absl::Status ReadFetch(const std::string& fetch, const Pruner& pruner) {
    const TensorId id = tensorflow::ParseTensorName(fetch);
    const std::string node(id.node());
    if (!pruner.Has(node)) return InvalidArgument("Fetch '", fetch, "' is not in the graph");
    Fetch& fetched = program_->fetches[node];
    if (tensorflow::IsTensorIdControl(id) || !absl::StrContains(fetch, ':')) {
      fetched.whole = true;
    } else {
      const NodeDef& def = pruner.Find(node);
      const auto outputs = def.attr().find("Tout");
      if (IsInvoke(def) && (outputs == def.attr().end() || id.index() >= outputs->second.list().type_size())) {
        return InvalidArgument("Fetch '", fetch, "': the call has no such output");
      }
      fetched.outputs.insert(id.index());
    }
    return absl::OkStatus();
  }

  // Fills in `frames` and `frame_of` where calls are inside while loops.
  absl::Status FindFrames(Graph* graph) {
    const auto nodes = graph->op_nodes();
    if (std::none_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->IsEnter(); })) {
      return absl::OkStatus();
    }
    tensorflow::FixupSourceAndSinkEdges(graph);
    std::vector<tensorflow::ControlFlowInfo> info;
    TFR_RETURN_IF_ERROR(AsInvalidArgument(tensorflow::BuildControlFlowInfo(graph, &info)));
    std::map<std::string, int> frames;
    for (const Node* node : nodes) {
      const Node* frame = info[node->id()].frame;
      if (IsInvoke(node->def()) && frame != nullptr && !frame->IsSource()) {
        program_->frame_of[node->name()] = AddFrame(frame, info, &frames);
      }
    }
    return absl::OkStatus();
  }

  // Adds the frames around `enter` and its own to `frames`, which tells them by name, as a frame has an Enter node for
  // each of its loop's variables. Returns the position of its own.
  int AddFrame(const Node* enter, const std::vector<tensorflow::ControlFlowInfo>& info,
               std::map<std::string, int>* frames) {
    std::vector<const Node*> path;  // innermost first, up to a known frame
    auto name = [&](const Node* node) -> const std::string& { return info[node->id()].frame_name; };
    for (; !enter->IsSource() && !frames->count(name(enter)); enter = info[enter->id()].parent_frame) {
      path.push_back(enter);
    }
    int parent = enter->IsSource() ? kNoLoop : frames->at(name(enter));
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      int64_t parallel_iterations = 10;  // the operator's default
      tensorflow::TryGetNodeAttr((*it)->attrs(), "parallel_iterations", &parallel_iterations);
      const std::string& device = (*it)->assigned_device_name();
      program_->frames.push_back(
          {name(*it), parent, parallel_iterations, device.empty() ? (*it)->requested_device() : device});
      parent = (*frames)[name(*it)] = static_cast<int>(program_->frames.size()) - 1;
    }
    return parent;
  }

  // Functions.

  // Adds the callees of `graph` that are new. `caller` is null for the main graph.
  absl::Status FindFunctions(const Graph& graph, CalledFunction* caller) {
    for (const Node* node : graph.op_nodes()) {
      if (!IsInvoke(node->def())) continue;
      NodeDef call = node->def();
      // The definition's inputs are those of the FunctionDef; the edges are what counts.
      call.clear_input();
      for (int i = 0; i < node->num_inputs(); ++i) call.add_input("edge");
      TFR_RETURN_IF_ERROR(VerifyCallSite(call, bodies_.library()));
      const std::string& name = CalleeOf(call);
      if (caller != nullptr) caller->callees.push_back(name);
      const auto [it, added] = program_->functions.try_emplace(name);
      if (!added) continue;
      CalledFunction& function = it->second;
      function.definition = bodies_.library().Find(name);
      const bool is_pinned =
          caller == nullptr ? node->attrs().Find(kPinnedAttr) != nullptr : AsksForType(node->requested_device());
      function.device = is_pinned ? DeviceOf(*node) : bodies_.PreferredBeside(DeviceOf(*node));
      function.record_device = caller == nullptr ? function.device : caller->record_device;
      function.call = node;
      function.prefix = PrefixFor(name);
      function.needed.assign(function.num_outputs(), false);
      program_->order.push_back(name);
    }
    return absl::OkStatus();
  }

  static const std::string& NameOf(const CalledFunction& function) { return function.definition->signature().name(); }

  absl::Status LoadFunction(CalledFunction* function) {
    if (function->graph != nullptr) return absl::OkStatus();
    const std::string& name = NameOf(*function);
    TFR_RETURN_IF_ERROR(bodies_.Instantiate(name, &function->graph));
    TFR_RETURN_IF_ERROR(BindHandles(function));
    TFR_RETURN_IF_ERROR(bodies_.Place(name, function->device, function->graph.get()));
    TFR_RETURN_IF_ERROR(AsInvalidArgument(ResolveCalls(/*suffix=*/"", function->graph.get())));
    for (const Node* node : function->graph->op_nodes()) {
      if (HasEffect(*node)) function->has_effects = true;
      if (IsRecall(node->def())) function->is_gradient = true;
    }
    // What a gradient computes is computed for who asked for it, however stateful.
    if (function->is_gradient) function->has_effects = false;
    return FindFunctions(*function->graph, function);
  }

  // Handles and records go where what they stand for is, and so does, by the Placer's rules, who reads a handle. What
  // is retained stays on one device: a record is memory of its process.
  absl::Status BindHandles(CalledFunction* function) {
    bool holds_records = false;
    for (Node* node : function->graph->op_nodes()) {
      holds_records = holds_records || IsRetain(node->def()) || IsRecall(node->def());
      if (!node->IsArg() || !IsHandle(node->output_type(0))) continue;
      int index = 0;
      TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), "index", &index));
      std::string device;
      TFR_RETURN_IF_ERROR(HandleDevice(*function->call, index, &device));
      if (device.empty()) continue;
      node->set_assigned_device_name(device);
      for (const tensorflow::Edge* edge : node->out_edges()) {
        if (IsRecall(edge->dst()->def())) function->record_device = device;
      }
    }
    if (!holds_records) return absl::OkStatus();
    for (Node* node : function->graph->op_nodes()) {
      if (HoldsRecord(*node)) node->set_assigned_device_name(function->record_device);
    }
    return absl::OkStatus();
  }

  // Reads or writes records or contributions, or may pass one on.
  static bool HoldsRecord(const Node& node) {
    if (IsRetain(node.def()) || IsPureGradientOp(node.type_string())) return true;
    if (node.num_outputs() == 0 || node.IsArg() || IsInvoke(node.def())) return false;
    return node.output_type(0) == tensorflow::DT_VARIANT && node.requested_device().empty();
  }

  static bool IsHandle(tensorflow::DataType type) {
    return type == tensorflow::DT_RESOURCE || type == tensorflow::DT_VARIANT;
  }

  // The device of the handle that `call` passes as argument `index`; empty if it can't be told.
  absl::Status HandleDevice(const Node& call, int index, std::string* device) {
    const auto [origin, output] = OriginOf(call, index);
    if (origin == nullptr) return absl::OkStatus();
    *device = DeviceOf(*origin);
    if (!IsInvoke(origin->def())) return absl::OkStatus();
    device->clear();
    CalledFunction* maker = &program_->functions.at(CalleeOf(origin->def()));
    if (maker->graph == nullptr && !maker->is_loading) {
      maker->is_loading = true;
      TFR_RETURN_IF_ERROR(LoadFunction(maker));
    }
    if (maker->graph == nullptr) return absl::OkStatus();
    for (const Node* node : maker->graph->op_nodes()) {
      int position = 0;
      if (!node->IsRetval() || !tensorflow::GetNodeAttr(node->attrs(), "index", &position).ok()) continue;
      const Node* source = OriginOf(*node, 0).first;
      if (position == output && source != nullptr && !IsInvoke(source->def())) *device = DeviceOf(*source);
    }
    return absl::OkStatus();
  }

  // A body stands in the graph once, so a resource that it reads must be on one device whoever calls.
  absl::Status VerifyHandles(const Graph& graph) {
    for (const Node* node : graph.op_nodes()) {
      if (!IsInvoke(node->def())) continue;
      const CalledFunction& callee = program_->functions.at(CalleeOf(node->def()));
      for (const Node* argument : callee.graph->op_nodes()) {
        if (!argument->IsArg() || argument->output_type(0) != tensorflow::DT_RESOURCE) continue;
        int index = 0;
        TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(argument->attrs(), "index", &index));
        std::string device;
        TFR_RETURN_IF_ERROR(HandleDevice(*node, index, &device));
        if (device.empty() || device == DeviceOf(*argument)) continue;
        return InvalidArgument("Call '", node->name(), "': argument ", index, " ('", argument->name(), "') of '",
                               UserName(NameOf(callee)), "' is a resource on ", device, ", another call passes one on ",
                               DeviceOf(*argument), "; the function's body stands in the graph once");
      }
    }
    return absl::OkStatus();
  }

  // A call has effects when its function has.
  void SpreadEffects() {
    std::map<std::string, std::vector<std::string>> callers;
    std::vector<std::string> work;
    for (const auto& [name, function] : program_->functions) {
      for (const std::string& callee : function.callees) callers[callee].push_back(name);
      if (function.has_effects) work.push_back(name);
    }
    while (!work.empty()) {
      const std::string name = std::move(work.back());
      work.pop_back();
      for (const std::string& caller : callers[name]) {
        bool& has_effects = program_->functions.at(caller).has_effects;
        if (has_effects || program_->functions.at(caller).is_gradient) continue;
        has_effects = true;
        work.push_back(caller);
      }
    }
  }

  static std::unordered_set<std::string> NodesWithEffect(const Graph& graph) {
    std::unordered_set<std::string> names;
    for (const Node* node : graph.op_nodes()) {
      if (HasEffect(*node)) names.insert(node->name());
    }
    return names;
  }

  absl::Status FinishFunction(CalledFunction* function) {
    TFR_RETURN_IF_ERROR(AsInvalidArgument(CollectEffects(
        function->graph.get(),
        [this, function](const Node& node) {
          if (function->is_gradient) return false;
          return IsInvoke(node.def()) ? program_->functions.at(CalleeOf(node.def())).has_effects : HasEffect(node);
        },
        &function->effects)));
    std::unordered_set<std::string> with_effect;
    if (!function->is_gradient) with_effect = NodesWithEffect(*function->graph);
    GraphDef body;
    function->graph->ToGraphDef(&body, /*include_flib_def=*/false);
    function->graph.reset();
    const std::unordered_map<std::string, std::string> renamed = NameNodes(*function, body);
    for (std::string& effect : function->effects) effect = renamed.at(effect);
    function->arguments.resize(function->num_arguments());
    function->outputs.resize(function->num_outputs());
    RenameFrames(function->prefix, &body);
    for (NodeDef& node : *body.mutable_node()) {
      const int position = static_cast<int>(function->body.nodes.size());
      if (node.op() == "_Arg") function->arguments[node.attr().at("index").i()] = position;
      if (node.op() == "_Retval") function->outputs[node.attr().at("index").i()] = position;
      Rename(renamed, &node);
      function->body.Add(std::move(node));
    }
    std::unordered_set<std::string> effects;
    for (const std::string& node : with_effect) effects.insert(renamed.at(node));
    DropWaits(effects, &function->body);
    return absl::OkStatus();
  }

  // TensorFlow lets the nodes of a branch wait for each other as if gradients had side effects; the wait for a gradient
  // call would be for all of its outputs, asked for or not. Only side effects wait, outside gradients: what a gradient
  // reads of a variable must not be what is assigned after it.
  void DropWaits(const std::unordered_set<std::string>& effects, Section* section) const {
    const std::vector<bool> is_ordered = FindOrdered(effects, *section);
    std::vector<bool> is_idle(section->nodes.size(), false);  // joins that wait for nothing any more
    bool may_wait_for_calls = false;
    auto need_not_wait_for = [&](const std::string& input) {
      const TensorId id = tensorflow::ParseTensorName(input);
      if (!tensorflow::IsTensorIdControl(id)) return false;
      const int position = section->index.at(std::string(id.node()));
      const NodeDef& source = section->nodes[position];
      if (IsInvoke(source)) return !may_wait_for_calls && program_->functions.at(CalleeOf(source)).is_gradient;
      return is_idle[position] || IsPureGradientOp(source.op());
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < section->nodes.size(); ++i) {
        may_wait_for_calls = is_ordered[i];
        auto* inputs = section->nodes[i].mutable_input();
        const auto end = std::remove_if(inputs->begin(), inputs->end(), need_not_wait_for);
        if (end == inputs->end()) continue;
        inputs->erase(end, inputs->end());
        is_idle[i] = inputs->empty() && section->nodes[i].op() == "NoOp";
        changed = changed || is_idle[i];
      }
    }
  }

  // By node: it has a side effect, or one depends on it. Data edges count too, because `tf.control_dependencies`
  // leaves out the control edge of an operator with an input that waits already.
  std::vector<bool> FindOrdered(const std::unordered_set<std::string>& effects, const Section& section) const {
    std::vector<bool> is_ordered(section.nodes.size(), false);
    std::vector<int> work;
    auto order = [&](int position) {
      if (!is_ordered[position]) work.push_back(position);
      is_ordered[position] = true;
    };
    for (size_t i = 0; i < section.nodes.size(); ++i) {
      const NodeDef& node = section.nodes[i];
      const bool has_effect =
          IsInvoke(node) ? program_->functions.at(CalleeOf(node)).has_effects : effects.count(node.name()) > 0;
      if (has_effect) order(static_cast<int>(i));
    }
    while (!work.empty()) {
      const NodeDef& node = section.nodes[work.back()];
      work.pop_back();
      for (const std::string& input : node.input()) {
        order(section.index.at(ProducerOf(input)));
      }
    }
    return is_ordered;
  }

  // New names of all nodes of a body. Results take what the others leave, as output names may repeat node names.
  std::unordered_map<std::string, std::string> NameNodes(const CalledFunction& function, const GraphDef& body) {
    std::unordered_map<std::string, std::string> renamed;
    for (const NodeDef& node : body.node()) {
      if (node.op() != "_Retval") renamed[node.name()] = names_->Unique(function.prefix + node.name());
    }
    for (const NodeDef& node : body.node()) {
      if (node.op() != "_Retval") continue;
      const auto& output = function.definition->signature().output_arg(node.attr().at("index").i());
      renamed[node.name()] = names_->Unique(function.prefix + output.name());
    }
    return renamed;
  }

  static void Rename(const std::unordered_map<std::string, std::string>& renamed, NodeDef* node) {
    node->set_name(renamed.at(node->name()));
    for (std::string& input : *node->mutable_input()) {
      const TensorId id = tensorflow::ParseTensorName(input);
      const std::string& producer = renamed.at(std::string(id.node()));
      input = TensorId(producer, id.index()).ToString();
      if (id.index() == 0) input = producer;
    }
    RenameColocation(renamed, node);
  }

  // Loops are told apart by their frames' names, which have a space of their own.
  void RenameFrames(const std::string& prefix, GraphDef* body) {
    std::map<std::string, std::string> renamed;
    for (NodeDef& node : *body->mutable_node()) {
      const auto frame = node.mutable_attr()->find("frame_name");
      if (frame == node.mutable_attr()->end()) continue;
      std::string& name = renamed[frame->second.s()];
      if (name.empty()) name = frames_.Unique(prefix + frame->second.s());
      frame->second.set_s(name);
    }
  }

  static void RenameColocation(const std::unordered_map<std::string, std::string>& renamed, NodeDef* node) {
    const auto found = node->mutable_attr()->find(tensorflow::kColocationAttrName);
    if (found == node->mutable_attr()->end()) return;
    for (std::string& group : *found->second.mutable_list()->mutable_s()) {
      const auto target = renamed.find(std::string(absl::StripPrefix(group, kColocationPrefix)));
      if (target != renamed.end()) group = kColocationPrefix + target->second;
    }
  }

  const GraphDef& graph_;
  const ExpandOptions& options_;
  CallProgram* const program_;
  NameTable* const names_;
  BodyFactory bodies_;
  std::unique_ptr<Graph> main_;
  std::unordered_set<std::string> main_effects_;  // nodes
  NameTable frames_;
};

// Bodies that the graph holds already, with calls of the same functions beside them, would be there twice.
absl::Status VerifyNotExpanded(const GraphDef& graph, const CallProgram& program) {
  for (const NodeDef& node : graph.node()) {
    std::string function;
    if (node.op() == kEntryOp && tensorflow::TryGetNodeAttr(node, kFunctionAttr, &function) &&
        program.functions.count(function)) {
      return InvalidArgument("Function '", function, "': the graph holds calls of it and its body (node '", node.name(),
                             "')");
    }
  }
  return absl::OkStatus();
}

// Calls are gone, and nodes that were only needed to hold others in place. Placement is done, so nothing is lost.
void DropDanglingColocation(GraphDef* graph) {
  std::unordered_set<std::string> names;
  for (const NodeDef& node : graph->node()) names.insert(node.name());
  for (NodeDef& node : *graph->mutable_node()) {
    const auto found = node.mutable_attr()->find(tensorflow::kColocationAttrName);
    if (found == node.mutable_attr()->end()) continue;
    auto* groups = found->second.mutable_list()->mutable_s();
    groups->erase(std::remove_if(groups->begin(), groups->end(),
                                 [&](const std::string& group) {
                                   const bool is_node = absl::StartsWith(group, kColocationPrefix);
                                   return is_node && !names.count(group.substr(sizeof(kColocationPrefix) - 1));
                                 }),
                  groups->end());
    if (groups->empty()) node.mutable_attr()->erase(found);
  }
}

int64_t FirstFreeCallId(const GraphDef& graph) {
  int64_t last = 0;
  for (const NodeDef& node : graph.node()) {
    int64_t id = 0;
    if (tensorflow::TryGetNodeAttr(node, kCallIdAttr, &id)) last = std::max(last, id);
  }
  return last + 1;
}

}  // namespace

std::vector<std::string> TakenNames(const std::vector<std::string>& nodes,
                                    const tensorflow::FunctionDefLibrary& functions) {
  std::vector<std::string> taken;
  for (const FunctionDef& function : functions.function()) {
    const std::string prefix = PrefixFor(function.signature().name());
    std::unordered_set<std::string> top_names;
    for (const std::string& node : nodes) {
      if (!absl::StartsWith(node, prefix)) continue;
      if (top_names.empty()) top_names = TopNames(function);
      const std::string rest = node.substr(prefix.size());
      if (top_names.count(rest.substr(0, rest.find('/')))) taken.push_back(node);
    }
  }
  return taken;
}

bool HasExpandableCalls(const GraphDef& graph) {
  const auto is_boundary = [](const NodeDef& node) { return node.op() == "_Arg" || node.op() == "_Retval"; };
  if (std::any_of(graph.node().begin(), graph.node().end(), is_boundary)) return false;
  if (HasInvoke(graph)) return true;
  const auto holds_invoke = [](const FunctionDef& function) {
    return std::any_of(function.node_def().begin(), function.node_def().end(), IsInvoke);
  };
  if (std::none_of(graph.library().function().begin(), graph.library().function().end(), holds_invoke)) return false;
  const FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), graph.library());
  const std::unordered_set<std::string> with_invoke = FunctionsWithInvoke(graph.library(), library);
  return std::any_of(graph.node().begin(), graph.node().end(), [&](const NodeDef& node) {
    const std::vector<std::string> functions = FindExpandable(node, library).functions;
    return std::any_of(functions.begin(), functions.end(), [&](const auto& name) { return with_invoke.count(name); });
  });
}

absl::Status ExpandCalls(const GraphDef& graph, const ExpandOptions& options, GraphDef* expanded) {
  if (!HasExpandableCalls(graph)) {
    *expanded = graph;
    return absl::OkStatus();
  }
  TFR_RETURN_IF_ERROR(VerifyExpandedCalls(graph));
  CallProgram program;
  NameTable names;
  Loader loader(graph, options, &program, &names);
  TFR_RETURN_IF_ERROR(loader.Load());
  TFR_RETURN_IF_ERROR(VerifyNotExpanded(graph, program));
  FindLiveness(&program);
  Emit(program, options.run, FirstFreeCallId(graph), &names, expanded);
  DropDanglingColocation(expanded);
  *expanded->mutable_library() = graph.library();
  *expanded->mutable_versions() = graph.versions();
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
