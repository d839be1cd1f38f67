// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/waits.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "cc/base/status.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

namespace {

using Atoms = std::vector<int64_t>;

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

int64_t Atom(int draft, int port) { return (static_cast<int64_t>(draft) << 20) + port; }

// TensorFlow calls no operator stateful for writing to a TF1 reference variable.
bool MayHaveEffects(const tensorflow::Node& node) {
  const auto& inputs = node.input_types();
  return node.op_def().is_stateful() || std::any_of(inputs.begin(), inputs.end(), [](tensorflow::DataType type) {
           return tensorflow::IsRefType(type);
         });
}

// Kinds that fire when all their inputs are there, and could do so with some of them given.
bool WaitsForAll(OpKind kind) {
  switch (kind) {
    case OpKind::kScalar:
    case OpKind::kPass:
    case OpKind::kSwitch:
    case OpKind::kSwitchN:
    case OpKind::kKernel:
    case OpKind::kLoopStart:
    case OpKind::kBranch:
    case OpKind::kResult:
    case OpKind::kExit:
    case OpKind::kRetval:
    case OpKind::kRetain:
    case OpKind::kRecall:
    case OpKind::kSend:
      return true;
    default:
      return false;
  }
}

}  // namespace

Atoms Liveness::PortAtoms(int draft, int port) const {
  const Draft& from = builder_->drafts[draft];
  switch (from.kind) {
    case OpKind::kBranch:
      if (port == Source::kWholeOp) return {};
      return {Atom(draft, port)};
    case OpKind::kSwitchN:
      if (port == Source::kWholeOp) return {};
      return {Atom(draft, port)};
    case OpKind::kSwitch:
      // A switch knows its side by the branch on its predicate, which all switches on it share.
      if (port == Source::kWholeOp) return {};
      return {Atom(static_cast<int>(from.index), port)};
    case OpKind::kSite:
      return {Atom(draft, port + 1)};
    case OpKind::kLoopStart:
      if (from.is_partial) return {Atom(draft, port + 1)};
      return {};
    default:
      return {};
  }
}

Atoms Liveness::OfSource(const Source& source) const {
  return Union(atoms_[source.draft], PortAtoms(source.draft, source.port));
}

Atoms Liveness::OfInput(const Input& input) const {
  if (!input.is_constant()) return OfSource(input.source);
  Atoms all;
  for (const Source& guard : input.guards) all = Union(all, OfSource(guard));
  return all;
}

void Liveness::Compute(int index) {
  const Draft& draft = builder_->drafts[index];
  Atoms& atoms = atoms_[index];
  const bool any_input_suffices = draft.kind == OpKind::kMerge || draft.kind == OpKind::kSite || draft.is_partial;
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    Atoms input = OfInput(draft.inputs[i]);
    atoms = any_input_suffices ? (i == 0 ? input : Intersection(atoms, input)) : Union(atoms, input);
  }
  for (const Source& control : draft.controls) atoms = Union(atoms, OfSource(control));
  const bool may_be_dead = !draft.node->IsEnter() || draft.is_partial || builder_->crosses_devices;
  const bool is_entry = draft.kind == OpKind::kEntry && may_be_dead;
  if (draft.kind == OpKind::kUnion) atoms.clear();
  if (draft.kind == OpKind::kMerge || draft.may_be_dead || is_entry) atoms = Union(atoms, {Atom(index, 0)});

  bool effects = draft.kind == OpKind::kSite || draft.kind == OpKind::kLoopStart ||
                 (draft.kind == OpKind::kKernel && MayHaveEffects(*draft.node));
  ForEachSource(draft, [&](const Source& source) { effects = effects || has_effects_[source.draft]; });
  has_effects_[index] = effects;
}

// Whether anything that is live under `known` has surely come after `source`, or need not.
bool Liveness::Follows(const Source& source, const Atoms& known) const {
  if (!Contains(known, OfSource(source))) return false;
  const OpKind kind = builder_->drafts[source.draft].kind;
  // A value behind a branch comes after the branch's predicate and all that led to it.
  if (kind == OpKind::kBranch && source.port != Source::kWholeOp) return true;
  return !has_effects_[source.draft];
}

void Liveness::DropSuperfluous(int index) {
  Draft& draft = builder_->drafts[index];
  Atoms known;
  for (const Input& input : draft.inputs) {
    if (!input.is_constant()) known = Union(known, OfSource(input.source));
  }
  std::vector<Source> kept;
  auto consider = [&](const Source& source) {
    if (Follows(source, known)) return;
    known = Union(known, OfSource(source));
    kept.push_back(source);
  };
  for (const Source& control : draft.controls) consider(control);
  for (Input& input : draft.inputs) {
    for (const Source& guard : input.guards) consider(guard);
    input.guards.clear();
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  draft.controls = std::move(kept);
}

// Finds what stateful kernels (a queue, a variable, a receive) may hold up, calls of functions with such
// kernels included.
void Liveness::FindWaiting() {
  const auto& drafts = builder_->drafts;
  const auto& regions = builder_->regions().regions();
  std::vector<bool> is_stateful(regions.size(), false);
  auto mark = [&](int region) {
    bool is_new = false;
    for (; region != GraphRegions::kNoRegion && !is_stateful[region]; region = regions[region].parent) {
      is_stateful[region] = is_new = true;
    }
    return is_new;
  };
  for (const Draft& draft : drafts) {
    if (draft.kind == OpKind::kKernel && MayHaveEffects(*draft.node)) mark(draft.region);
  }
  auto callee_of = [&](const Draft& site) {
    return builder_->regions().FindFunction(builder_->sites[site.index].callee);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Draft& draft : drafts) {
      if (draft.kind == OpKind::kSite && is_stateful[callee_of(draft)]) changed = mark(draft.region) || changed;
    }
  }
  may_wait_.assign(drafts.size(), false);
  for (int index : order_) {
    const Draft& draft = drafts[index];
    bool waits = false;
    if (draft.kind == OpKind::kKernel) waits = MayHaveEffects(*draft.node);
    if (draft.kind == OpKind::kSite) waits = is_stateful[callee_of(draft)];
    if (draft.kind == OpKind::kLoopStart) waits = is_stateful[builder_->loops[draft.index].region];
    ForEachSource(draft, [&](const Source& source) { waits = waits || may_wait_[source.draft]; });
    may_wait_[index] = waits;
  }
}

// Every argument travels alone, but a constant need not where nothing can tell: it stays in the caller's
// slots if another argument says whether the call is live, comes after all side effects that the constant
// waits for, and can't itself wait for what the call does. Else it becomes a token.
void Liveness::SplitSiteConstants(int index) {
  const int region = builder_->drafts[index].region;
  for (size_t i = 0; i < builder_->drafts[index].inputs.size(); ++i) {
    Input input = builder_->drafts[index].inputs[i];
    if (!input.is_constant()) continue;
    const Atoms needed = OfInput(input);
    bool implied = false;
    bool others_may_wait = false;
    for (const Input& other : builder_->drafts[index].inputs) {
      if (other.is_constant()) continue;
      others_may_wait = others_may_wait || may_wait_[other.source.draft];
      if (implied) continue;
      const Atoms known = OfInput(other);
      implied = std::all_of(input.guards.begin(), input.guards.end(),
                            [&](const Source& guard) { return Follows(guard, known); });
    }
    if (implied && !others_may_wait) {
      builder_->drafts[index].inputs[i].guards.clear();
      continue;
    }
    Draft pass(OpKind::kPass, region, builder_->drafts[index].node);
    pass.num_ports = 1;
    pass.controls = input.guards;
    input.guards.clear();
    pass.inputs.push_back(input);
    builder_->drafts.push_back(std::move(pass));
    atoms_.push_back(needed);
    has_effects_.push_back(false);
    may_wait_.push_back(false);
    Input token;
    token.source = {static_cast<int>(builder_->drafts.size()) - 1, 0};
    builder_->drafts[index].inputs[i] = token;
  }
}

// Redirects consumers of drafts that do nothing to what those read.
void Liveness::TakeOutPasses() {
  auto& drafts = builder_->drafts;
  std::map<Source, Source> redirected;
  auto redirect = [&](Source* source) {
    auto position = redirected.find(*source);
    if (position != redirected.end()) *source = position->second;
  };
  for (int index : order_) {
    Draft& draft = drafts[index];
    for (Input& input : draft.inputs) {
      if (!input.is_constant()) redirect(&input.source);
    }
    for (Source& control : draft.controls) redirect(&control);
    if (draft.kind != OpKind::kPass) continue;
    const bool passes_value =
        draft.inputs.size() == 1 && draft.num_ports == 1 && !draft.inputs[0].is_constant() && draft.controls.empty();
    const bool passes_signal = draft.inputs.empty() && draft.num_ports == 0 && draft.controls.size() == 1;
    if (!passes_value && !passes_signal) continue;
    const Source source = passes_value ? draft.inputs[0].source : draft.controls[0];
    redirected[{index, 0}] = source;
    redirected[{index, Source::kWholeOp}] = source;
    draft.is_removed = true;
  }
  // The constant arguments that became tokens after the order was found.
  for (size_t index = order_.size(); index < drafts.size(); ++index) {
    for (Source& control : drafts[index].controls) redirect(&control);
  }
}

absl::Status Liveness::Simplify() {
  TFR_RETURN_IF_ERROR(SortDrafts(builder_->drafts, &order_));
  atoms_.resize(builder_->drafts.size());
  has_effects_.assign(builder_->drafts.size(), false);
  for (int draft : order_) Compute(draft);
  FindWaiting();
  for (int draft : order_) {
    if (WaitsForAll(builder_->drafts[draft].kind)) DropSuperfluous(draft);
    if (builder_->drafts[draft].kind == OpKind::kSite) SplitSiteConstants(draft);
  }
  TakeOutPasses();
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
