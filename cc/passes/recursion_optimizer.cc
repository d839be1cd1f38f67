// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/recursion_optimizer.h"

#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/branch_inputs.h"
#include "cc/expand/expand_calls.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/grappler/clusters/cluster.h"
#include "tensorflow/core/grappler/grappler_item.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::grappler::GrapplerItem;

// Whether the item is a function of the library: Grappler optimizes those, too. They keep their calls.
bool IsFunctionItem(const GrapplerItem& item) {
  return !item.optimization_options().allow_pruning_stateful_and_dataset_ops;
}

std::vector<std::string> Fetches(const GrapplerItem& item) {
  std::vector<std::string> fetches = item.fetch;
  fetches.insert(fetches.end(), item.init_ops.begin(), item.init_ops.end());
  // Without fetches ExpandCalls takes every node for one, so nothing is to be added.
  if (fetches.empty()) return fetches;
  fetches.insert(fetches.end(), item.keep_ops.begin(), item.keep_ops.end());
  for (const std::string* op : {&item.save_op, &item.restore_op, &item.save_restore_loc_tensor}) {
    if (!op->empty()) fetches.push_back(*op);
  }
  for (const auto& runner : item.queue_runners) {
    fetches.insert(fetches.end(), runner.enqueue_op_name().begin(), runner.enqueue_op_name().end());
    for (const std::string* op : {&runner.close_op_name(), &runner.cancel_op_name()}) {
      if (!op->empty()) fetches.push_back(*op);
    }
  }
  return fetches;
}

absl::Status ReadOption(const std::string& name, const tensorflow::AttrValue& value, int64_t lowest, int64_t* option) {
  if (value.value_case() != tensorflow::AttrValue::kI || value.i() < lowest) {
    return InvalidArgument(kOptimizerName, ": option '", name, "' is ", tensorflow::SummarizeAttrValue(value),
                           ", expected an integer of ", lowest, " or more");
  }
  *option = value.i();
  return absl::OkStatus();
}

absl::Status ReadFlag(const std::string& name, const tensorflow::AttrValue& value, bool* option) {
  if (value.value_case() != tensorflow::AttrValue::kB) {
    return InvalidArgument(kOptimizerName, ": option '", name, "' is ", tensorflow::SummarizeAttrValue(value),
                           ", expected true or false");
  }
  *option = value.b();
  return absl::OkStatus();
}

absl::Status ReadOnFallbackOption(const tensorflow::AttrValue& value, OnFallback* on_fallback) {
  if (value.value_case() != tensorflow::AttrValue::kS || (value.s() != "warn" && value.s() != "error")) {
    return InvalidArgument(kOptimizerName, ": option '", kOnFallbackOption, "' is ",
                           tensorflow::SummarizeAttrValue(value), ", expected \"warn\" or \"error\"");
  }
  *on_fallback = value.s() == "warn" ? OnFallback::kWarn : OnFallback::kError;
  return absl::OkStatus();
}

}  // namespace

const tensorflow::RewriterConfig_CustomGraphOptimizer* FindEntry(const tensorflow::ConfigProto& config) {
  for (const auto& entry : config.graph_options().rewrite_options().custom_optimizers()) {
    if (entry.name() == kOptimizerName) return &entry;
  }
  return nullptr;
}

const tensorflow::RewriterConfig_CustomGraphOptimizer* FindSwitch(const tensorflow::ConfigProto& config) {
  return config.graph_options().rewrite_options().disable_meta_optimizer() ? nullptr : FindEntry(config);
}

absl::Status ReadOptions(const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, Options* options) {
  for (const auto& [name, value] : entry.parameter_map()) {
    if (name == kMaxDepthAttr) {
      TFR_RETURN_IF_ERROR(ReadOption(name, value, 1, &options->max_depth));
    } else if (name == kWorkersAttr) {
      TFR_RETURN_IF_ERROR(ReadOption(name, value, 0, &options->workers));
    } else if (name == kCompileAttr) {
      TFR_RETURN_IF_ERROR(ReadFlag(name, value, &options->compile));
    } else if (name == kOnFallbackOption) {
      OnFallback ignored;
      TFR_RETURN_IF_ERROR(ReadOnFallbackOption(value, &ignored));
    } else {
      return InvalidArgument(kOptimizerName, ": unknown option '", name, "', known are '", kMaxDepthAttr, "', '",
                             kWorkersAttr, "', '", kCompileAttr, "' and '", kOnFallbackOption, "'");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadOnFallback(const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, OnFallback* on_fallback) {
  const auto found = entry.parameter_map().find(kOnFallbackOption);
  return found == entry.parameter_map().end() ? absl::OkStatus() : ReadOnFallbackOption(found->second, on_fallback);
}

absl::Status RecursionOptimizer::Init(const tensorflow::RewriterConfig_CustomGraphOptimizer* config) {
  // An error here would silently turn off all of Grappler, so Optimize returns it.
  if (config != nullptr) options_status_ = ReadOptions(*config, &options_);
  return absl::OkStatus();
}

std::string RecursionOptimizer::name() const { return kOptimizerName; }

absl::Status RecursionOptimizer::Optimize(tensorflow::grappler::Cluster* cluster, const GrapplerItem& item,
                                          tensorflow::GraphDef* optimized) {
  if (IsFunctionItem(item) || !HasExpandableCalls(item.graph)) return absl::AbortedError("Nothing to do.");
  TFR_RETURN_IF_ERROR(options_status_);
  ExpandOptions options;
  options.fetches = Fetches(item);
  for (const auto& feed : item.feed) options.feeds.push_back(feed.first);
  options.run = options_;
  options.placement.devices = cluster == nullptr ? nullptr : cluster->GetDeviceSet();
  options.placement.allow_soft_placement = config_proto_.allow_soft_placement();
  TFR_RETURN_IF_ERROR(ExpandCalls(item.graph, options, optimized));
  AddBranchInputs(optimized);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
