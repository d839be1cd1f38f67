// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/keep_alives.h"

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::AddNodeAttr;
using tensorflow::NodeDef;

CallGraph::Calls ReachableCalls(const CallProgram& program) {
  CallGraph::Calls calls;
  for (const auto& [name, function] : program.functions) {
    if (!function.reachable) continue;
    std::vector<std::string>& callees = calls[name];
    for (size_t i = 0; i < function.body.nodes.size(); ++i) {
      if (function.body.reachable[i] && IsInvoke(function.body.nodes[i])) {
        callees.push_back(CalleeOf(function.body.nodes[i]));
      }
    }
  }
  return calls;
}

}  // namespace

KeepAlives::KeepAlives(const CallProgram& program, const EmissionNames& names, NodeWriter* writer)
    : program_(program), names_(names), writer_(writer), call_graph_(ReachableCalls(program)) {}

std::string KeepAlives::Token(const NodeDef& invoke) {
  const int component = call_graph_.ComponentOf(CalleeOf(invoke));
  std::string& keep_alive = keep_alives_[component];
  if (keep_alive.empty()) {
    keep_alive = writer_->Unique(kKeepAliveNodePrefix + call_graph_.components()[component][0]);
  }
  const auto frame = program_.frame_of.find(invoke.name());
  return frame == program_.frame_of.end() ? keep_alive : EnterLoops(component, keep_alive, frame->second);
}

// Takes the token through an Enter of the loop `frame`, and of all loops around it. All calls of a loop share them.
std::string KeepAlives::EnterLoops(int component, const std::string& keep_alive, int frame) {
  std::vector<int> path;  // innermost first
  for (; frame != kNoLoop; frame = program_.frames[frame].parent) path.push_back(frame);
  std::string token = keep_alive;
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    std::string& entered = entered_[{component, *it}];
    if (entered.empty()) {
      const LoopFrame& loop = program_.frames[*it];
      entered = writer_->Unique(absl::StrCat(keep_alive, "/enter/", loop.name));
      NodeDef* enter = writer_->Add(entered, "Enter", loop.device);
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

void KeepAlives::Emit() {
  for (const auto& [component, name] : keep_alives_) {
    const std::vector<std::string> functions = call_graph_.ReachableFrom(component);
    NodeDef* keep_alive = writer_->Add(name, kKeepAliveOp, names_.boundary(functions[0]).output_devices[0]);
    for (const std::string& function : functions) {
      keep_alive->add_input(Control(names_.boundary(function).frame_start));
      for (const std::string& result : results_[function]) keep_alive->add_input(Control(result));
      for (const std::string& effect : program_.functions.at(function).effects) KeepEffect(effect, keep_alive);
    }
  }
}

void KeepAlives::KeepEffect(const std::string& effect, NodeDef* keep_alive) const {
  const SiteNames* site = names_.FindSite(effect);
  if (site == nullptr) {
    keep_alive->add_input(Control(effect));
    return;
  }
  for (const std::string& call : site->calls) keep_alive->add_input(Control(call));
}

}  // namespace tensorflow_recursion
