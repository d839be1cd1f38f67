// The Python module tensorflow_recursion._native: glue, one call deep.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "cc/expand/expand_calls.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace py = pybind11;

namespace {

py::bytes TransformGraph(const std::string& serialized, std::vector<std::string> fetches) {
  tensorflow::GraphDef graph, expanded;
  if (!graph.ParseFromString(serialized)) throw py::value_error("not a serialized GraphDef");
  tensorflow_recursion::ExpandOptions options;
  options.fetches = std::move(fetches);
  const absl::Status status = tensorflow_recursion::ExpandCalls(graph, options, &expanded);
  if (!status.ok()) throw py::value_error(std::string(status.message()));
  return py::bytes(expanded.SerializeAsString());
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "Native helpers of tensorflow_recursion.";
  module.def("transform_graph", &TransformGraph, py::arg("graph_def"), py::arg("fetches"),
             "Expands all calls of recursive functions that `fetches` need in a serialized GraphDef.");
}
