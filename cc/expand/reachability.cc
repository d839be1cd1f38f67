// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/reachability.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cc/expand/call_nodes.h"
#include "cc/expand/record_needs.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;
using tensorflow::TensorId;

// Whether the node is a feed or a fetch of a variant: a record may come from another program there, or go to one.
bool IsVariantBoundary(const NodeDef& node) {
  const auto type = node.attr().find("T");
  const bool is_boundary = node.op() == "_Arg" || node.op() == "_Retval";
  return is_boundary && type != node.attr().end() && type->second.type() == tensorflow::DT_VARIANT;
}

// Whether the node may hand a record to a function that is left as it is, which recalls every value.
bool MayTakeRecords(const NodeDef& node) {
  if (IsInvoke(node)) return false;
  bool has_functions = false;
  bool has_variants = false;
  for (const auto& [name, value] : node.attr()) {
    has_functions = has_functions || value.has_func() || value.list().func_size() > 0;
    const auto& types = value.list().type();
    has_variants = has_variants || std::count(types.begin(), types.end(), tensorflow::DT_VARIANT) > 0;
  }
  return has_functions && has_variants;
}

// Keeps all arguments, because a part of a function's graph is called with all of them, even with those that would only
// go into a record that nobody reads. They have no inputs. To be called last, because an argument that is reachable may
// be a record, of which all values would then be needed.
void KeepArguments(NodeList* main) {
  for (size_t node = 0; node < main->nodes.size(); ++node) {
    if (main->nodes[node].op() == "_Arg") main->reachable[node] = true;
  }
}

// Walks backwards from what is fetched, through calls into bodies, until nothing more is found to be needed.
class ReachabilityFinder {
 public:
  explicit ReachabilityFinder(CallProgram* program)
      : program_(program),
        records_(&program->retained, [this](NodeList* list, const std::string& input) { FollowInput(list, input); }) {}

  void Run() {
    for (const auto& [name, fetch] : program_->fetches) NeedFetched(name, fetch);
    // Worklists, because a chain of nodes or calls may be longer than the stack is deep.
    while (!nodes_.empty() || !done_.empty()) {
      if (!nodes_.empty()) {
        const auto [list, node] = nodes_.back();
        nodes_.pop_back();
        FollowInputs(list, node);
      } else {
        CalledFunction* function = done_.back();
        done_.pop_back();
        AwaitEffects(function);
      }
    }
    KeepArguments(&program_->main);
  }

 private:
  void NeedFetched(const std::string& name, const Fetch& fetch) {
    NodeList* main = &program_->main;
    const int node = main->index.at(name);
    NeedNode(main, node);
    if (IsRecall(main->nodes[node])) return records_.NeedAllOf(main->nodes[node]);
    if (!IsInvoke(main->nodes[node])) return;
    if (fetch.whole) {
      NeedCompletion(main, node);
    } else {
      for (int output : fetch.outputs) NeedOutput(Callee(main->nodes[node]), output);
    }
  }

  void NeedNode(NodeList* list, int node) {
    if (list->reachable[node]) return;
    list->reachable[node] = true;
    nodes_.emplace_back(list, node);
    if (IsInvoke(list->nodes[node])) NeedFunction(Callee(list->nodes[node]));
    if (MayTakeRecords(list->nodes[node]) || (list == &program_->main && IsVariantBoundary(list->nodes[node]))) {
      records_.NeedAll();
    }
  }

  void NeedFunction(CalledFunction* function) {
    if (function->reachable) return;
    function->reachable = true;
    for (const std::string& effect : function->effects) NeedNode(&function->body, function->body.index.at(effect));
    if (function->num_outputs() == 0) NeedDone(function);
  }

  void NeedOutput(CalledFunction* function, int output) {
    if (function->needed[output]) return;
    function->needed[output] = true;
    NeedNode(&function->body, function->outputs[output]);
  }

  // A control edge from a call means the same as for any operator: its outputs are computed, and its side effects done.
  void NeedCompletion(NodeList* list, int call) {
    list->awaited.insert(call);
    CalledFunction* function = Callee(list->nodes[call]);
    for (int output = 0; output < function->num_outputs(); ++output) NeedOutput(function, output);
    if (function->has_effects) NeedDone(function);
  }

  void NeedDone(CalledFunction* function) {
    if (function->needs_done) return;
    function->needs_done = true;
    done_.push_back(function);
  }

  void AwaitEffects(CalledFunction* function) {
    for (const std::string& effect : function->effects) {
      const NodeDef& node = function->body.nodes[function->body.index.at(effect)];
      if (IsInvoke(node)) NeedDone(Callee(node));
    }
  }

  void FollowInputs(NodeList* list, int node) {
    const NodeDef& def = list->nodes[node];
    if (IsRetain(def)) return records_.AddRetain(list, node);
    if (IsRecall(def)) records_.AddRecall(list, node);
    for (const std::string& input : def.input()) FollowInput(list, input);
  }

  void FollowInput(NodeList* list, const std::string& input) {
    const TensorId id = tensorflow::ParseTensorName(input);
    const int producer = list->ProducerOf(input);
    NeedNode(list, producer);
    const NodeDef& def = list->nodes[producer];
    if (IsRecall(def) && id.index() >= 0) records_.Need(RecordOwner(def), id.index());
    if (!IsInvoke(def)) return;
    if (tensorflow::IsTensorIdControl(id)) {
      NeedCompletion(list, producer);
    } else {
      NeedOutput(Callee(def), id.index());
    }
  }

  CalledFunction* Callee(const NodeDef& invoke) { return &program_->functions.at(CalleeOf(invoke)); }

  CallProgram* const program_;
  // Reachable nodes whose inputs are still to be followed, and awaited functions whose effects are.
  std::vector<std::pair<NodeList*, int>> nodes_;
  std::vector<CalledFunction*> done_;
  RecordNeeds records_;
};

}  // namespace

void FindReachable(CallProgram* program) { ReachabilityFinder(program).Run(); }

}  // namespace tensorflow_recursion
