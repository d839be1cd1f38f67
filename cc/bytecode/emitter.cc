// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/emitter.h"

#include <algorithm>

#include "cc/base/names.h"
#include "cc/bytecode/loop_variables.h"
#include "cc/bytecode/operator_steps.h"
#include "cc/values/scalar_operators.h"
#include "cc/values/scalar_ops.h"

namespace tensorflow_recursion {

namespace {

// Conditionals in conditionals beyond this are no small recursive functions; each takes some C++ stack here.
constexpr int kDeepestNesting = 100;

}  // namespace

Emitter::Emitter(CompileContext* context, RegionId function)
    : context_(*context), flow_(context->flow), blocks_(*context->blocks), function_(function) {}

bool Emitter::Run(FunctionSteps* steps) {
  steps_ = steps;
  const FlowFunction& function = flow_.functions.at(function_);
  for (NodeId entry : function.entries) {
    steps->arguments.push_back(steps->NewVirtual());
    if (entry != kNone) Define(entry, 0, {steps->arguments.back()});
  }
  FindOrder();
  FindParts();
  EmitBlock(blocks_.OfRegion(function_), all_);
  if (failed_ || emitted_ != all_) return false;
  EmitReturn();
  return true;
}

// --- The order ------------------------------------------------------------------------------------

// Depth first from the results: what a node reads comes right before it. What no result depends on comes last.
void Emitter::FindOrder() {
  sorted_ = context_.nodes[function_];
  const auto is_end = [&](NodeId id) {
    const OpKind kind = flow_.nodes[id].kind;
    return kind == OpKind::kResult || kind == OpKind::kExit || kind == OpKind::kLoopNext;
  };
  std::vector<NodeId> pending;
  for (const bool ends : {false, true}) {  // the last is looked at first
    for (NodeId id : sorted_) {
      if (is_end(id) == ends) pending.push_back(id);
    }
  }
  NodeSet seen;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    if (all_.count(id) > 0) {
      pending.pop_back();
    } else if (!seen.insert(id).second) {  // all that it reads has its place
      pending.pop_back();
      all_.insert(id);
      nodes_[blocks_.of(id)].push_back(id);
    } else {
      std::vector<NodeId> sources;
      ForEachSource(flow_.nodes[id], [&](const Source& source) {
        if (seen.count(source.node) == 0) sources.push_back(source.node);
      });
      pending.insert(pending.end(), sources.rbegin(), sources.rend());
    }
  }
}

// Emits what there is of the block and of `allowed`; whether that was anything.
bool Emitter::EmitBlock(BlockId block, const NodeSet& allowed) {
  bool any = false;
  while (!failed_ && (EmitNodes(block, allowed) || EmitConditional(block, allowed))) any = true;
  return any;
}

bool Emitter::EmitNodes(BlockId block, const NodeSet& allowed) {
  bool any = false;
  for (NodeId id : nodes_[block]) {
    const OpKind kind = flow_.nodes[id].kind;
    const bool comes_with_conditional = kind == OpKind::kMerge || kind == OpKind::kLoopNext;
    if (comes_with_conditional || emitted_.count(id) > 0 || allowed.count(id) == 0 || !IsReady(id, {})) continue;
    Emit(id);
    emitted_.insert(id);
    any = true;
  }
  return any;
}

// Control inputs order effects, of which there are none.
bool Emitter::IsReady(NodeId id, const NodeSet& also) const {
  const std::vector<Input>& inputs = flow_.nodes[id].inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](const Input& input) {
    return input.is_constant() || emitted_.count(input.source.node) > 0 || also.count(input.source.node) > 0 ||
           values_.count({input.source.node, input.source.port}) > 0;
  });
}

// Takes a conditional that can be emitted as a whole if there is one. Two conditionals on the same condition are one
// branch; if the second reads what the first makes, it is emitted in parts. The test of a loop comes last: behind it is
// the next iteration.
bool Emitter::EmitConditional(BlockId block, const NodeSet& allowed) {
  enum Rank { kNothing, kTest, kPart, kWhole };
  Rank best = kNothing;
  NodeId chosen;
  NodeSet possible;
  for (auto at = parts_.lower_bound({block, NodeId(0)}); at != parts_.end() && at->first.first == block; ++at) {
    const NodeId branch = at->first.second;
    if (best == kWhole) break;
    if (at->second.empty() || emitted_.count(branch) == 0) continue;
    bool has_all = false;
    NodeSet part = PossibleIn(block, &at->second, allowed, &has_all);
    if (part.empty()) continue;
    const Rank rank = IsTestOfLoop(block, branch) ? kTest : has_all ? kWhole : kPart;
    if (rank <= best) continue;
    best = rank;
    chosen = branch;
    possible = std::move(part);
  }
  if (best == kNothing) return false;
  FailBehindLoop(block);
  if (best == kTest) {
    EmitTest(block, chosen, possible);
  } else {
    EmitSides(block, chosen, possible);
  }
  return true;
}

void Emitter::FindParts() {
  for (NodeId id : sorted_) {
    BlockId block = blocks_.of(id);
    if (flow_.nodes[id].kind == OpKind::kMerge) parts_[{block, blocks_.BranchOfMerge(id)}].push_back(id);
    for (; !blocks_.IsWhole(block); block = blocks_[block].parent) {
      parts_[{blocks_[block].parent, blocks_[block].branch}].push_back(id);
    }
  }
}

// What of the conditional can be emitted now, its merges included. Those have no value before its end, so what reads
// one, though it is on a side, has to wait for another part.
Emitter::NodeSet Emitter::PossibleIn(BlockId block, std::vector<NodeId>* part, const NodeSet& allowed, bool* has_all) {
  NodeSet on_sides;
  NodeSet merges;
  *has_all = true;
  part->erase(std::remove_if(part->begin(), part->end(), [&](NodeId id) { return emitted_.count(id) > 0; }),
              part->end());
  for (NodeId id : *part) {
    if (allowed.count(id) > 0 && IsReady(id, on_sides)) {
      (blocks_.of(id) == block ? merges : on_sides).insert(id);
    } else {
      *has_all = false;
    }
  }
  on_sides.insert(merges.begin(), merges.end());
  return on_sides;
}

bool Emitter::IsTestOfLoop(BlockId block, NodeId branch) const {
  if (loops_.empty() || !blocks_.IsWhole(block) || blocks_[block].region != loops_.back().loop->region) return false;
  return blocks_[blocks_.of(loops_.back().loop->next)].branch == branch;
}

void Emitter::EmitSides(BlockId block, NodeId branch, const NodeSet& possible) {
  std::vector<NodeId> merges;
  for (NodeId id : nodes_[block]) {
    if (possible.count(id) > 0 && flow_.nodes[id].kind == OpKind::kMerge) merges.push_back(id);
  }
  for (NodeId merge : merges) Define(merge, 0, {steps_->NewVirtual()});
  const FlowNode& node = flow_.nodes[branch];
  const LabelId end = steps_->NewLabel();
  std::vector<LabelId> sides;
  for (int i = 0; i < node.num_ports; ++i) sides.push_back(steps_->NewLabel());
  const bool is_case = node.kind == OpKind::kSwitchN;
  const VirtualId condition = Register(ValueOf(node.inputs[is_case ? 1 : 0]));
  if (is_case) {
    Step& step = Add(Opcode::kCase);
    step.operands = {condition};
    step.labels = sides;
  } else {
    Step& step = Add(Opcode::kUnless);
    step.operands = {condition};
    step.labels = {sides[0]};
  }
  // Of a condition, what runs if it holds comes first.
  for (int i = 0; i < node.num_ports; ++i) {
    const int side = is_case ? i : 1 - i;
    Bind(sides[side]);
    EmitSide(block, branch, side, possible, merges);
    AddJump(end);
  }
  Bind(end);
  emitted_.insert(merges.begin(), merges.end());
}

void Emitter::EmitSide(BlockId block, NodeId branch, int side, const NodeSet& possible,
                       const std::vector<NodeId>& merges) {
  const BlockId inside = blocks_.FindSide(block, branch, side);
  failed_ = failed_ || nesting_ >= kDeepestNesting;
  ++nesting_;
  if (inside != kNone) EmitBlock(inside, possible);
  --nesting_;
  for (NodeId merge : merges) {
    for (const Input& input : flow_.nodes[merge].inputs) {
      if (blocks_.OfSource(input.source) != inside) continue;
      AddMove(values_.at({merge, 0}).value, ValueOf(input));
    }
  }
}

// If the condition does not hold the code goes on behind the loop, with what that side lets out.
void Emitter::EmitTest(BlockId block, NodeId branch, const NodeSet& possible) {
  const LabelId behind = steps_->NewLabel();
  const VirtualId condition = Register(ValueOf(flow_.nodes[branch].inputs[0]));
  Step& test = Add(Opcode::kUnless);
  test.operands = {condition};
  test.labels = {behind};
  EmitSide(block, branch, 1, possible, {});
  emitted_.insert(loops_.back().loop->next);
  EmitRepeat();
  Bind(behind);
  EmitSide(block, branch, 0, possible, {});
  loops_.back().is_closed = true;
}

// What belongs into every iteration must stand before the test: behind it, it would run once.
void Emitter::FailBehindLoop(BlockId block) {
  const bool is_behind = !loops_.empty() && loops_.back().is_closed && blocks_.IsWhole(block) &&
                         blocks_[block].region == loops_.back().loop->region;
  failed_ = failed_ || is_behind;
}

// --- Nodes ------------------------------------------------------------------------------------------

void Emitter::Emit(NodeId id) {
  FailBehindLoop(blocks_.of(id));
  const FlowNode& node = flow_.nodes[id];
  switch (node.kind) {
    case OpKind::kScalar:
      return EmitOperator(id);
    case OpKind::kKernel:
      if (const auto read = context_.reads.reads.find(id); read != context_.reads.reads.end()) {
        return EmitRead(id, read->second);
      }
      return;  // or it packs indices, which the read takes by themselves
    case OpKind::kPass:
      for (int port = 0; port < node.num_ports; ++port) Define(id, port, ValueOf(node.inputs[port]));
      return;
    case OpKind::kBranch:
    case OpKind::kSwitch:
    case OpKind::kSwitchN:
      return DefineAll(id, ValueOf(node.inputs[0]));
    case OpKind::kCallSite:
      return EmitCall(id);
    case OpKind::kLoopStart:
      return EmitLoop(id);
    case OpKind::kResult:
      results_[static_cast<int>(node.index)] = ValueOf(node.inputs[0]);
      return;
    case OpKind::kExit:
      failed_ = failed_ || !IsTestOfLoop(blocks_[blocks_.of(id)].parent, blocks_[blocks_.of(id)].branch);
      loops_.back().exits[static_cast<int>(node.index)] = ValueOf(node.inputs[0]);
      return;
    default:
      return;  // entries have their values; nothing waits for anything
  }
}

void Emitter::EmitOperator(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const KernelNode& kernel = flow_.kernels[node.index];
  if (const auto read = context_.reads.reads.find(id); read != context_.reads.reads.end()) {
    return EmitRead(id, read->second);
  }
  const bool keeps = kernel.op == "Squeeze" || kernel.op == "EnsureShape" ||
                     (kernel.op == "Cast" && kernel.inputs[0] == kernel.outputs[0]);
  if (keeps) return Define(id, 0, ValueOf(node.inputs[0]));
  if (!EmitBinary(id, kernel) && !EmitLogic(id, kernel)) EmitApply(id, kernel);
}

bool Emitter::EmitBinary(NodeId id, const KernelNode& kernel) {
  const auto found = FindBinaryInstructions(kernel.op, kernel.inputs[0]);
  if (!found || kernel.inputs.size() != 2) return false;
  Operand x = ValueOf(flow_.nodes[id].inputs[0]);
  Operand y = ValueOf(flow_.nodes[id].inputs[1]);
  Opcode with_constant = found->with_constant;
  if (x.is_constant() && !y.is_constant() && (found->is_commutative || found->swapped)) {
    std::swap(x, y);
    if (found->swapped) with_constant = *found->swapped;
  }
  const VirtualId first = Register(x);
  const VirtualId second = y.is_constant() ? VirtualId() : Register(y);
  Step& step = Add(second == kNone ? with_constant : found->of_registers);
  step.operands = {first};
  if (second == kNone) {
    step.constant = y.constant;
  } else {
    step.operands.push_back(second);
  }
  step.results = {steps_->NewVirtual()};
  if (found->may_be_special) AddKernel(&step, flow_.nodes[id]);
  Define(id, 0, {step.results[0]});
  return true;
}

bool Emitter::EmitLogic(NodeId id, const KernelNode& kernel) {
  static const auto* opcodes = new std::map<std::string, Opcode>{
      {"LogicalAnd", Opcode::kLogicalAnd}, {"LogicalOr", Opcode::kLogicalOr}, {"LogicalNot", Opcode::kLogicalNot}};
  const auto opcode = opcodes->find(kernel.op);
  if (opcode == opcodes->end()) return false;
  std::vector<VirtualId> operands;
  for (const Input& input : flow_.nodes[id].inputs) operands.push_back(Register(ValueOf(input)));
  Step& step = Add(opcode->second);
  step.operands = std::move(operands);
  step.results = {steps_->NewVirtual()};
  Define(id, 0, {step.results[0]});
  return true;
}

void Emitter::EmitApply(NodeId id, const KernelNode& kernel) {
  std::vector<VirtualId> operands;
  for (const Input& input : flow_.nodes[id].inputs) operands.push_back(Register(ValueOf(input)));
  Step& step = Add(Opcode::kApply);
  step.operands = std::move(operands);
  step.target =
      context_.builder->Operator(kernel.op, FindScalarOperator(kernel.op, kernel.inputs, kernel.outputs).on_numbers);
  step.results = {steps_->NewVirtual()};
  AddKernel(&step, flow_.nodes[id]);
  Define(id, 0, {step.results[0]});
}

void Emitter::EmitRead(NodeId id, const ElementRead& read) {
  std::vector<VirtualId> operands = {Register(ValueOf(read.array))};
  for (const ElementIndex& index : read.indices) {
    operands.push_back(Register(index.known ? Operand{kNone, *index.known} : ValueOf(index.input)));
  }
  Step& step = Add(Opcode::kElementAt);
  step.operands = std::move(operands);
  step.target = read.access.Encode();
  step.results = {steps_->NewVirtual()};
  // The kernel of a StridedSlice reads packed bounds, which are not there: what is special runs without compiled code.
  if (flow_.nodes[id].kind == OpKind::kScalar) {
    AddKernel(&step, flow_.nodes[id]);
    step.kernel_operands[0] = {step.operands[0], 0, /*is_array=*/true};
  }
  Define(id, 0, {step.results[0]});
}

void Emitter::AddKernel(Step* step, const FlowNode& node) {
  step->kernel = flow_.kernels[node.index].id;
  for (const Input& input : node.inputs) {
    const Operand operand = ValueOf(input);
    step->kernel_operands.push_back({operand.value, operand.constant, /*is_array=*/false});
  }
}

void Emitter::EmitCall(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const FlowCallSite& site = flow_.SiteOf(node);
  const RegionId callee = flow_.CalleeOf(node);
  std::vector<VirtualId> window;
  std::vector<std::pair<VirtualId, Operand>> moves;
  for (const Input& input : node.inputs) {
    window.push_back(steps_->NewVirtual(/*in_window=*/true));
    moves.emplace_back(window.back(), ValueOf(input));
  }
  AddMoves(moves);
  Step& call = Add(Opcode::kCall);
  call.operands = std::move(window);
  call.target = context_.functions.at(callee);
  call.site = site.name;
  call.callee = UserName(site.callee);
  const int num_results = flow_.functions.at(callee).num_results();
  std::vector<VirtualId> results;
  for (int i = 0; i < num_results; ++i) results.push_back(steps_->NewVirtual(/*in_window=*/num_results > 1));
  call.results = results;
  moves.clear();
  for (int i = 0; i < num_results; ++i) {
    const VirtualId kept = num_results > 1 ? steps_->NewVirtual() : results[i];
    if (num_results > 1) moves.emplace_back(kept, Operand{results[i]});
    Define(id, i, {kept});
  }
  AddMoves(moves);
}

void Emitter::EmitLoop(NodeId id) {
  const FlowLoop& loop = flow_.loops[flow_.nodes[id].index];
  std::vector<std::pair<VirtualId, Operand>> starts;
  for (const LoopVariable& variable : VariablesOf(flow_, loop)) {
    const Operand start = ValueOf(variable.start);
    if (!variable.next) {
      Define(variable.entry, 0, start);
      continue;
    }
    starts.emplace_back(steps_->NewVirtual(), start);
    Define(variable.entry, 0, {starts.back().first});
  }
  AddMoves(starts);
  loops_.emplace_back(++num_loops_, &loop, steps_->NewLabel());
  Bind(loops_.back().begin);
  EmitBlock(blocks_.OfRegion(loop.region), all_);
  failed_ = failed_ || !loops_.back().is_closed;
  for (const auto& [index, value] : loops_.back().exits) Define(id, index, value);
  loops_.pop_back();
}

void Emitter::EmitRepeat() {
  std::vector<std::pair<VirtualId, Operand>> moves;
  for (const LoopVariable& variable : VariablesOf(flow_, *loops_.back().loop)) {
    if (!variable.next) continue;
    const VirtualId value = values_.at({variable.entry, 0}).value;
    const Operand next = ValueOf(*variable.next);
    if (next.is_constant() || next.value != value) moves.emplace_back(value, next);
  }
  AddMoves(moves);
  Step& repeat = Add(Opcode::kRepeat);
  repeat.labels = {loops_.back().begin};
}

void Emitter::EmitReturn() {
  std::vector<VirtualId> operands;
  for (int i = 0; i < flow_.functions.at(function_).num_results(); ++i) {
    const auto result = results_.find(i);
    operands.push_back(Register(result == results_.end() ? Operand() : result->second));
  }
  Step& step = Add(operands.size() == 1 ? Opcode::kReturn : Opcode::kReturnAll);
  step.operands = std::move(operands);
}

// --- Values -----------------------------------------------------------------------------------------

Emitter::Operand Emitter::ValueOf(const Input& input) {
  if (input.is_constant()) return ValueOfConstant(input.constant);
  const auto value = values_.find({input.source.node, input.source.port});
  if (value != values_.end()) return value->second;
  failed_ = true;
  return {};
}

Emitter::Operand Emitter::ValueOfConstant(ConstantId id) {
  const ConstantTensor& constant = flow_.constants[id];
  if (constant.is_on_host && constant.tensor.dims() == 0 && IsUnboxed(constant.tensor.dtype())) {
    return {kNone, ScalarFromTensor(constant.tensor).bits};
  }
  const auto [position, is_new] = context_.arrays.try_emplace(id, 0);
  if (is_new) {
    context_.code->tensors.push_back(constant.tensor);
    position->second = ToBits(&context_.code->arrays.emplace_back(context_.code->tensors.back()));
  }
  return {kNone, position->second};
}

void Emitter::DefineAll(NodeId id, Operand value) {
  for (int port = 0; port < flow_.nodes[id].num_ports; ++port) Define(id, port, value);
}

VirtualId Emitter::Register(const Operand& operand) {
  if (!operand.is_constant()) return operand.value;
  Step& step = Add(Opcode::kConstant);
  step.constant = operand.constant;
  step.results = {steps_->NewVirtual()};
  return step.results[0];
}

Step& Emitter::Add(Opcode opcode) {
  steps_->steps.emplace_back(opcode);
  steps_->steps.back().loop = loops_.empty() ? 0 : loops_.back().number;
  return steps_->steps.back();
}

void Emitter::AddMove(VirtualId to, const Operand& from) { AddMoves({{to, from}}); }

// All at once: a value that is overwritten may be another's. Constants come last, as nothing is read of them.
void Emitter::AddMoves(const std::vector<std::pair<VirtualId, Operand>>& moves) {
  Step move(Opcode::kMove);
  for (const auto& [to, from] : moves) {
    if (from.is_constant()) continue;
    move.results.push_back(to);
    move.operands.push_back(from.value);
  }
  if (!move.results.empty()) {
    Step& added = Add(Opcode::kMove);
    added.results = std::move(move.results);
    added.operands = std::move(move.operands);
  }
  for (const auto& [to, from] : moves) {
    if (!from.is_constant()) continue;
    Step& constant = Add(Opcode::kConstant);
    constant.constant = from.constant;
    constant.results = {to};
  }
}

void Emitter::AddJump(LabelId label) { Add(Opcode::kJump).labels = {label}; }

void Emitter::Bind(LabelId label) { Add(Opcode::kMove).bound = label; }

}  // namespace tensorflow_recursion
