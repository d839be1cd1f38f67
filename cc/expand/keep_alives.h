// Makes KeepAlive nodes, which keep bodies in the graph although no edge leads from them to their callers.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_KEEP_ALIVES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_KEEP_ALIVES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cc/analysis/call_graph.h"
#include "cc/expand/call_program.h"
#include "cc/expand/emission_names.h"
#include "cc/expand/node_writer.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// Stock pruning keeps the nodes from which the fetches can be reached. The edges into bodies and out of them are added
// only later, by the executor. So each Return of the main graph reads a token of a KeepAlive, and that waits for all
// bodies that the call may run. There is one KeepAlive for each set of mutually recursive functions that the main graph
// calls.
//
// In order of use: Token for the calls of the main graph, AddResult while bodies are written, Emit at the end.
class KeepAlives {
 public:
  KeepAlives(const CallProgram& program, const EmissionNames& names, NodeWriter* writer);

  // The token that Returns of the call read, which is in the main graph: inside of the loop that the call stands in.
  std::string Token(const tensorflow::NodeDef& invoke);

  // Adds a Result of the function's body, for which the KeepAlive is to wait.
  void AddResult(const std::string& function, const std::string& result) { results_[function].push_back(result); }

  // Writes the KeepAlives whose tokens someone reads.
  void Emit();

 private:
  std::string EnterLoops(int component, const std::string& keep_alive, int frame);
  void KeepEffect(const std::string& effect, tensorflow::NodeDef* keep_alive) const;

  const CallProgram& program_;
  const EmissionNames& names_;
  NodeWriter* const writer_;
  const CallGraph call_graph_;
  // The Results of each function.
  std::map<std::string, std::vector<std::string>> results_;
  // The KeepAlive of each component of the call graph, and the token that enters each loop from there.
  std::map<int, std::string> keep_alives_;
  std::map<std::pair<int, int>, std::string> entered_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_KEEP_ALIVES_H_
