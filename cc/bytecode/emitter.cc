// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/emitter.h"

#include <optional>
#include <utility>

#include "cc/bytecode/loop_variables.h"

namespace tensorflow_recursion {
namespace {

// How deep conditionals may nest in a function that is compiled. Each takes some C++ stack here, and what nests deeper
// is no small recursive function.
constexpr int kDeepestNesting = 100;

}  // namespace

Emitter::Emitter(CompileContext* context, RegionId function, FunctionSteps* steps)
    : flow_(context->flow),
      blocks_(*context->blocks),
      function_(function),
      steps_(*steps),
      writer_(context, steps),
      node_emitter_(context, &writer_),
      schedule_(flow_, &blocks_, context->nodes[function]) {}

bool Emitter::Run() {
  for (NodeId entry : flow_.functions.at(function_).entries) {
    steps_.arguments.push_back(writer_.NewVirtual());
    if (entry != kNone) writer_.Define(entry, 0, {steps_.arguments.back()});
  }
  EmitBlock(blocks_.OfRegion(function_), schedule_.all());
  if (HasFailed() || !schedule_.IsDone()) return false;
  EmitReturn();
  return true;
}

// Emits all of the block that is in `allowed` and can be emitted. Returns whether that was anything.
bool Emitter::EmitBlock(BlockId block, const NodeSet& allowed) {
  bool any = false;
  while (!HasFailed() && (EmitNodes(block, allowed) || EmitConditional(block, allowed))) any = true;
  return any;
}

bool Emitter::EmitNodes(BlockId block, const NodeSet& allowed) {
  bool any = false;
  for (NodeId id = schedule_.FindNode(block, allowed); id != kNone; id = schedule_.FindNode(block, allowed)) {
    Emit(id);
    schedule_.SetEmitted(id);
    any = true;
  }
  return any;
}

void Emitter::Emit(NodeId id) {
  FailBehindLoop(blocks_.of(id));
  const FlowNode& node = flow_.nodes[id];
  switch (node.kind) {
    case OpKind::kLoopStart:
      return EmitLoop(id);
    case OpKind::kResult:
      results_[static_cast<int>(node.index)] = writer_.ValueOf(node.inputs[0]);
      return;
    case OpKind::kExit: {
      const Block& side = blocks_[blocks_.of(id)];
      failed_ = HasFailed() || TestOfLoop(side.parent) != side.branch;
      loops_.back().exits[static_cast<int>(node.index)] = writer_.ValueOf(node.inputs[0]);
      return;
    }
    default:
      return node_emitter_.Emit(id);
  }
}

void Emitter::EmitReturn() {
  std::vector<VirtualId> operands;
  for (int i = 0; i < flow_.functions.at(function_).num_results(); ++i) {
    const auto result = results_.find(i);
    operands.push_back(writer_.Register(result == results_.end() ? StepOperand() : result->second));
  }
  Step& step = writer_.Add(operands.size() == 1 ? Opcode::kReturn : Opcode::kReturnAll);
  step.operands = std::move(operands);
}

// --- Conditionals ---------------------------------------------------------------------------------

// Emits a conditional of the block, if one can be emitted. The test of a loop comes last, because the next iteration
// begins behind it.
bool Emitter::EmitConditional(BlockId block, const NodeSet& allowed) {
  const NodeId test = TestOfLoop(block);
  const std::optional<ConditionalPart> part = schedule_.FindPart(block, allowed, test);
  if (!part) return false;
  FailBehindLoop(block);
  if (part->branch == test) {
    EmitTest(block, *part);
  } else {
    EmitSides(block, *part);
  }
  return true;
}

void Emitter::EmitSides(BlockId block, const ConditionalPart& part) {
  for (NodeId merge : part.merges) writer_.Define(merge, 0, {writer_.NewVirtual()});
  const FlowNode& node = flow_.nodes[part.branch];
  const LabelId end = writer_.NewLabel();
  std::vector<LabelId> sides;
  sides.reserve(node.num_ports);
  for (int i = 0; i < node.num_ports; ++i) sides.push_back(writer_.NewLabel());
  const bool is_case = node.kind == OpKind::kSwitchN;
  const VirtualId condition = writer_.Register(writer_.ValueOf(node.inputs[is_case ? 1 : 0]));
  if (is_case) {
    Step& step = writer_.Add(Opcode::kCase);
    step.operands = {condition};
    step.labels = sides;
  } else {
    Step& step = writer_.Add(Opcode::kUnless);
    step.operands = {condition};
    step.labels = {sides[0]};
  }
  // What runs if the condition holds comes first.
  for (int i = 0; i < node.num_ports; ++i) {
    const int side = is_case ? i : 1 - i;
    writer_.Bind(sides[side]);
    EmitSide(block, side, part);
    MoveToMerges(blocks_.FindSide(block, part.branch, side), part.merges);
    writer_.AddJump(end);
  }
  writer_.Bind(end);
  for (NodeId merge : part.merges) schedule_.SetEmitted(merge);
}

void Emitter::EmitSide(BlockId block, int side, const ConditionalPart& part) {
  const BlockId inside = blocks_.FindSide(block, part.branch, side);
  failed_ = HasFailed() || nesting_ >= kDeepestNesting;
  ++nesting_;
  if (inside != kNone) EmitBlock(inside, part.nodes);
  --nesting_;
}

void Emitter::MoveToMerges(BlockId side, const std::vector<NodeId>& merges) {
  for (NodeId merge : merges) {
    for (const Input& input : flow_.nodes[merge].inputs) {
      if (blocks_.OfSource(input.source) != side) continue;
      writer_.AddMove(writer_.VariableOf(merge), writer_.ValueOf(input));
    }
  }
}

// --- Loops ----------------------------------------------------------------------------------------

void Emitter::EmitLoop(NodeId id) {
  const FlowLoop& loop = flow_.loops[flow_.nodes[id].index];
  std::vector<std::pair<VirtualId, StepOperand>> starts;
  for (const LoopVariable& variable : VariablesOf(flow_, loop)) {
    const StepOperand start = writer_.ValueOf(variable.start);
    if (!variable.next) {
      writer_.Define(variable.entry, 0, start);
      continue;
    }
    starts.emplace_back(writer_.NewVirtual(), start);
    writer_.Define(variable.entry, 0, {starts.back().first});
  }
  writer_.AddMoves(starts);
  loops_.emplace_back(++num_loops_, &loop, writer_.NewLabel());
  writer_.set_loop(loops_.back().number);
  writer_.Bind(loops_.back().begin);
  EmitBlock(blocks_.OfRegion(loop.region), schedule_.all());
  failed_ = HasFailed() || !loops_.back().is_closed;
  for (const auto& [index, value] : loops_.back().exits) writer_.Define(id, index, value);
  loops_.pop_back();
  writer_.set_loop(loops_.empty() ? 0 : loops_.back().number);
}

// Emits the test of a loop, on whose one side the loop is repeated. On the other side the code goes on behind the loop.
void Emitter::EmitTest(BlockId block, const ConditionalPart& part) {
  const LabelId behind = writer_.NewLabel();
  const VirtualId condition = writer_.Register(writer_.ValueOf(flow_.nodes[part.branch].inputs[0]));
  Step& test = writer_.Add(Opcode::kUnless);
  test.operands = {condition};
  test.labels = {behind};
  EmitSide(block, 1, part);
  schedule_.SetEmitted(loops_.back().loop->next);
  EmitRepeat();
  writer_.Bind(behind);
  EmitSide(block, 0, part);
  loops_.back().is_closed = true;
}

void Emitter::EmitRepeat() {
  std::vector<std::pair<VirtualId, StepOperand>> moves;
  for (const LoopVariable& variable : VariablesOf(flow_, *loops_.back().loop)) {
    if (!variable.next) continue;
    const VirtualId value = writer_.VariableOf(variable.entry);
    const StepOperand next = writer_.ValueOf(*variable.next);
    if (next.is_constant() || next.value != value) moves.emplace_back(value, next);
  }
  writer_.AddMoves(moves);
  Step& repeat = writer_.Add(Opcode::kRepeat);
  repeat.labels = {loops_.back().begin};
}

// The branch that is the test of the innermost loop; kNone if the block is not the whole body of that loop.
NodeId Emitter::TestOfLoop(BlockId block) const {
  if (loops_.empty() || !blocks_.IsWhole(block) || blocks_[block].region != loops_.back().loop->region) return kNone;
  return blocks_[blocks_.of(loops_.back().loop->next)].branch;
}

// Fails if the test of the block's loop has been emitted. What runs in every iteration must come before the test:
// behind it, it would run only once.
void Emitter::FailBehindLoop(BlockId block) {
  const bool is_behind = !loops_.empty() && loops_.back().is_closed && blocks_.IsWhole(block) &&
                         blocks_[block].region == loops_.back().loop->region;
  failed_ = HasFailed() || is_behind;
}

}  // namespace tensorflow_recursion
