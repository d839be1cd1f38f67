// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/effects.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <vector>

#include "absl/strings/match.h"
#include "cc/analysis/function_attributes.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;

// Whether TensorFlow calls operators of this type stateful only because folding, merging or moving them would change
// what they return.
bool OnlyMakesValues(const std::string& op) {
  static const auto* const kOps = new std::unordered_set<std::string>{
      "Multinomial",       "ParameterizedTruncatedNormal", "RandomGamma",   "RandomPoisson",    "RandomShuffle",
      "RandomPoissonV2",   "RandomStandardNormal",         "RandomUniform", "RandomUniformInt", "StackV2",
      "TensorArrayGradV3", "TensorArrayGradWithShape",     "TensorArrayV3", "TruncatedNormal"};
  return kOps->count(op) > 0;
}

// Whether the node only makes a handle or a reference, as VarHandleOp, VariableV2, HashTableV2 and FIFOQueueV2 do.
bool OnlyMakesHandles(const Node& node) {
  const auto& types = node.output_types();
  return node.num_inputs() == 0 && !types.empty() && std::all_of(types.begin(), types.end(), [](auto type) {
           return type == tensorflow::DT_RESOURCE || tensorflow::IsRefType(type);
         });
}

bool TakesReference(const Node& node) {
  const auto& types = node.input_types();
  return std::any_of(types.begin(), types.end(), [](auto type) { return tensorflow::IsRefType(type); });
}

// One loop of a body: the NextIteration and the Exit that can be made to wait for the effects in it.
struct Loop {
  int depth = 0;
  // The name of the loop around this one; empty if there is none.
  std::string parent;
  Node* next_iteration = nullptr;
  Node* exit = nullptr;
  std::vector<Node*> effects;
};

// The loops by the names of their frames. A frame has as many Enter nodes as its loop has variables.
using Loops = std::map<std::string, Loop>;

Loops FindLoops(const Graph& body, const std::vector<tensorflow::ControlFlowInfo>& info) {
  Loops loops;
  for (Node* node : body.op_nodes()) {
    const tensorflow::ControlFlowInfo& place = info[node->id()];
    if (place.frame_name.empty()) continue;
    Loop& loop = loops[place.frame_name];
    loop.parent = info[place.parent_frame->id()].frame_name;
    if (node->IsNextIteration() && loop.next_iteration == nullptr) loop.next_iteration = node;
    if (node->IsExit() && loop.exit == nullptr) loop.exit = node;
  }
  for (auto& [name, loop] : loops) {
    for (auto it = loops.find(loop.parent); it != loops.end(); it = loops.find(it->second.parent)) ++loop.depth;
  }
  return loops;
}

// Lets the loop's next iteration wait for its effects, by way of a ControlTrigger, which is live even if some of them
// are dead because they are in a branch that was not taken.
absl::Status JoinInLoop(Graph* body, const Loop& loop) {
  tensorflow::NodeDef def;
  def.set_op("ControlTrigger");
  def.set_name(body->NewName(absl::StrCat(loop.next_iteration->name(), kEffectsSuffix)));
  def.set_device(loop.next_iteration->requested_device());
  absl::Status status;
  Node* join = body->AddNode(def, &status);
  TFR_RETURN_IF_ERROR(status);
  join->set_assigned_device_name(loop.next_iteration->assigned_device_name());
  for (Node* effect : loop.effects) body->AddControlEdge(effect, join);
  body->AddControlEdge(join, loop.next_iteration);
  return absl::OkStatus();
}

std::vector<Loop*> InnermostFirst(Loops* loops) {
  std::vector<Loop*> order;
  for (auto& entry : *loops) order.push_back(&entry.second);
  std::stable_sort(order.begin(), order.end(), [](const Loop* a, const Loop* b) { return a->depth > b->depth; });
  return order;
}

// Adds `node` to the effects of its loop, or, if it is outside of all loops, its name to `outermost`.
void AddEffect(Node* node, const std::string& frame, Loops* loops, std::vector<std::string>* outermost) {
  const auto loop = loops->find(frame);
  if (loop == loops->end()) {
    outermost->push_back(node->name());
  } else {
    loop->second.effects.push_back(node);
  }
}

// Operators that TensorFlow calls stateless, but which may return something else the next time.
bool IsFalselyStateless(const std::string& op) {
  static const auto* const kOps = new std::unordered_set<std::string>{
      "CustomAggregator",   "ExtractGlimpse",         "ExtractGlimpseV2",    "FractionalAvgPool",
      "FractionalMaxPool",  "DebugIdentity",          "DebugNumericSummary", "DebugNanCount",
      "LoadAndRemapMatrix", "GenerateVocabRemapping", "MatchingFiles",       "ReadFile"};
  return kOps->count(op) > 0 || absl::StartsWith(op, "TensorArray");
}

}  // namespace

bool ReadsState(const std::string& op) {
  static const auto* const kOps =
      new std::unordered_set<std::string>{"IsVariableInitialized", "ReadVariableOp",     "ResourceGather", kSnapshotOp,
                                          "ResourceGatherNd",      "VarIsInitializedOp", "VariableShape"};
  return kOps->count(op) > 0;
}

bool HasEffect(const Node& node) {
  if (node.IsControlFlow() || node.IsIdentity() || node.IsArg() || node.IsRetval()) return false;
  const std::string& op = node.type_string();
  if (absl::StartsWith(op, kOpPrefix) || ReadsState(op) || OnlyMakesValues(op)) return false;
  return (node.op_def().is_stateful() && !OnlyMakesHandles(node)) || TakesReference(node);
}

bool IsStateful(const Node& node) { return node.op_def().is_stateful() || TakesReference(node); }

bool IsPure(const Node& node) {
  return !IsStateful(node) && !IsFalselyStateless(node.type_string()) && FunctionsInAttributes(node.def()).empty();
}

bool ChangesInput(const Node& node, const tensorflow::FunctionLibraryDefinition& library) {
  std::vector<const tensorflow::NodeDef*> work = {&node.def()};
  std::unordered_set<std::string> seen;
  while (!work.empty()) {
    const tensorflow::NodeDef* const inner = work.back();
    work.pop_back();
    if (absl::StartsWith(inner->op(), "Inplace")) return true;
    const auto look_into = [&](const std::string& name) {
      const tensorflow::FunctionDef* const function = library.Find(name);
      if (function == nullptr || !seen.insert(name).second) return;
      for (const tensorflow::NodeDef& called : function->node_def()) work.push_back(&called);
    };
    look_into(inner->op());
    for (const tensorflow::NameAttrList& named : FunctionsInAttributes(*inner)) look_into(named.name());
  }
  return false;
}

absl::Status CollectEffects(Graph* body, const std::function<bool(const Node&)>& is_effect,
                            std::vector<std::string>* effects) {
  tensorflow::FixupSourceAndSinkEdges(body);
  std::vector<tensorflow::ControlFlowInfo> info;
  std::vector<std::string> unreachable;
  TFR_RETURN_IF_ERROR(tensorflow::BuildControlFlowInfo(body, &info, &unreachable));
  Loops loops = FindLoops(*body, info);
  for (Node* node : body->op_nodes()) {
    if (is_effect(*node)) AddEffect(node, info[node->id()].frame_name, &loops, effects);
  }
  for (const Loop* loop : InnermostFirst(&loops)) {
    // Without a NextIteration or an Exit the loop never goes round, or never ends, so nothing outside can wait for it.
    if (loop->effects.empty() || loop->next_iteration == nullptr || loop->exit == nullptr) continue;
    TFR_RETURN_IF_ERROR(JoinInLoop(body, *loop));
    AddEffect(loop->exit, loop->parent, &loops, effects);
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
