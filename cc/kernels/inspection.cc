// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/inspection.h"

#include <utility>

#include "cc/base/status.h"
#include "cc/bytecode/listing.h"
#include "cc/expand/expand_calls.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {
namespace {

absl::Status ExpandParsed(const std::string& serialized, std::vector<std::string> fetches,
                          tensorflow::GraphDef* expanded) {
  tensorflow::GraphDef graph;
  if (!graph.ParseFromString(serialized)) return absl::InvalidArgumentError("not a serialized GraphDef");
  ExpandOptions options;
  options.fetches = std::move(fetches);
  return ExpandCalls(graph, options, expanded);
}

}  // namespace

absl::Status ExpandSerialized(const std::string& graph, std::vector<std::string> fetches, std::string* expanded) {
  tensorflow::GraphDef result;
  TFR_RETURN_IF_ERROR(ExpandParsed(graph, std::move(fetches), &result));
  *expanded = result.SerializeAsString();
  return absl::OkStatus();
}

absl::Status ListSerialized(const std::string& graph, std::vector<std::string> calls, const std::string& function,
                            std::string* listing) {
  tensorflow::GraphDef expanded;
  TFR_RETURN_IF_ERROR(ExpandParsed(graph, std::move(calls), &expanded));
  return ListBytecode(expanded, function, listing);
}

}  // namespace tensorflow_recursion
