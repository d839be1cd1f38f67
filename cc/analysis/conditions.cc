// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/conditions.h"

#include <algorithm>
#include <iterator>

#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {

namespace {

using Atoms = Conditions::Atoms;

int64_t Atom(int draft, int port) { return (static_cast<int64_t>(draft) << 20) + port; }

Atoms Union(const Atoms& a, const Atoms& b) {
  Atoms all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

Atoms Intersection(const Atoms& a, const Atoms& b) {
  Atoms common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common;
}

bool Contains(const Atoms& all, const Atoms& part) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

Atoms Difference(const Atoms& a, const Atoms& b) {
  Atoms rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

// That the variables of a loop live, all of them.
int64_t VariablesOf(const LoopDraft& loop) { return Atom(loop.start, 0); }

// What holds with each of `conditions`, and `unknown`.
Atoms Unknown(const std::vector<Atoms>& conditions, int64_t unknown) {
  Atoms common = conditions.empty() ? Atoms() : conditions[0];
  for (const Atoms& condition : conditions) common = Intersection(common, condition);
  return Union(common, {unknown});
}

// Whether a receive waits for another device of the step, which may send that the value is dead.
bool ComesFromDevice(const Draft& draft) {
  bool is_fed = false;
  (void)tensorflow::GetNodeAttr(draft.node->attrs(), "client_terminated", &is_fed);
  return draft.may_be_dead && !is_fed;
}

}  // namespace

absl::Status Conditions::Find() {
  TFR_RETURN_IF_ERROR(SortDrafts(builder_.drafts, &order_));
  FindChoices();
  for (const LoopDraft& loop : builder_.loops) loops_[loop.region] = &loop;
  for (int index : order_) {
    const Draft& draft = builder_.drafts[index];
    if (draft.kind == OpKind::kExit) exits_[draft.region].push_back(index);
  }
  atoms_.resize(builder_.drafts.size());
  for (bool changed = true; changed;) {
    for (int draft : order_) Compute(draft);
    changed = FindLateArguments();
    changed = FindDeadResults() || changed;
    changed = FindPartialLoops() || changed;
  }
  return absl::OkStatus();
}

// Switches on one index take the same side.
void Conditions::FindChoices() {
  std::map<std::tuple<int, int, Source, int>, int> first;  // by region, constant, source, number of sides
  for (int index : order_) {
    const Draft& draft = builder_.drafts[index];
    if (draft.kind != OpKind::kSwitchN) continue;
    const Input& choice = draft.inputs[1];
    const Source source = choice.is_constant() ? Source() : choice.source;
    choices_[index] = first.try_emplace({draft.region, choice.constant, source, draft.num_ports}, index).first->second;
  }
}

Atoms Conditions::OfSource(const Source& source) const {
  const Draft& draft = builder_.drafts[source.draft];
  const Atoms& whole = atoms_[source.draft];
  if (source.port == Source::kWholeOp) return whole;
  switch (draft.kind) {
    case OpKind::kBranch:
      return Union(whole, {Atom(source.draft, source.port)});
    case OpKind::kSwitch:
      return Union(whole, {Atom(static_cast<int>(draft.index), source.port)});
    case OpKind::kSwitchN:
      return Union(whole, {Atom(choices_.at(source.draft), source.port)});
    case OpKind::kSite: {
      const int callee = builder_.regions().FindFunction(builder_.sites[draft.index].callee);
      const bool may_be_dead = dead_results_.count({callee, source.port}) > 0;
      return may_be_dead ? Union(whole, {Atom(source.draft, source.port + 1)}) : whole;
    }
    case OpKind::kLoopStart: {
      const bool is_partial = IsPartial(builder_.loops[draft.index].region);
      return is_partial ? Union(whole, {Atom(source.draft, source.port + 1)}) : whole;
    }
    default:
      return whole;
  }
}

Atoms Conditions::Of(const Input& input) const {
  Atoms all = input.is_constant() ? Atoms() : OfSource(input.source);
  for (const Source& guard : input.guards) all = Union(all, OfSource(guard));
  return all;
}

Atoms Conditions::OfAll(const Draft& draft) const {
  Atoms all;
  for (const Input& input : draft.inputs) all = Union(all, Of(input));
  for (const Source& control : draft.controls) all = Union(all, OfSource(control));
  return all;
}

Atoms Conditions::OfMerge(int index) const {
  const Draft& draft = builder_.drafts[index];
  std::vector<Atoms> inputs;
  for (const Input& input : draft.inputs) inputs.push_back(Of(input));
  Atoms all = AnyOf(inputs).value_or(Unknown(inputs, Atom(index, 0)));
  for (const Source& control : draft.controls) all = Union(all, OfSource(control));
  return all;
}

// Whether a constant counts among a call's arguments is not known here: that is of no account only if it lives as the
// others do.
Atoms Conditions::OfSite(int index) const {
  const Draft& draft = builder_.drafts[index];
  const SiteDraft& site = builder_.sites[draft.index];
  if (site.join != nullptr) return Of(draft.inputs.back());
  std::vector<Atoms> all;
  std::vector<Atoms> values;
  std::vector<Atoms> constants;
  for (const Input& input : draft.inputs) {
    all.push_back(Of(input));
    (input.is_constant() ? constants : values).push_back(all.back());
  }
  const std::optional<Atoms> any = AnyOf(values.empty() ? constants : values);
  const bool is_known = any.has_value() && std::all_of(constants.begin(), constants.end(),
                                                       [&](const Atoms& constant) { return constant == *any; });
  return is_known ? *any : Unknown(all, Atom(index, 0));
}

Atoms Conditions::OfLoop(int index) const {
  const Draft& draft = builder_.drafts[index];
  const LoopDraft& loop = builder_.loops[draft.index];
  if (!IsPartial(loop.region)) return OfAll(draft);
  std::vector<Atoms> variables;
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    if (!IsLoopConstant(*loop.enters[i])) variables.push_back(Of(draft.inputs[i]));
  }
  return AnyOf(variables).value_or(Unknown(variables, Atom(index, draft.num_ports + 1)));
}

// A loop that starts on one device starts on all, with variables that are dead if need be. What comes from outside may
// live then.
Atoms Conditions::OfEntry(int index) const {
  const Draft& draft = builder_.drafts[index];
  if (odd_entries_.count(index) > 0 || IsPartial(draft.region)) return {Atom(index, 0)};
  const auto loop = loops_.find(draft.region);
  if (loop == loops_.end() || IsLoopConstant(*draft.node)) return {};
  return {VariablesOf(*loop->second)};
}

void Conditions::Compute(int index) {
  const Draft& draft = builder_.drafts[index];
  Atoms& atoms = atoms_[index];
  switch (draft.kind) {
    case OpKind::kMerge:
      atoms = OfMerge(index);
      return;
    case OpKind::kSite:
      atoms = OfSite(index);
      return;
    case OpKind::kUnion:
      atoms.clear();
      return;
    case OpKind::kLoopStart:
      atoms = OfLoop(index);
      return;
    case OpKind::kEntry:
      atoms = OfEntry(index);
      return;
    default:
      atoms = OfAll(draft);
      if (ComesFromDevice(draft)) atoms = Union(atoms, {Atom(index, 0)});
  }
}

// Arguments that may be dead where their call lives.
bool Conditions::FindLateArguments() {
  const size_t before = odd_entries_.size();
  for (const SiteDraft& site : builder_.sites) {
    const auto position = builder_.entries.find(builder_.regions().FindFunction(site.callee));
    if (position == builder_.entries.end()) continue;
    const std::vector<int>& entries = position->second;
    const std::vector<Input>& inputs = builder_.drafts[site.draft].inputs;
    for (size_t i = 0; i < std::min(inputs.size(), entries.size()); ++i) {
      if (entries[i] >= 0 && Of(inputs[i]) != atoms_[site.draft]) odd_entries_.insert(entries[i]);
    }
  }
  return odd_entries_.size() > before;
}

bool Conditions::FindDeadResults() {
  const size_t before = dead_results_.size();
  for (size_t i = 0; i < builder_.drafts.size(); ++i) {
    const Draft& draft = builder_.drafts[i];
    if (draft.kind != OpKind::kResult || atoms_[i].empty()) continue;
    dead_results_.emplace(draft.region, static_cast<int>(draft.index));
  }
  return dead_results_.size() > before;
}

bool Conditions::FindPartialLoops() {
  const size_t before = partial_loops_.size();
  for (const LoopDraft& loop : builder_.loops) {
    if (!IsPartial(loop.region) && (StartsPartially(loop) || EndsPartially(loop))) partial_loops_.insert(loop.region);
  }
  return partial_loops_.size() > before;
}

// In every other loop all variables come together, and what comes from outside lives whenever they do.
bool Conditions::StartsPartially(const LoopDraft& loop) const {
  const std::vector<Input>& inputs = builder_.drafts[loop.start].inputs;
  std::optional<Atoms> together;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IsLoopConstant(*loop.enters[i])) continue;
    const Atoms variable = Of(inputs[i]);
    if (together.value_or(variable) != variable) return true;
    together = variable;
  }
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Input& input) { return !Contains(together.value_or(Atoms()), Of(input)); });
}

// In every other loop all variables go on to the next iteration on one side of a branch, and all leave the loop on its
// other side.
bool Conditions::EndsPartially(const LoopDraft& loop) const {
  const Atoms variables = {VariablesOf(loop)};
  std::set<Atoms> ends;
  std::set<Atoms> nexts;
  const auto exits = exits_.find(loop.region);
  if (exits != exits_.end()) {
    for (int exit : exits->second) ends.insert(Difference(atoms_[exit], variables));
  }
  for (size_t i = 0; i < loop.nexts.size(); ++i) {
    Atoms next = Of(builder_.drafts[loop.next].inputs[i]);
    for (const Source& control : loop.next_controls[i]) next = Union(next, OfSource(control));
    nexts.insert(Difference(next, variables));
  }
  if (nexts.empty()) return !ends.empty() && ends != std::set<Atoms>{Atoms()};
  if (ends.size() > 1 || nexts.size() > 1 || nexts.begin()->size() != 1) return true;
  if (ends.empty()) return false;
  std::set<Atoms> both = {*ends.begin(), *nexts.begin()};
  return !JoinSides(&both) || both != std::set<Atoms>{Atoms()};
}

// How many sides there are, of which one holds; 0 if the atom is none of a branch.
int Conditions::NumSides(int64_t atom) const {
  const Draft& draft = builder_.drafts[atom >> 20];
  if (draft.kind == OpKind::kBranch) return 2;
  return draft.kind == OpKind::kSwitchN ? draft.num_ports : 0;
}

// Puts what holds on all sides of a branch in the place of what holds on each; whether there was any.
bool Conditions::JoinSides(std::set<Atoms>* conditions) const {
  std::map<std::pair<Atoms, int64_t>, std::set<Atoms>> sides;  // by all other atoms, and the branch
  for (const Atoms& condition : *conditions) {
    for (size_t i = 0; i < condition.size(); ++i) {
      const int num_sides = NumSides(condition[i]);
      if (num_sides == 0) continue;
      Atoms rest = condition;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      std::set<Atoms>& found = sides[{rest, condition[i] >> 20}];
      found.insert(condition);
      if (static_cast<int>(found.size()) < num_sides) continue;
      for (const Atoms& side : std::set<Atoms>(found)) conditions->erase(side);
      conditions->insert(rest);
      return true;
    }
  }
  return false;
}

void Conditions::Join(std::set<Atoms>* conditions) const {
  do {
    // What holds only with another adds nothing to it.
    for (auto position = conditions->begin(); position != conditions->end();) {
      const bool is_implied = std::any_of(conditions->begin(), conditions->end(), [&](const Atoms& other) {
        return other.size() < position->size() && Contains(*position, other);
      });
      position = is_implied ? conditions->erase(position) : std::next(position);
    }
  } while (JoinSides(conditions));
}

std::optional<Atoms> Conditions::AnyOf(std::vector<Atoms> conditions) const {
  std::set<Atoms> all(conditions.begin(), conditions.end());
  Join(&all);
  if (all.size() != 1) return std::nullopt;
  return *all.begin();
}

}  // namespace tensorflow_recursion
