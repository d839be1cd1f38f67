// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/status.h"
#include "cc/expand/call_graph.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// On a stand-in for a resource: the tensor it stands for.
constexpr char kHandleAttr[] = "_recursion_handle";

class Aligner {
 public:
  explicit Aligner(CallProgram* program) : program_(*program) {}

  void Run() {
    ForEachNode([this](const std::string& name, Node* node) {
      if (node->IsArg()) arguments_[{name, IndexOf(*node)}] = node;
      if (node->IsRetval()) outputs_[{name, IndexOf(*node)}] = node;
    });
    ForEachNode([this](const std::string& name, Node* node) {
      if (node->IsArg()) Move(node, ArgumentDevice({name, IndexOf(*node)}));
    });
    for (const std::string& name : program_.order) FollowInputs(program_.functions.at(name).graph.get());
    ForEachNode([this](const std::string& name, Node* node) {
      if (node->IsRetval()) Move(node, OutputDevice({name, IndexOf(*node)}));
    });
  }

 private:
  using Port = std::pair<std::string, int>;  // of a function
  using Devices = std::map<Port, std::string>;

  template <typename Visit>
  void ForEachNode(Visit visit) {
    for (const std::string& name : program_.order) {
      for (Node* node : program_.functions.at(name).graph->op_nodes()) visit(name, node);
    }
  }

  static void Move(Node* node, const std::string& device) {
    if (device.empty() || device == DeviceOf(*node)) return;
    if (node->assigned_device_name().empty()) {
      node->set_requested_device(device);
    } else {
      node->set_assigned_device_name(device);
    }
  }

  // What only passes a value on, and was not asked to be elsewhere, goes where the value is. Lowering adds such nodes.
  static void FollowInputs(tensorflow::Graph* graph) {
    for (bool changed = true; changed;) {
      changed = false;
      for (Node* node : graph->op_nodes()) {
        const bool is_join = node->IsMerge();
        if (!node->requested_device().empty() || !(node->IsIdentity() || node->IsSwitch() || is_join)) continue;
        std::set<std::string> devices;
        for (const Edge* edge : node->in_edges()) {
          if (edge->IsControlEdge() || (edge->dst_input() > 0 && !is_join)) continue;
          const Node& source = *edge->src();
          // Of a loop, and of a call whose output is not placed yet, nothing can be said.
          const bool is_placed = !IsInvoke(source.def()) && !source.IsEnter() && !source.IsNextIteration();
          devices.insert(is_placed ? DeviceOf(source) : "");
        }
        if (devices.size() != 1 || devices.begin()->empty() || *devices.begin() == DeviceOf(*node)) continue;
        Move(node, *devices.begin());
        changed = true;
      }
    }
  }

  // An argument whose readers are being counted.
  struct Count {
    Port port;
    std::vector<Port> callees;           // arguments that it is passed on as, still to be looked up
    std::map<std::string, int> readers;  // by device
  };

  // Where most readers are, the ones in callees included; the device it has on a tie. Empty if it has no readers. A
  // stack of its own, as the chain of functions that pass an argument on may be longer than the C++ stack is deep.
  const std::string& ArgumentDevice(const Port& first) {
    std::vector<Count> counts;
    if (argument_devices_.count(first) == 0) StartCount(first, &counts);
    while (!counts.empty()) {
      Count& count = counts.back();
      if (count.callees.empty()) {
        argument_devices_[count.port] = Favourite(*arguments_.at(count.port), std::move(count.readers));
        counts.pop_back();
        continue;
      }
      const auto known = argument_devices_.find(count.callees.back());
      if (known == argument_devices_.end()) {
        StartCount(Port(count.callees.back()), &counts);
      } else {
        ++count.readers[known->second];
        count.callees.pop_back();
      }
    }
    return argument_devices_.at(first);
  }

  void StartCount(const Port& port, std::vector<Count>* counts) {
    std::string& device = argument_devices_[port];  // empty while it is being found: a recursion does not count
    const auto argument = arguments_.find(port);
    if (argument == arguments_.end()) return;
    if (IsHandle(argument->second->output_type(0))) {
      device = DeviceOf(*argument->second);
      return;
    }
    counts->push_back({port, {}, {}});
    CountReaders(*argument->second, &counts->back());
    std::vector<Port>& callees = counts->back().callees;
    std::reverse(callees.begin(), callees.end());  // the first in the graph is looked up first
  }

  static std::string Favourite(const Node& argument, std::map<std::string, int> readers) {
    const std::string& now = DeviceOf(argument);
    readers.erase("");
    std::string best = readers.count(now) > 0 || readers.empty() ? now : readers.begin()->first;
    for (const auto& [device, count] : readers) {
      if (count > readers[best]) best = device;
    }
    return best;
  }

  static void CountReaders(const Node& from, Count* count) {
    std::set<const Node*> seen = {&from};
    std::vector<const Node*> work = {&from};
    while (!work.empty()) {
      const Node* node = work.back();
      work.pop_back();
      for (const Edge* edge : node->out_edges()) {
        const Node* reader = edge->dst();
        if (edge->IsControlEdge() || !reader->IsOp()) continue;
        // These follow their data.
        const bool follows =
            reader->IsSwitch() ? edge->dst_input() == 0 : reader->IsIdentity() && reader->requested_device().empty();
        if (follows) {
          if (seen.insert(reader).second) work.push_back(reader);
        } else if (IsInvoke(reader->def())) {
          count->callees.emplace_back(CalleeOf(reader->def()), edge->dst_input());
        } else if (!reader->IsRetval()) {
          ++count->readers[DeviceOf(*reader)];
        }
      }
    }
  }

  // Where the value is made, in callees too. Empty if only a recursion makes it.
  const std::string& OutputDevice(const Port& first) {
    std::vector<Port> path;
    std::string device;
    for (Port port = first;;) {
      const auto [known, is_new] = output_devices_.try_emplace(port);
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
    for (const Port& port : path) output_devices_[port] = device;
    return output_devices_.at(first);
  }

  CallProgram& program_;
  std::map<Port, Node*> arguments_;
  std::map<Port, Node*> outputs_;
  Devices argument_devices_;
  Devices output_devices_;
};

}  // namespace

const std::string& DeviceOf(const Node& node) {
  return node.assigned_device_name().empty() ? node.requested_device() : node.assigned_device_name();
}

bool AsksForType(const std::string& device) {
  tensorflow::DeviceNameUtils::ParsedName requested;
  return tensorflow::DeviceNameUtils::ParseFullName(device, &requested) && requested.has_type;
}

bool IsHandle(tensorflow::DataType type) { return type == tensorflow::DT_RESOURCE || type == tensorflow::DT_VARIANT; }

int IndexOf(const Node& node) {
  int index = 0;
  (void)tensorflow::GetNodeAttr(node.attrs(), "index", &index);
  return index;
}

absl::Status DetachHandles(tensorflow::Graph* graph) {
  std::vector<Node*> calls;
  for (Node* node : graph->op_nodes()) {
    const auto& outputs = node->output_types();
    const bool returns_handles = std::count(outputs.begin(), outputs.end(), tensorflow::DT_RESOURCE) > 0;
    if (IsInvoke(node->def()) && !returns_handles) calls.push_back(node);
  }
  for (Node* call : calls) {
    const std::vector<const Edge*> edges(call->in_edges().begin(), call->in_edges().end());
    for (const Edge* edge : edges) {
      if (edge->IsControlEdge() || call->input_type(edge->dst_input()) != tensorflow::DT_RESOURCE) continue;
      tensorflow::NodeDef def;
      def.set_op("Placeholder");
      def.set_name(graph->NewName("recursion_handle"));
      tensorflow::AddNodeAttr("dtype", tensorflow::DT_RESOURCE, &def);
      tensorflow::AddNodeAttr(kHandleAttr, absl::StrCat(edge->src()->name(), ":", edge->src_output()), &def);
      absl::Status status;
      Node* stand_in = graph->AddNode(std::move(def), &status);
      TFR_RETURN_IF_ERROR(status);
      const int input = edge->dst_input();
      graph->AddControlEdge(edge->src(), stand_in);
      graph->RemoveEdge(edge);
      graph->AddEdge(stand_in, 0, call, input);
    }
  }
  return absl::OkStatus();
}

absl::Status AttachHandles(tensorflow::Graph* graph) {
  std::vector<Node*> stand_ins;
  std::unordered_map<std::string, Node*> nodes;
  for (Node* node : graph->op_nodes()) {
    nodes[node->name()] = node;
    if (node->attrs().Find(kHandleAttr) != nullptr) stand_ins.push_back(node);
  }
  for (Node* stand_in : stand_ins) {
    std::string handle;
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(stand_in->attrs(), kHandleAttr, &handle));
    const tensorflow::TensorId source = tensorflow::ParseTensorName(handle);
    const auto position = nodes.find(std::string(source.node()));
    const std::vector<const Edge*> edges(stand_in->out_edges().begin(), stand_in->out_edges().end());
    for (const Edge* edge : edges) {
      if (edge->IsControlEdge()) continue;
      const bool is_there =
          position != nodes.end() && source.index() >= 0 && source.index() < position->second->num_outputs();
      if (!is_there) {
        return absl::InternalError(absl::StrCat("Node '", edge->dst()->name(), "' has lost its input '", handle, "'"));
      }
      Node* const call = edge->dst();
      const int input = edge->dst_input();
      graph->RemoveEdge(edge);
      graph->AddEdge(position->second, source.index(), call, input);
    }
    graph->RemoveNode(stand_in);
  }
  return absl::OkStatus();
}

void AlignBoundaries(CallProgram* program) { Aligner(program).Run(); }

}  // namespace tensorflow_recursion
