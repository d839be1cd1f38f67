// Chooses the names that emission needs before the first node is written, because edges run both ways.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_NAMES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_NAMES_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// Names the nodes that stand for one call.
struct SiteNames {
  int64_t call_id = 0;
  // The Call of each argument.
  std::vector<std::string> calls;
  // The Return of each output, and at the end the one that says that the side effects are done. A name is empty where
  // there is no Return.
  std::vector<std::string> returns;

  const std::string& done() const { return returns.back(); }
};

// Describes the boundary between a body and its callers.
struct BodyBoundary {
  std::string frame_start;
  // There is at least one argument, because a Call opens the frame.
  std::vector<std::string> argument_devices;
  std::vector<tensorflow::DataType> argument_types;
  // The last output says that the side effects are done.
  std::vector<std::string> output_devices;
  std::vector<tensorflow::DataType> output_types;
};

// Names what is made for the reachable functions and calls of a program. Immutable afterwards.
class EmissionNames {
 public:
  // `first_call_id` is the first id that is free.
  EmissionNames(const CallProgram& program, int64_t first_call_id, NameTable* names);

  // Reachable functions, in the order in which they were found.
  const std::vector<std::string>& functions() const { return functions_; }
  const BodyBoundary& boundary(const std::string& function) const { return boundaries_.at(function); }

  // The names of a reachable call, given the name of its node; null for other nodes.
  const SiteNames* FindSite(const std::string& call) const {
    const auto site = sites_.find(call);
    return site == sites_.end() ? nullptr : &site->second;
  }

 private:
  void NameBoundaries(const CallProgram& program, NameTable* names);
  void NameSites(const CallProgram& program, const NodeList& list, NameTable* names);

  int64_t next_call_id_;
  std::vector<std::string> functions_;
  std::map<std::string, BodyBoundary> boundaries_;
  std::unordered_map<std::string, SiteNames> sites_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_NAMES_H_
