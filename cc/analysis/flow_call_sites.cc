// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_call_sites.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/analysis/flow_builder.h"
#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataTypeString;
using tensorflow::Node;

// Adds a Call, Return, JoinCall or AnnounceCall to its site.
absl::Status AddPart(const Node* node, FlowCallSite* site) {
  if (Is(node, kJoinCallOp) || Is(node, kAnnounceCallOp)) {
    if (site->join != nullptr || site->announcement != nullptr) {
      return InvalidArgument("Node '", node->name(), "': call_id ", site->call_id, " is opened by '",
                             (site->join != nullptr ? site->join : site->announcement)->name(), "' already");
    }
    (Is(node, kJoinCallOp) ? site->join : site->announcement) = node;
    return absl::OkStatus();
  }
  int64_t index = 0;
  TFR_RETURN_IF_ERROR(ReadInteger(node, kIndexAttr, &index));
  auto& side = Is(node, kCallOp) ? site->calls : site->returns;
  if (index < 0 || index > kMaxIndex || !side.emplace(static_cast<int>(index), node).second) {
    return InvalidArgument("Node '", node->name(), "': index ", index, " of call_id ", site->call_id,
                           " is taken or out of range");
  }
  return absl::OkStatus();
}

// Whether other devices have parts of the call, too.
bool IsShared(const FlowCallSite& site) { return site.join != nullptr || site.announcement != nullptr; }

std::string Describe(const FlowCallSite& site) {
  return absl::StrCat("Call of '", site.callee, "' at '", site.name, "'");
}

absl::Status CheckNumbers(const FlowCallSite& site) {
  if (site.calls.empty() && site.join == nullptr) {
    return InvalidArgument(Describe(site), ": has no Call, so nothing would ever open its frame");
  }
  if (IsShared(site) || site.calls.rbegin()->first + 1 == static_cast<int>(site.calls.size())) return absl::OkStatus();
  return InvalidArgument(Describe(site), ": arguments must be numbered from 0 without gaps, the last of ",
                         site.calls.size(), " is ", site.calls.rbegin()->first);
}

absl::Status LacksArgument(const FlowCallSite& site, int index, const char* place) {
  return InvalidArgument(Describe(site), " lacks argument ", index, ", which the function takes", place);
}

// A body would wait for ever for an argument that no Call passes, and compiled code would read whatever its register
// held. Of a call on several devices, NumberArguments checks the arguments of this one.
absl::Status CheckArguments(const FlowCallSite& site, const FlowFunction& callee) {
  if (IsShared(site)) return absl::OkStatus();
  for (size_t i = site.calls.size(); i < callee.entries.size(); ++i) {
    if (callee.entries[i] != kNone) return LacksArgument(site, static_cast<int>(i), "");
  }
  return absl::OkStatus();
}

absl::Status CheckTypes(const FlowGraph& flow, const FlowCallSite& site, const FlowFunction& callee) {
  for (const auto& [index, node] : site.returns) {
    const auto result = callee.results.find(index);
    if (result == callee.results.end() || node->output_type(0) == result->second->input_type(0)) continue;
    return InvalidArgument(Describe(site), ": reads output ", index, " as ", DataTypeString(node->output_type(0)),
                           ", the function's body gives ", DataTypeString(result->second->input_type(0)));
  }
  for (const auto& [index, call] : site.calls) {
    if (index >= static_cast<int>(callee.entries.size()) || callee.entries[index] == kNone) continue;
    const Node* const entry = flow.nodes[callee.entries[index]].node;
    if (call->input_type(0) == entry->output_type(0)) continue;
    return InvalidArgument(Describe(site), ": argument ", index, " is ", DataTypeString(call->input_type(0)),
                           ", the function takes ", DataTypeString(entry->output_type(0)));
  }
  return absl::OkStatus();
}

absl::Status CheckCallSite(FlowGraph* flow, const FlowCallSite& site) {
  const RegionId region = flow->regions.FindFunction(site.callee);
  if (region == kNone) return InvalidArgument(Describe(site), ": the graph holds no body of '", site.callee, "'");
  TFR_RETURN_IF_ERROR(CheckNumbers(site));
  TFR_RETURN_IF_ERROR(CheckArguments(site, flow->functions[region]));
  return CheckTypes(*flow, site, flow->functions[region]);
}

// For each function that has only a part on this device, by its region: the arguments that are here. They are those
// that a call passes here, and those that the body reads here.
std::map<RegionId, std::set<int>> FindSharedArguments(const FlowGraph& flow) {
  std::map<RegionId, std::set<int>> arguments;
  for (const FlowCallSite& site : flow.call_sites) {
    if (!IsShared(site)) continue;
    std::set<int>& of_callee = arguments[flow.regions.FindFunction(site.callee)];
    for (const auto& [index, call] : site.calls) of_callee.insert(index);
  }
  for (auto& [region, indices] : arguments) {
    const std::vector<NodeId>& entries = flow.functions.at(region).entries;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] != kNone) indices.insert(static_cast<int>(i));
    }
  }
  return arguments;
}

absl::Status CheckSharedArguments(const FlowCallSite& site, const std::set<int>& arguments) {
  if (site.calls.size() > arguments.size()) {
    return InvalidArgument(Describe(site), " has ", site.calls.size(), " arguments, the function takes ",
                           arguments.size(), " on this device");
  }
  for (int index : arguments) {
    if (site.calls.count(index) > 0) continue;
    return LacksArgument(site, index, " on this device");
  }
  return absl::OkStatus();
}

// A partition holds only some of the arguments of a body that is on several devices. They are numbered anew, the same
// for all calls: of arguments 0 to 3, a device that has 1 and 3 calls them 0 and 1.
absl::Status NumberArguments(FlowGraph* flow) {
  const std::map<RegionId, std::set<int>> shared = FindSharedArguments(*flow);
  for (const auto& [region, indices] : shared) {
    std::vector<NodeId>& entries = flow->functions[region].entries;
    std::vector<NodeId> here;
    for (int index : indices) here.push_back(index < static_cast<int>(entries.size()) ? entries[index] : kNone);
    entries = std::move(here);
  }
  for (const FlowCallSite& site : flow->call_sites) {
    const auto arguments = shared.find(flow->regions.FindFunction(site.callee));
    if (arguments != shared.end()) TFR_RETURN_IF_ERROR(CheckSharedArguments(site, arguments->second));
  }
  return absl::OkStatus();
}

void NumberPorts(FlowGraph* flow) {
  for (size_t i = 0; i < flow->call_sites.size(); ++i) {
    FlowCallSite& site = flow->call_sites[i];
    FlowNode& node = flow->nodes[site.node];
    node.index = static_cast<uint32_t>(i);
    node.num_ports = site.returns.empty() ? 0 : site.returns.rbegin()->first + 1;
    if (site.announcement == nullptr) continue;
    // The announcement comes behind all results, also those that this caller does not read.
    const int num_results = flow->functions[flow->regions.FindFunction(site.callee)].num_results();
    site.announce_port = std::max(node.num_ports, num_results);
    node.num_ports = *site.announce_port + 1;
  }
}

}  // namespace

absl::Status CollectCallSites(FlowBuilder* builder) {
  FlowGraph& flow = *builder->flow;
  std::map<int64_t, size_t> site_of_id;
  for (const Node* node : builder->graph.op_nodes()) {
    if (!IsCallSitePart(node)) continue;
    const RegionId region = flow.regions.region(node);
    int64_t id = 0;
    std::string callee;
    TFR_RETURN_IF_ERROR(ReadInteger(node, kCallIdAttr, &id));
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), kFunctionAttr, &callee));
    auto [position, inserted] = site_of_id.try_emplace(id, flow.call_sites.size());
    if (inserted) {
      FlowCallSite& site = flow.call_sites.emplace_back();
      site.call_id = id;
      site.callee = callee;
      site.name = CallOfNode(node->name());
      site.node = flow.nodes.Add(FlowNode(OpKind::kCallSite, region, node));
    }
    FlowCallSite& site = flow.call_sites[position->second];
    const FlowNode& of_site = flow.nodes[site.node];
    if (site.callee != callee || of_site.region != region) {
      return InvalidArgument("Node '", node->name(), "': call_id ", id, " stands for a call of '", callee,
                             "' here and of '", site.callee, "' at '", of_site.node->name(),
                             "'; a call_id names one call site");
    }
    TFR_RETURN_IF_ERROR(AddPart(node, &site));
    builder->node_of[node->id()] = site.node;
  }
  return absl::OkStatus();
}

absl::Status FinishCallSites(FlowGraph* flow) {
  for (const FlowCallSite& site : flow->call_sites) TFR_RETURN_IF_ERROR(CheckCallSite(flow, site));
  TFR_RETURN_IF_ERROR(NumberArguments(flow));
  NumberPorts(flow);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
