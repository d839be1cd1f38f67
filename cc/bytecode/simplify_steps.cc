// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {
namespace {

bool Holds(const std::vector<VirtualId>& all, VirtualId value) {
  return std::find(all.begin(), all.end(), value) != all.end();
}

// The steps that write and read each value, and those that bind each label and jump to it.
struct Uses {
  explicit Uses(const FunctionSteps& function)
      : writes(function.num_virtuals),
        reads(function.num_virtuals),
        jumps(function.num_labels),
        bound(function.num_labels) {
    for (size_t i = 0; i < function.steps.size(); ++i) {
      const Step& step = function.steps[i];
      for (VirtualId value : step.results) writes[value].push_back(i);
      for (VirtualId value : step.operands) reads[value].push_back(i);
      if (step.BindsLabel()) bound[step.bound] = i;
      for (LabelId label : step.labels) jumps[label].push_back(i);
    }
    for (VirtualId argument : function.arguments) writes[argument].push_back(0);
  }

  IdVector<VirtualId, std::vector<size_t>> writes;
  IdVector<VirtualId, std::vector<size_t>> reads;
  IdVector<LabelId, std::vector<size_t>> jumps;
  IdVector<LabelId, size_t> bound;
};

void Erase(FunctionSteps* function, const std::vector<bool>& erased) {
  std::vector<Step> kept;
  for (size_t i = 0; i < function->steps.size(); ++i) {
    if (!erased[i]) kept.push_back(std::move(function->steps[i]));
  }
  function->steps = std::move(kept);
}

// --- Jumps to returns -------------------------------------------------------------------------------

// What runs from `label` on, if that is only a return, or a move and a return.
std::vector<Step> TailAt(const FunctionSteps& function, const Uses& uses, LabelId label) {
  std::vector<Step> tail;
  for (size_t i = uses.bound[label]; i < function.steps.size() && tail.size() < 2; ++i) {
    const Step& step = function.steps[i];
    if (step.BindsLabel()) continue;
    tail.push_back(step);
    if (step.Returns()) return tail;
    if (!step.is(Opcode::kMove)) break;
  }
  return {};
}

bool CopyTails(FunctionSteps* function) {
  const Uses uses(*function);
  std::vector<Step> steps;
  bool changed = false;
  for (const Step& step : function->steps) {
    const std::vector<Step> tail =
        step.is(Opcode::kJump) ? TailAt(*function, uses, step.labels[0]) : std::vector<Step>();
    changed = changed || !tail.empty();
    if (tail.empty()) steps.push_back(step);
    steps.insert(steps.end(), tail.begin(), tail.end());
  }
  function->steps = std::move(steps);
  return changed;
}

// Makes `Return x` of `Move m = x; Return m`. There may be a move for each result.
bool ReturnWhatIsMoved(FunctionSteps* function) {
  bool changed = false;
  std::vector<bool> erased(function->steps.size(), false);
  for (size_t i = 0; i < function->steps.size(); ++i) {
    Step& step = function->steps[i];
    if (!step.Returns()) continue;
    for (size_t at = i; at > 0 && function->steps[at - 1].is(Opcode::kMove); --at) {
      const Step& move = function->steps[at - 1];
      for (VirtualId& operand : step.operands) {
        const auto position = std::find(move.results.begin(), move.results.end(), operand);
        if (position != move.results.end()) operand = move.operands[position - move.results.begin()];
      }
      erased[at - 1] = changed = true;
    }
  }
  Erase(function, erased);
  return changed;
}

// Drops the steps behind a return or a jump, up to a label that is jumped to.
bool DropUnreachable(FunctionSteps* function) {
  const Uses uses(*function);
  std::vector<bool> erased(function->steps.size(), false);
  bool is_reachable = true;
  bool changed = false;
  for (size_t i = 0; i < function->steps.size(); ++i) {
    const Step& step = function->steps[i];
    const bool is_target = step.BindsLabel() && !uses.jumps[step.bound].empty();
    is_reachable = is_reachable || is_target;
    erased[i] = !is_reachable || (step.BindsLabel() && !is_target);
    changed = changed || erased[i];
    if (step.EndsBlock()) is_reachable = false;
  }
  Erase(function, erased);
  return changed;
}

// Drops jumps to the step that comes next anyway.
bool DropJumpsToNext(FunctionSteps* function) {
  std::vector<bool> erased(function->steps.size(), false);
  bool changed = false;
  for (size_t i = 0; i < function->steps.size(); ++i) {
    if (!function->steps[i].is(Opcode::kJump)) continue;
    for (size_t next = i + 1; next < function->steps.size() && function->steps[next].BindsLabel(); ++next) {
      if (function->steps[next].bound == function->steps[i].labels[0]) erased[i] = changed = true;
    }
  }
  Erase(function, erased);
  return changed;
}

// --- Moves ------------------------------------------------------------------------------------------

// Whether step `last` runs once whenever step `first` does, because no jump leads out of the steps between them, or in.
bool RunTogether(const FunctionSteps& function, const Uses& uses, size_t first, size_t last) {
  const auto is_between = [&](size_t step) { return step > first && step < last; };
  for (size_t i = first + 1; i < last; ++i) {
    const Step& step = function.steps[i];
    if (step.Returns()) return false;
    for (LabelId label : step.labels) {
      if (!is_between(uses.bound[label])) return false;
    }
    if (!step.BindsLabel()) continue;
    const std::vector<size_t>& jumps = uses.jumps[step.bound];
    if (!std::all_of(jumps.begin(), jumps.end(), is_between)) return false;
  }
  return true;
}

bool Touches(const FunctionSteps& function, size_t first, size_t last, VirtualId value) {
  for (size_t i = first + 1; i < last; ++i) {
    if (Holds(function.steps[i].operands, value) || Holds(function.steps[i].results, value)) return true;
  }
  return false;
}

bool HasCall(const FunctionSteps& function, size_t first, size_t last) {
  for (size_t i = first + 1; i < last; ++i) {
    if (function.steps[i].is(Opcode::kCall)) return true;
  }
  return false;
}

// Whether `from` may be computed into `to` right away, instead of being moved there by step `move`.
bool MayWriteDirectly(const FunctionSteps& function, const Uses& uses, size_t move, VirtualId from, VirtualId to) {
  if (uses.writes[from].size() != 1 || uses.reads[from].size() != 1 || Holds(function.arguments, from)) return false;
  const size_t write = uses.writes[from][0];
  const Step& writer = function.steps[write];
  if (write >= move || function.is_in_window[from] || Holds(writer.results, to)) return false;
  if (Touches(function, write, move, to) || !RunTogether(function, uses, write, move)) return false;
  // A register in a window would be overwritten by a call before the move, and a call's own results must not go there.
  return !function.is_in_window[to] || (!HasCall(function, write, move) && !writer.is(Opcode::kCall));
}

// Lets the step that computes `from` write `to`, and keeps `uses` true.
void WriteDirectly(FunctionSteps* function, Uses* uses, size_t move, VirtualId from, VirtualId to) {
  const size_t write = uses->writes[from][0];
  std::vector<VirtualId>& results = function->steps[write].results;
  std::replace(results.begin(), results.end(), from, to);
  std::replace(uses->writes[to].begin(), uses->writes[to].end(), move, write);
  uses->writes[from].clear();
  uses->reads[from].clear();
}

bool ComputeInPlace(FunctionSteps* function) {
  Uses uses(*function);
  std::vector<bool> erased(function->steps.size(), false);
  bool changed = false;
  for (size_t i = 0; i < function->steps.size(); ++i) {
    if (!function->steps[i].is(Opcode::kMove)) continue;
    Step& move = function->steps[i];
    for (size_t k = 0; k < move.operands.size();) {
      const VirtualId from = move.operands[k];
      const VirtualId to = move.results[k];
      if (Holds(move.operands, to) || !MayWriteDirectly(*function, uses, i, from, to)) {
        ++k;
        continue;
      }
      WriteDirectly(function, &uses, i, from, to);
      move.operands.erase(move.operands.begin() + static_cast<std::ptrdiff_t>(k));
      move.results.erase(move.results.begin() + static_cast<std::ptrdiff_t>(k));
      changed = true;
    }
    erased[i] = move.operands.empty();
  }
  Erase(function, erased);
  return changed;
}

// --- Comparisons and results ------------------------------------------------------------------------

std::optional<Opcode> JumpOnComparison(Opcode comparison) {
  static const auto* jumps = new std::map<Opcode, Opcode>{
#define TFR_JUMP(name, type, T) \
  {Opcode::k##name##type, Opcode::kUnless##name##type}, {Opcode::k##name##type##K, Opcode::kUnless##name##type##K},
      TFR_COMPARISONS(TFR_JUMP)
#undef TFR_JUMP
  };
  const auto position = jumps->find(comparison);
  return position == jumps->end() ? std::nullopt : std::optional<Opcode>(position->second);
}

bool JumpOnComparisons(FunctionSteps* function) {
  const Uses uses(*function);
  std::vector<bool> erased(function->steps.size(), false);
  bool changed = false;
  for (size_t i = 0; i < function->steps.size(); ++i) {
    Step& jump = function->steps[i];
    if (!jump.is(Opcode::kUnless)) continue;
    const VirtualId condition = jump.operands[0];
    if (uses.writes[condition].size() != 1 || uses.reads[condition].size() != 1) continue;
    const size_t at = uses.writes[condition][0];
    const Step& comparison = function->steps[at];
    const bool is_computed = at < i && Holds(comparison.results, condition);  // an argument is not
    if (!is_computed || comparison.loop != jump.loop) continue;
    const auto opcode = JumpOnComparison(comparison.opcode);
    const auto is_written = [&](VirtualId value) {
      return std::any_of(uses.writes[value].begin(), uses.writes[value].end(),
                         [&](size_t write) { return write > at && write < i; });
    };
    const auto& operands = comparison.operands;
    if (!opcode || std::any_of(operands.begin(), operands.end(), is_written)) continue;
    jump.opcode = *opcode;
    jump.operands = operands;
    jump.constant = comparison.constant;
    erased[at] = changed = true;
  }
  Erase(function, erased);
  return changed;
}

// Drops steps whose results nobody reads. It begins at the end, so that what only a dropped step reads is dropped, too.
bool DropUnread(FunctionSteps* function) {
  IdVector<VirtualId, size_t> reads(function->num_virtuals);
  for (const Step& step : function->steps) {
    for (VirtualId value : step.operands) ++reads[value];
  }
  std::vector<bool> erased(function->steps.size(), false);
  bool changed = false;
  for (size_t i = function->steps.size(); i-- > 0;) {
    const Step& step = function->steps[i];
    const bool is_read =
        std::any_of(step.results.begin(), step.results.end(), [&](VirtualId value) { return reads[value] > 0; });
    if (!step.IsPure() || is_read) continue;
    for (VirtualId value : step.operands) --reads[value];
    erased[i] = changed = true;
  }
  Erase(function, erased);
  return changed;
}

// --- Returns ----------------------------------------------------------------------------------------

// The instruction that returns unless the comparison of a conditional jump holds.
std::optional<Opcode> ReturnUnless(Opcode jump) {
  static const auto* returns = new std::map<Opcode, Opcode>{
#define TFR_RETURN(name, type, T)                                   \
  {Opcode::kUnless##name##type, Opcode::kReturnUnless##name##type}, \
      {Opcode::kUnless##name##type##K, Opcode::kReturnUnless##name##type##K},
      TFR_COMPARISONS(TFR_RETURN)
#undef TFR_RETURN
  };
  const auto position = returns->find(jump);
  return position == returns->end() ? std::nullopt : std::optional<Opcode>(position->second);
}

// The jump on the opposite comparison. Floating-point comparisons have none, because a NaN is neither less than a
// number nor greater or equal.
std::optional<Opcode> Opposite(Opcode jump) {
  static const auto* opposites = new std::map<Opcode, Opcode>{
#define TFR_PAIR(one, other, type)                                      \
  {Opcode::kUnless##one##type, Opcode::kUnless##other##type},           \
      {Opcode::kUnless##one##type##K, Opcode::kUnless##other##type##K}, \
      {Opcode::kUnless##other##type, Opcode::kUnless##one##type},       \
      {Opcode::kUnless##other##type##K, Opcode::kUnless##one##type##K},
#define TFR_PAIRS(type) \
  TFR_PAIR(Less, GreaterEqual, type) TFR_PAIR(LessEqual, Greater, type) TFR_PAIR(Equal, NotEqual, type)
      TFR_PAIRS(Int32) TFR_PAIRS(Int64)
#undef TFR_PAIRS
#undef TFR_PAIR
  };
  const auto position = opposites->find(jump);
  return position == opposites->end() ? std::nullopt : std::optional<Opcode>(position->second);
}

std::optional<Opcode> ReturnOf(Opcode arithmetic) {
  static const auto* returns = new std::map<Opcode, Opcode>{
#define TFR_RETURN(name, type, T) \
  {Opcode::k##name##type, Opcode::kReturn##name##type}, {Opcode::k##name##type##K, Opcode::kReturn##name##type##K},
      TFR_RETURNED(TFR_RETURN)
#undef TFR_RETURN
  };
  const auto position = returns->find(arithmetic);
  return position == returns->end() ? std::nullopt : std::optional<Opcode>(position->second);
}

void ReturnOnComparison(Step* jump, Opcode comparison, const Step& returns) {
  jump->opcode = *ReturnUnless(comparison);
  jump->operands.insert(jump->operands.begin(), returns.operands[0]);
  jump->labels.clear();
}

// Makes one step of a jump and the return that it jumps to, as in `Unless x < y -> end ... end: Return z`. It makes one
// of a jump across a return, too, with the opposite comparison, as in `Unless x < y -> on; Return z; on:`.
void FuseComparisons(FunctionSteps* function) {
  const Uses uses(*function);
  std::vector<bool> erased(function->steps.size(), false);
  const auto step_from = [&](size_t i) {
    while (i < function->steps.size() && function->steps[i].BindsLabel()) ++i;
    return i;
  };
  for (size_t i = 0; i + 1 < function->steps.size(); ++i) {
    Step& jump = function->steps[i];
    if (jump.BindsLabel() || !ReturnUnless(jump.opcode)) continue;
    const size_t target = step_from(uses.bound[jump.labels[0]]);
    const Step& next = function->steps[i + 1];
    if (target < function->steps.size() && function->steps[target].is(Opcode::kReturn)) {
      ReturnOnComparison(&jump, jump.opcode, function->steps[target]);
    } else if (next.is(Opcode::kReturn) && Opposite(jump.opcode) && step_from(i + 2) == target) {
      ReturnOnComparison(&jump, *Opposite(jump.opcode), next);
      erased[i + 1] = true;
    }
  }
  Erase(function, erased);
}

// Makes one step of `Add z = x, y; Return z`, if nobody else reads z.
void FuseArithmetic(FunctionSteps* function) {
  const Uses uses(*function);
  std::vector<bool> erased(function->steps.size(), false);
  for (size_t i = 1; i < function->steps.size(); ++i) {
    Step& step = function->steps[i];
    const Step& before = function->steps[i - 1];
    if (!step.is(Opcode::kReturn) || before.BindsLabel() || !ReturnOf(before.opcode)) continue;
    if (before.results[0] != step.operands[0] || uses.reads[step.operands[0]].size() != 1) continue;
    step.opcode = *ReturnOf(before.opcode);
    step.operands = before.operands;
    step.constant = before.constant;
    erased[i - 1] = true;
  }
  Erase(function, erased);
}

}  // namespace

int SimplifySteps(FunctionSteps* function) {
  int rounds = 1;
  while (DropUnread(function) || JumpOnComparisons(function) || CopyTails(function) || DropUnreachable(function) ||
         ReturnWhatIsMoved(function) || DropJumpsToNext(function) || ComputeInPlace(function)) {
    ++rounds;
  }
  return rounds;
}

void FuseReturns(FunctionSteps* function) {
  FuseComparisons(function);
  DropUnreachable(function);
  FuseArithmetic(function);
}

}  // namespace tensorflow_recursion
