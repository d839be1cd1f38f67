// Lays drafts out as tables: operators by region, slots, pending counts, edges, death lists.
// SPDX-License-Identifier: Apache-2.0
#include "cc/program/program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "cc/analysis/flow_graph.h"
#include "cc/analysis/regions.h"
#include "cc/analysis/waits.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/program/slots.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/hash.h"

namespace tensorflow_recursion {

namespace {

using tensorflow::Node;
using tensorflow::Tensor;

// Pending counts and input positions are held in these widths.
constexpr size_t kMaxInputs = 0xffff;

// Slots that hold one bit for each of `inputs`.
uint32_t MaskSlots(size_t inputs) { return static_cast<uint32_t>((inputs + 63) / 64); }

bool Fires(OpKind kind) { return kind < OpKind::kGate; }

// Arrivals that the draft waits for.
size_t NumTokens(const Draft& draft) {
  const auto is_token = [](const Input& input) { return !input.is_constant(); };
  const auto inputs = std::count_if(draft.inputs.begin(), draft.inputs.end(), is_token);
  return draft.controls.size() + (draft.kind == OpKind::kMerge ? 1 : static_cast<size_t>(inputs));
}

// Whether the draft fires as soon as anything comes, or at once.
bool WaitsForOne(const Draft& draft) {
  switch (draft.kind) {
    case OpKind::kScalar:
    case OpKind::kPass:
    case OpKind::kSwitch:
    case OpKind::kBranch:
    case OpKind::kSwitchN:
    case OpKind::kRetval:
    case OpKind::kRetain:
    case OpKind::kRecall:
    case OpKind::kKernel:
      return NumTokens(draft) <= 1;
    default:
      return false;
  }
}

// Whether a frame has a pending count for it.
bool IsCounted(const Draft& draft) {
  return Fires(draft.kind) && (!WaitsForOne(draft) || draft.kind == OpKind::kBranch);
}

EdgeKind EdgeKindInto(const Draft& draft) {
  if (WaitsForOne(draft)) return EdgeKind::kOnly;
  switch (draft.kind) {
    case OpKind::kMerge:
      return EdgeKind::kMerge;
    case OpKind::kSite:
      return EdgeKind::kSiteArgument;
    case OpKind::kGate:
      return EdgeKind::kGate;
    case OpKind::kResult:
      return EdgeKind::kResult;
    case OpKind::kExit:
      return EdgeKind::kExit;
    default:
      return EdgeKind::kData;
  }
}

// Control inputs of results and exits would have no effect: nothing in the frame waits for them. A
// token of its own makes them count. A send dies of one death alone.
bool WaitsInVain(const Draft& draft) {
  const bool passes_on = draft.kind == OpKind::kResult || draft.kind == OpKind::kExit || draft.kind == OpKind::kSend;
  return passes_on && !draft.controls.empty();
}

// Whether an Entry's values are never tensors of their own.
bool IsNumber(const Node& entry, const DeviceMemory& memory) {
  tensorflow::PartialTensorShape shape;
  return IsUnboxed(entry.output_type(0)) && memory.IsOnHost(entry, 0) &&
         tensorflow::GetNodeAttr(entry.attrs(), kShapeAttr, &shape).ok() && shape.dims() == 0;
}

class Assembler {
 public:
  Assembler(const GraphRegions& regions, DraftBuilder* builder, Program* program)
      : regions_(regions), builder_(*builder), program_(program) {}

  absl::Status Run() {
    Specialize();
    MakeRegions();
    TFR_RETURN_IF_ERROR(NumberOps());
    TFR_RETURN_IF_ERROR(LinkSites());
    LinkLoops();
    TFR_RETURN_IF_ERROR(PlaceEdges());
    LinkGates();
    for (Region& region : program_->regions) FindDeaths(&region);
    for (Region& region : program_->regions) PlaceSlots(&region);
    for (Region& region : program_->regions) FindLendingSlots(&region);
    MakeTemplates();
    return absl::OkStatus();
  }

 private:
  Region& region(int index) { return program_->regions[index]; }
  const Draft& draft(int index) const { return builder_.drafts[index]; }

  void Specialize();
  void WaitBefore(int draft);
  void SplitControls(int draft);
  void MakeRegions();
  absl::Status NumberOps();
  absl::Status AddOp(int draft);
  absl::Status LinkSites();
  void LinkLoops();
  absl::Status PlaceEdges();
  void PlaceInput(int draft, size_t position);
  void LinkGates();
  void PlaceSlots(Region* region);
  SlotRequest RequestOf(int draft) const;
  void TakeSlots(const SlotRequest& request, const std::vector<uint32_t>& slots);
  void MakeTable(int draft, const std::vector<uint32_t>& slots);
  void FindLendingSlots(Region* region);
  void MakeTemplates();
  Value ConstantValue(int constant) const;
  void SetSlot(Region* region, uint32_t slot, const Value& value);
  void FindDeaths(Region* region);

  const GraphRegions& regions_;
  DraftBuilder& builder_;
  Program* program_;
  std::vector<uint32_t> op_of_;                  // draft -> op in its region
  std::vector<std::vector<uint32_t>> draft_of_;  // the reverse, by region
  // Per region and port: the edges before they are laid out one after another.
  struct PortEdges {
    std::vector<Edge> data;
    std::vector<Edge> controls;
  };
  std::vector<std::vector<PortEdges>> port_edges_;
  std::vector<std::vector<uint16_t>> pending_;  // per region and firing op
  struct Prefilled {
    uint32_t slot;
    int constant;
  };
  std::vector<std::vector<Prefilled>> prefilled_;
};

// Now that it is known who waits for what.
void Assembler::Specialize() {
  const size_t count = builder_.drafts.size();
  for (size_t i = 0; i < count; ++i) {
    Draft& from = builder_.drafts[i];
    if (from.kind == OpKind::kSwitch && from.controls.empty()) from.kind = OpKind::kGate;
    if (from.controls.size() + from.inputs.size() > kMaxInputs) SplitControls(static_cast<int>(i));
    if (WaitsInVain(builder_.drafts[i])) WaitBefore(static_cast<int>(i));
  }
}

// Moves the draft's control inputs to a token in front of it.
void Assembler::WaitBefore(int index) {
  Draft& from = builder_.drafts[index];
  Draft pass(OpKind::kPass, from.region, from.node);
  pass.num_ports = 1;
  pass.inputs.push_back(from.inputs[0]);
  pass.controls = std::move(from.controls);
  from.controls.clear();
  from.inputs[0].source = {static_cast<int>(builder_.drafts.size()), 0};
  builder_.drafts.push_back(std::move(pass));
}

// Gathers the control inputs in drafts that wait for as many as can be counted.
void Assembler::SplitControls(int index) {
  const std::vector<Source> all = std::move(builder_.drafts[index].controls);
  std::vector<Source> gathered;
  for (size_t begin = 0; begin < all.size(); begin += kMaxInputs) {
    Draft pass(OpKind::kPass, builder_.drafts[index].region, builder_.drafts[index].node);
    const size_t end = std::min(begin + kMaxInputs, all.size());
    pass.controls.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                         all.begin() + static_cast<std::ptrdiff_t>(end));
    gathered.push_back({static_cast<int>(builder_.drafts.size()), Source::kWholeOp});
    builder_.drafts.push_back(std::move(pass));
  }
  builder_.drafts[index].controls = std::move(gathered);
}

void Assembler::MakeRegions() {
  for (const GraphRegions::Region& from : regions_.regions()) {
    Region& to = program_->regions.emplace_back();
    to.kind = static_cast<Region::Kind>(from.kind);
    to.name = from.name;
    to.id = static_cast<uint32_t>(program_->regions.size()) - 1;
  }
  port_edges_.resize(program_->regions.size());
  pending_.resize(program_->regions.size());
  prefilled_.resize(program_->regions.size());
  draft_of_.resize(program_->regions.size());
}

absl::Status Assembler::NumberOps() {
  op_of_.assign(builder_.drafts.size(), kNone);
  auto add = [this](bool fires, bool is_counted) {
    for (size_t i = 0; i < builder_.drafts.size(); ++i) {
      if (Fires(draft(i).kind) != fires || IsCounted(draft(i)) != is_counted || draft(i).is_removed) continue;
      TFR_RETURN_IF_ERROR(AddOp(static_cast<int>(i)));
    }
    return absl::OkStatus();
  };
  TFR_RETURN_IF_ERROR(add(true, true));
  for (Region& r : program_->regions) r.num_counted = static_cast<uint32_t>(r.ops.size());
  TFR_RETURN_IF_ERROR(add(true, false));
  for (Region& r : program_->regions) r.num_firing = static_cast<uint32_t>(r.ops.size());
  return add(false, false);
}

absl::Status Assembler::AddOp(int index) {
  const Draft& from = draft(index);
  Region& r = region(from.region);
  const size_t num_inputs = from.inputs.size() + (from.kind == OpKind::kUnion ? from.controls.size() : 0);
  if (num_inputs > kMaxInputs || from.num_ports >= static_cast<int>(kMaxInputs)) {
    return InvalidArgument("Node '", from.node->name(), "' has ", num_inputs, " inputs and ", from.num_ports,
                           " outputs, the executor takes ", kMaxInputs);
  }
  Op op;
  op.kind = from.kind;
  op.num_inputs = static_cast<uint16_t>(num_inputs);
  op.num_ports = static_cast<uint16_t>(from.num_ports);
  op.port = static_cast<uint32_t>(r.ports.size());
  op.index = from.index;
  op.scalar = from.scalar;
  op.may_be_dead = from.may_be_dead;
  op.takes_dead = from.takes_dead;
  op_of_[index] = static_cast<uint32_t>(r.ops.size());
  draft_of_[from.region].push_back(static_cast<uint32_t>(index));
  program_->max_inputs = std::max(program_->max_inputs, num_inputs);
  r.ops.push_back(op);
  r.ports.resize(r.ports.size() + from.num_ports + 1);
  port_edges_[r.id].resize(r.ports.size());
  return absl::OkStatus();
}

absl::Status Assembler::LinkSites() {
  for (const SiteDraft& from : builder_.sites) {
    CallSite& site = program_->sites.emplace_back();
    site.call_id = from.call_id;
    site.name = from.name;
    site.callee_name = UserName(from.callee);
    site.callee = &region(regions_.FindFunction(from.callee));
    site.waits_for_announcement = from.join != nullptr;
    site.announce_port = from.announce_port < 0 ? kNone : static_cast<uint32_t>(from.announce_port);
  }
  for (const auto& [index, drafts] : builder_.entries) {
    for (int entry : drafts) region(index).entries.push_back(entry < 0 ? kNone : op_of_[entry]);
  }
  for (const auto& [index, frame_start] : builder_.frame_starts) region(index).frame_start = op_of_[frame_start];
  for (const auto& [index, count] : builder_.num_results) region(index).num_results = static_cast<uint32_t>(count);
  for (size_t i = 0; i < builder_.sites.size(); ++i) {
    const CallSite& site = program_->sites[i];
    const auto& returns = builder_.sites[i].returns;
    const uint32_t num_read = returns.empty() ? 0 : static_cast<uint32_t>(returns.rbegin()->first) + 1;
    if (num_read <= site.callee->num_results) continue;
    return InvalidArgument("Call of '", site.callee_name, "' at '", site.name, "' reads output ", num_read - 1,
                           ", the function's body has ", site.callee->num_results);
  }
  return absl::OkStatus();
}

void Assembler::LinkLoops() {
  for (const LoopDraft& from : builder_.loops) {
    Loop& loop = program_->loops.emplace_back();
    Region& body = region(from.region);
    const Draft& start = draft(from.start);
    loop.name = body.name;
    loop.key = tensorflow::Hash64(loop.name);
    loop.in_function = regions_.IsFunctionPart(from.region);
    loop.crosses_devices = from.crosses_devices;
    loop.is_partial = from.is_partial;
    loop.num_nexts = static_cast<uint32_t>(from.nexts.size());
    loop.num_exits = static_cast<uint32_t>(from.exits.size());
    loop.parent = &region(start.region);
    loop.body = &body;
    loop.start_op = op_of_[from.start];
    body.loop = &loop;
    auto op_at = [&](const std::map<const Node*, int>& entries, const Node* node) {
      auto position = entries.find(node);
      return position == entries.end() ? kNone : op_of_[position->second];
    };
    auto slot_of = [](const std::vector<const Node*>& nodes, const Node* node) {
      return static_cast<uint32_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
    };
    for (const Node* enter : from.enters) {
      const uint32_t entry = op_at(from.entries, enter);
      if (entry == kNone) continue;
      (IsLoopConstant(*enter) ? loop.constants : loop.starts).push_back({slot_of(from.enters, enter), entry, kNone});
    }
    for (const Node* merge : from.merges) {
      for (const tensorflow::Edge* edge : merge->in_edges()) {
        const LoopDelivery delivery = {0, op_at(from.entries, merge), op_at(from.index_entries, merge)};
        if (edge->src()->IsEnter()) {
          loop.starts.push_back(delivery);
          loop.starts.back().slot = slot_of(from.enters, edge->src());
        } else if (edge->src()->IsNextIteration()) {
          loop.nexts.push_back(delivery);
          loop.nexts.back().slot = slot_of(from.nexts, edge->src());
        }
      }
    }
    // Loop variables that are the same may share their NextIteration.
    std::set<uint32_t> taken;
    for (auto next = loop.nexts.rbegin(); next != loop.nexts.rend(); ++next) {
      next->is_last = taken.insert(next->slot).second;
    }
    region(start.region).ops[loop.start_op].index = static_cast<uint32_t>(program_->loops.size()) - 1;
    if (from.next >= 0) body.ops[op_of_[from.next]].index = static_cast<uint32_t>(program_->loops.size()) - 1;
  }
}

// Tells the source of input `position` about its consumer.
void Assembler::PlaceInput(int index, size_t position) {
  const Draft& to = draft(index);
  const Input& input = to.inputs[position];
  if (input.is_constant()) return;
  const Op& source = region(to.region).ops[op_of_[input.source.draft]];
  port_edges_[to.region][source.port + input.source.port].data.push_back(
      {op_of_[index], 0, static_cast<uint16_t>(position), EdgeKindInto(to)});
}

absl::Status Assembler::PlaceEdges() {
  for (Region& r : program_->regions) pending_[r.id].assign(r.num_counted, 0);
  for (size_t i = 0; i < builder_.drafts.size(); ++i) {
    const Draft& to = draft(i);
    const uint32_t op = op_of_[i];
    if (to.is_removed) continue;
    for (const Input& input : to.inputs) {
      if (input.is_constant()) continue;
      if (draft(input.source.draft).region != to.region || input.source.port >= draft(input.source.draft).num_ports) {
        return InvalidArgument("Node '", to.node->name(), "' reads output ", input.source.port, " of '",
                               draft(input.source.draft).node->name(),
                               "', which has none of that number in its region");
      }
    }
    const size_t num_placed = to.kind == OpKind::kGate ? 1 : to.inputs.size();
    for (size_t position = 0; position < num_placed; ++position) PlaceInput(static_cast<int>(i), position);
    if (Fires(to.kind)) region(to.region).ops[op].num_tokens = static_cast<uint32_t>(NumTokens(to));
    uint16_t bit = static_cast<uint16_t>(to.inputs.size());
    for (const Source& control : to.controls) {
      const Draft& from = draft(control.draft);
      if (from.region != to.region)
        return InvalidArgument("Node '", to.node->name(), "' waits for a node of another region");
      const Op& source = region(to.region).ops[op_of_[control.draft]];
      const int port = control.port == Source::kWholeOp ? from.num_ports : control.port;
      const EdgeKind kind = to.kind == OpKind::kUnion ? EdgeKind::kUnion
                            : WaitsForOne(to)         ? EdgeKind::kOnly
                                                      : EdgeKind::kControl;
      port_edges_[to.region][source.port + port].controls.push_back({op, 0, bit++, kind});
    }
  }
  for (Region& r : program_->regions) {
    for (size_t port = 0; port < r.ports.size(); ++port) {
      const PortEdges& from = port_edges_[r.id][port];
      r.ports[port].begin = static_cast<uint32_t>(r.edges.size());
      r.edges.insert(r.edges.end(), from.data.begin(), from.data.end());
      r.ports[port].controls = static_cast<uint32_t>(r.edges.size());
      r.edges.insert(r.edges.end(), from.controls.begin(), from.controls.end());
      r.ports[port].end = static_cast<uint32_t>(r.edges.size());
    }
    for (Op& op : r.ops) {
      const Port& control = r.ports[op.port + op.num_ports];
      op.has_controls = control.begin != control.end;
    }
    for (uint32_t index = 0; index < r.num_firing; ++index) {
      Op& op = r.ops[index];
      if (op.kind == OpKind::kMerge) {
        const Port& position = r.ports[op.port + 1];
        op.passes_on = op.num_tokens == 1 && !op.has_controls && position.begin == position.end &&
                       op.num_inputs <= kMaxPassingInputs;
      }
      const bool is_counted = index < r.num_counted && op.kind != OpKind::kBranch && !op.passes_on;
      if (is_counted) pending_[r.id][index] = static_cast<uint16_t>(op.num_tokens);
    }
  }
  return absl::OkStatus();
}

void Assembler::LinkGates() {
  std::map<int, std::vector<int>> gates;  // by branch draft
  for (size_t i = 0; i < builder_.drafts.size(); ++i) {
    if (draft(i).kind == OpKind::kGate) gates[static_cast<int>(draft(i).index)].push_back(static_cast<int>(i));
  }
  for (const auto& [branch, members] : gates) {
    Region& r = region(draft(branch).region);
    Op& op = r.ops[op_of_[branch]];
    op.index = static_cast<uint32_t>(r.gates.size());
    for (int gate : members) {
      r.gates.push_back(op_of_[gate]);
      r.ops[op_of_[gate]].index = op_of_[branch];
    }
    op.gates_end = static_cast<uint32_t>(r.gates.size());
  }
}

void Assembler::PlaceSlots(Region* r) {
  SlotPlanner planner(builder_.drafts, static_cast<int>(r->id));
  std::vector<SlotRequest> requests;
  for (uint32_t index : draft_of_[r->id]) requests.push_back(RequestOf(static_cast<int>(index)));
  planner.Sort(&requests);
  for (const SlotRequest& request : requests) TakeSlots(request, planner.Place(request));
  r->num_slots = planner.num_slots();
  if (builder_.crosses_devices) {
    r->tag_slot = r->num_slots;
    r->num_slots += 2;
  }
  // Now that the slots are known.
  for (Edge& edge : r->edges) {
    const Op& op = r->ops[edge.op];
    if (edge.kind == EdgeKind::kOnly || edge.kind == EdgeKind::kControl || edge.kind == EdgeKind::kUnion) continue;
    edge.slot = op.slot;
    if (op.kind == OpKind::kMerge || op.kind == OpKind::kGate) continue;
    edge.slot = op.inputs == InputsIn::kTable ? r->inputs[op.slot + edge.index].position : op.slot + edge.index;
  }
}

SlotRequest Assembler::RequestOf(int index) const {
  using Kind = SlotRequest::Kind;
  const Draft& from = draft(index);
  const Op& op = program_->regions[from.region].ops[op_of_[index]];
  SlotRequest request{index, /*is_block=*/true, {}};
  auto add = [&](uint32_t count, Kind kind) { request.items.resize(request.items.size() + count, {kind, 0}); };
  switch (from.kind) {
    case OpKind::kMerge:  // until the value comes: the inputs that are dead
      if (!op.passes_on) add(std::max(1u, MaskSlots(op.num_inputs)), Kind::kAlone);
      return request;
    case OpKind::kGate:
      add(1, from.inputs[0].is_constant() ? Kind::kAlone : Kind::kGate);
      return request;
    case OpKind::kUnion:  // the inputs that have come, dead or alive
      add(MaskSlots(op.num_inputs), Kind::kAlone);
      return request;
    case OpKind::kLoopStart:
      add(op.num_inputs, Kind::kAlone);
      if (from.is_partial) add(MaskSlots(op.num_ports), Kind::kAlone);
      return request;
    case OpKind::kLoopNext:
    case OpKind::kSend:  // whose death is told in its slot
      add(op.num_inputs, Kind::kAlone);
      return request;
    case OpKind::kSite:
      for (int i = 0; i < op.num_inputs; ++i) {
        request.items.push_back({from.inputs[i].is_constant() ? Kind::kAlone : Kind::kArgument, i});
      }
      // What another device says is looked for before anything of the call has come.
      if (builder_.sites[from.index].join != nullptr) request.items.back().kind = Kind::kAlone;
      return request;
    default:
      break;
  }
  if (!Fires(from.kind) || WaitsForOne(from)) return request;
  // It delivers some of its inputs while the others still lie in their slots.
  const bool is_alone = from.kind == OpKind::kPass && from.num_ports > 1;
  request.is_block = false;
  for (int i = 0; i < op.num_inputs; ++i) {
    if (!from.inputs[i].is_constant()) request.items.push_back({is_alone ? Kind::kAlone : Kind::kInput, i});
  }
  return request;
}

void Assembler::TakeSlots(const SlotRequest& request, const std::vector<uint32_t>& slots) {
  const Draft& from = draft(request.draft);
  Op& op = region(from.region).ops[op_of_[request.draft]];
  if (!slots.empty()) op.slot = slots[0];
  if (Fires(from.kind) && (WaitsForOne(from) || !request.is_block)) return MakeTable(request.draft, slots);
  // Calls, loops and gates find their constants in their slots.
  if (from.kind == OpKind::kMerge || from.kind == OpKind::kUnion) return;
  const size_t num_placed = from.kind == OpKind::kGate ? 1 : from.inputs.size();
  for (uint32_t i = 0; i < num_placed; ++i) {
    if (from.inputs[i].is_constant()) prefilled_[from.region].push_back({op.slot + i, from.inputs[i].constant});
  }
}

// Says where the operator finds its inputs, of which those that wait are in `slots`.
void Assembler::MakeTable(int index, const std::vector<uint32_t>& slots) {
  const Draft& from = draft(index);
  Region& r = region(from.region);
  Op& op = r.ops[op_of_[index]];
  const bool is_only = WaitsForOne(from);
  if (is_only && op.num_inputs == 1 && !from.inputs[0].is_constant()) {
    op.inputs = InputsIn::kItem;
    return;
  }
  bool is_in_order = slots.size() == op.num_inputs;
  for (size_t i = 1; i < slots.size(); ++i) is_in_order = is_in_order && slots[i] == slots[0] + i;
  if (is_in_order) return;
  op.inputs = is_only ? InputsIn::kItemTable : InputsIn::kTable;
  op.slot = static_cast<uint32_t>(r.inputs.size());
  op.only = op.num_inputs;
  size_t next = 0;
  for (uint16_t i = 0; i < op.num_inputs; ++i) {
    const Input& input = from.inputs[i];
    r.inputs.push_back(input.is_constant() ? ConstantValue(input.constant) : Value::Empty());
    if (input.is_constant()) continue;
    if (is_only) {
      op.only = i;
    } else {
      r.inputs.back().position = slots[next++];
    }
  }
}

// An argument that goes on to calls as it came, and is read here too, stays with the first frame that
// got it; everything below borrows. Weights and arrays that a recursion passes down unchanged, captured
// or not, then cost no reference count. Others keep moving from hand to hand, so that a tensor goes as
// soon as its last reader has it.
void Assembler::FindLendingSlots(Region* r) {
  if (!r->is_function()) return;
  for (uint32_t entry : r->entries) {
    if (entry == kNone || IsNumber(*draft(static_cast<int>(draft_of_[r->id][entry])).node, builder_.memory())) continue;
    uint32_t readers = 0;
    bool goes_on = false;
    std::vector<const Port*> ports = {&r->ports[r->ops[entry].port]};
    while (!ports.empty()) {
      const Port* port = ports.back();
      ports.pop_back();
      for (uint32_t e = port->begin; e < port->controls; ++e) {
        const Op& reader = r->ops[r->edges[e].op];
        if (r->edges[e].kind == EdgeKind::kGate) {
          ports.push_back(&r->ports[reader.port]);
          ports.push_back(&r->ports[reader.port + 1]);
        } else {
          ++readers;
          goes_on = goes_on || r->edges[e].kind == EdgeKind::kSiteArgument;
        }
      }
    }
    if (goes_on && readers > 1) r->ops[entry].lending_slot = r->num_slots++;
  }
}

void Assembler::SetSlot(Region* r, uint32_t slot, const Value& value) {
  std::memcpy(r->frame_template.data() + slot * sizeof(Value), &value, sizeof(Value));
}

Value Assembler::ConstantValue(int constant) const {
  const Tensor& tensor = program_->constants[constant].tensor;
  const bool unboxed = tensor.dims() == 0 && IsUnboxed(tensor.dtype()) && program_->constants[constant].is_on_host;
  return unboxed ? ScalarFromTensor(tensor) : Value::Constant(&tensor);
}

void Assembler::MakeTemplates() {
  for (Region& r : program_->regions) {
    const std::vector<uint16_t>& pending = pending_[r.id];
    r.frame_template.assign(r.num_slots * sizeof(Value) + pending.size() * sizeof(uint16_t), 0);
    for (uint32_t slot = 0; slot < r.num_slots; ++slot) SetSlot(&r, slot, Value::Empty());
    for (const Prefilled& constant : prefilled_[r.id]) SetSlot(&r, constant.slot, ConstantValue(constant.constant));
    if (!pending.empty()) {
      std::memcpy(r.frame_template.data() + r.num_slots * sizeof(Value), pending.data(),
                  pending.size() * sizeof(uint16_t));
    }
    for (uint32_t op = 0; op < r.num_firing; ++op) {
      if (r.ops[op].num_tokens == 0) r.sources.push_back(op);
    }
  }
}

// Follows dead edges to what must be told of the death; everything in between just never fires.
class DeathWalk {
 public:
  explicit DeathWalk(const Region& region) : region_(region) {}

  void KillPort(const Port& port) {
    for (uint32_t e = port.begin; e < port.end; ++e) edges_.push_back(e);
  }
  void KillOp(const Op& op) {
    for (int i = 0; i <= op.num_ports; ++i) KillPort(region_.ports[op.port + i]);
  }

  std::vector<DeathEvent> Finish() {
    while (!edges_.empty()) {
      const Edge& edge = region_.edges[edges_.back()];
      edges_.pop_back();
      Follow(edge);
    }
    std::vector<DeathEvent> events = std::move(results_);
    for (const auto& [op, inputs] : partial_) {
      if (dead_.count(op) > 0) continue;
      for (uint16_t input : inputs) events.push_back({EventKind(region_.ops[op].kind), input, op});
    }
    return events;
  }

 private:
  static DeathEvent::Kind EventKind(OpKind kind) {
    if (kind == OpKind::kMerge) return DeathEvent::Kind::kMerge;
    if (kind == OpKind::kUnion) return DeathEvent::Kind::kUnion;
    return DeathEvent::Kind::kSiteArgument;
  }

  void Die(uint32_t op) {
    if (!dead_.insert(op).second) return;
    const Op& of = region_.ops[op];
    KillOp(of);
    if (of.kind != OpKind::kBranch) return;
    // No edge leads from a branch to its gates: they look its predicate up.
    for (uint32_t i = of.index; i < of.gates_end; ++i) Die(region_.gates[i]);
  }

  void Follow(const Edge& edge) {
    const Op& op = region_.ops[edge.op];
    switch (op.kind) {
      case OpKind::kResult:
        if (dead_.insert(edge.op).second) {
          results_.push_back({DeathEvent::Kind::kResult, static_cast<uint16_t>(op.index), edge.op});
        }
        return;
      case OpKind::kUnion:
        partial_[edge.op].insert(edge.index);
        return;
      case OpKind::kSend:
        if (dead_.insert(edge.op).second) results_.push_back({DeathEvent::Kind::kInput, 0, edge.op});
        return;
      case OpKind::kLoopStart:
        if (!op.takes_dead) return Die(edge.op);
        results_.push_back({DeathEvent::Kind::kInput, edge.index, edge.op});
        return;
      case OpKind::kLoopNext:
        if (op.takes_dead) results_.push_back({DeathEvent::Kind::kInput, edge.index, edge.op});
        return;
      case OpKind::kMerge:
      case OpKind::kSite: {
        if (edge.kind == EdgeKind::kControl) return Die(edge.op);
        std::set<uint16_t>& inputs = partial_[edge.op];
        inputs.insert(edge.index);
        if (inputs.size() == Live(edge.op)) Die(edge.op);
        return;
      }
      default:
        Die(edge.op);
    }
  }

  // Inputs that come as tokens: all of a merge, the ones of a site that are no constants.
  size_t Live(uint32_t op) const {
    const Op& of = region_.ops[op];
    return of.kind == OpKind::kMerge ? of.num_inputs : of.num_tokens;
  }

  const Region& region_;
  std::vector<uint32_t> edges_;
  std::set<uint32_t> dead_;
  std::map<uint32_t, std::set<uint16_t>> partial_;
  std::vector<DeathEvent> results_;
};

void Assembler::FindDeaths(Region* r) {
  r->port_deaths.resize(r->ports.size());
  auto record = [&](uint32_t port, DeathWalk walk) {
    const std::vector<DeathEvent> events = walk.Finish();
    r->port_deaths[port].begin = static_cast<uint32_t>(r->deaths.size());
    r->deaths.insert(r->deaths.end(), events.begin(), events.end());
    r->port_deaths[port].end = static_cast<uint32_t>(r->deaths.size());
  };
  // Switches by the branch on their predicate: they die with its sides.
  std::map<uint32_t, std::vector<uint32_t>> switches;
  for (size_t i = 0; i < builder_.drafts.size(); ++i) {
    const bool is_switch = draft(i).kind == OpKind::kSwitch || draft(i).kind == OpKind::kGate;
    if (!is_switch || draft(i).region != static_cast<int>(r->id)) continue;
    switches[op_of_[static_cast<int>(draft(i).index)]].push_back(op_of_[i]);
  }
  for (uint32_t index = 0; index < r->ops.size(); ++index) {
    const Op& op = r->ops[index];
    const bool any_port = op.kind == OpKind::kBranch || op.kind == OpKind::kSwitchN || op.kind == OpKind::kSite ||
                          op.kind == OpKind::kEntry || (op.kind == OpKind::kLoopStart && op.takes_dead) ||
                          op.may_be_dead;
    for (uint32_t port = 0; any_port && port < op.num_ports; ++port) {
      DeathWalk walk(*r);
      walk.KillPort(r->ports[op.port + port]);
      if (op.kind == OpKind::kBranch) {
        for (uint32_t of : switches[index]) walk.KillPort(r->ports[r->ops[of].port + port]);
      }
      record(op.port + port, std::move(walk));
    }
    const bool whole =
        op.kind == OpKind::kMerge || op.kind == OpKind::kSite || op.kind == OpKind::kLoopStart || op.may_be_dead;
    if (!whole) continue;
    DeathWalk walk(*r);
    walk.KillOp(op);
    record(op.port + op.num_ports, std::move(walk));
  }
}

absl::Status ReadOptions(const tensorflow::Graph& graph, Program* program) {
  for (const Node* node : graph.op_nodes()) {
    if (node->type_string() != kFrameStartOp) continue;
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), kMaxDepthAttr, &program->options.max_depth));
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), kWorkersAttr, &program->options.workers));
    if (program->options.max_depth < 1) {
      return InvalidArgument("Node '", node->name(), "': max_depth must be at least 1, got ",
                             program->options.max_depth);
    }
    break;
  }
  return absl::OkStatus();
}

absl::Status CheckBoundary(const Program& program) {
  for (const auto* types : {&program.argument_types, &program.retval_types}) {
    for (size_t i = 0; i < types->size(); ++i) {
      if ((*types)[i] == tensorflow::DT_INVALID)
        return InvalidArgument("Argument or result ", i, " of the graph is missing");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BuildProgram(const tensorflow::Graph& graph, const DeviceMemory& memory,
                          std::unique_ptr<Program>* program) {
  auto result = std::make_unique<Program>();
  GraphRegions regions;
  TFR_RETURN_IF_ERROR(memory.Verify(graph));
  TFR_RETURN_IF_ERROR(ReadOptions(graph, result.get()));
  TFR_RETURN_IF_ERROR(regions.Build(graph));
  DraftBuilder builder(graph, regions, memory, result.get());
  TFR_RETURN_IF_ERROR(builder.Build());
  Liveness liveness(&builder);
  TFR_RETURN_IF_ERROR(liveness.Simplify());
  Assembler assembler(regions, &builder, result.get());
  TFR_RETURN_IF_ERROR(assembler.Run());
  TFR_RETURN_IF_ERROR(CheckBoundary(*result));
  *program = std::move(result);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
