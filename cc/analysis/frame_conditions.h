// Finds under which condition each node of a flow graph fires, looking at each frame by itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FRAME_CONDITIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FRAME_CONDITIONS_H_

#include <utility>
#include <vector>

#include "cc/analysis/condition.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// The conditions under which nodes fire. Every argument of a function and every result of a call is an event of its own
// here, which is cheap and always right. Conditions (conditions.h) finds more, for example that the arguments of a call
// live together, but has to look at the whole program.
class FrameConditions {
 public:
  // `flow` must outlive it; `order` is the result of SortNodes. If `live_arguments` is given, the arguments whose
  // entries it names are no events: they live in every frame.
  FrameConditions(const FlowGraph& flow, const std::vector<NodeId>& order,
                  const IdVector<NodeId, bool>* live_arguments = nullptr);

  Condition Of(const Source& source) const;
  Condition Of(const Input& input) const;

  // To be called when a node has been added to the flow graph, behind all others. It fires under `condition`.
  void Add(Condition condition) { conditions_.Add(std::move(condition)); }

 private:
  void Compute(NodeId node);
  bool MayBeDeadInLiveFrame(NodeId id) const;

  const FlowGraph& flow_;
  const IdVector<NodeId, bool>* const live_arguments_;
  IdVector<NodeId, Condition> conditions_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FRAME_CONDITIONS_H_
