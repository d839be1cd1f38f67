// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/expand_calls.h"

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
#include "cc/analysis/effects.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_graph.h"
#include "cc/expand/call_program.h"
#include "cc/expand/emission.h"
#include "cc/expand/handles.h"
#include "cc/expand/placement.h"
#include "cc/expand/reachability.h"
#include "cc/expand/resolve_calls.h"
#include "cc/expand/verify.h"
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

// Takes the prefix of a function's body, or of a copy of it, off the name of a node.
bool ConsumePrefix(absl::string_view prefix, absl::string_view* node) {
  if (absl::ConsumePrefix(node, prefix)) return true;
  prefix.remove_suffix(1);
  if (!absl::ConsumePrefix(node, absl::StrCat(prefix, kCopySuffix))) return false;
  const size_t digits = std::min(node->find_first_not_of("0123456789"), node->size());
  node->remove_prefix(digits);
  return digits > 0 && absl::ConsumePrefix(node, "/");
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

// Bodies of one function. More than any real cluster needs, fewer than what a forged graph could ask for.
constexpr int kMaxCopies = 1024;

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
    TFR_RETURN_IF_ERROR(BindCalls(nullptr));
    for (size_t i = 0; i < program_->order.size(); ++i) {
      TFR_RETURN_IF_ERROR(BindCalls(&program_->functions.at(program_->order[i])));
    }
    AlignBoundaries(program_);
    SpreadEffects();
    FinishMain();
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
    main_ = std::move(graph);
    return absl::OkStatus();
  }

  void FinishMain() {
    GraphDef nodes;
    main_->ToGraphDef(&nodes, /*include_flib_def=*/false);
    for (NodeDef& node : *nodes.mutable_node()) {
      names_->Take(node.name());
      program_->main.Add(std::move(node));
    }
    DropWaits(NodesWithEffect(*main_), &program_->main);
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

  const Graph& GraphOf(const CalledFunction* function) const { return function == nullptr ? *main_ : *function->graph; }

  // Finds the callee of every call in the body of `caller`, or in the main graph if that is null.
  absl::Status BindCalls(const CalledFunction* caller) {
    for (Node* node : GraphOf(caller).op_nodes()) {
      if (IsInvoke(node->def())) TFR_RETURN_IF_ERROR(BindCall({caller, node}));
    }
    return absl::OkStatus();
  }

  // Calls that return a handle are bound before those that take it. A stack of its own, as there may be many.
  absl::Status BindCall(const OwnedNode& first) {
    if (bound_.count(first.node) > 0) return absl::OkStatus();
    std::vector<OwnedNode> open = {first};
    while (!open.empty()) {
      TFR_RETURN_IF_ERROR(VerifyCallSite(*open.back().node, bodies_.library()));
      OwnedNode missing;
      std::vector<Handle> handles = FindHandles(open, &missing);
      if (missing.node != nullptr) {
        open.push_back(missing);
      } else {
        TFR_RETURN_IF_ERROR(Bind(open.back(), std::move(handles)));
        open.pop_back();
      }
    }
    return absl::OkStatus();
  }

  // Of the last call in `open`, by argument. Stops at a call that has to be bound before.
  std::vector<Handle> FindHandles(const std::vector<OwnedNode>& open, OwnedNode* missing) const {
    const HandleFinder finder(*program_, bound_);
    const OwnedNode& call = open.back();
    std::vector<Handle> handles(call.node->num_inputs());
    for (int i = 0; i < call.node->num_inputs() && missing->node == nullptr; ++i) {
      if (IsHandle(call.node->input_type(i))) handles[i] = finder.Find(call, i, open, missing);
    }
    return handles;
  }

  // A body stands in the graph once for all calls that pass resources of the same devices, and records of one function.
  absl::Status Bind(const OwnedNode& call, std::vector<Handle> handles) {
    const std::string callee = CalleeOf(call.node->def());
    const FunctionDef& definition = *bodies_.library().Find(callee);
    Copies& copies = copies_[callee];
    if (copies.names.empty()) copies.matters = FindWhatMatters(definition);
    const auto suits = [&](const std::string& name) {
      return Suits(copies.matters, program_->functions.at(name).handles, handles);
    };
    const auto found = std::find_if(copies.names.begin(), copies.names.end(), suits);
    if (found != copies.names.end()) {
      SetCallee(call, *found);
      return absl::OkStatus();
    }
    if (static_cast<int>(copies.names.size()) == kMaxCopies) {
      return InvalidArgument("Function '", UserName(callee), "': its calls pass resources of more than ", kMaxCopies,
                             " combinations of devices; the function's body stands in the graph once for each");
    }
    const std::string name = NameCopy(callee, static_cast<int>(copies.names.size()));
    copies.names.push_back(name);
    SetCallee(call, name);
    CalledFunction& function = program_->functions[name];
    function.definition = &definition;
    function.name = name;
    const bool is_pinned = call.function == nullptr ? call.node->attrs().Find(kPinnedAttr) != nullptr
                                                    : AsksForType(call.node->requested_device());
    function.device = is_pinned ? DeviceOf(*call.node) : bodies_.PreferredBeside(DeviceOf(*call.node));
    function.record_device = call.function == nullptr ? function.device : call.function->record_device;
    function.handles = std::move(handles);
    function.prefix = PrefixFor(name);
    function.needed.assign(function.num_outputs(), false);
    program_->order.push_back(name);
    return LoadFunction(&function);
  }

  void SetCallee(const OwnedNode& call, const std::string& name) {
    bound_.insert(call.node);
    if (call.function != nullptr) program_->functions.at(call.function->name).callees.push_back(name);
    if (CalleeOf(call.node->def()) == name) return;
    tensorflow::NameAttrList function;
    function.set_name(name);
    call.node->ClearAttr(kCalleeAttr);
    call.node->AddAttr(kCalleeAttr, function);
  }

  // All bodies of one function.
  struct Copies {
    std::vector<std::string> names;
    std::vector<bool> matters;  // by argument: whether there are several because of it
  };

  // Resources and records do, lists of tensors are sent where they are needed.
  static std::vector<bool> FindWhatMatters(const FunctionDef& definition) {
    std::unordered_set<std::string> records;
    for (const NodeDef& node : definition.node_def()) {
      if (IsRecall(node) && node.input_size() > 0) records.insert(node.input(0));
    }
    std::vector<bool> matters;
    for (const auto& argument : definition.signature().input_arg()) {
      matters.push_back(argument.type() == tensorflow::DT_RESOURCE || records.count(argument.name()) > 0);
    }
    return matters;
  }

  // Whether a call with `handles` may run the body that was made for `made_for`; what is not known of it does not
  // count.
  static bool Suits(const std::vector<bool>& matters, const std::vector<Handle>& made_for,
                    const std::vector<Handle>& handles) {
    for (size_t i = 0; i < matters.size(); ++i) {
      if (!matters[i] || !handles[i].is_known) continue;
      if (!made_for[i].is_known || made_for[i].device != handles[i].device) return false;
      if (!handles[i].record_of.empty() && made_for[i].record_of != handles[i].record_of) return false;
    }
    return true;
  }

  // The first copy is called what the function is called.
  std::string NameCopy(const std::string& function, int number) const {
    if (number == 0) return function;
    for (;; ++number) {
      const std::string name = absl::StrCat(function, kCopySuffix, number);
      if (bodies_.library().Find(name) == nullptr && program_->functions.count(name) == 0) return name;
    }
  }

  absl::Status LoadFunction(CalledFunction* function) {
    const std::string& name = function->definition->signature().name();
    TFR_RETURN_IF_ERROR(bodies_.Instantiate(name, &function->graph));
    BindHandles(function);
    TFR_RETURN_IF_ERROR(bodies_.Place(name, function->device, function->graph.get()));
    TFR_RETURN_IF_ERROR(AsInvalidArgument(ResolveCalls(/*suffix=*/"", function->graph.get())));
    for (const Node* node : function->graph->op_nodes()) {
      if (HasEffect(*node)) function->has_effects = true;
      if (IsRecall(node->def())) function->is_gradient = true;
    }
    // What a gradient computes is computed for who asked for it, however stateful.
    if (function->is_gradient) function->has_effects = false;
    return absl::OkStatus();
  }

  // Handles and records go where what they stand for is, and so does, by the Placer's rules, who reads a handle. What
  // is retained stays on one device: a record is memory of its process.
  static void BindHandles(CalledFunction* function) {
    bool holds_records = false;
    for (Node* node : function->graph->op_nodes()) {
      holds_records = holds_records || IsRetain(node->def()) || IsRecall(node->def());
      if (!node->IsArg() || !IsHandle(node->output_type(0))) continue;
      const std::string& device = function->handles.at(IndexOf(*node)).device;
      if (device.empty()) continue;
      node->set_assigned_device_name(device);
      for (const tensorflow::Edge* edge : node->out_edges()) {
        if (IsRecall(edge->dst()->def())) function->record_device = device;
      }
    }
    if (!holds_records) return;
    for (Node* node : function->graph->op_nodes()) {
      if (HoldsRecord(*node) && HasKernel(*node, function->record_device)) {
        node->set_assigned_device_name(function->record_device);
      }
    }
  }

  // The Placer does not ask about nodes that are assigned already.
  static bool HasKernel(const Node& node, const std::string& device) {
    tensorflow::DeviceNameUtils::ParsedName name;
    return !tensorflow::DeviceNameUtils::ParseFullName(device, &name) || !name.has_type ||
           tensorflow::FindKernelDef(tensorflow::DeviceType(name.type), node.def(), nullptr, nullptr).ok();
  }

  // Reads or writes records or contributions, or may pass one on.
  static bool HoldsRecord(const Node& node) {
    if (IsRetain(node.def()) || IsPureGradientOp(node.type_string())) return true;
    if (node.num_outputs() == 0 || node.IsArg() || IsInvoke(node.def())) return false;
    return node.output_type(0) == tensorflow::DT_VARIANT && node.requested_device().empty();
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
    bool may_wait = false;
    auto need_not_wait_for = [&](const std::string& input) {
      const TensorId id = tensorflow::ParseTensorName(input);
      if (!tensorflow::IsTensorIdControl(id)) return false;
      const int position = section->index.at(std::string(id.node()));
      const NodeDef& source = section->nodes[position];
      const bool is_gradient =
          IsInvoke(source) ? program_->functions.at(CalleeOf(source)).is_gradient : IsPureGradientOp(source.op());
      return is_idle[position] || (is_gradient && !may_wait);
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < section->nodes.size(); ++i) {
        may_wait = is_ordered[i];
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
  BoundCalls bound_;
  std::map<std::string, Copies> copies_;  // by function
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
      absl::string_view rest = node;
      if (!ConsumePrefix(prefix, &rest)) continue;
      if (top_names.empty()) top_names = TopNames(function);
      if (top_names.count(std::string(rest.substr(0, rest.find('/'))))) taken.push_back(node);
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
