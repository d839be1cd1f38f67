// Grappler's view of the transformation: the optimizer `function_transformation`.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_RECURSION_OPTIMIZER_H_
#define TENSORFLOW_RECURSION_CC_PASSES_RECURSION_OPTIMIZER_H_

#include <string>

#include "absl/status/status.h"
#include "cc/base/options.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer.h"

namespace tensorflow_recursion {

// The entry of `function_transformation` in a session's config; null when the switch is off.
const tensorflow::RewriterConfig_CustomGraphOptimizer* FindSwitch(const tensorflow::ConfigProto& config);

// Reads the entry's parameter_map. InvalidArgument for an unknown option, or a value out of range.
absl::Status ReadOptions(const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, Options* options);

// What to do when a call cannot be made static; left alone if the entry does not say.
absl::Status ReadOnFallback(const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, OnFallback* on_fallback);

// Runs after the stock optimizers of the first iteration. Grappler only logs an optimizer's failure, and the graph then
// stays as it is. ExpandLeftCallsPass sees what is left, tells the user, or transforms it after all. That a bad option
// reaches the user is the business of PrepareGraphPass.
class RecursionOptimizer : public tensorflow::grappler::CustomGraphOptimizer {
 public:
  absl::Status Init(const tensorflow::RewriterConfig_CustomGraphOptimizer* config) override;
  std::string name() const override;
  bool UsesFunctionLibrary() const override { return true; }

  // Aborted, by Grappler's convention, says that there was nothing to do.
  absl::Status Optimize(tensorflow::grappler::Cluster* cluster, const tensorflow::grappler::GrapplerItem& item,
                        tensorflow::GraphDef* optimized) override;

 private:
  absl::Status options_status_;
  Options options_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_RECURSION_OPTIMIZER_H_
