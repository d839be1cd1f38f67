// Who calls whom: call sites in graphs, functions that become part of others, recursion as components.
// Everything here only reads.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_CALL_GRAPH_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_CALL_GRAPH_H_

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// A call site of a recursive function.
bool IsInvoke(const tensorflow::NodeDef& node);
bool HasInvoke(const tensorflow::GraphDef& graph);

// Writes or reads the record of one invocation.
bool IsRetain(const tensorflow::NodeDef& node);
bool IsRecall(const tensorflow::NodeDef& node);
// Stateful only so that stock passes leave it alone: nothing has to wait for it but who reads its outputs, and side
// effects.
bool IsPureGradientOp(const std::string& op);
// The function whose record it is; empty when the attribute is missing.
const std::string& RecordOwner(const tensorflow::NodeDef& node);

// The function an Invoke calls; empty when the attribute is missing.
const std::string& CalleeOf(const tensorflow::NodeDef& invoke);

// How a node that holds functions can become plain operators.
enum class Expansion {
  kNone,         // an ordinary operator, or one that must stay a kernel
  kControlFlow,  // If, Case, While: switches, merges and loops around its functions' bodies
  kInline,       // a call of an ordinary function: its body
};

// What expanding `node` would bring in. A node whose functions are missing, take attributes, or do not
// fit its inputs and outputs is not expandable: its kernel is the one to complain.
struct Expandable {
  Expansion kind = Expansion::kNone;
  std::vector<std::string> functions;
};
Expandable FindExpandable(const tensorflow::NodeDef& node, const tensorflow::FunctionLibraryDefinition& library);

// Functions of `functions` that hold an Invoke, be it in functions that can be expanded into them.
std::unordered_set<std::string> FunctionsWithInvoke(const tensorflow::FunctionDefLibrary& functions,
                                                    const tensorflow::FunctionLibraryDefinition& library);

// Whether TensorFlow's lowering pass will expand `node`; it does so to what is marked, and checks nothing.
bool IsMarkedForLowering(const tensorflow::NodeDef& node);

// Names a function on a cycle of marked expansions that starts at `function`; empty when all of them end.
std::string FindEndlessLowering(const std::string& function, const tensorflow::FunctionLibraryDefinition& library);

// The calls between functions, as strongly connected components: functions of one component are
// mutually recursive. Immutable.
class CallGraph {
 public:
  // Callees by caller. Every callee is a key too.
  using Calls = std::map<std::string, std::vector<std::string>>;
  explicit CallGraph(Calls calls);

  // Components, callees before callers; each lists its functions by name.
  const std::vector<std::vector<std::string>>& components() const { return components_; }
  int ComponentOf(const std::string& function) const { return component_of_.at(function); }

  // Sorted: the functions of the component and all that these call, directly or not.
  std::vector<std::string> ReachableFrom(int component) const;

 private:
  Calls calls_;
  std::vector<std::vector<std::string>> components_;
  std::map<std::string, int> component_of_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_CALL_GRAPH_H_
