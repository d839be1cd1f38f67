// SPDX-License-Identifier: Apache-2.0
#include "cc/program/frame_layout.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cc/program/firing.h"
#include "cc/program/slots.h"

namespace tensorflow_recursion {
namespace {

using SlotKind = SlotRequest::Kind;

// How many slots hold one bit for each of `inputs`.
uint32_t MaskSlots(size_t inputs) { return static_cast<uint32_t>((inputs + 63) / 64); }

// How many slots the start of a loop has: one for each variable, and in a partial loop those for a bit for each Exit.
uint32_t StartSlots(const FlowNode& start, const Op& op) {
  return op.num_inputs + (start.is_partial ? MaskSlots(op.num_ports) : 0);
}

SlotRequest RequestOfSite(NodeId id, const FlowNode& node, const FlowCallSite& site) {
  SlotRequest request{id, /*is_block=*/true, {}};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const SlotKind kind = node.inputs[i].is_constant() ? SlotKind::kAlone : SlotKind::kArgument;
    request.items.push_back({kind, static_cast<int>(i)});
  }
  // The executor looks for what another device says before anything else of the call has come.
  if (site.join != nullptr) request.items.back().kind = SlotKind::kAlone;
  return request;
}

// The slots of an operator that takes its inputs when it fires: one for each input that comes as a token.
SlotRequest RequestOfInputs(NodeId id, const FlowNode& node) {
  SlotRequest request{id, /*is_block=*/false, {}};
  // An operator with several outputs delivers some of its inputs while the others still lie in their slots.
  const bool is_alone = node.kind == OpKind::kPass && node.num_ports > 1;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].is_token()) continue;
    request.items.push_back({is_alone ? SlotKind::kAlone : SlotKind::kInput, static_cast<int>(i)});
  }
  return request;
}

// The slots that the node's operator needs of its own.
SlotRequest RequestOf(NodeId id, const Layout& layout) {
  const FlowNode& node = layout.flow.nodes[id];
  const Op& op = layout.OpOf(id);
  SlotRequest request{id, /*is_block=*/true, {}};
  auto add = [&](uint32_t count, SlotKind kind) { request.items.resize(count, {kind, 0}); };
  switch (node.kind) {
    case OpKind::kMerge:  // says which inputs are dead, until the value comes
      if (!op.lets_first_through) add(std::max(1u, MaskSlots(op.num_inputs)), SlotKind::kAlone);
      return request;
    case OpKind::kGate:
      add(1, node.inputs[0].is_constant() ? SlotKind::kAlone : SlotKind::kGate);
      return request;
    case OpKind::kUnion:  // says which inputs have come, dead or alive
      add(MaskSlots(op.num_inputs), SlotKind::kAlone);
      return request;
    case OpKind::kLoopStart:
      add(StartSlots(node, op), SlotKind::kAlone);
      return request;
    case OpKind::kLoopNext:
    case OpKind::kSend:  // is told of a death in its slot
      add(op.num_inputs, SlotKind::kAlone);
      return request;
    case OpKind::kCallSite:
      return RequestOfSite(id, node, layout.flow.SiteOf(node));
    default:
      return Fires(node.kind) && !WaitsForOne(node) ? RequestOfInputs(id, node) : request;
  }
}

Value ConstantOf(const Layout& layout, ConstantId id) { return ValueOfConstant(layout.program->constants[id]); }

// What a table of inputs says of an input, but for the slot of one that waits.
Value TableEntryOf(const Layout& layout, const Input& input) {
  if (input.is_invariant()) return InvariantEntry(input.invariant);
  return input.is_constant() ? ConstantOf(layout, input.constant) : Value::Empty();
}

// Whether calls get the argument as it came, and somebody else reads it in the frame.
bool IsReadHereAndPassed(const Region& region, const Op& entry) {
  uint32_t num_readers = 0;
  bool is_passed = false;
  std::vector<const Port*> ports = {&region.ports[entry.port]};
  while (!ports.empty()) {
    const Port* const port = ports.back();
    ports.pop_back();
    for (uint32_t e = port->begin; e < port->controls; ++e) {
      const Edge& edge = region.edges[e];
      if (edge.kind == EdgeKind::kGate) {  // its readers count, on both sides
        const PortId gate = region.ops[edge.op].port;
        ports.insert(ports.end(), {&region.ports[gate], &region.ports[gate + 1]});
      } else {
        ++num_readers;
        is_passed = is_passed || edge.kind == EdgeKind::kCallArgument;
      }
    }
  }
  return is_passed && num_readers > 1;
}

// Makes what a frame is a copy of when it has just been opened.
class FrameTemplate {
 public:
  // Lets the slot hold `constant` from the beginning.
  void Prefill(uint32_t slot, const Value& constant) { prefilled_.push_back({slot, constant}); }

  // Writes the slots, which have all been placed, and behind them the pending counts.
  void Write(Region* region) const {
    std::vector<unsigned char>& bytes = region->frame_template;
    bytes.assign(region->num_slots * sizeof(Value) + region->num_counted * sizeof(uint16_t), 0);
    const auto set = [&bytes](uint32_t slot, const Value& value) {
      std::memcpy(bytes.data() + slot * sizeof(Value), &value, sizeof(Value));
    };
    for (uint32_t slot = 0; slot < region->num_slots; ++slot) set(slot, Value::Empty());
    for (const Prefilled& prefilled : prefilled_) set(prefilled.slot, prefilled.constant);
    unsigned char* const counts = bytes.data() + region->num_slots * sizeof(Value);
    for (uint32_t index = 0; index < region->num_counted; ++index) {
      const uint16_t pending = PendingOf(region->ops[index]);
      std::memcpy(counts + index * sizeof(pending), &pending, sizeof(pending));
    }
  }

 private:
  struct Prefilled {
    uint32_t slot;
    Value constant;
  };

  // The counts of some branches and merges say what has been decided, which is nothing yet: see kMergeDecided.
  static uint16_t PendingOf(const Op& op) {
    const bool is_counted = op.kind != OpKind::kBranch && !op.lets_first_through;
    return is_counted ? static_cast<uint16_t>(op.num_tokens) : 0;
  }

  std::vector<Prefilled> prefilled_;
};

// Lays out the frames of one region.
class FrameLayout {
 public:
  FrameLayout(Layout* layout, RegionId id)
      : layout_(*layout), flow_(layout->flow), id_(id), region_(layout->RegionOf(id)) {}

  void Run() {
    PlaceSlots();
    PlaceTag();
    PlaceInvariants();
    SetSlotsOfEdges();
    FindLendingSlots();
    template_.Write(&region_);
    FindSources();
  }

 private:
  void PlaceSlots() {
    SlotPlanner planner(flow_, id_, layout_.nodes_of[id_]);
    std::vector<SlotRequest> requests;
    for (NodeId node : layout_.nodes_of[id_]) requests.push_back(RequestOf(node, layout_));
    planner.Sort(&requests);
    for (const SlotRequest& request : requests) TakeSlots(request, planner.Place(request));
    region_.num_slots = planner.num_slots();
  }

  void TakeSlots(const SlotRequest& request, const std::vector<uint32_t>& slots) {
    const FlowNode& node = flow_.nodes[request.node];
    Op& op = layout_.OpOf(request.node);
    if (!slots.empty()) op.slot = slots[0];
    if (Fires(node.kind) && (WaitsForOne(node) || !request.is_block)) return MakeTable(node, slots, &op);
    // Calls, loops and gates find constants in their slots, too.
    if (node.kind == OpKind::kMerge || node.kind == OpKind::kUnion) return;
    const size_t num_placed = node.kind == OpKind::kGate ? 1 : node.inputs.size();
    for (size_t i = 0; i < num_placed; ++i) {
      if (!node.inputs[i].is_constant()) continue;
      template_.Prefill(op.slot + static_cast<uint32_t>(i), ConstantOf(layout_, node.inputs[i].constant));
    }
  }

  // Says where the operator finds its inputs. Those that wait are in `slots`.
  void MakeTable(const FlowNode& node, const std::vector<uint32_t>& slots, Op* op) {
    const bool is_only = WaitsForOne(node);
    if (is_only && op->num_inputs == 1 && node.inputs[0].is_token()) {
      op->inputs = InputsIn::kArrival;
      return;
    }
    bool is_in_order = slots.size() == op->num_inputs;
    for (size_t i = 1; i < slots.size(); ++i) is_in_order = is_in_order && slots[i] == slots[0] + i;
    if (is_in_order) return;
    op->inputs = is_only ? InputsIn::kTableAndArrival : InputsIn::kTable;
    op->slot = static_cast<uint32_t>(region_.inputs.size());
    op->arriving_input = op->num_inputs;
    size_t next = 0;
    for (uint16_t i = 0; i < op->num_inputs; ++i) {
      const Input& input = node.inputs[i];
      region_.inputs.push_back(TableEntryOf(layout_, input));
      if (!input.is_token()) continue;
      if (is_only) {
        op->arriving_input = i;
      } else {
        region_.inputs.back().position = slots[next++];
      }
    }
  }

  void PlaceTag() {
    if (!flow_.crosses_devices) return;
    region_.tag_slot = SlotId(region_.num_slots);
    region_.num_slots += 2;
  }

  void PlaceInvariants() {
    const auto function = flow_.functions.find(flow_.regions.FunctionRegionOf(id_));
    if (function == flow_.functions.end() || function->second.num_invariants == 0) return;
    region_.invariants_slot = SlotId(region_.num_slots++);
    if (region_.is_function()) region_.num_invariants = function->second.num_invariants;
    const size_t first = region_.first_invariant();
    for (size_t i = first; region_.is_function() && i < region_.entries.size(); ++i) {
      if (region_.entries[i] != kNone) region_.delivered_invariants.push_back(static_cast<uint32_t>(i - first));
    }
  }

  void SetSlotsOfEdges() {
    for (Edge& edge : region_.edges) {
      const Op& op = region_.ops[edge.op];
      if (edge.kind == EdgeKind::kOnly || edge.kind == EdgeKind::kControl || edge.kind == EdgeKind::kUnion) continue;
      edge.slot = SlotOfInput(op, edge.index);
    }
  }

  SlotId SlotOfInput(const Op& op, uint16_t index) const {
    if (op.kind == OpKind::kMerge || op.kind == OpKind::kGate) return SlotId(op.slot);
    return SlotId(op.inputs == InputsIn::kTable ? region_.inputs[op.slot + index].position : op.slot + index);
  }

  // An argument that goes on to calls as it came, and is read here too, stays in a slot of the first frame that got it,
  // and all frames below borrow it. Weights and arrays that a recursion passes down unchanged, captured or not, then
  // cost no reference count. Other arguments move from frame to frame, so that a tensor goes as soon as its last reader
  // has it.
  void FindLendingSlots() {
    if (!region_.is_function()) return;
    for (size_t i = 0; i < region_.first_invariant(); ++i) {
      const OpId entry = region_.entries[i];
      if (entry == kNone || flow_.nodes[layout_.nodes_of[id_][entry]].is_number) continue;
      Op& op = region_.ops[entry];
      if (IsReadHereAndPassed(region_, op)) op.lending_slot = SlotId(region_.num_slots++);
    }
  }

  void FindSources() {
    for (uint32_t op = 0; op < region_.num_firing; ++op) {
      if (region_.ops[op].num_tokens == 0) region_.sources.emplace_back(op);
    }
  }

  Layout& layout_;
  const FlowGraph& flow_;
  const RegionId id_;
  Region& region_;
  FrameTemplate template_;
};

}  // namespace

void PlaceFrames(Layout* layout) {
  for (RegionId region : layout->flow.regions.regions().ids()) FrameLayout(layout, region).Run();
}

}  // namespace tensorflow_recursion
