// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/loop_frames.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/placement.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::ControlFlowInfo;
using tensorflow::Node;

// Finds the frames of loops. A frame is known by its name, because there is an Enter for each of its loop's variables.
class FrameFinder {
 public:
  FrameFinder(const std::vector<ControlFlowInfo>& info, CallProgram* program) : info_(info), program_(program) {}

  // Adds the frame of `enter` and the frames around it to the program. Returns the position of its own.
  int Add(const Node* enter) {
    std::vector<const Node*> path;  // up to a known frame, the innermost first
    for (; !enter->IsSource() && !positions_.count(Name(enter)); enter = info_[enter->id()].parent_frame) {
      path.push_back(enter);
    }
    int parent = enter->IsSource() ? kNoLoop : positions_.at(Name(enter));
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      int64_t parallel_iterations = 10;  // the operator's default
      tensorflow::TryGetNodeAttr((*it)->attrs(), "parallel_iterations", &parallel_iterations);
      program_->frames.push_back({Name(*it), parent, parallel_iterations, DeviceOf(**it)});
      parent = positions_[Name(*it)] = static_cast<int>(program_->frames.size()) - 1;
    }
    return parent;
  }

 private:
  const std::string& Name(const Node* enter) const { return info_[enter->id()].frame_name; }

  const std::vector<ControlFlowInfo>& info_;
  CallProgram* const program_;
  // Where each frame is in the program, by its name.
  std::map<std::string, int> positions_;
};

}  // namespace

absl::Status FindLoopFrames(tensorflow::Graph* main, CallProgram* program) {
  const auto nodes = main->op_nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->IsEnter(); })) {
    return absl::OkStatus();
  }
  tensorflow::FixupSourceAndSinkEdges(main);
  std::vector<ControlFlowInfo> info;
  TFR_RETURN_IF_ERROR(AsInvalidArgument(tensorflow::BuildControlFlowInfo(main, &info)));
  FrameFinder frames(info, program);
  for (const Node* node : nodes) {
    const Node* frame = info[node->id()].frame;
    if (IsInvoke(node->def()) && frame != nullptr && !frame->IsSource()) {
      program->frame_of[node->name()] = frames.Add(frame);
    }
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
