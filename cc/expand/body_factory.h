// Turns functions into graphs of plain operators: instantiated, control flow expanded, placed.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_BODY_FACTORY_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_BODY_FACTORY_H_

#include <memory>
#include <string>
#include <unordered_set>

#include "absl/status/status.h"
#include "cc/expand/handle_stand_ins.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Where new nodes may go. Grappler runs after the Placer, so what it adds must come with full device names.
struct Placement {
  const tensorflow::DeviceSet* devices = nullptr;  // null: devices are copied from call sites, not chosen
  bool allow_soft_placement = true;
};

// Makes bodies out of one function library. The library must outlive it; not thread-safe.
class BodyFactory {
 public:
  BodyFactory(const tensorflow::FunctionDefLibrary& functions, const Placement& placement);

  // The body of `function`, with its `_Arg` and `_Retval` nodes, not placed yet.
  // Fails with InvalidArgument when the function cannot be instantiated.
  absl::Status Instantiate(const std::string& function, std::unique_ptr<tensorflow::Graph>* body);

  // Places the nodes of a body that have no assigned device yet. `device` serves those that ask for none.
  absl::Status Place(const std::string& function, const std::string& device, const DeviceOfHandle& device_of_handle,
                     tensorflow::Graph* body);

  // The device that serves a body best whose call is on `device`, but need not be: the one in its process whose type
  // TensorFlow prefers.
  std::string PreferredBeside(const std::string& device) const;

  // Expands the nodes of a main graph whose branches, loop bodies or callees hold an Invoke. TensorFlow's own
  // passes have usually done it already.
  absl::Status ExpandMain(std::unique_ptr<tensorflow::Graph>* graph);

  // The functions, all that can be expanded marked for it.
  const tensorflow::FunctionLibraryDefinition& library() const { return library_; }

 private:
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
