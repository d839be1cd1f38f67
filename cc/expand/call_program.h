// What the transformation works on: the main graph and each function's body, and what is known of them.
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
  std::unordered_map<std::string, int> index;  // position in `nodes` by name
  std::vector<bool> has_effect;  // by node: it has a side effect itself; calls are judged by their callees

  // Set by FindReachable.
  std::vector<bool> reachable;  // by node: the fetches need it
  std::set<int> awaited;        // reachable calls that a reachable node waits for, by a control edge

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
  std::string device;     // of what makes it
  std::string record_of;  // of a record: the function that retains it, if known
};

// One function that the main graph may reach, or one of several copies of it.
struct CalledFunction {
  const tensorflow::FunctionDef* definition = nullptr;
  std::string name;                          // a copy has another one than the definition
  std::unique_ptr<tensorflow::Graph> graph;  // the body, until it becomes `body`
  std::string prefix;                        // of the body's node names, ends in '/'
  std::string device;                        // of its first call site
  std::vector<Handle> handles;               // that its first call site passes, by argument
  std::string record_device;                 // of what it and its callees retain, the outermost call's device
  std::vector<std::string> callees;          // in the order of their sites
  bool has_effects = false;                  // its own, or its callees'
  bool reads_state = false;                  // of a variable, itself or in a callee
  bool is_gradient = false;                  // reads a record

  NodeList body;
  std::vector<int> arguments;        // `_Arg` nodes in body.nodes, by argument
  std::vector<int> outputs;          // `_Retval` nodes, by output
  std::vector<std::string> effects;  // nodes of the body that the function is not done without

  // Set by FindReachable.
  bool reachable = false;    // some reachable node calls it
  std::vector<bool> needed;  // by output: some reachable node reads it
  bool needs_done = false;   // someone waits for the side effects

  int num_arguments() const { return definition->signature().input_arg_size(); }
  int num_outputs() const { return definition->signature().output_arg_size(); }
};

// Which of the values that one function may retain for its gradient are in its records.
struct Retained {
  std::vector<bool> needed;  // by value: the output of some Recall that reads it is needed; set by FindReachable
};

// A loop of the main graph.
struct LoopFrame {
  std::string name;
  int parent;  // in CallProgram::frames; kNoLoop outside all loops
  int64_t parallel_iterations;
  std::string device;
};
inline constexpr int kNoLoop = -1;

// What the caller wants of a node of the main graph.
struct Fetch {
  std::set<int> outputs;
  bool whole = false;  // all outputs, and that its side effects have happened
};

struct CallProgram {
  NodeList main;
  std::map<std::string, Fetch> fetches;   // by node; fed calls too, which must keep all their outputs
  std::unordered_set<std::string> feeds;  // nodes: their consumers keep reading them
  std::vector<LoopFrame> frames;
  std::unordered_map<std::string, int> frame_of;  // frames of the main graph's calls that are inside loops
  std::map<std::string, CalledFunction> functions;
  std::vector<std::string> order;            // functions as they were found
  std::map<std::string, Retained> retained;  // by attribute `function` of the Retain and Recall operators
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_CALL_PROGRAM_H_
