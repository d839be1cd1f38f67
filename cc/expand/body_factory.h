// Turns functions into graphs of plain operators: instantiated, control flow expanded, placed.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_BODY_FACTORY_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_BODY_FACTORY_H_

#include <memory>
#include <string>
#include <unordered_set>

#include "absl/status/status.h"
#include "cc/expand/expandable.h"
#include "cc/expand/handle_stand_ins.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Where new nodes may go. Grappler runs after the Placer, so what it adds must come with full device names.
struct Placement {
  // If this is null, devices are not chosen, but copied from call sites.
  const tensorflow::DeviceSet* devices = nullptr;
  bool allow_soft_placement = true;
};

// Makes bodies out of one function library. The library must outlive it; not thread-safe.
class BodyFactory {
 public:
  BodyFactory(const tensorflow::FunctionDefLibrary& functions, const Placement& placement);

  // Makes the body of `function`, with its `_Arg` and `_Retval` nodes, which are not placed yet. InvalidArgument if the
  // function cannot be instantiated.
  absl::Status Instantiate(const std::string& function, std::unique_ptr<tensorflow::Graph>* body);

  // Places the nodes of a body that have no assigned device yet. Those that ask for none go to `device`.
  absl::Status Place(const std::string& function, const std::string& device, const DeviceOfHandle& device_of_handle,
                     tensorflow::Graph* body);

  // The best device for a body whose call is on `device` without having asked for it: the one in the same process whose
  // type TensorFlow prefers.
  std::string PreferredBeside(const std::string& device) const;

  // Holds ordinary calls of a main graph in loops and branches of v1 form, where ExpandMain will expand them.
  void HoldMain(tensorflow::GraphDef* graph) const;

  // Expands the nodes of a main graph whose branches, loop bodies or callees hold an Invoke. TensorFlow's own
  // passes have usually done it already.
  absl::Status ExpandMain(std::unique_ptr<tensorflow::Graph>* graph);

  // The functions, in which all nodes are marked that can be expanded.
  const tensorflow::FunctionLibraryDefinition& library() const { return library_; }

 private:
  bool HasCalls(const Expandable& expandable) const;
  absl::Status VerifyLoweringEnds(const std::string& function) const;
  absl::Status Lower(std::unique_ptr<tensorflow::Graph>* graph);
  absl::Status Assign(const std::string& function, const std::string& device, const DeviceOfHandle& device_of_handle,
                      tensorflow::Graph* graph);

  const Placement placement_;
  tensorflow::FunctionLibraryDefinition library_;
  std::unordered_set<std::string> with_invoke_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_BODY_FACTORY_H_
