// The Python module tensorflow_recursion._native. Its functions convert arguments and results, and call the library.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "cc/base/notices.h"
#include "cc/base/run_profile.h"
#include "cc/base/static_settings.h"
#include "cc/kernels/inspection.h"

namespace py = pybind11;

namespace {

py::bytes TransformGraph(const std::string& graph, std::vector<std::string> fetches) {
  std::string expanded;
  const absl::Status status = tensorflow_recursion::ExpandSerialized(graph, std::move(fetches), &expanded);
  if (!status.ok()) throw py::value_error(std::string(status.message()));
  return py::bytes(expanded);
}

std::string Bytecode(const std::string& graph, std::vector<std::string> calls, const std::string& function) {
  std::string listing;
  const absl::Status status = tensorflow_recursion::ListSerialized(graph, std::move(calls), function, &listing);
  if (!status.ok()) throw py::value_error(std::string(status.message()));
  return listing;
}

using tensorflow_recursion::NoticeKind;

// The notices that Python has not shown yet; there is one queue in the process.
struct NoticeQueue {
  std::mutex mu;  // notices come from threads that prepare graphs, without Python's lock
  std::vector<std::pair<NoticeKind, std::string>> notices;
  bool is_scheduled = false;
};

NoticeQueue& Queue() {
  static NoticeQueue* const queue = new NoticeQueue;
  return *queue;
}

// Shows the queued notices. The interpreter calls it in Python's main thread. An exception, from a filter that turns
// warnings into errors, is raised where the main thread is just then: session.run raises it, if the thread is in one.
int ShowNotices(void* /*unused*/) {
  std::vector<std::pair<NoticeKind, std::string>> notices;
  {
    std::lock_guard<std::mutex> lock(Queue().mu);
    notices.swap(Queue().notices);
    Queue().is_scheduled = false;
  }
  try {
    const py::object show = py::module_::import("tensorflow_recursion.notices").attr("show");
    for (const auto& [kind, text] : notices) show(kind == NoticeKind::kFallback ? "fallback" : "no switch", text);
  } catch (py::error_already_set& error) {
    error.restore();
    return -1;
  }
  return 0;
}

// Queues a notice, to be shown as soon as the main thread interprets Python again. It is not shown at once, because the
// thread that prepares a graph holds locks of the session, and a thread that waits for these may hold Python's lock.
void QueueNotice(NoticeKind kind, const std::string& text) {
  std::lock_guard<std::mutex> lock(Queue().mu);
  Queue().notices.emplace_back(kind, text);
  if (!Queue().is_scheduled) Queue().is_scheduled = Py_AddPendingCall(&ShowNotices, nullptr) == 0;
}

using tensorflow_recursion::OnFallback;
using tensorflow_recursion::StaticSettings;

// The options by their names, and under "is_on" whether static execution is on.
py::dict GetSettings() {
  namespace tfr = tensorflow_recursion;
  const StaticSettings settings = tfr::GetStaticSettings();
  py::dict result;
  result["is_on"] = settings.is_on;
  result[tfr::kMaxDepthAttr] = settings.options.max_depth;
  result[tfr::kWorkersAttr] = settings.options.workers;
  result[tfr::kCompileAttr] = settings.options.compile;
  result[tfr::kOnFallbackOption] = settings.on_fallback == OnFallback::kError ? "error" : "warn";
  return result;
}

// Sets all that GetSettings returns.
void SetSettings(const py::dict& values) {
  namespace tfr = tensorflow_recursion;
  StaticSettings settings;
  settings.is_on = values["is_on"].cast<bool>();
  settings.options.max_depth = values[tfr::kMaxDepthAttr].cast<int64_t>();
  settings.options.workers = values[tfr::kWorkersAttr].cast<int64_t>();
  settings.options.compile = values[tfr::kCompileAttr].cast<bool>();
  settings.on_fallback =
      values[tfr::kOnFallbackOption].cast<std::string>() == "error" ? OnFallback::kError : OnFallback::kWarn;
  tfr::SetStaticSettings(settings);
}

py::dict OutermostCalls() {
  const tensorflow_recursion::OutermostCalls counted = tensorflow_recursion::CountOutermostCalls();
  py::dict result;
  result["static"] = counted.as_static;
  result["dynamic"] = counted.as_dynamic;
  return result;
}

// The names of cc/base/names.h that the Python package writes into graphs or reads there.
py::dict Names() {
  namespace tfr = tensorflow_recursion;
  py::dict names;
  names["OPTIMIZER"] = tfr::kOptimizerName;

  names["OP_PREFIX"] = tfr::kOpPrefix;
  names["INVOKE_OP"] = tfr::kInvokeOp;
  names["RETAIN_OP"] = tfr::kRetainOp;
  names["RECALL_OP"] = tfr::kRecallOp;
  names["LIST_OR_ZEROS_OP"] = tfr::kListOrZerosOp;
  names["SNAPSHOT_OP"] = tfr::kSnapshotOp;
  names["VARIABLES_OF_OP"] = tfr::kVariablesOfOp;
  names["POSITIONS_ATTR"] = tfr::kPositionsAttr;
  names["ASSIGNED_ATTR"] = tfr::kAssignedAttr;
  names["HAS_SNAPSHOT_ATTR"] = tfr::kHasSnapshotAttr;
  names["HAS_RUN_OP"] = tfr::kHasRunOp;
  names["CONTRIBUTE_OP"] = tfr::kContributeOp;
  names["CONTRIBUTE_NONE_OP"] = tfr::kContributeNoneOp;
  names["COLLECT_OP"] = tfr::kCollectOp;
  names["TOTAL_OP"] = tfr::kTotalOp;
  names["IMPORT_OP"] = tfr::kImportOp;
  names["CONTRIBUTE_VIEW_OP"] = tfr::kContributeViewOp;
  names["PART_ATTR"] = tfr::kPartAttr;
  names["CALL_OP"] = tfr::kCallOp;
  names["RETURN_OP"] = tfr::kReturnOp;

  names["CALLEE_ATTR"] = tfr::kCalleeAttr;
  names["ARGUMENT_TYPES_ATTR"] = tfr::kArgumentTypesAttr;
  names["IGNORED_TYPES_ATTR"] = tfr::kIgnoredTypesAttr;
  names["RESULT_TYPES_ATTR"] = tfr::kResultTypesAttr;
  names["FORWARD_ATTR"] = tfr::kForwardAttr;
  names["RECORD_OF_ATTR"] = tfr::kRecordOfAttr;
  names["OUTPUT_SHAPES_ATTR"] = tfr::kOutputShapesAttr;
  names["FUNCTION_ATTR"] = tfr::kFunctionAttr;
  names["TYPE_ATTR"] = tfr::kTypeAttr;
  names["CALL_ID_ATTR"] = tfr::kCallIdAttr;
  names["INPUTS_ON_HOST_ATTR"] = tfr::kInputsOnHostAttr;
  names["OUTPUTS_ON_HOST_ATTR"] = tfr::kOutputsOnHostAttr;

  names["MAX_DEPTH_OPTION"] = tfr::kMaxDepthAttr;
  names["WORKERS_OPTION"] = tfr::kWorkersAttr;
  names["COMPILE_OPTION"] = tfr::kCompileAttr;
  names["ON_FALLBACK_OPTION"] = tfr::kOnFallbackOption;

  names["STATIC_ATTR"] = tfr::kStaticAttr;
  names["OPTION_ATTR_PREFIX"] = tfr::kOptionAttrPrefix;

  names["COPY_SUFFIX"] = tfr::kCopySuffix;
  names["MANGLED_SUFFIX"] = tfr::kMangledSuffix;
  names["TRACE_SUFFIX"] = tfr::kTraceSuffix;
  names["FORWARD_SUFFIX"] = tfr::kForwardSuffix;
  names["BACKWARD_SUFFIX"] = tfr::kBackwardSuffix;
  names["GRADIENT_SUFFIX"] = tfr::kGradientSuffix;
  return names;
}

py::dict TimesOf(const std::map<std::string, tensorflow_recursion::KernelTimes>& kernels) {
  py::dict times;
  for (const auto& [op, of_op] : kernels) times[py::str(op)] = py::make_tuple(of_op.count, of_op.nanoseconds);
  return times;
}

py::dict StopProfile() {
  const tensorflow_recursion::RunProfile profile = tensorflow_recursion::StopProfile();
  py::dict result;
  result["runs"] = profile.runs;
  result["busy_nanoseconds"] = profile.busy_nanoseconds;
  result["release_nanoseconds"] = profile.release_nanoseconds;
  result["main_graph"] = TimesOf(profile.main_graph);
  result["bodies"] = TimesOf(profile.bodies);
  result["frame_bytes"] = profile.frame_bytes;
  return result;
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "Native helpers of tensorflow_recursion.";
  module.def("transform_graph", &TransformGraph, py::arg("graph_def"), py::arg("fetches"),
             "Expands all calls of recursive functions that `fetches` need in a serialized GraphDef.");
  module.def("bytecode", &Bytecode, py::arg("graph_def"), py::arg("calls"), py::arg("function"),
             "Lists what `function`, which some of `calls` need in a serialized GraphDef, is compiled to.");
  module.def("static_settings", &GetSettings, "What holds for calls outside of sessions, by name.");
  module.def("set_static_settings", &SetSettings, py::arg("settings"), "Replaces all that static_settings returns.");
  module.def("outermost_calls", &OutermostCalls, "How many calls outside of sessions' graphs ran in which way.");
  module.def("start_profile", &tensorflow_recursion::StartProfile,
             "Counts from now on where the time of static runs goes.");
  module.def("stop_profile", &StopProfile, "Stops counting; returns sums over the runs since start_profile.");
  tensorflow_recursion::SetNoticeListener(&QueueNotice);
  // For example, NAMES["INVOKE_OP"] is "Recursion>Invoke", and NAMES["FORWARD_SUFFIX"] is "__forward".
  module.attr("NAMES") = Names();
}
