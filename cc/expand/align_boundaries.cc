// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/align_boundaries.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cc/expand/call_nodes.h"
#include "cc/expand/control_flow_nodes.h"
#include "cc/expand/placement.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// Names an argument or output by its function and its index.
using Port = std::pair<std::string, int>;

// The nodes where values enter and leave the bodies.
struct PortNodes {
  std::map<Port, Node*> arguments;
  std::map<Port, Node*> outputs;
};

// Visits the nodes of all bodies: one function after the other, as they were found, and each body's nodes in the order
// of its graph.
template <typename Visit>
void ForEachNode(const CallProgram& program, Visit visit) {
  for (const std::string& function : program.order) {
    for (Node* node : program.functions.at(function).graph->op_nodes()) visit(function, node);
  }
}

PortNodes CollectPorts(const CallProgram& program) {
  PortNodes ports;
  ForEachNode(program, [&ports](const std::string& function, Node* node) {
    if (node->IsArg()) ports.arguments[{function, IndexOf(*node)}] = node;
    if (node->IsRetval()) ports.outputs[{function, IndexOf(*node)}] = node;
  });
  return ports;
}

void Move(Node* node, const std::string& device) {
  if (device.empty() || device == DeviceOf(*node)) return;
  if (node->assigned_device_name().empty()) {
    node->set_requested_device(device);
  } else {
    node->set_assigned_device_name(device);
  }
}

// The device of all values that `node` only hands on; empty if they are on several, or if it is not known.
std::string DeviceOfInputs(const Node& node) {
  std::set<std::string> devices;
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge() || (edge->dst_input() > 0 && !node.IsMerge())) continue;
    const Node& source = *edge->src();
    // Nothing can be said of a loop, nor of a call whose output is not placed yet.
    const bool is_placed = !IsInvoke(source.def()) && !source.IsEnter() && !source.IsNextIteration();
    devices.insert(is_placed ? DeviceOf(source) : "");
  }
  return devices.size() == 1 ? *devices.begin() : "";
}

// Moves nodes that only hand a value on, and that nobody asked to be elsewhere, to where the value is. TensorFlow's
// lowering pass adds such nodes.
void FollowInputs(tensorflow::Graph* graph) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Node* node : graph->op_nodes()) {
      const bool hands_on = node->IsIdentity() || IsBranchInput(node->def()) || node->IsSwitch() || node->IsMerge();
      if (!node->requested_device().empty() || !hands_on) continue;
      const std::string device = DeviceOfInputs(*node);
      if (device.empty() || device == DeviceOf(*node)) continue;
      Move(node, device);
      changed = true;
    }
  }
}

// Finds the device on which most readers of an argument are.
class ArgumentDevices {
 public:
  // `arguments` must outlive it.
  explicit ArgumentDevices(const std::map<Port, Node*>& arguments) : arguments_(arguments) {}

  // Readers in callees count, too. If several devices have the most readers, it is the one that the argument has. Empty
  // if there are no readers.
  const std::string& Of(const Port& first);

 private:
  // An argument whose readers are being counted.
  struct Count {
    Port port;
    // The arguments of callees that it is passed on as, and that are still to be looked up.
    std::vector<Port> callees;
    // How many readers are on each device.
    std::map<std::string, int> readers;
  };

  void StartCount(const Port& port, std::vector<Count>* counts);

  const std::map<Port, Node*>& arguments_;
  std::map<Port, std::string> devices_;
};

// Counts who reads the argument. A call counts where its callee reads the argument. An operator that only hands it on
// does not count, because it goes where its input is.
void CountReaders(const Node& argument, std::vector<Port>* callees, std::map<std::string, int>* readers) {
  std::set<const Node*> seen = {&argument};
  std::vector<const Node*> work = {&argument};
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    for (const Edge* edge : node->out_edges()) {
      const Node* reader = edge->dst();
      if (edge->IsControlEdge() || !reader->IsOp()) continue;
      const bool hands_on = reader->IsIdentity() || IsBranchInput(reader->def());
      const bool follows = reader->IsSwitch() ? edge->dst_input() == 0 : hands_on && reader->requested_device().empty();
      if (follows) {
        if (seen.insert(reader).second) work.push_back(reader);
      } else if (IsInvoke(reader->def())) {
        callees->emplace_back(CalleeOf(reader->def()), edge->dst_input());
      } else if (!reader->IsRetval()) {
        ++(*readers)[DeviceOf(*reader)];
      }
    }
  }
}

// The device with the most readers.
std::string MostRead(const Node& argument, std::map<std::string, int> readers) {
  const std::string& now = DeviceOf(argument);
  readers.erase("");
  std::string best = readers.count(now) > 0 || readers.empty() ? now : readers.begin()->first;
  for (const auto& [device, count] : readers) {
    if (count > readers[best]) best = device;
  }
  return best;
}

// Walks with a stack of its own, because the chain of functions that pass an argument on may be longer than the C++
// stack is deep.
const std::string& ArgumentDevices::Of(const Port& first) {
  std::vector<Count> counts;
  if (devices_.count(first) == 0) StartCount(first, &counts);
  while (!counts.empty()) {
    Count& count = counts.back();
    if (count.callees.empty()) {
      devices_[count.port] = MostRead(*arguments_.at(count.port), std::move(count.readers));
      counts.pop_back();
      continue;
    }
    const auto known = devices_.find(count.callees.back());
    if (known == devices_.end()) {
      StartCount(Port(count.callees.back()), &counts);
    } else {
      ++count.readers[known->second];
      count.callees.pop_back();
    }
  }
  return devices_.at(first);
}

void ArgumentDevices::StartCount(const Port& port, std::vector<Count>* counts) {
  std::string& device = devices_[port];  // is empty while it is being found, so a recursive call does not count
  const auto argument = arguments_.find(port);
  if (argument == arguments_.end()) return;
  if (IsHandle(argument->second->output_type(0))) {
    device = DeviceOf(*argument->second);
    return;
  }
  Count& count = counts->emplace_back();
  count.port = port;
  CountReaders(*argument->second, &count.callees, &count.readers);
  std::reverse(count.callees.begin(), count.callees.end());  // the first in the graph is looked up first
}

// Finds the device on which an output is made.
class OutputDevices {
 public:
  // `outputs` must outlive it.
  explicit OutputDevices(const std::map<Port, Node*>& outputs) : outputs_(outputs) {}

  // The device where the output is made, perhaps in a callee. Empty if only recursive calls make it.
  const std::string& Of(const Port& first) {
    std::vector<Port> path;
    std::string device;
    for (Port port = first;;) {
      const auto [known, is_new] = devices_.try_emplace(port);
      device = known->second;
      if (!is_new) break;
      path.push_back(port);
      const auto output = outputs_.find(port);
      const Edge* edge = nullptr;
      if (output == outputs_.end() || !output->second->input_edge(0, &edge).ok()) break;
      device = DeviceOf(*edge->src());
      if (!IsInvoke(edge->src()->def())) break;
      port = {CalleeOf(edge->src()->def()), edge->src_output()};
    }
    for (const Port& port : path) devices_[port] = device;
    return devices_.at(first);
  }

 private:
  const std::map<Port, Node*>& outputs_;
  std::map<Port, std::string> devices_;
};

}  // namespace

void AlignBoundaries(CallProgram* program) {
  const PortNodes ports = CollectPorts(*program);
  ArgumentDevices argument_devices(ports.arguments);
  ForEachNode(*program, [&argument_devices](const std::string& function, Node* node) {
    if (node->IsArg()) Move(node, argument_devices.Of({function, IndexOf(*node)}));
  });
  for (const std::string& name : program->order) FollowInputs(program->functions.at(name).graph.get());
  OutputDevices output_devices(ports.outputs);
  ForEachNode(*program, [&output_devices](const std::string& function, Node* node) {
    if (node->IsRetval()) Move(node, output_devices.Of({function, IndexOf(*node)}));
  });
}

}  // namespace tensorflow_recursion
