// Finds the nodes that carry values between the bodies of a transformed graph and their calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_BOUNDARIES_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_BOUNDARIES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/regions.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// The nodes of one call, as CollectBoundaries finds them.
struct CallPorts {
  // The function that makes the call, empty for the main graph, and the function that is called.
  std::string caller;
  std::string callee;
  // The Calls, by the index of their argument.
  std::map<int64_t, tensorflow::Node*> calls;
  std::vector<tensorflow::Node*> returns;
};

// The nodes of one function's body that exchange values with its calls, and what is found out about the body.
struct BodyPorts {
  // The Entries by argument, without those that were pruned because nobody reads them, and the Results by output.
  std::map<int64_t, tensorflow::Node*> entries;
  std::map<int64_t, tensorflow::Node*> results;
  tensorflow::Node* frame_start = nullptr;

  // Arguments that may come only after a side effect.
  std::set<int64_t> late_arguments;
  // The device that decides whether a call of the function lives.
  std::string decider;
  // The devices that have a part of the body, or of what the body calls.
  std::set<std::string> hosts;
};

// All bodies by function, and all calls by call_id.
struct Boundaries {
  std::map<std::string, BodyPorts> bodies;
  std::map<int64_t, CallPorts> calls;
};

// Finds the nodes. InvalidArgument if one of them lacks an attribute.
absl::Status CollectBoundaries(const tensorflow::Graph& graph, const GraphRegions& regions, Boundaries* boundaries);

// InvalidArgument unless every Return has its Result, of the same type. Once the graph is divided, no partition can
// tell that a value will never come from another one, and the run would wait for it.
absl::Status VerifyReturns(const Boundaries& boundaries);

// Finds the Returns once more, after some have been replaced. No call may have been added since.
absl::Status CollectReturns(const tensorflow::Graph& graph, Boundaries* boundaries);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_BOUNDARIES_H_
