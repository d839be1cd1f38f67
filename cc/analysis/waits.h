// Under which conditions a draft is live, and which inputs are superfluous because of it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_WAITS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_WAITS_H_

#include <cstdint>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// An atom is an event that may or may not come: one side of a branch, a merge, an argument. A port
// with atoms {a, b} is live exactly when a and b are; so an input whose atoms are contained in those
// of the other inputs adds nothing to them, and a control edge or constant needs no waiting for.
class Liveness {
 public:
  explicit Liveness(DraftBuilder* builder) : builder_(builder) {}

  // Computes atoms, drops superfluous control inputs and guards, turns the guards that are left into
  // control inputs, and takes out what then only passes a value or a signal on. InvalidArgument if the
  // drafts form a cycle.
  absl::Status Simplify();

 private:
  using Atoms = std::vector<int64_t>;  // sorted

  void Compute(int draft);
  Atoms OfSource(const Source& source) const;
  Atoms OfInput(const Input& input) const;
  Atoms PortAtoms(int draft, int port) const;
  bool Follows(const Source& source, const Atoms& known) const;
  void DropSuperfluous(int draft);
  void FindWaiting();
  void SplitSiteConstants(int draft);
  void TakeOutPasses();

  DraftBuilder* builder_;
  std::vector<int> order_;
  std::vector<Atoms> atoms_;       // of the draft as a whole
  std::vector<bool> has_effects_;  // waiting for it may order side effects
  std::vector<bool> may_wait_;     // it may come only after side effects elsewhere, as of this very call
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_WAITS_H_
