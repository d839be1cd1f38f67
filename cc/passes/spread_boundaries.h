// What lies between the bodies of a transformed graph and the calls of them: the nodes that carry values across.
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

// The nodes of one call.
struct CallPorts {
  std::string caller;                          // function; empty for the main graph
  std::string callee;                          // function
  std::map<int64_t, tensorflow::Node*> calls;  // by argument
  std::vector<tensorflow::Node*> returns;
};

// The nodes of one function's body that its calls hand values to, and what is found out about the body.
struct BodyPorts {
  std::map<int64_t, tensorflow::Node*> entries;  // by argument; pruning takes those that nobody reads
  std::map<int64_t, tensorflow::Node*> results;  // by output
  tensorflow::Node* frame_start = nullptr;

  std::set<int64_t> late_arguments;  // may come only after a side effect
  std::string decider;               // the device that decides whether a call lives
  std::set<std::string> hosts;       // devices with a part of it, or of what it calls
};

struct Boundaries {
  std::map<std::string, BodyPorts> bodies;  // by function
  std::map<int64_t, CallPorts> calls;       // by call_id
};

// Finds the nodes. InvalidArgument if one of them lacks an attribute.
absl::Status CollectBoundaries(const tensorflow::Graph& graph, const GraphRegions& regions, Boundaries* boundaries);

// Finds the Returns once more, after some have been replaced. No call may have been added.
absl::Status CollectReturns(const tensorflow::Graph& graph, Boundaries* boundaries);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_BOUNDARIES_H_
