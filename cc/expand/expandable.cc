// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/expandable.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cc/expand/call_nodes.h"
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

// Collects the functions that attributes of a node name. Types() and Add() return false if an attribute is missing, or
// if a function is missing or does not fit.
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

// These collect the functions of one kind of operator, and return false if it cannot be expanded.

bool CollectIf(const NodeDef& node, FunctionCollector* found) {
  // The kernel takes predicates that are no bool, but Switches do not.
  const auto predicate = node.attr().find("Tcond");
  if (predicate == node.attr().end() || predicate->second.type() != tensorflow::DT_BOOL) return false;
  DataTypeVector in, out;
  return found->Types("Tin", &in) && found->Types("Tout", &out) && found->Add("then_branch", in, out) &&
         found->Add("else_branch", in, out);
}

bool CollectCase(FunctionCollector* found) {
  DataTypeVector in, out;
  return found->Types("Tin", &in) && found->Types("Tout", &out) && found->AddList("branches", in, out);
}

bool CollectWhile(FunctionCollector* found) {
  DataTypeVector variables;
  // A loop without variables has nothing by which to enter its frame.
  return found->Types("T", &variables) && !variables.empty() && found->Add("cond", variables, {tensorflow::DT_BOOL}) &&
         found->Add("body", variables, variables);
}

bool CollectCall(const NodeDef& node, FunctionCollector* found) {
  DataTypeVector in, out;
  return !IsTrue(node, "_XlaMustCompile") && found->Types("Tin", &in) && found->Types("Tout", &out) &&
         found->Add("f", in, out);
}

// Which nodes count: all that can be expanded, or only those that are marked for lowering.
enum class Which { kAll, kMarked };

// The functions that come in when the nodes of `function` are expanded, one level deep.
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

}  // namespace

Expandable FindExpandable(const NodeDef& node, const FunctionLibraryDefinition& library) {
  FunctionCollector found(node, library);
  const std::string& op = node.op();
  if (op == "If" || op == "StatelessIf") {
    if (CollectIf(node, &found)) return {Expansion::kControlFlow, found.Take()};
  } else if (op == "Case" || op == "StatelessCase") {
    if (CollectCase(&found)) return {Expansion::kControlFlow, found.Take()};
  } else if (op == "While" || op == "StatelessWhile") {
    if (CollectWhile(&found)) return {Expansion::kControlFlow, found.Take()};
  } else if (op == "PartitionedCall" || op == "StatefulPartitionedCall") {
    if (CollectCall(node, &found)) return {Expansion::kInline, found.Take()};
  } else if (const FunctionDef* callee = library.Find(op)) {
    if (callee->signature().attr_size() == 0) return {Expansion::kInline, {op}};
  }
  return {};
}

std::unordered_set<std::string> FunctionsWithInvoke(const tensorflow::FunctionDefLibrary& functions,
                                                    const FunctionLibraryDefinition& library) {
  std::unordered_set<std::string> found;
  // For each function, those into which it can be expanded.
  std::map<std::string, std::vector<std::string>> expanded_into;
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
  // A function that is being searched, and the functions expanded into it that have not been searched yet.
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

}  // namespace tensorflow_recursion
