// Under which condition each value of a graph is live, seen through conditionals, loops and calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// A condition is a set of atoms, events of a frame that may or may not come: one side of a branch, or something that
// is not understood. Two values with the same condition live and die together; of others nothing is known.
//
// Unlike Liveness, which looks at each frame by itself, this finds that the values of ordinary programs live together:
// what both branches of a conditional make lives as what goes into it, arguments of a call as the call, its results as
// its arguments, a loop's exits as its variables. All of it is assumed until something in the graph says otherwise.
class Conditions {
 public:
  using Atoms = std::vector<int64_t>;  // sorted; a value is live if all of them hold

  // `builder` must outlive it, with drafts that Liveness has not simplified.
  explicit Conditions(const DraftBuilder& builder) : builder_(builder) {}

  // InvalidArgument if the drafts form a cycle.
  absl::Status Find();

  Atoms Of(const Input& input) const;
  // Whether some variables of the loop of `region` may live while others are dead, or leave it, or go on.
  bool IsPartial(int region) const { return partial_loops_.count(region) > 0; }
  // The condition that any of `conditions` holds; nullopt if there is none that says so.
  std::optional<Atoms> AnyOf(std::vector<Atoms> conditions) const;

 private:
  void FindChoices();
  void Compute(int draft);
  Atoms OfSource(const Source& source) const;
  Atoms OfSite(int draft) const;
  Atoms OfMerge(int draft) const;
  Atoms OfAll(const Draft& draft) const;
  Atoms OfLoop(int draft) const;
  Atoms OfEntry(int draft) const;
  bool FindLateArguments();
  bool FindDeadResults();
  bool FindPartialLoops();
  bool StartsPartially(const LoopDraft& loop) const;
  bool EndsPartially(const LoopDraft& loop) const;
  int NumSides(int64_t atom) const;
  void Join(std::set<Atoms>* conditions) const;
  bool JoinSides(std::set<Atoms>* conditions) const;

  const DraftBuilder& builder_;
  std::vector<int> order_;
  std::vector<Atoms> atoms_;                    // of the draft as a whole
  std::map<int, const LoopDraft*> loops_;       // by region
  std::map<int, std::vector<int>> exits_;       // by region
  std::map<int, int> choices_;                  // of a kSwitchN: the first on the same index
  std::set<int> odd_entries_;                   // arguments that may be dead in a live frame
  std::set<std::pair<int, int>> dead_results_;  // by function region and index: may be dead in a live frame
  std::set<int> partial_loops_;                 // their regions
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_
