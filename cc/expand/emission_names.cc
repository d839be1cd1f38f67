// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/emission_names.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/expand/call_nodes.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

BodyBoundary BoundaryOf(const CalledFunction& function, std::string frame_start) {
  BodyBoundary boundary;
  boundary.frame_start = std::move(frame_start);
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
  return boundary;
}

}  // namespace

EmissionNames::EmissionNames(const CallProgram& program, int64_t first_call_id, NameTable* names)
    : next_call_id_(first_call_id) {
  NameBoundaries(program, names);
  NameSites(program, program.main, names);
  for (const std::string& name : functions_) NameSites(program, program.functions.at(name).body, names);
}

void EmissionNames::NameBoundaries(const CallProgram& program, NameTable* names) {
  for (const std::string& name : program.order) {
    const CalledFunction& function = program.functions.at(name);
    if (!function.reachable) continue;
    functions_.push_back(name);
    boundaries_[name] = BoundaryOf(function, names->Unique(function.prefix + kFrameStartNodeName));
  }
}

void EmissionNames::NameSites(const CallProgram& program, const NodeList& list, NameTable* names) {
  for (size_t i = 0; i < list.nodes.size(); ++i) {
    const NodeDef& node = list.nodes[i];
    if (!list.reachable[i] || !IsInvoke(node)) continue;
    const CalledFunction& callee = program.functions.at(CalleeOf(node));
    SiteNames& site = sites_[node.name()];
    site.call_id = next_call_id_++;
    for (size_t j = 0; j < boundary(callee.name).argument_types.size(); ++j) {
      site.calls.push_back(names->Unique(absl::StrCat(node.name(), kCallNodeSuffix, j)));
    }
    for (int j = 0; j <= callee.num_outputs(); ++j) {
      const bool exists = j < callee.num_outputs() ? callee.needed[j] : callee.needs_done;
      site.returns.push_back(exists ? names->Unique(absl::StrCat(node.name(), kReturnNodeSuffix, j)) : "");
    }
  }
}

}  // namespace tensorflow_recursion
