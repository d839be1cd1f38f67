// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/call_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cc/base/names.h"
#include "tensorflow/core/common_runtime/lower_functional_ops.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeVector;
using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::LowerFunctionalOpsPass;
using tensorflow::NodeDef;
using tensorflow::OpDef;

// Whether `function` exists, takes no attributes, and maps `inputs` to `outputs`.
bool Fits(const std::string& function, const DataTypeVector& inputs, const DataTypeVector& outputs,
          const FunctionLibraryDefinition& library) {
  const FunctionDef* definition = library.Find(function);
  if (definition == nullptr || definition->signature().attr_size() > 0) return false;
  auto matches = [](const auto& args, const DataTypeVector& types) {
    return std::equal(args.begin(), args.end(), types.begin(), types.end(),
                      [](const OpDef::ArgDef& arg, DataType type) { return arg.type() == type; });
  };
  return matches(definition->signature().input_arg(), inputs) && matches(definition->signature().output_arg(), outputs);
}

// The node's functions by attribute name; false when one of them is missing or does not fit.
class FunctionCollector {
 public:
  FunctionCollector(const NodeDef& node, const FunctionLibraryDefinition& library) : node_(node), library_(library) {}

  bool Types(const char* attr, DataTypeVector* types) const { return tensorflow::GetNodeAttr(node_, attr, types).ok(); }

  bool Add(const char* attr, const DataTypeVector& inputs, const DataTypeVector& outputs) {
    const auto it = node_.attr().find(attr);
    return it != node_.attr().end() && AddFunction(it->second.func(), inputs, outputs);
  }

  bool AddList(const char* attr, const DataTypeVector& inputs, const DataTypeVector& outputs) {
    const auto it = node_.attr().find(attr);
    if (it == node_.attr().end() || it->second.list().func().empty()) return false;
    const auto& functions = it->second.list().func();
    return std::all_of(functions.begin(), functions.end(),
                       [&](const auto& function) { return AddFunction(function, inputs, outputs); });
  }

  std::vector<std::string> Take() { return std::move(functions_); }

 private:
  bool AddFunction(const tensorflow::NameAttrList& function, const DataTypeVector& inputs,
                   const DataTypeVector& outputs) {
    if (!Fits(function.name(), inputs, outputs, library_)) return false;
    functions_.push_back(function.name());
    return true;
  }

  const NodeDef& node_;
  const FunctionLibraryDefinition& library_;
  std::vector<std::string> functions_;
};

bool IsTrue(const NodeDef& node, const char* attr) {
  const auto it = node.attr().find(attr);
  return it != node.attr().end() && it->second.b();
}

enum class Which { kAll, kMarked };

// The functions that expansion of `function`'s nodes brings in, one level deep.
std::vector<std::string> ExpandedInto(const std::string& function, const FunctionLibraryDefinition& library,
                                      Which which) {
  std::vector<std::string> result;
  const FunctionDef* definition = library.Find(function);
  if (definition == nullptr) return result;
  for (const NodeDef& node : definition->node_def()) {
    if (which == Which::kMarked && !IsMarkedForLowering(node)) continue;
    for (std::string& name : FindExpandable(node, library).functions) result.push_back(std::move(name));
  }
  return result;
}

// Tarjan's algorithm with a stack of its own: call chains may be longer than the C++ stack is deep.
class ComponentFinder {
 public:
  explicit ComponentFinder(const CallGraph::Calls& calls) : calls_(calls) {}

  std::vector<std::vector<std::string>> Find() {
    for (const auto& [function, callees] : calls_) {
      if (!state_.count(function)) Visit(function);
    }
    return std::move(components_);
  }

 private:
  struct State {
    int order;
    int lowest;  // order of the earliest function on the stack that this one reaches
    bool on_stack;
  };
  struct Step {
    const std::string* function;
    size_t next_callee;
  };

  void Visit(const std::string& root) {
    Enter(root);
    while (!steps_.empty()) {
      Step& step = steps_.back();
      const std::vector<std::string>& callees = calls_.at(*step.function);
      if (step.next_callee < callees.size()) {
        Follow(*step.function, callees[step.next_callee++]);
      } else {
        Leave();
      }
    }
  }

  void Enter(const std::string& function) {
    const int order = static_cast<int>(state_.size());
    state_[function] = {order, order, true};
    stack_.push_back(function);
    steps_.push_back({&calls_.find(function)->first, 0});
  }

  void Follow(const std::string& caller, const std::string& callee) {
    const auto seen = state_.find(callee);
    if (seen == state_.end()) return Enter(callee);
    if (seen->second.on_stack) {
      State& state = state_.at(caller);
      state.lowest = std::min(state.lowest, seen->second.order);
    }
  }

  void Leave() {
    const std::string& function = *steps_.back().function;
    steps_.pop_back();
    const State state = state_.at(function);
    if (!steps_.empty()) {
      State& caller = state_.at(*steps_.back().function);
      caller.lowest = std::min(caller.lowest, state.lowest);
    }
    if (state.lowest == state.order) PopComponent(function);
  }

  void PopComponent(const std::string& first) {
    std::vector<std::string> component;
    do {
      component.push_back(stack_.back());
      stack_.pop_back();
      state_.at(component.back()).on_stack = false;
    } while (component.back() != first);
    std::sort(component.begin(), component.end());
    components_.push_back(std::move(component));
  }

  const CallGraph::Calls& calls_;
  std::map<std::string, State> state_;
  std::vector<std::string> stack_;
  std::vector<Step> steps_;
  std::vector<std::vector<std::string>> components_;
};

}  // namespace

bool IsInvoke(const NodeDef& node) { return node.op() == kInvokeOp; }

bool IsRetain(const NodeDef& node) { return node.op() == kRetainOp; }

bool IsRecall(const NodeDef& node) { return node.op() == kRecallOp; }

bool IsPureGradientOp(const std::string& op) {
  static const auto* const ops =
      new std::unordered_set<std::string>{kRetainOp, kRecallOp, kContributeOp, kContributeNoneOp, kCollectOp, kTotalOp};
  return ops->count(op) > 0;
}

const std::string& RecordOwner(const NodeDef& node) {
  static const std::string* const none = new std::string;
  const auto owner = node.attr().find(kFunctionAttr);
  return owner == node.attr().end() ? *none : owner->second.s();
}

bool HasInvoke(const tensorflow::GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(), IsInvoke);
}

const std::string& CalleeOf(const NodeDef& invoke) {
  static const std::string* const kNone = new std::string();
  const auto it = invoke.attr().find(kCalleeAttr);
  return it == invoke.attr().end() ? *kNone : it->second.func().name();
}

Expandable FindExpandable(const NodeDef& node, const FunctionLibraryDefinition& library) {
  FunctionCollector found(node, library);
  DataTypeVector in, out;
  const std::string& op = node.op();
  if (op == "If" || op == "StatelessIf") {
    // Switches take no other predicate; the kernel does.
    const auto predicate = node.attr().find("Tcond");
    const bool is_bool = predicate != node.attr().end() && predicate->second.type() == tensorflow::DT_BOOL;
    if (is_bool && found.Types("Tin", &in) && found.Types("Tout", &out) && found.Add("then_branch", in, out) &&
        found.Add("else_branch", in, out)) {
      return {Expansion::kControlFlow, found.Take()};
    }
  } else if (op == "Case" || op == "StatelessCase") {
    if (found.Types("Tin", &in) && found.Types("Tout", &out) && found.AddList("branches", in, out)) {
      return {Expansion::kControlFlow, found.Take()};
    }
  } else if (op == "While" || op == "StatelessWhile") {
    // A loop without variables has nothing to enter its frame with.
    if (found.Types("T", &in) && !in.empty() && found.Add("cond", in, {tensorflow::DT_BOOL}) &&
        found.Add("body", in, in)) {
      return {Expansion::kControlFlow, found.Take()};
    }
  } else if (op == "PartitionedCall" || op == "StatefulPartitionedCall") {
    if (!IsTrue(node, "_XlaMustCompile") && found.Types("Tin", &in) && found.Types("Tout", &out) &&
        found.Add("f", in, out)) {
      return {Expansion::kInline, found.Take()};
    }
  } else if (const FunctionDef* callee = library.Find(op)) {
    if (callee->signature().attr_size() == 0) return {Expansion::kInline, {op}};
  }
  return {};
}

std::unordered_set<std::string> FunctionsWithInvoke(const tensorflow::FunctionDefLibrary& functions,
                                                    const FunctionLibraryDefinition& library) {
  std::unordered_set<std::string> found;
  std::map<std::string, std::vector<std::string>> expanded_into;  // users by the function they would take in
  std::vector<std::string> work;
  for (const FunctionDef& function : functions.function()) {
    const std::string& name = function.signature().name();
    if (std::any_of(function.node_def().begin(), function.node_def().end(), IsInvoke)) work.push_back(name);
    for (const std::string& part : ExpandedInto(name, library, Which::kAll)) expanded_into[part].push_back(name);
  }
  while (!work.empty()) {
    const std::string name = std::move(work.back());
    work.pop_back();
    if (!found.insert(name).second) continue;
    for (const std::string& user : expanded_into[name]) work.push_back(user);
  }
  return found;
}

bool IsMarkedForLowering(const NodeDef& node) {
  return IsTrue(node, LowerFunctionalOpsPass::kLowerUsingSwitchMergeAttr) ||
         IsTrue(node, LowerFunctionalOpsPass::kLowerAsMultiDeviceFunctionAttr);
}

std::string FindEndlessLowering(const std::string& function, const FunctionLibraryDefinition& library) {
  struct Step {
    std::string function;
    std::vector<std::string> parts;
  };
  std::set<std::string> open, done;
  std::vector<Step> steps;
  auto enter = [&](const std::string& name) {
    open.insert(name);
    steps.push_back({name, ExpandedInto(name, library, Which::kMarked)});
  };
  enter(function);
  while (!steps.empty()) {
    Step& step = steps.back();
    if (step.parts.empty()) {
      open.erase(step.function);
      done.insert(step.function);
      steps.pop_back();
      continue;
    }
    const std::string next = std::move(step.parts.back());
    step.parts.pop_back();
    if (open.count(next)) return next;
    if (!done.count(next)) enter(next);
  }
  return "";
}

CallGraph::CallGraph(Calls calls) : calls_(std::move(calls)), components_(ComponentFinder(calls_).Find()) {
  for (size_t i = 0; i < components_.size(); ++i) {
    for (const std::string& function : components_[i]) component_of_[function] = static_cast<int>(i);
  }
}

std::vector<std::string> CallGraph::ReachableFrom(int component) const {
  std::set<std::string> reached;
  std::vector<std::string> work = components_[component];
  while (!work.empty()) {
    const std::string function = std::move(work.back());
    work.pop_back();
    if (!reached.insert(function).second) continue;
    const std::vector<std::string>& callees = calls_.at(function);
    work.insert(work.end(), callees.begin(), callees.end());
  }
  return {reached.begin(), reached.end()};
}

}  // namespace tensorflow_recursion
