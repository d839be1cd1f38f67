// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_graph.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {

using GraphEdge = tensorflow::Edge;
using tensorflow::GetNodeAttr;
using tensorflow::Node;
using tensorflow::Tensor;

namespace {

bool Is(const Node* node, const char* op) { return node->type_string() == op; }

bool IsSwitchN(const Node* node) { return Is(node, "_SwitchN") || Is(node, "_RefSwitchN"); }

bool IsSitePiece(const Node* node) {
  return Is(node, kCallOp) || Is(node, kReturnOp) || Is(node, kJoinCallOp) || Is(node, kAnnounceCallOp);
}

// A Squeeze of given dimensions fails on a scalar; one of all that are 1, which conditionals put
// around predicates of unknown shape, passes it on. A GatherV2 of a batch reads no single element. A Cast
// may be told to cut off the digits that ours rounds.
bool NeedsKernel(const Node* node) {
  std::vector<int32_t> dimensions;
  if (GetNodeAttr(node->attrs(), "squeeze_dims", &dimensions).ok()) return !dimensions.empty();
  bool truncate = false;
  if (GetNodeAttr(node->attrs(), "Truncate", &truncate).ok()) return truncate;
  int64_t batch_dims = 0;
  return GetNodeAttr(node->attrs(), "batch_dims", &batch_dims).ok() && batch_dims != 0;
}

bool IsOfPartialLoop(const Node* node) { return node->attrs().Find(kPartialLoopAttr) != nullptr; }

// Measured: a kernel's context and what a rendezvous keeps of a receive; the same with a remote call.
constexpr int64_t kInFlightBytes = 2 << 10;
constexpr int64_t kRemoteReceiveBytes = 16 << 10;

bool ComesFromOtherProcess(const Node* node) {
  std::string from, to;
  if (!node->IsRecv() || !GetNodeAttr(node->attrs(), "send_device", &from).ok() ||
      !GetNodeAttr(node->attrs(), "recv_device", &to).ok()) {
    return false;
  }
  tensorflow::DeviceNameUtils::ParsedName source, target;
  return tensorflow::DeviceNameUtils::ParseFullName(from, &source) &&
         tensorflow::DeviceNameUtils::ParseFullName(to, &target) &&
         !tensorflow::DeviceNameUtils::IsSameAddressSpace(source, target);
}

const GraphEdge* InputEdge(const Node* node, int input) {
  const GraphEdge* edge = nullptr;
  return node->input_edge(input, &edge).ok() ? edge : nullptr;
}

absl::Status Integer(const Node* node, const char* attr, int64_t* value) {
  return GetNodeAttr(node->attrs(), attr, value);
}

// Stands for a value that nobody reads, where the branch that would have made it was not taken.
bool IsFake(const Node* node) { return node->type_string() == "FakeParam"; }

bool HoldsConstant(const Node* node) { return node->IsConstant() || IsFake(node); }

absl::Status ReadConstant(const Node* node, const DeviceMemory& memory, ConstantTensor* constant) {
  constant->is_on_host = memory.IsOnHost(*node, 0);
  if (IsFake(node)) {
    tensorflow::DataType dtype;
    TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "dtype", &dtype));
    Tensor zero(dtype, tensorflow::TensorShape({}));
    if (DataTypeCanUseMemcpy(dtype)) std::memset(zero.data(), 0, zero.TotalBytes());
    constant->tensor = zero;
    if (constant->is_on_host || !DataTypeCanUseMemcpy(dtype)) return absl::OkStatus();
    tensorflow::TensorProto proto;
    zero.AsProtoField(&proto);
    return memory.Make(proto, &constant->tensor);
  }
  const tensorflow::TensorProto* proto = nullptr;
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "value", &proto));
  if (!constant->is_on_host) return memory.Make(*proto, &constant->tensor);
  if (constant->tensor.FromProto(*proto)) return absl::OkStatus();
  return InvalidArgument("Node '", node->name(), "': its value is not a valid tensor");
}

}  // namespace

bool IsLoopConstant(const Node& enter) {
  bool is_constant = false;
  return GetNodeAttr(enter.attrs(), "is_constant", &is_constant).ok() && is_constant;
}

// Kahn's algorithm.
absl::Status SortDrafts(const std::vector<Draft>& drafts, std::vector<int>* order) {
  std::vector<int> waiting(drafts.size(), 0);
  std::vector<std::vector<int>> consumers(drafts.size());
  for (size_t i = 0; i < drafts.size(); ++i) {
    ForEachSource(drafts[i], [&](const Source& source) {
      ++waiting[i];
      consumers[source.draft].push_back(static_cast<int>(i));
    });
  }
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (waiting[i] == 0) order->push_back(static_cast<int>(i));
  }
  for (size_t next = 0; next < order->size(); ++next) {
    for (int consumer : consumers[(*order)[next]]) {
      if (--waiting[consumer] == 0) order->push_back(consumer);
    }
  }
  if (order->size() == drafts.size()) return absl::OkStatus();
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (waiting[i] > 0) {
      return InvalidArgument("Node '", drafts[i].node->name(), "' is part of a cycle outside any loop");
    }
  }
  return absl::OkStatus();
}

int DraftBuilder::Add(Draft draft) {
  drafts.push_back(std::move(draft));
  return static_cast<int>(drafts.size()) - 1;
}

absl::Status DraftBuilder::Build() {
  draft_of_.assign(graph_.num_node_ids(), -1);
  TFR_RETURN_IF_ERROR(CollectSites());
  TFR_RETURN_IF_ERROR(CollectLoops());
  TFR_RETURN_IF_ERROR(MakeDrafts());
  return LinkDrafts();
}

// Groups Calls, Returns and what goes with them by call_id.
absl::Status DraftBuilder::CollectSites() {
  for (const Node* node : graph_.op_nodes()) {
    if (!IsSitePiece(node)) continue;
    int64_t id = 0;
    std::string callee;
    TFR_RETURN_IF_ERROR(Integer(node, kCallIdAttr, &id));
    TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kFunctionAttr, &callee));
    auto [position, inserted] = site_of_id_.try_emplace(id, static_cast<int>(sites.size()));
    if (inserted) {
      SiteDraft site;
      site.call_id = id;
      site.callee = callee;
      site.name = node->name().substr(0, node->name().rfind('/'));
      site.draft = Add(Draft(OpKind::kSite, regions_.region(node), node));
      sites.push_back(std::move(site));
    }
    SiteDraft& site = sites[position->second];
    if (site.callee != callee || drafts[site.draft].region != regions_.region(node)) {
      return InvalidArgument("Node '", node->name(), "': call_id ", id, " stands for a call of '", callee,
                             "' here and of '", site.callee, "' at '", drafts[site.draft].node->name(),
                             "'; a call_id names one call site");
    }
    TFR_RETURN_IF_ERROR(CollectSitePiece(node, &site));
    draft_of_[node->id()] = site.draft;
  }
  return absl::OkStatus();
}

absl::Status DraftBuilder::CollectSitePiece(const Node* node, SiteDraft* site) {
  if (Is(node, kJoinCallOp) || Is(node, kAnnounceCallOp)) {
    if (site->join != nullptr || site->announcement != nullptr) {
      return InvalidArgument("Node '", node->name(), "': call_id ", site->call_id, " is opened by '",
                             (site->join != nullptr ? site->join : site->announcement)->name(), "' already");
    }
    (Is(node, kJoinCallOp) ? site->join : site->announcement) = node;
    return absl::OkStatus();
  }
  int64_t index = 0;
  TFR_RETURN_IF_ERROR(Integer(node, kIndexAttr, &index));
  auto& side = Is(node, kCallOp) ? site->calls : site->returns;
  if (index < 0 || index > 0xffff || !side.emplace(static_cast<int>(index), node).second) {
    return InvalidArgument("Node '", node->name(), "': index ", index, " of call_id ", site->call_id,
                           " is taken or out of range");
  }
  return absl::OkStatus();
}

absl::Status DraftBuilder::CollectLoops() {
  for (int r = 0; r < static_cast<int>(regions_.regions().size()); ++r) {
    if (regions_.regions()[r].kind != GraphRegions::Region::Kind::kLoop) continue;
    loop_of_region_[r] = static_cast<int>(loops.size());
    LoopDraft loop;
    loop.region = r;
    loops.push_back(std::move(loop));
  }
  for (const Node* node : graph_.op_nodes()) {
    if (regions_.region(node) == GraphRegions::kNoRegion) continue;
    if (node->IsEnter()) {
      LoopDraft& loop = loops[LoopOfRegion(regions_.LoopOf(node))];
      loop.enters.push_back(node);
      loop.is_partial = loop.is_partial || IsOfPartialLoop(node);
      continue;
    }
    const int loop = LoopOfRegion(regions_.region(node));
    const bool closes = node->IsNextIteration() || node->IsExit();
    if (closes && loop < 0) return InvalidArgument("Node '", node->name(), "' stands outside any loop");
    if (loop >= 0 && IsOfPartialLoop(node)) loops[loop].is_partial = true;
    if (node->IsNextIteration()) loops[loop].nexts.push_back(node);
    if (node->IsExit()) loops[loop].exits.push_back(node);
    if (node->IsLoopCond() && loop >= 0) loops[loop].condition = node;
    if (!node->IsMerge() || loop < 0) continue;
    const bool is_variable = std::any_of(node->in_edges().begin(), node->in_edges().end(), [](const GraphEdge* e) {
      return e->src()->IsEnter() || e->src()->IsNextIteration();
    });
    if (is_variable) loops[loop].merges.push_back(node);
  }
  auto by_name = [](const Node* a, const Node* b) { return a->name() < b->name(); };
  for (LoopDraft& loop : loops) {
    for (auto* nodes : {&loop.enters, &loop.nexts, &loop.merges, &loop.exits}) {
      std::sort(nodes->begin(), nodes->end(), by_name);
    }
  }
  return absl::OkStatus();
}

int DraftBuilder::LoopOfRegion(int region) const {
  auto position = loop_of_region_.find(region);
  return position == loop_of_region_.end() ? -1 : position->second;
}

absl::Status DraftBuilder::MakeDrafts() {
  for (LoopDraft& loop : loops) {
    const int parent = regions_.regions()[loop.region].parent;
    loop.start = Add(Draft(OpKind::kLoopStart, parent, loop.enters.empty() ? nullptr : loop.enters[0]));
    drafts[loop.start].num_ports = static_cast<int>(loop.exits.size());
    drafts[loop.start].index = static_cast<uint32_t>(&loop - loops.data());
    drafts[loop.start].takes_dead = drafts[loop.start].is_partial = loop.is_partial;
    const auto& ends = loop.nexts.empty() && loop.is_partial ? loop.exits : loop.nexts;
    if (!ends.empty()) {
      loop.next = Add(Draft(OpKind::kLoopNext, loop.region, ends[0]));
      drafts[loop.next].takes_dead = drafts[loop.next].is_partial = loop.is_partial;
    }
    MakeLoopEntries(&loop);
  }
  for (const Node* node : graph_.op_nodes()) {
    if (regions_.region(node) == GraphRegions::kNoRegion || IsSitePiece(node)) continue;
    TFR_RETURN_IF_ERROR(MakeDraft(node));
  }
  for (SiteDraft& site : sites) TFR_RETURN_IF_ERROR(CheckSite(site));
  TFR_RETURN_IF_ERROR(NumberArguments());
  for (SiteDraft& site : sites) {
    int& num_ports = drafts[site.draft].num_ports;
    num_ports = site.returns.empty() ? 0 : site.returns.rbegin()->first + 1;
    if (site.announcement != nullptr) {
      // Behind all results, those that this caller does not read too.
      site.announce_port = std::max(num_ports, num_results[regions_.FindFunction(site.callee)]);
      num_ports = site.announce_port + 1;
    }
    drafts[site.draft].index = static_cast<uint32_t>(&site - sites.data());
  }
  FindCrossings();
  return absl::OkStatus();
}

// Of a body on several devices a partition holds some of the arguments. They are numbered anew, the same for all calls.
absl::Status DraftBuilder::NumberArguments() {
  std::map<int, std::set<int>> arguments;  // by function region
  for (const SiteDraft& site : sites) {
    if (site.join == nullptr && site.announcement == nullptr) continue;
    std::set<int>& of_callee = arguments[regions_.FindFunction(site.callee)];
    for (const auto& [index, call] : site.calls) of_callee.insert(index);
  }
  for (auto& [region, indices] : arguments) {
    std::vector<int>& list = entries[region];
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] >= 0) indices.insert(static_cast<int>(i));
    }
    std::vector<int> here;
    for (int index : indices) here.push_back(index < static_cast<int>(list.size()) ? list[index] : -1);
    list = std::move(here);
  }
  for (const SiteDraft& site : sites) {
    const auto position = arguments.find(regions_.FindFunction(site.callee));
    if (position == arguments.end()) continue;
    if (site.calls.size() > position->second.size()) {
      return InvalidArgument("Call of '", site.callee, "' at '", site.name, "' has ", site.calls.size(),
                             " arguments, the function takes ", position->second.size(), " on this device");
    }
    for (int index : position->second) {
      if (site.calls.count(index) > 0) continue;
      return InvalidArgument("Call of '", site.callee, "' at '", site.name, "' lacks argument ", index,
                             ", which the function takes on this device");
    }
  }
  return absl::OkStatus();
}

// A loop that exchanges values with other devices, in loops inside it too, takes part in every iteration that they do:
// the first one also when the loop is in a branch that was not taken.
void DraftBuilder::FindCrossings() {
  for (const Draft& draft : drafts) {
    if (draft.kind != OpKind::kSend && !draft.may_be_dead) continue;
    crosses_devices = true;
    for (int region = draft.region; LoopOfRegion(region) >= 0; region = regions_.regions()[region].parent) {
      LoopDraft& loop = loops[LoopOfRegion(region)];
      loop.crosses_devices = true;
      drafts[loop.start].takes_dead = true;
    }
  }
}

absl::Status DraftBuilder::CheckSite(const SiteDraft& site) const {
  const std::string subject = "Call of '" + site.callee + "' at '" + site.name + "'";
  const int region = regions_.FindFunction(site.callee);
  if (region == GraphRegions::kNoRegion)
    return InvalidArgument(subject, ": the graph holds no body of '", site.callee, "'");
  if (site.calls.empty() && site.join == nullptr) {
    return InvalidArgument(subject, ": has no Call, so nothing would ever open its frame");
  }
  const bool is_part = site.join != nullptr || site.announcement != nullptr;
  if (!is_part && site.calls.rbegin()->first + 1 != static_cast<int>(site.calls.size())) {
    return InvalidArgument(subject, ": arguments must be numbered from 0 without gaps, the last of ", site.calls.size(),
                           " is ", site.calls.rbegin()->first);
  }
  for (const auto& [index, node] : site.returns) {
    auto result = results.find({region, index});
    if (result == results.end() || node->output_type(0) == result->second->input_type(0)) continue;
    return InvalidArgument(subject, ": reads output ", index, " as ", tensorflow::DataTypeString(node->output_type(0)),
                           ", the function's body gives ", tensorflow::DataTypeString(result->second->input_type(0)));
  }
  auto entry_list = entries.find(region);
  if (entry_list != entries.end()) {
    for (const auto& [index, call] : site.calls) {
      if (index >= static_cast<int>(entry_list->second.size()) || entry_list->second[index] < 0) continue;
      const Node* entry = drafts[entry_list->second[index]].node;
      if (call->input_type(0) != entry->output_type(0)) {
        return InvalidArgument(subject, ": argument ", index, " is ", tensorflow::DataTypeString(call->input_type(0)),
                               ", the function takes ", tensorflow::DataTypeString(entry->output_type(0)));
      }
    }
  }
  return absl::OkStatus();
}

void DraftBuilder::MakeLoopEntries(LoopDraft* loop) {
  auto add_entry = [&](const Node* node) {
    Add(Draft(OpKind::kEntry, loop->region, node));
    drafts.back().num_ports = 1;
    drafts.back().index = loop->num_entries++;
    drafts.back().is_partial = loop->is_partial;
    return static_cast<int>(drafts.size()) - 1;
  };
  for (const Node* merge : loop->merges) {
    loop->entries[merge] = add_entry(merge);
    for (const GraphEdge* edge : merge->out_edges()) {
      if (edge->src_output() == 1 && loop->index_entries.count(merge) == 0)
        loop->index_entries[merge] = add_entry(merge);
    }
  }
  for (const Node* enter : loop->enters) {
    for (const GraphEdge* edge : enter->out_edges()) {
      if (loop->entries.count(edge->dst()) > 0 || loop->entries.count(enter) > 0 || edge->dst()->IsSink()) continue;
      loop->entries[enter] = add_entry(enter);
    }
  }
}

absl::Status DraftBuilder::MakeEntry(const Node* node) {
  int64_t index = 0;
  TFR_RETURN_IF_ERROR(Integer(node, kIndexAttr, &index));
  std::vector<int>& list = entries[regions_.region(node)];
  if (index < 0 || index > 0xffff)
    return InvalidArgument("Node '", node->name(), "': argument index ", index, " is out of range");
  if (static_cast<int>(list.size()) <= index) list.resize(index + 1, -1);
  if (list[index] >= 0) {
    return InvalidArgument("Node '", node->name(), "': argument ", index, " has an entry already, '",
                           drafts[list[index]].node->name(), "'");
  }
  list[index] = Add(Draft(OpKind::kEntry, regions_.region(node), node));
  drafts.back().num_ports = 1;
  drafts.back().index = static_cast<uint32_t>(index);
  draft_of_[node->id()] = list[index];
  return absl::OkStatus();
}

// Whether the node only renames its input.
bool DraftBuilder::IsAlias(const Node* node) const {
  if (node->IsLoopCond() || node->IsNextIteration()) return true;
  if (!Is(node, "Identity") && !Is(node, "StopGradient") && !Is(node, "Snapshot")) return false;
  for (const GraphEdge* edge : node->in_edges()) {
    if (!regions_.IsReal(edge)) continue;
    if (edge->IsControlEdge()) return false;
    if (tensorflow::IsRefType(edge->src()->output_type(edge->src_output()))) return false;
  }
  return true;
}

bool DraftBuilder::IsPredicateSwitch(const Node* node) const {
  if (!node->IsSwitch()) return false;
  for (const GraphEdge* edge : node->in_edges()) {
    if (edge->IsControlEdge() && regions_.IsReal(edge)) return false;
  }
  const GraphEdge* data = InputEdge(node, 0);
  const GraphEdge* predicate = InputEdge(node, 1);
  return data != nullptr && predicate != nullptr && Origin(data) == Origin(predicate);
}

// The node and port that an edge's value comes from, behind nodes that only rename it.
std::pair<const Node*, int> DraftBuilder::Origin(const GraphEdge* edge) const {
  while (IsAlias(edge->src())) {
    const GraphEdge* next = InputEdge(edge->src(), 0);
    if (next == nullptr) break;
    edge = next;
  }
  return {edge->src(), edge->src_output()};
}

absl::Status DraftBuilder::MakeKernel(const Node* node) {
  KernelNode kernel;
  kernel.id = static_cast<int>(program_->kernels.size());
  kernel.node = node;
  kernel.name = node->name();
  kernel.op = node->type_string();
  kernel.in_flight_bytes = ComesFromOtherProcess(node) ? kRemoteReceiveBytes : kInFlightBytes;
  for (int i = 0; i < node->num_inputs(); ++i) kernel.inputs.push_back(node->input_type(i));
  for (int i = 0; i < node->num_outputs(); ++i) kernel.outputs.push_back(node->output_type(i));
  Draft draft(OpKind::kKernel, regions_.region(node), node);
  draft.num_ports = node->num_outputs();
  draft.index = static_cast<uint32_t>(kernel.id);
  if (!NeedsKernel(node) && memory_.IsOnHost(*node))
    draft.scalar = FindScalarFunction(kernel.op, kernel.inputs, kernel.outputs);
  draft.may_be_dead = node->IsRecv();
  if (draft.scalar != nullptr) draft.kind = OpKind::kScalar;
  if (node->IsSend()) draft.kind = OpKind::kSend;
  program_->kernels.push_back(std::move(kernel));
  draft_of_[node->id()] = Add(std::move(draft));
  return absl::OkStatus();
}

// A Retain or Recall, which the executor does by itself.
absl::Status DraftBuilder::MakeRecord(const Node* node) {
  const bool is_retain = Is(node, kRetainOp);
  RecordType record;
  record.name = node->name();
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kFunctionAttr, &record.function));
  record.function = UserName(record.function);
  record.types = is_retain ? node->input_types() : node->output_types();
  Draft draft(is_retain ? OpKind::kRetain : OpKind::kRecall, regions_.region(node), node);
  draft.num_ports = node->num_outputs();
  draft.index = static_cast<uint32_t>(program_->records.size());
  program_->records.push_back(std::move(record));
  draft_of_[node->id()] = Add(std::move(draft));
  return absl::OkStatus();
}

absl::Status DraftBuilder::MakeDraft(const Node* node) {
  const int region = regions_.region(node);
  const int loop = LoopOfRegion(region);
  auto add = [&](OpKind kind, int num_ports) {
    Add(Draft(kind, region, node));
    drafts.back().num_ports = num_ports;
    draft_of_[node->id()] = static_cast<int>(drafts.size()) - 1;
  };
  if (Is(node, kEntryOp)) return MakeEntry(node);
  if (Is(node, kRetainOp) || Is(node, kRecallOp)) return MakeRecord(node);
  if (node->IsEnter() || HoldsConstant(node) || IsAlias(node)) return absl::OkStatus();
  if (node->IsMerge() && loop >= 0 && loops[loop].entries.count(node) > 0) return absl::OkStatus();
  if (Is(node, kFrameStartOp)) {
    if (!frame_starts.emplace(region, static_cast<int>(drafts.size())).second) {
      return InvalidArgument("Node '", node->name(), "': '", regions_.regions()[region].name,
                             "' has a FrameStart already");
    }
    add(OpKind::kFrameStart, 1);
  } else if (Is(node, kResultOp)) {
    int64_t index = 0;
    TFR_RETURN_IF_ERROR(Integer(node, kIndexAttr, &index));
    std::string function;
    TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kFunctionAttr, &function));
    if (region != regions_.FindFunction(function) || index < 0 || index > 0xffff) {
      return InvalidArgument("Node '", node->name(), "': result ", index, " of '", function,
                             "' does not belong to its body");
    }
    if (!results.emplace(std::pair(region, static_cast<int>(index)), node).second) {
      return InvalidArgument("Node '", node->name(), "': result ", index, " of '", function, "' is given already");
    }
    add(OpKind::kResult, 0);
    drafts.back().index = static_cast<uint32_t>(index);
    num_results[region] = std::max<int>(num_results[region], static_cast<int>(index) + 1);
  } else if (node->IsExit()) {
    add(OpKind::kExit, 0);
    const auto& exits = loops[loop].exits;
    drafts.back().index = static_cast<uint32_t>(std::find(exits.begin(), exits.end(), node) - exits.begin());
  } else if (IsSwitchN(node)) {  // an IsSwitch() as well
    add(OpKind::kSwitchN, node->num_outputs());
  } else if (node->IsSwitch()) {
    if (!IsPredicateSwitch(node)) add(OpKind::kSwitch, 2);
  } else if (node->IsMerge()) {
    add(OpKind::kMerge, 2);
  } else if (Is(node, "ControlTrigger")) {
    add(OpKind::kUnion, 0);
  } else if (Is(node, "NoOp")) {
    add(OpKind::kPass, 0);
  } else if (Is(node, "Identity") || Is(node, "IdentityN") || Is(node, "StopGradient") || Is(node, "Snapshot")) {
    bool has_ref = false;
    for (int i = 0; i < node->num_inputs(); ++i)
      has_ref |= tensorflow::IsRefType(InputEdge(node, i)->src()->output_type(InputEdge(node, i)->src_output()));
    if (has_ref) return MakeKernel(node);
    add(OpKind::kPass, node->num_outputs());
  } else if (node->IsArg() || node->IsRetval()) {
    int64_t index = 0;
    TFR_RETURN_IF_ERROR(Integer(node, kIndexAttr, &index));
    if (region != GraphRegions::kRoot)
      return InvalidArgument("Node '", node->name(), "' stands inside a function's body");
    if (index < 0 || index > 0xffffff)
      return InvalidArgument("Node '", node->name(), "': index ", index, " is out of range");
    add(node->IsArg() ? OpKind::kArgument : OpKind::kRetval, node->IsArg() ? 1 : 0);
    drafts.back().index = static_cast<uint32_t>(index);
    auto& types = node->IsArg() ? program_->argument_types : program_->retval_types;
    if (static_cast<int64_t>(types.size()) <= index) types.resize(index + 1, tensorflow::DT_INVALID);
    types[index] = node->IsArg() ? node->output_type(0) : node->input_type(0);
  } else {
    return MakeKernel(node);
  }
  return absl::OkStatus();
}

absl::Status DraftBuilder::ConstantOf(const Node* node, int* constant) {
  auto [position, inserted] = constants_.try_emplace(node, 0);
  if (inserted) {
    position->second = static_cast<int>(program_->constants.size());
    TFR_RETURN_IF_ERROR(ReadConstant(node, memory_, &program_->constants.emplace_back()));
  }
  *constant = position->second;
  return absl::OkStatus();
}

// A constant as a token of its own, for consumers that wait for one (merges, results).
absl::Status DraftBuilder::ConstantDraft(const Node* node, int* draft) {
  auto position = constant_drafts_.find(node);
  if (position == constant_drafts_.end()) {
    Draft pass(OpKind::kPass, regions_.region(node), node);
    pass.num_ports = 1;
    Input value;
    TFR_RETURN_IF_ERROR(ConstantOf(node, &value.constant));
    TFR_RETURN_IF_ERROR(ResolveControls(node, &value.guards));
    pass.inputs.push_back(std::move(value));
    position = constant_drafts_.emplace(node, Add(std::move(pass))).first;
  }
  *draft = position->second;
  return absl::OkStatus();
}

absl::Status DraftBuilder::BranchOn(const Source& predicate, int region, int* branch) {
  auto [position, inserted] = branches_.try_emplace({region, predicate}, 0);
  if (inserted) {
    Draft draft(OpKind::kBranch, region, drafts[predicate.draft].node);
    draft.num_ports = 2;
    Input input;
    input.source = predicate;
    draft.inputs.push_back(input);
    position->second = Add(std::move(draft));
  }
  *branch = position->second;
  return absl::OkStatus();
}

absl::Status DraftBuilder::BranchOf(const Node* pred_switch, int* branch) {
  Input predicate;
  TFR_RETURN_IF_ERROR(ResolveLive(pred_switch, 1, &predicate));
  return BranchOn(predicate.source, regions_.region(pred_switch), branch);
}

// Follows renaming nodes back to the draft and port that the value comes from.
absl::Status DraftBuilder::Resolve(const Node* node, int port, Source* source) {
  while (IsAlias(node)) {
    const GraphEdge* edge = InputEdge(node, 0);
    if (edge == nullptr) return InvalidArgument("Node '", node->name(), "' has no input");
    node = edge->src();
    port = edge->src_output();
  }
  const int region = regions_.region(node);
  if (region == GraphRegions::kNoRegion)
    return InvalidArgument("Node '", node->name(), "' carries no value at run time");
  if (HoldsConstant(node)) {
    TFR_RETURN_IF_ERROR(ConstantDraft(node, &source->draft));
    source->port = 0;
    return absl::OkStatus();
  }
  if (node->IsEnter()) {
    source->draft = loops[LoopOfRegion(regions_.LoopOf(node))].entries.at(node);
    source->port = 0;
    return absl::OkStatus();
  }
  if (Is(node, kReturnOp)) {
    int64_t index = 0;
    TFR_RETURN_IF_ERROR(Integer(node, kIndexAttr, &index));
    *source = {draft_of_[node->id()], static_cast<int>(index)};
    return absl::OkStatus();
  }
  if (Is(node, kAnnounceCallOp)) {
    *source = {draft_of_[node->id()], sites[drafts[draft_of_[node->id()]].index].announce_port};
    return absl::OkStatus();
  }
  const int loop = LoopOfRegion(region);
  if (node->IsExit()) {
    *source = {loops[loop].start, static_cast<int>(drafts[draft_of_[node->id()]].index)};
    return absl::OkStatus();
  }
  if (node->IsMerge() && loop >= 0) {
    const LoopDraft& in = loops[loop];
    auto variable = in.entries.find(node);
    if (variable != in.entries.end()) {
      *source = {port == 0 ? variable->second : in.index_entries.at(node), 0};
      return absl::OkStatus();
    }
  }
  if (node->IsSwitch() && draft_of_[node->id()] < 0) {
    TFR_RETURN_IF_ERROR(BranchOf(node, &source->draft));
    source->port = port;
    return absl::OkStatus();
  }
  if (draft_of_[node->id()] < 0) return InvalidArgument("Node '", node->name(), "' yields no value that can be read");
  *source = {draft_of_[node->id()], port};
  return absl::OkStatus();
}

// A data input; constants are resolved to their value.
absl::Status DraftBuilder::ResolveInput(const Node* node, int input, Input* result) {
  const GraphEdge* edge = InputEdge(node, input);
  if (edge == nullptr) return InvalidArgument("Node '", node->name(), "' lacks input ", input);
  const auto [src, port] = Origin(edge);
  if (!HoldsConstant(src)) return Resolve(src, port, &result->source);
  TFR_RETURN_IF_ERROR(ConstantOf(src, &result->constant));
  return ResolveControls(src, &result->guards);
}

// A data input that must arrive as a token, constants included.
absl::Status DraftBuilder::ResolveLive(const Node* node, int input, Input* result) {
  const GraphEdge* edge = InputEdge(node, input);
  if (edge == nullptr) return InvalidArgument("Node '", node->name(), "' lacks input ", input);
  return Resolve(edge->src(), edge->src_output(), &result->source);
}

// The one data input of `node` as a token that comes after the node's control inputs, or is dead with any of them.
absl::Status DraftBuilder::ResolveToken(const Node* node, Input* result) {
  TFR_RETURN_IF_ERROR(ResolveLive(node, 0, result));
  std::vector<Source> controls;
  TFR_RETURN_IF_ERROR(ResolveControls(node, &controls));
  if (controls.empty()) return absl::OkStatus();
  Draft pass(OpKind::kPass, regions_.region(node), node);
  pass.num_ports = 1;
  pass.inputs.push_back(*result);
  pass.controls = std::move(controls);
  result->source = {Add(std::move(pass)), 0};
  return absl::OkStatus();
}

absl::Status DraftBuilder::ResolveControls(const Node* node, std::vector<Source>* controls) {
  for (const GraphEdge* edge : node->in_edges()) {
    if (!edge->IsControlEdge() || !regions_.IsReal(edge)) continue;
    TFR_RETURN_IF_ERROR(ResolveControl(edge->src(), controls));
  }
  std::sort(controls->begin(), controls->end());
  controls->erase(std::unique(controls->begin(), controls->end()), controls->end());
  return absl::OkStatus();
}

// A Call is no event of its own either: its value is, the very port that it reads, and its control inputs are.
absl::Status DraftBuilder::ResolvePassed(const Node* call, std::vector<const Node*>* pending,
                                         std::vector<Source>* controls) {
  for (const GraphEdge* edge : call->in_edges()) {
    if (!regions_.IsReal(edge)) continue;
    const auto [src, port] = edge->IsControlEdge() ? std::pair(edge->src(), 0) : Origin(edge);
    if (edge->IsControlEdge() || HoldsConstant(src)) {
      pending->push_back(src);
    } else {
      TFR_RETURN_IF_ERROR(Resolve(src, port, &controls->emplace_back()));
    }
  }
  return absl::OkStatus();
}

// What a control edge out of `node` waits for.
absl::Status DraftBuilder::ResolveControl(const Node* node, std::vector<Source>* controls) {
  std::vector<const Node*> pending = {node};
  std::vector<bool> seen(graph_.num_node_ids(), false);
  while (!pending.empty()) {
    const Node* current = pending.back();
    pending.pop_back();
    if (seen[current->id()]) continue;
    seen[current->id()] = true;
    if (Is(current, kCallOp) || Is(current, kJoinCallOp)) {
      TFR_RETURN_IF_ERROR(ResolvePassed(current, &pending, controls));
      continue;
    }
    if (HoldsConstant(current)) {
      // A constant is no event of its own: what it waits for is.
      for (const GraphEdge* edge : current->in_edges()) {
        if (regions_.IsReal(edge)) pending.push_back(edge->src());
      }
      continue;
    }
    if (Is(current, kResultOp) || current->IsRetval()) {
      return InvalidArgument("Node '", node->name(), "' ends a value's way and can't be a control input");
    }
    const bool renames = IsAlias(current) || current->IsEnter() || current->IsExit() || Is(current, kReturnOp) ||
                         Is(current, kAnnounceCallOp) || Is(current, kEntryOp) || Is(current, kFrameStartOp) ||
                         (draft_of_[current->id()] < 0 && current->IsMerge());
    if (renames) {
      if (IsAlias(current) && InputEdge(current, 0) != nullptr) {
        const GraphEdge* edge = InputEdge(current, 0);
        if (HoldsConstant(edge->src())) {
          pending.push_back(edge->src());
          continue;
        }
      }
      Source source;
      TFR_RETURN_IF_ERROR(Resolve(current, 0, &source));
      controls->push_back(source);
    } else if (current->IsSwitch() && draft_of_[current->id()] < 0) {
      Source source;
      TFR_RETURN_IF_ERROR(Resolve(current, 0, &source));
      controls->push_back({source.draft, Source::kWholeOp});
    } else {
      if (draft_of_[current->id()] < 0) return InvalidArgument("Node '", current->name(), "' can't be a control input");
      controls->push_back({draft_of_[current->id()], Source::kWholeOp});
    }
  }
  return absl::OkStatus();
}

// A merge waits for its control inputs but does not die of them: effects of the branch that was not taken
// hang on the merge behind both.
Source DraftBuilder::JoinDeadOrAlive(int draft, std::vector<Source> controls) {
  Draft join(OpKind::kUnion, drafts[draft].region, drafts[draft].node);
  join.controls = std::move(controls);
  return {Add(std::move(join)), Source::kWholeOp};
}

absl::Status DraftBuilder::LinkDrafts() {
  for (LoopDraft& loop : loops) TFR_RETURN_IF_ERROR(LinkLoop(&loop));
  for (const SiteDraft& site : sites) TFR_RETURN_IF_ERROR(LinkSite(site));
  // Linking appends constants and branches, which link themselves: only what stands here now is linked.
  const int count = static_cast<int>(drafts.size());
  for (int i = 0; i < count; ++i) TFR_RETURN_IF_ERROR(Link(i));
  return absl::OkStatus();
}

absl::Status DraftBuilder::Link(int draft) {
  const Node* node = drafts[draft].node;
  if (node == nullptr || draft_of_[node->id()] != draft) return absl::OkStatus();
  const OpKind kind = drafts[draft].kind;
  if (kind == OpKind::kSite || kind == OpKind::kEntry || kind == OpKind::kFrameStart || kind == OpKind::kArgument) {
    return absl::OkStatus();
  }
  const bool needs_token = kind == OpKind::kMerge || kind == OpKind::kResult || kind == OpKind::kExit ||
                           kind == OpKind::kRetval || kind == OpKind::kSend;
  std::vector<Input> inputs(node->num_inputs());
  for (int i = 0; i < node->num_inputs(); ++i) {
    TFR_RETURN_IF_ERROR(needs_token ? ResolveLive(node, i, &inputs[i]) : ResolveInput(node, i, &inputs[i]));
  }
  std::vector<Source> controls;
  TFR_RETURN_IF_ERROR(ResolveControls(node, &controls));
  if (kind == OpKind::kSwitch) {
    // The predicate must be a token, even if constant: its branch tells the dead side.
    inputs[1] = Input();
    TFR_RETURN_IF_ERROR(ResolveLive(node, 1, &inputs[1]));
    int branch = 0;
    TFR_RETURN_IF_ERROR(BranchOn(inputs[1].source, drafts[draft].region, &branch));
    drafts[draft].index = static_cast<uint32_t>(branch);
  }
  if (kind == OpKind::kMerge && !controls.empty()) controls = {JoinDeadOrAlive(draft, std::move(controls))};
  drafts[draft].inputs = std::move(inputs);
  drafts[draft].controls = std::move(controls);
  return absl::OkStatus();
}

// A Call with control inputs, and a constant argument, become a token of their own here; which of them
// can be simplified is decided when liveness is known.
absl::Status DraftBuilder::LinkSite(const SiteDraft& site) {
  std::vector<Input> inputs;
  for (const auto& [index, call] : site.calls) {
    Input value;
    TFR_RETURN_IF_ERROR(ResolveInput(call, 0, &value));
    std::vector<Source> controls;
    TFR_RETURN_IF_ERROR(ResolveControls(call, &controls));
    if (value.is_constant()) {
      value.guards.insert(value.guards.end(), controls.begin(), controls.end());
    } else if (!controls.empty()) {
      Draft pass(OpKind::kPass, drafts[site.draft].region, call);
      pass.num_ports = 1;
      pass.inputs.push_back(value);
      pass.controls = std::move(controls);
      value.source = {Add(std::move(pass)), 0};
    }
    inputs.push_back(std::move(value));
  }
  if (site.join != nullptr) TFR_RETURN_IF_ERROR(ResolveLive(site.join, 0, &inputs.emplace_back()));
  drafts[site.draft].inputs = std::move(inputs);
  return absl::OkStatus();
}

absl::Status DraftBuilder::LinkLoop(LoopDraft* loop) {
  std::vector<Input> inputs;
  std::vector<Source> controls;
  for (const Node* enter : loop->enters) {
    if (drafts[loop->start].takes_dead) {
      TFR_RETURN_IF_ERROR(ResolveToken(enter, &inputs.emplace_back()));
      continue;
    }
    TFR_RETURN_IF_ERROR(ResolveInput(enter, 0, &inputs.emplace_back()));
    TFR_RETURN_IF_ERROR(ResolveControls(enter, &controls));
  }
  drafts[loop->start].inputs = std::move(inputs);
  drafts[loop->start].controls = std::move(controls);
  return loop->next < 0 ? absl::OkStatus() : LinkNext(loop);
}

// Adds a token that lives if the loop's condition holds. On other devices than the condition's, partitioning has made a
// variable that is nothing but that.
absl::Status DraftBuilder::LinkCondition(const LoopDraft& loop, std::vector<Input>* inputs) {
  if (loop.condition != nullptr) {
    Source condition;
    int branch = 0;
    TFR_RETURN_IF_ERROR(Resolve(loop.condition, 0, &condition));
    TFR_RETURN_IF_ERROR(BranchOn(condition, loop.region, &branch));
    inputs->emplace_back().source = {branch, 1};
    return absl::OkStatus();
  }
  const auto control = std::find_if_not(loop.nexts.begin(), loop.nexts.end(), IsOfPartialLoop);
  return control == loop.nexts.end() ? absl::OkStatus() : ResolveToken(*control, &inputs->emplace_back());
}

absl::Status DraftBuilder::LinkNext(LoopDraft* loop) {
  std::vector<Input> inputs;
  std::vector<Source> controls;
  for (const Node* next : loop->nexts) {
    std::vector<Source>& own = loop->next_controls.emplace_back();
    TFR_RETURN_IF_ERROR(ResolveControls(next, &own));
    controls.insert(controls.end(), own.begin(), own.end());
    TFR_RETURN_IF_ERROR(loop->is_partial ? ResolveToken(next, &inputs.emplace_back())
                                         : ResolveLive(next, 0, &inputs.emplace_back()));
  }
  if (loop->is_partial) {
    controls.clear();
    for (const Node* exit : loop->exits) TFR_RETURN_IF_ERROR(ResolveToken(exit, &inputs.emplace_back()));
    TFR_RETURN_IF_ERROR(LinkCondition(*loop, &inputs));
  }
  std::sort(controls.begin(), controls.end());
  controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
  drafts[loop->next].inputs = std::move(inputs);
  drafts[loop->next].controls = std::move(controls);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
