// The transformation as an optimizer of Grappler, `function_transformation`.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_RECURSION_OPTIMIZER_H_
#define TENSORFLOW_RECURSION_CC_PASSES_RECURSION_OPTIMIZER_H_

#include <string>

#include "absl/status/status.h"
#include "cc/base/options.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer.h"

namespace tensorflow_recursion {

// The entry of `function_transformation` in a session's config; nullptr if there is none.
const tensorflow::RewriterConfig_CustomGraphOptimizer* FindEntry(const tensorflow::ConfigProto& config);

// That entry if the switch is on; nullptr if it is off, as it also is where all optimizers are.
const tensorflow::RewriterConfig_CustomGraphOptimizer* FindSwitch(const tensorflow::ConfigProto& config);

// Reads the entry's parameter_map. InvalidArgument for an unknown option, or a value out of range.
absl::Status ReadOptions(const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, Options* options);

// Reads what to do when a call cannot be made static. Leaves `*on_fallback` as it is if the entry does not say.
absl::Status ReadOnFallback(const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, OnFallback* on_fallback);

// Transforms the calls in a graph, after the stock optimizers of Grappler's first iteration. When an optimizer fails,
// Grappler only logs that, and the graph stays as it is. So ExpandLeftCallsPass transforms what is left or tells the
// user, and PrepareGraphPass reports faulty options.
class RecursionOptimizer : public tensorflow::grappler::CustomGraphOptimizer {
 public:
  absl::Status Init(const tensorflow::RewriterConfig_CustomGraphOptimizer* config) override;
  std::string name() const override;
  bool UsesFunctionLibrary() const override { return true; }

  // Returns Aborted if there was nothing to do, which is Grappler's convention.
  absl::Status Optimize(tensorflow::grappler::Cluster* cluster, const tensorflow::grappler::GrapplerItem& item,
                        tensorflow::GraphDef* optimized) override;

 private:
  absl::Status options_status_;
  Options options_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_RECURSION_OPTIMIZER_H_
