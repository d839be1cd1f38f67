// Knows the names of the final graph: which are taken, and what the nodes of bodies are called.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_NAME_TABLE_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_NAME_TABLE_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {

// Knows the names that are in use, and hands out new ones that are free.
class NameTable {
 public:
  void Take(const std::string& name) { taken_.insert(name); }

  // Returns `wanted`, with a number behind it if that is taken, as in "F/n_1". The name is taken afterwards.
  std::string Unique(const std::string& wanted);

 private:
  std::unordered_set<std::string> taken_;
};

// Frames of loops have names of their own, which do not clash with those of nodes.
struct GraphNames {
  NameTable nodes;
  NameTable frames;
};

// The names of `graph`, and those that its Invokes are marked with. The graph may have lost nodes that the fetches do
// not need. But the names of a body's nodes must not depend on the fetches, because the state of its kernels is kept
// under these names. So a pass that saw the whole graph has marked the Invokes.
GraphNames NamesOf(const tensorflow::GraphDef& graph);

// What the names of a body's nodes begin with: the function's name as far as node names allow it, and a slash.
std::string PrefixFor(const std::string& function);

// Returns those names in the main graph, of `nodes`, that nodes in bodies of `functions` may want to have:
// "<function>/<node>".
std::vector<std::string> TakenNames(const std::vector<std::string>& nodes,
                                    const tensorflow::FunctionDefLibrary& functions);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_NAME_TABLE_H_
