// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/static_calls.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cc/base/names.h"
#include "cc/base/notices.h"
#include "cc/base/static_settings.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/kernels/function_program.h"
#include "cc/kernels/static_graph.h"
#include "cc/passes/dynamic_calls.h"
#include "cc/passes/recursion_optimizer.h"
#include "cc/values/device_memory.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// How one call is to be made static.
struct CallSettings {
  Options options;
  OnFallback on_fallback = OnFallback::kWarn;
  // The settings come from a session, for a call in a function that it runs.
  bool is_of_session = false;
};

// The options that the node has as attributes, in the form in which a session's configuration has them.
tensorflow::RewriterConfig_CustomGraphOptimizer OptionsOf(const NodeDef& call) {
  tensorflow::RewriterConfig_CustomGraphOptimizer entry;
  for (const char* option : {kMaxDepthAttr, kWorkersAttr, kCompileAttr, kOnFallbackOption}) {
    const auto found = call.attr().find(absl::StrCat(kOptionAttrPrefix, option));
    if (found != call.attr().end()) (*entry.mutable_parameter_map())[option] = found->second;
  }
  return entry;
}

// Reads the settings of the call from its attributes. A setting without an attribute is that of the process.
absl::Status ReadSettings(const NodeDef& call, const StaticSettings& of_process, CallSettings* settings) {
  const auto entry = OptionsOf(call);
  settings->options = of_process.options;
  settings->on_fallback = of_process.on_fallback;
  settings->is_of_session = entry.parameter_map().count(kOnFallbackOption) > 0;
  if (settings->is_of_session) settings->options.depth_setting = kDepthSettingOfSession;
  TFR_RETURN_IF_ERROR(ReadOptions(entry, &settings->options));
  return ReadOnFallback(entry, &settings->on_fallback);
}

// A key that is the same for all calls that may share a program.
std::string KeyOfCall(const NodeDef& call) {
  const tensorflow::NameAttrList& function = call.attr().at(kCalleeAttr).func();
  std::string key = tensorflow::Canonicalize(function.name(), tensorflow::AttrSlice(&function.attr()));
  for (const char* types : {kArgumentTypesAttr, kResultTypesAttr}) {
    absl::StrAppend(&key, " ", tensorflow::SummarizeAttrValue(call.attr().at(types)));
  }
  const auto soft = call.attr().find(kSoftPlacementAttr);
  if (soft != call.attr().end()) absl::StrAppend(&key, soft->second.b() ? " soft" : " hard");
  return key;
}

// Whether operators may go to other devices than they ask for: as noted when the call's function was prepared, or else
// as the function's runtime has it.
bool AllowsSoftPlacement(const NodeDef& call, FunctionLibraryRuntime* library) {
  bool allows = library->config_proto() == nullptr || library->config_proto()->allow_soft_placement();
  (void)tensorflow::TryGetNodeAttr(call, kSoftPlacementAttr, &allows);
  return allows;
}

bool IsOnOneDevice(const tensorflow::Graph& graph, const std::string& device) {
  const auto nodes = graph.op_nodes();
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](const tensorflow::Node* node) { return node->assigned_device_name() == device; });
}

// Whether the kernels of one device put every value into the memory where it is read. Only when a graph is partitioned
// are copies between a device's own memory and the host's added.
bool NeedsNoCopies(const tensorflow::Graph& graph, const tensorflow::Device& device) {
  return DeviceMemory(device.device_type(), nullptr).Verify(graph).ok();
}

}  // namespace

// What is made static: one call, or a whole graph with calls.
struct StaticCalls::Source {
  // The call; of a graph with calls, one of them, because all have the same settings.
  NodeDef call;
  MainGraph main;
  // Sources with the same key may share a program.
  std::string key;
  bool is_whole = false;
  DeadResults dead_results = DeadResults::kAreErrors;
};

class StaticCalls::Shared {
 public:
  // Returns the one object that all have in common who use this key at a time.
  static std::shared_ptr<Shared> Of(const std::string& key) {
    static std::mutex* const mu = new std::mutex;
    static auto* const known = new absl::flat_hash_map<std::string, std::weak_ptr<Shared>>;
    const std::lock_guard<std::mutex> lock(*mu);
    std::weak_ptr<Shared>& found = (*known)[key];
    std::shared_ptr<Shared> shared = found.lock();
    if (shared == nullptr) {
      shared = std::shared_ptr<Shared>(new Shared, [key](Shared* last) {
        delete last;
        const std::lock_guard<std::mutex> lock(*mu);
        const auto entry = known->find(key);
        if (entry != known->end() && entry->second.expired()) known->erase(entry);
      });
      found = shared;
    }
    return shared;
  }

  // Returns the program, and makes it the first time. If none can be made, returns nullptr after a notice to the user,
  // or an error if the user wants that.
  absl::StatusOr<const RunnableProgram*> Get(const Source& source, FunctionLibraryRuntime* library,
                                             const CallSettings& settings) {
    const std::lock_guard<std::mutex> lock(mu_);
    if (!std::exchange(is_made_, true)) {
      status_ = Make(source, library, settings);
      if (!status_.ok()) notice_ = NoticeOf(source, library, settings);
    }
    if (status_.ok()) return program_.get();
    if (notice_.empty()) return nullptr;
    if (settings.on_fallback == OnFallback::kError) return absl::FailedPreconditionError(notice_);
    if (!std::exchange(is_told_, true)) Notify(NoticeKind::kFallback, notice_);
    return nullptr;
  }

 private:
  Shared() = default;

  absl::Status Make(const Source& source, FunctionLibraryRuntime* library, const CallSettings& settings) {
    std::unique_ptr<tensorflow::Graph> graph;
    TFR_RETURN_IF_ERROR(
        MakeStaticGraph(source.main, library, settings.options, AllowsSoftPlacement(source.call, library), &graph));
    const tensorflow::Device& device = *library->device();
    if (!IsOnOneDevice(*graph, device.name()) || !NeedsNoCopies(*graph, device)) {
      // A whole graph whose bodies are on other devices is no program; each of its calls is one.
      return source.is_whole ? absl::OkStatus() : FunctionProgram::MakeSpread(*graph, library, &program_);
    }
    std::unique_ptr<StaticProgram> program;
    TFR_RETURN_IF_ERROR(StaticProgram::Make(std::move(graph), library, /*session_handle=*/"", &program));
    program->CountCalls();
    program->SetDeadResults(source.dead_results);
    program_ = std::move(program);
    return absl::OkStatus();
  }

  // What the user has to know, as no program could be made. Nothing if that is so of the calls in a graph as well: each
  // of them has a notice of its own.
  std::string NoticeOf(const Source& source, FunctionLibraryRuntime* library, const CallSettings& settings) const {
    const std::string function = UserName(CalleeOf(source.call));
    if (!source.is_whole) return FallbackText(function, status_, settings.is_of_session);
    return HasStaticCalls(source, library, settings) ? OneByOneText(function, status_, settings.is_of_session) : "";
  }

  // Whether all calls of a graph can be made static, each by itself.
  static bool HasStaticCalls(const Source& source, FunctionLibraryRuntime* library, const CallSettings& settings) {
    std::set<std::string> seen;
    for (const NodeDef& node : source.main.graph.node()) {
      if (!IsInvoke(node) || !seen.insert(KeyOfCall(node)).second) continue;
      MainGraph main;
      std::unique_ptr<tensorflow::Graph> ignored;
      const bool is_static =
          MakeMainGraph(node, library->device()->name(), &main).ok() &&
          MakeStaticGraph(std::move(main), library, settings.options, AllowsSoftPlacement(node, library), &ignored)
              .ok();
      if (!is_static) return false;
    }
    return true;
  }

  // Whoever comes while the program is made waits for it here.
  std::mutex mu_;
  bool is_made_ = false;
  bool is_told_ = false;
  absl::Status status_;
  std::string notice_;
  std::unique_ptr<RunnableProgram> program_;
};

// What was found for one function runtime under one version of the process's settings.
struct StaticCalls::Target {
  FunctionLibraryRuntime* library;
  int64_t settings_version;
  std::shared_ptr<Shared> shared;
  absl::StatusOr<const RunnableProgram*> found;
  Target* next;
};

absl::StatusOr<std::unique_ptr<StaticCalls>> StaticCalls::Make(const NodeDef& call, const std::string& device) {
  Source source;
  source.call = call;
  TFR_RETURN_IF_ERROR(MakeMainGraph(call, device, &source.main));
  source.key = KeyOfCall(call);
  return Make(std::move(source));
}

absl::StatusOr<std::unique_ptr<StaticCalls>> StaticCalls::MakeWhole(GraphDef partition, const std::string& name,
                                                                    DeadResults dead_results) {
  const auto call = std::find_if(partition.node().begin(), partition.node().end(), IsInvoke);
  if (call == partition.node().end()) return InvalidArgument("Node '", name, "': no call in its graph");
  Source source;
  source.call = *call;
  MakeMainGraph(std::move(partition), &source.main);
  source.key = name;
  source.is_whole = true;
  source.dead_results = dead_results;
  return Make(std::move(source));
}

absl::StatusOr<std::unique_ptr<StaticCalls>> StaticCalls::Make(Source source) {
  TFR_RETURN_IF_ERROR(CheckStaticVariable());
  CallSettings ignored;
  TFR_RETURN_IF_ERROR(ReadSettings(source.call, StaticSettings(), &ignored));
  return std::unique_ptr<StaticCalls>(new StaticCalls(std::move(source)));
}

StaticCalls::StaticCalls(Source source) : source_(std::make_unique<const Source>(std::move(source))) {}

StaticCalls::~StaticCalls() {
  for (Target* target = targets_.load(); target != nullptr;) delete std::exchange(target, target->next);
}

const GraphDef& StaticCalls::graph() const { return source_->main.graph; }

absl::StatusOr<const RunnableProgram*> StaticCalls::Find(FunctionLibraryRuntime* library) {
  const int64_t version = StaticSettingsVersion();
  const Target* target = targets_.load(std::memory_order_acquire);  // sees what the release in MakeTarget has written
  while (target != nullptr && (target->library != library || target->settings_version != version)) {
    target = target->next;
  }
  if (target != nullptr) return target->found;
  const absl::StatusOr<const Target*> made = MakeTarget(library);
  return made.ok() ? (*made)->found : made.status();
}

absl::StatusOr<const StaticCalls::Target*> StaticCalls::MakeTarget(FunctionLibraryRuntime* library) {
  const int64_t version = StaticSettingsVersion();
  const StaticSettings of_process = GetStaticSettings();
  CallSettings settings;
  TFR_RETURN_IF_ERROR(ReadSettings(source_->call, of_process, &settings));
  auto made = std::make_unique<Target>(Target{library, version, nullptr, nullptr, nullptr});
  if (of_process.is_on) {
    made->shared = Shared::Of(Key(library, settings.options));
    made->found = made->shared->Get(*source_, library, settings);
  }
  const std::lock_guard<std::mutex> lock(mu_);
  made->next = targets_.load();
  targets_.store(made.get(), std::memory_order_release);
  return made.release();
}

std::string StaticCalls::Key(FunctionLibraryRuntime* library, const Options& options) const {
  return absl::StrCat(reinterpret_cast<uintptr_t>(library), " ", library->device()->name(), " ", source_->key, " ",
                      options.max_depth, " ", options.workers, " ", options.compile);
}

}  // namespace tensorflow_recursion
