// Finds where the handles and records come from that calls pass: back through bodies, and through records.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_HANDLES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_HANDLES_H_

#include <unordered_set>
#include <vector>

#include "cc/expand/call_program.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// A node, and the function whose body it stands in.
struct LocatedNode {
  // Null for a node of the main graph.
  const CalledFunction* function = nullptr;
  // Null if there is no such node.
  tensorflow::Node* node = nullptr;
};

// Calls whose callees have bodies in the program already.
using BoundCalls = std::unordered_set<const tensorflow::Node*>;

// Walks from the argument of a call to the operator that makes it: through operators that only forward a value, into
// the bodies of calls that return it, and from a Recall to the Retain of the function whose record it reads. To be used
// when all but the newest calls of a program are bound, and the bodies of all functions are placed. It changes nothing.
class HandleFinder {
 public:
  HandleFinder(const CallProgram& program, const BoundCalls& bound) : program_(program), bound_(bound) {}

  // Returns what is known of argument `index` of `call`. If it comes from a call that is not bound yet, sets `*unbound`
  // to that one, which has to be bound first. `pending` are the calls that wait for this already, `call` among them.
  // Paths through these are not followed.
  Handle Find(const LocatedNode& call, int index, const std::vector<LocatedNode>& pending, LocatedNode* unbound) const;

 private:
  // An output of a node, to which the walk has come.
  struct Port {
    LocatedNode place;
    int output;
  };

  static void AddInput(const LocatedNode& place, int index, std::vector<Port>* work);
  void AddMerged(const Port& port, std::vector<Port>* work) const;
  bool AddReturned(const Port& port, std::vector<Port>* work) const;
  bool AddRetained(const Port& port, std::vector<Port>* work) const;
  static Handle HandleAt(const CalledFunction* function, const tensorflow::Node& node);

  const CallProgram& program_;
  const BoundCalls& bound_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_HANDLES_H_
