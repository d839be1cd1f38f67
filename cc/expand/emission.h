// Writes the transformed graph: calls expanded, one body per live function.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_H_

#include <cstdint>
#include <string>
#include <unordered_set>

#include "cc/base/options.h"
#include "cc/expand/call_program.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {

// Names of the final graph. Hands out new ones that are free.
class NameTable {
 public:
  void Take(const std::string& name) { taken_.insert(name); }
  std::string Unique(const std::string& wanted);

 private:
  std::unordered_set<std::string> taken_;
};

// Appends the live nodes of `program` to `graph`. `first_call_id` is the first id that is free.
void Emit(const CallProgram& program, const Options& options, int64_t first_call_id, NameTable* names,
          tensorflow::GraphDef* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_H_
