// Holds what the transformation works on: the main graph and each function's body, and what is known of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_CALL_PROGRAM_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_CALL_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {

// The nodes of the main graph, or of one body, with the names of the final graph. Calls are still single nodes.
struct NodeList {
  std::vector<tensorflow::NodeDef> nodes;
  // Where each node is in `nodes`, by its name.
  std::unordered_map<std::string, int> index;
  // By node, whether it has a side effect itself. A call has none itself, but its callee may.
  std::vector<bool> has_effect;
  // FindReachable sets these: which nodes the fetches need, and for which calls among them such a node waits by a
  // control edge.
  std::vector<bool> reachable;
  std::set<int> awaited;

  void Add(tensorflow::NodeDef node, bool with_effect) {
    index[node.name()] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(node));
    has_effect.push_back(with_effect);
    reachable.push_back(false);
  }

  // The position of the node that makes an input: that of "n" for "n:1" and for "^n".
  int ProducerOf(const std::string& input) const {
    return index.at(std::string(tensorflow::ParseTensorName(input).node()));
  }
};

// What is known of a value that must stay where it is: the handle of a resource, a record, a list of tensors.
struct Handle {
  bool is_known = false;
  // The device of the operator that makes it.
  std::string device;
  // If it is a record: the function that retains it, if that is known.
  std::string record_of;
};

// One function that the main graph may reach, or one of several copies of it.
struct CalledFunction {
  const tensorflow::FunctionDef* definition = nullptr;
  // The same as the definition's, or a copy's own.
  std::string name;
  // The body, until it becomes `body`.
  std::unique_ptr<tensorflow::Graph> graph;
  // What the names of the body's nodes begin with; it ends in '/'.
  std::string prefix;
  // The device of the first call site, and the handles that are passed there, by argument.
  std::string device;
  std::vector<Handle> handles;
  // Where the function and its callees keep their records: on the device of the outermost call.
  std::string record_device;
  // In the order of their call sites.
  std::vector<std::string> callees;
  // The function, or one that it calls, has side effects, or reads variables.
  bool has_effects = false;
  bool reads_state = false;
  // The function reads a record.
  bool is_gradient = false;
  NodeList body;
  // Where in `body` the `_Arg` of each argument and the `_Retval` of each output are.
  std::vector<int> arguments;
  std::vector<int> outputs;
  // The nodes of the body that must have run before the function is done.
  std::vector<std::string> effects;
  // FindReachable sets these: whether a reachable node calls the function, which outputs one reads, and whether one
  // waits for the side effects.
  bool reachable = false;
  std::vector<bool> needed;
  bool needs_done = false;

  int num_arguments() const { return definition->signature().input_arg_size(); }
  int num_outputs() const { return definition->signature().output_arg_size(); }
};

// Which of the values that one function may retain for its gradient are in its records.
struct Retained {
  // FindReachable sets this, by value: the output of some Recall that reads it is needed.
  std::vector<bool> needed;
};

// A loop of the main graph.
struct LoopFrame {
  std::string name;
  // Where the loop around it is in CallProgram::frames; kNoLoop if there is none.
  int parent;
  int64_t parallel_iterations;
  std::string device;
};
inline constexpr int kNoLoop = -1;

// What is fetched of a node of the main graph: some outputs, or the node as a whole, which means all outputs, and that
// its side effects have happened.
struct Fetch {
  std::set<int> outputs;
  bool whole = false;
};

// The whole program: what is fetched and fed, the main graph, and all functions that it may call.
struct CallProgram {
  NodeList main;
  // By node. Calls that are fed are among them, because they must keep all their outputs.
  std::map<std::string, Fetch> fetches;
  // Nodes that are fed. Whoever reads one of them keeps reading it.
  std::unordered_set<std::string> feeds;
  std::vector<LoopFrame> frames;
  // In which of `frames` a call of the main graph is, if it is in a loop.
  std::unordered_map<std::string, int> frame_of;
  std::map<std::string, CalledFunction> functions;
  // The functions as they were found.
  std::vector<std::string> order;
  // By the function whose records they are.
  std::map<std::string, Retained> retained;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_CALL_PROGRAM_H_
