// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_expanded_calls.h"

#include <map>
#include <string>
#include <utility>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeString;
using tensorflow::NodeDef;

// The attributes of an Entry, Result, Call or Return.
struct Port {
  std::string function;
  int64_t index = 0;
  int64_t call_id = 0;
  DataType type = tensorflow::DT_INVALID;
};

absl::Status ReadPort(const NodeDef& node, bool has_call_id, Port* port) {
  const bool complete = TryGetNodeAttr(node, kFunctionAttr, &port->function) &&
                        TryGetNodeAttr(node, kIndexAttr, &port->index) &&
                        TryGetNodeAttr(node, kTypeAttr, &port->type) &&
                        (!has_call_id || TryGetNodeAttr(node, kCallIdAttr, &port->call_id));
  if (!complete) return InvalidArgument("Node '", node.name(), "' (", node.op(), "): an attribute is missing");
  if (port->index < 0) return InvalidArgument("Node '", node.name(), "': index is ", port->index, ", not 0 or more");
  if (has_call_id && port->call_id < 1) {
    return InvalidArgument("Node '", node.name(), "': call_id is ", port->call_id, ", not 1 or more");
  }
  return absl::OkStatus();
}

// Collects what a graph defines (entries, results) and uses (calls, returns), then matches the two.
class ExpandedCalls {
 public:
  absl::Status Add(const NodeDef& node) {
    if (node.op() == kEntryOp) return Define(node, &entries_);
    if (node.op() == kResultOp) return Define(node, &results_);
    if (node.op() == kCallOp) return Use(node, &calls_);
    if (node.op() == kReturnOp) return Use(node, &returns_);
    if (node.op() == kFrameStartOp) return AddFrameStart(node);
    return absl::OkStatus();
  }

  absl::Status Match() const {
    TFR_RETURN_IF_ERROR(MatchUses(calls_, entries_, "argument"));
    return MatchUses(returns_, results_, "output");
  }

 private:
  // An Entry or a Result, and the dtype of its value.
  struct Definition {
    const NodeDef* node;
    DataType type;
  };
  // A Call or a Return, and what its attributes say.
  struct User {
    const NodeDef* node;
    Port port;
  };
  using Definitions = std::map<std::pair<std::string, int64_t>, Definition>;
  // The key is the call_id and the index.
  using Users = std::map<std::pair<int64_t, int64_t>, User>;

  absl::Status Define(const NodeDef& node, Definitions* definitions) {
    Port port;
    TFR_RETURN_IF_ERROR(ReadPort(node, /*has_call_id=*/false, &port));
    const auto added = definitions->emplace(std::make_pair(port.function, port.index), Definition{&node, port.type});
    if (added.second) return absl::OkStatus();
    return InvalidArgument("Nodes '", added.first->second.node->name(), "' and '", node.name(), "': both are ",
                           node.op(), " ", port.index, " of function '", port.function, "'");
  }

  absl::Status Use(const NodeDef& node, Users* users) {
    Port port;
    TFR_RETURN_IF_ERROR(ReadPort(node, /*has_call_id=*/true, &port));
    const auto site = functions_.emplace(port.call_id, port.function).first;
    if (site->second != port.function) {
      return InvalidArgument("Node '", node.name(), "': call_id ", port.call_id, " calls '", site->second, "', not '",
                             port.function, "'");
    }
    const auto added = users->emplace(std::make_pair(port.call_id, port.index), User{&node, port});
    if (added.second) return absl::OkStatus();
    return InvalidArgument("Nodes '", added.first->second.node->name(), "' and '", node.name(), "': both are ",
                           node.op(), " ", port.index, " of call_id ", port.call_id);
  }

  absl::Status AddFrameStart(const NodeDef& node) {
    std::string function;
    if (!TryGetNodeAttr(node, kFunctionAttr, &function)) {
      return InvalidArgument("Node '", node.name(), "' (", node.op(), "): an attribute is missing");
    }
    const auto added = frame_starts_.emplace(function, &node);
    if (added.second) return absl::OkStatus();
    return InvalidArgument("Nodes '", added.first->second->name(), "' and '", node.name(), "': both are ", node.op(),
                           " of function '", function, "'");
  }

  static absl::Status MatchUses(const Users& users, const Definitions& definitions, const char* what) {
    for (const auto& [key, user] : users) {
      const Port& port = user.port;
      const auto found = definitions.find({port.function, port.index});
      if (found == definitions.end()) {
        return InvalidArgument("Node '", user.node->name(), "': function '", port.function, "' has no ", what, " ",
                               port.index, " in this graph");
      }
      if (found->second.type != port.type) {
        return InvalidArgument("Node '", user.node->name(), "': ", what, " ", port.index, " of '", port.function,
                               "' is ", DataTypeString(found->second.type), ", not ", DataTypeString(port.type));
      }
    }
    return absl::OkStatus();
  }

  Definitions entries_, results_;
  Users calls_, returns_;
  // The callee of each call_id.
  std::map<int64_t, std::string> functions_;
  std::map<std::string, const NodeDef*> frame_starts_;
};

}  // namespace

absl::Status VerifyExpandedCalls(const tensorflow::GraphDef& graph) {
  ExpandedCalls calls;
  for (const tensorflow::NodeDef& node : graph.node()) TFR_RETURN_IF_ERROR(calls.Add(node));
  return calls.Match();
}

}  // namespace tensorflow_recursion
