// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/stock_kernel_runner.h"

#include <algorithm>
#include <chrono>
#include <shared_mutex>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cc/base/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_segment.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tsl/profiler/lib/traceme.h"

namespace tensorflow_recursion {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorValue;

namespace {

// A kernel of the main graph that takes longer than this may go to another thread. TensorFlow's executor does the same
// from 8000 cycles of the processor on.
constexpr int64_t kModerateNanoseconds = 3'000;
// A kernel that takes longer than this is worth another thread anywhere: to hand it over costs a few microseconds on
// both sides.
constexpr int64_t kExpensiveNanoseconds = 20'000;
// A new measurement changes the average by this part of the difference: a quarter.
constexpr int64_t kWeightOfNew = 4;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Makes a tensor for a kernel that reads values, whatever the edge carries. Constants and references are copied into
// `box` (sharing the buffer), so that the kernel can't take the buffer for its output. `threads` share the copy of a
// rope.
TensorValue AsTensor(Value* value, tensorflow::DataType expected, tensorflow::thread::ThreadPool* threads,
                     Tensor* box) {
  switch (value->kind) {
    case Value::Kind::kTensor:
      return TensorValue(value->tensor);
    case Value::Kind::kRef:
      if (tensorflow::IsRefType(expected)) return *value->ref;
      break;
    case Value::Kind::kRope:
      value->Flatten(threads);
      return TensorValue(value->tensor);
    case Value::Kind::kDead:
      *box = Tensor();
      return TensorValue(box);
    default:
      break;
  }
  *box = TensorFromValue(*value, tensorflow::BaseType(expected));
  return TensorValue(box);
}

bool IsInitialized(const TensorValue& value) {
  if (!value.is_ref()) return value.tensor->IsInitialized();
  std::shared_lock lock(*value.mutex_if_ref);
  return value.tensor->IsInitialized();
}

// Whether the value is a number that is still in a tensor. The value of a scalar variable that was read by reference
// is, because it shares the variable's buffer.
bool IsBoxedNumber(const Value& value) {
  const Tensor* const tensor = value.tensor_or_null();
  return tensor != nullptr && tensor->dims() == 0 && IsUnboxed(tensor->dtype());
}

// Whether a kernel has handed on memory that may be a variable's: of one that it was given by reference, or of a value
// that was read from one. As in stock execution, such a value shows what the variable holds when it is looked at, not
// when it was handed on.
bool IsPartOfVariable(const Tensor& output, const KernelNode& node, const KernelCall& call,
                      const std::vector<TensorValue>& inputs) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool may_be = call.inputs[i].kind == Value::Kind::kRef || IsBoxedNumber(call.inputs[i]);
    if (may_be && inputs[i].tensor != nullptr && output.SharesBufferWith(*inputs[i].tensor)) return true;
  }
  return false;
}

// Makes tensors of ropes among the inputs. Returns false if there are none.
bool FlattenRopes(const KernelNode& node, KernelCall* call) {
  bool have_been = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    have_been |= call->inputs[i].kind == Value::Kind::kRope;
    call->inputs[i].Flatten();
  }
  return have_been;
}

// Whether the node may lead to tensors that change while others share their memory. Reference variables change in
// place, and so do the inputs of some operators and of functions that hold such. What is received from another device
// of the process may share the memory of a variable there.
bool MayChangeTensors(const KernelNode& node) {
  const bool refers = std::any_of(node.outputs.begin(), node.outputs.end(), tensorflow::IsRefType);
  bool is_of_client = false;
  tensorflow::TryGetNodeAttr(node.node->attrs(), "client_terminated", &is_of_client);
  return refers || (node.node->IsRecv() && !is_of_client) || node.changes_input;
}

bool MayBeSameDevice(const std::string& a, const std::string& b) {
  using tensorflow::DeviceNameUtils;
  DeviceNameUtils::ParsedName parsed_a, parsed_b;
  if (!DeviceNameUtils::ParseFullName(a, &parsed_a) || !DeviceNameUtils::ParseFullName(b, &parsed_b)) return true;
  return DeviceNameUtils::AreCompatibleDevNames(parsed_a, parsed_b);
}

// Checks that the kernel that the session has under the name of `node` was made for such a node. In graphs that
// sessions make it always was. In a forged graph another kernel would read inputs that are not there.
absl::Status CheckServes(const OpKernel& kernel, const KernelNode& node) {
  const bool is_same_op =
      kernel.type_string() == node.op && kernel.input_types() == node.inputs && kernel.output_types() == node.outputs;
  const std::string& device = node.node->assigned_device_name();
  const std::string& made_on = kernel.requested_device();
  if (is_same_op && MayBeSameDevice(device, made_on)) return absl::OkStatus();
  return InvalidArgument("Node '", node.name, "' (", node.op, " on '", device,
                         "'): the session has another node of that name, ", kernel.type_string(), " on '", made_on,
                         "'; give one of the two another name");
}

// A node that runs the function which `original` has as its operator, with the function in an attribute instead.
absl::Status CallByAttribute(const tensorflow::NodeProperties& original, const tensorflow::OpDef& function,
                             std::shared_ptr<const tensorflow::NodeProperties>* call) {
  tensorflow::NameAttrList named;
  named.set_name(function.name());
  for (const auto& attribute : function.attr()) {
    const auto found = original.node_def.attr().find(attribute.name());
    if (found != original.node_def.attr().end()) (*named.mutable_attr())[attribute.name()] = found->second;
  }
  tensorflow::NodeDef def = original.node_def;
  def.set_op(function.is_stateful() ? "StatefulPartitionedCall" : "PartitionedCall");
  def.clear_attr();
  tensorflow::AddNodeAttr("f", named, &def);
  tensorflow::AddNodeAttr("Tin", original.input_types, &def);
  tensorflow::AddNodeAttr("Tout", original.output_types, &def);
  const tensorflow::OpDef* op = nullptr;
  TFR_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(def.op(), &op));
  tensorflow::AddDefaultsToNodeDef(*op, &def);
  return tensorflow::NodeProperties::CreateFromNodeDef(std::move(def), tensorflow::OpRegistry::Global(), call);
}

// Creates a kernel as the runtime does. Where XLA is to compile what a call runs, the kernel is one that compiles it.
// The runtime itself is asked only if the operator is the name of a function. That of a tf.function refuses to create
// any kernel, so there the function is run by an operator that names it.
absl::Status Create(const std::shared_ptr<const tensorflow::NodeProperties>& properties,
                    tensorflow::FunctionLibraryRuntime* library, OpKernel** kernel) {
  const tensorflow::CustomKernelCreator* const xla = tensorflow::GetDefaultCustomKernelCreator();
  if (xla != nullptr && xla->CanCreateKernel(*library, properties)) {
    std::unique_ptr<OpKernel> compiling;
    TFR_RETURN_IF_ERROR(xla->CreateKernel(library, properties, &compiling));
    *kernel = compiling.release();
    return absl::OkStatus();
  }
  std::shared_ptr<const tensorflow::NodeProperties> created = properties;
  const tensorflow::FunctionDef* const function =
      library->GetFunctionLibraryDefinition()->Find(properties->node_def.op());
  if (function != nullptr) {
    absl::Status status = library->CreateKernel(properties, kernel);
    if (!absl::IsInternal(status)) return status;
    TFR_RETURN_IF_ERROR(CallByAttribute(*properties, function->signature(), &created));
  }
  return tensorflow::CreateNonCachedKernel(library->device(), library, created, library->graph_def_version(), kernel);
}

// As in stock execution, cheap kernels show only in a detailed profile.
int TraceLevel(const KernelTable::Entry& entry) {
  return tsl::profiler::GetTFTraceMeLevel(/*is_expensive=*/entry.may_be_expensive || entry.async != nullptr);
}

// The step's collector, if it wants to know of each operator. Datasets have one of another class, which only adds up
// times, for which that of the operator that runs the whole program is enough.
tensorflow::StepStatsCollector* StatsCollectorOf(const OpKernelContext& context) {
  return dynamic_cast<tensorflow::StepStatsCollector*>(context.stats_collector());
}

}  // namespace

void KernelTable::Entry::NoteTime(int64_t measured) const {
  const int64_t average = nanoseconds.load(std::memory_order_relaxed);
  const int64_t change = average == kUnmeasured ? measured - average : (measured - average) / kWeightOfNew;
  nanoseconds.store(average + change, std::memory_order_relaxed);
}

void KernelTable::Entry::NoteNativeRun() const {
  if (ABSL_PREDICT_FALSE(nanoseconds.load(std::memory_order_relaxed) > kModerateNanoseconds)) NoteTime(0);
}

absl::Status KernelTable::FindOrCreate(const KernelNode& node, tensorflow::FunctionLibraryRuntime* library,
                                       const std::string& session_handle, const KernelTable* others,
                                       OpKernel** kernel) {
  const auto& properties = node.node->properties();
  if (tensorflow::OpSegment::ShouldOwnKernel(library, node.op)) {
    auto create = [&](OpKernel** created) { return Create(properties, library, created); };
    absl::Status status = library->device()->op_segment()->FindOrCreate(session_handle, node.name, kernel, create);
    if (status.ok()) return CheckServes(**kernel, node);
    if (!absl::IsNotFound(status)) return status;
  }
  std::shared_ptr<OpKernel>& owned = owned_[node.node];
  if (owned == nullptr && others != nullptr) {
    if (const auto found = others->owned_.find(node.node); found != others->owned_.end()) owned = found->second;
  }
  if (owned == nullptr) {
    TFR_RETURN_IF_ERROR(Create(properties, library, kernel));
    owned.reset(*kernel);
  }
  *kernel = owned.get();
  return absl::OkStatus();
}

absl::Status KernelTable::Build(const Program& program, tensorflow::FunctionLibraryRuntime* library,
                                const std::string& session_handle, const KernelTable* others) {
  entries_.clear();
  if (library->device()->device_type() != tensorflow::DEVICE_CPU) launcher_ = library->device();
  for (const KernelNode& node : program.kernels) {
    Entry& entry = entries_.emplace_back();
    const absl::Status status = FindOrCreate(node, library, session_handle, others, &entry.kernel);
    if (!status.ok()) return tensorflow::AttachDef(status, node.node->def());
    entry.async = entry.kernel->AsAsync();
    entry.may_be_expensive = entry.kernel->IsExpensive();
    entry.takes_uninitialized = node.node->op_def().allows_uninitialized_input();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const bool is_on_host = entry.kernel->output_memory_types()[i] == tensorflow::HOST_MEMORY;
      entry.is_on_host = entry.is_on_host && (is_on_host || launcher_ == nullptr);
      entry.output_attributes.emplace_back();
      entry.output_attributes.back().set_on_host(is_on_host);
    }
    const bool takes_handles =
        std::count(node.inputs.begin(), node.inputs.end(), tensorflow::DT_RESOURCE) > 0 && launcher_ == nullptr;
    entry.looks_up_devices = takes_handles && library->device_mgr()->NumDevices() > 1;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      entry.input_attributes.emplace_back();
      entry.input_attributes.back().set_on_host(entry.kernel->input_memory_types()[i] == tensorflow::HOST_MEMORY);
    }
  }
  if (launcher_ == nullptr && NativeKernelsAreOn()) BindNativeKernels(program);
  return absl::OkStatus();
}

// Gives native kernels to bodies of functions, and of loops in them. The main graph gets none, because its operators
// are few and large.
void KernelTable::BindNativeKernels(const Program& program) {
  // A view shares the memory of another tensor, which must not change before the view is read.
  const bool may_share = std::none_of(program.kernels.begin(), program.kernels.end(), MayChangeTensors);
  const auto bind = [&](const KernelNode& node) {
    NativeKernel& native = entries_[node.id].native;
    native = FindNativeKernel(*node.node);
    if (may_share) return;
    native.ropes = 0;
    native.may_share = false;
  };
  for (const Region& region : program.regions) {
    if (!region.is_function() && (region.loop == nullptr || !region.loop->in_function)) continue;
    for (const Op& op : region.ops) {
      if (op.kind != OpKind::kKernel && op.kind != OpKind::kScalar) continue;
      const KernelNode& node = program.KernelOf(op);
      if (entries_[node.id].async != nullptr) continue;
      bind(node);
    }
  }
  for (const CallSite& site : program.sites) {
    for (const InvariantRead& read : site.invariant_reads) bind(program.kernels[read.kernel]);
  }
}

StockKernelRunner::Scratch::Scratch(const OpKernelContext::Params& shared,
                                    tensorflow::CancellationManager* cancellation)
    : params(shared) {
  params.cancellation_manager = cancellation;
  params.eigen_gpu_device = nullptr;  // the Params that it was made for own it
  params.forward_from_array = nullptr;
  params.outputs_required_array = nullptr;
  params.call_frame = nullptr;  // the executor reads and writes the step's arguments and results, and no kernel does
}

// Lets the kernel look for resources on the device that the handle names, if that is another CPU of the process. Which
// variable a handle names may be known only now, when a branch or a caller has chosen. A kernel of one CPU serves the
// others just as well.
void StockKernelRunner::UseDeviceOfHandle(const KernelNode& node, Scratch* scratch) const {
  tensorflow::DeviceBase* device = context_->device();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor* const tensor = scratch->inputs[i].tensor;
    if (node.inputs[i] != tensorflow::DT_RESOURCE || tensor == nullptr || tensor->NumElements() != 1) continue;
    const std::string& wanted = tensor->flat<tensorflow::ResourceHandle>()(0).device();
    if (wanted == context_->device()->attributes().name()) break;
    tensorflow::Device* other = nullptr;
    const bool is_there = context_->function_library()->device_mgr()->LookupDevice(wanted, &other).ok();
    if (is_there && other->device_type() == tensorflow::DEVICE_CPU && other->IsLocal()) device = other;
    break;
  }
  scratch->params.device = device;
  scratch->params.resource_manager = device == context_->device()
                                         ? context_->resource_manager()
                                         : static_cast<tensorflow::Device*>(device)->resource_manager();
}

// Names the first input that fails, as stock execution does.
absl::Status StockKernelRunner::CheckInitialized(const KernelNode& node, const KernelTable::Entry& entry,
                                                 const KernelCall& call, const Scratch& scratch) const {
  if (entry.takes_uninitialized) return absl::OkStatus();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (call.inputs[i].kind != Value::Kind::kRef || IsInitialized(scratch.inputs[i])) continue;
    return tensorflow::AttachDef(
        absl::FailedPreconditionError(
            absl::StrCat("Attempting to use uninitialized value ", entry.kernel->requested_input(static_cast<int>(i)))),
        node.node->def());
  }
  return absl::OkStatus();
}

void StockKernelRunner::TakeOutputs(const KernelNode& node, const KernelTable::Entry& entry, const Scratch& scratch,
                                    OpKernelContext* context, KernelCall* call) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    const TensorValue output = context->release_output(i);
    if (output.tensor == nullptr) continue;
    if (output.is_ref()) {
      call->outputs[i] = Value::Ref(output);
    } else if (!entry.IsReadable(i) ||
               (scratch.reads_variables && IsPartOfVariable(*output.tensor, node, *call, scratch.inputs))) {
      call->outputs[i] = Value::Own(AdoptTensor(output.tensor));
    } else {
      call->outputs[i] = ValueFromTensor(AdoptTensor(output.tensor));
    }
  }
}

StockKernelRunner::StockKernelRunner(const KernelTable* table, OpKernelContext* context,
                                     tensorflow::CancellationManager* cancellation, int max_workers)
    : table_(table),
      context_(context),
      cancellation_(cancellation),
      native_context_{context->resource_manager(), &context->device()->attributes().name()},
      threads_(context->device()->tensorflow_cpu_worker_threads()->workers),
      stats_collector_(StatsCollectorOf(*context)),
      shows_operators_(stats_collector_ != nullptr || tsl::profiler::TraceMe::Active(tsl::profiler::kInfo)) {
  for (int i = 0; i < max_workers; ++i) {
    scratch_.emplace_back(*context->params(), cancellation);
    scratch_.back().random = table_->NextSeed();
  }
}

KernelRunner::Cost StockKernelRunner::CostOf(const KernelNode& node) const {
  const KernelTable::Entry& entry = table_->entry(node);
  if (entry.async != nullptr) return Cost::kAsynchronous;
  if (!entry.may_be_expensive) return Cost::kCheap;
  const int64_t nanoseconds = entry.nanoseconds.load(std::memory_order_relaxed);
  if (nanoseconds > kExpensiveNanoseconds) return Cost::kExpensive;
  if (entry.native.share != nullptr && !shows_operators_) return Cost::kShared;
  // A native kernel is not measured.
  const bool is_unknown = nanoseconds == KernelTable::Entry::kUnmeasured && entry.native.run == nullptr;
  return is_unknown || nanoseconds > kModerateNanoseconds ? Cost::kModerate : Cost::kCheap;
}

absl::Status StockKernelRunner::Prepare(const KernelNode& node, const KernelTable::Entry& entry, const KernelCall& call,
                                        Scratch* scratch) {
  const size_t count = node.inputs.size();
  if (scratch->inputs.size() < count) {
    scratch->inputs.resize(count);
    scratch->tensors.resize(count);
  }
  scratch->reads_variables = false;
  bool reads_references = false;
  for (size_t i = 0; i < count; ++i) {
    scratch->inputs[i] = AsTensor(&call.inputs[i], node.inputs[i], threads_, &scratch->tensors[i]);
    reads_references |= call.inputs[i].kind == Value::Kind::kRef;
    scratch->reads_variables |= IsBoxedNumber(call.inputs[i]);
  }
  if (ABSL_PREDICT_FALSE(reads_references)) {
    scratch->reads_variables = true;
    TFR_RETURN_IF_ERROR(CheckInitialized(node, entry, call, *scratch));
  }
  OpKernelContext::Params& params = scratch->params;
  if (ABSL_PREDICT_FALSE(entry.looks_up_devices || params.device != context_->device())) {
    UseDeviceOfHandle(node, scratch);
  }
  params.op_kernel = entry.kernel;
  params.inputs = absl::MakeConstSpan(scratch->inputs.data(), count);
  params.input_alloc_attrs = entry.input_attributes;
  params.output_attr_array = entry.output_attributes.data();
  params.frame_iter = tensorflow::FrameAndIter(call.tag.id, call.tag.iteration);
  params.is_input_dead = call.is_dead;
  return absl::OkStatus();
}

tensorflow::NodeExecStatsInterface* StockKernelRunner::StartStats(const KernelNode& node) {
  if (stats_collector_ == nullptr) return nullptr;
  tensorflow::NodeExecStatsInterface* stats = stats_collector_->CreateNodeExecStats(&node.node->def());
  if (stats == nullptr) return nullptr;
  stats->SetScheduled(Now());
  stats->RecordExecutorStarted();
  stats->RecordComputeStarted();
  return stats;
}

void StockKernelRunner::EndStats(tensorflow::NodeExecStatsInterface* stats, OpKernelContext* context) {
  if (stats == nullptr) return;
  stats->RecordComputeEnded();
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (context->mutable_output(i) != nullptr) stats->SetOutput(i, context->mutable_output(i));
  }
  stats->RecordExecutorEnded();
  stats->Done(static_cast<tensorflow::Device*>(context_->device())->name());
}

absl::Status StockKernelRunner::RunOne(const KernelNode& node, const KernelTable::Entry& entry, KernelCall* call,
                                       Scratch* of_caller) {
  Scratch& scratch = *of_caller;
  TFR_RETURN_IF_ERROR(Prepare(node, entry, *call, &scratch));
  const int64_t average = entry.nanoseconds.load(std::memory_order_relaxed);
  const bool is_known_cheap = average != KernelTable::Entry::kUnmeasured && average <= kModerateNanoseconds;
  const bool is_sampled = entry.may_be_expensive && (!is_known_cheap || scratch.IsSampled());
  const int64_t start = is_sampled ? Now() : 0;
  absl::Status status;
  {
    OpKernelContext context(&scratch.params, static_cast<int>(node.outputs.size()));
    tensorflow::NodeExecStatsInterface* stats = StartStats(node);
    const tsl::profiler::TraceMe trace([&] { return entry.kernel->TraceString(context, /*verbose=*/false); },
                                       TraceLevel(entry));
    if (ABSL_PREDICT_TRUE(table_->launcher() == nullptr)) {
      entry.kernel->Compute(&context);
    } else {
      table_->launcher()->Compute(entry.kernel, &context);
    }
    EndStats(stats, &context);
    status = context.status();
    if (status.ok()) TakeOutputs(node, entry, scratch, &context, call);
  }
  if (is_sampled) entry.NoteTime(Now() - start);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (call->inputs[i].kind != Value::Kind::kTensor) scratch.tensors[i] = Tensor();
  }
  return status.ok() ? status : tensorflow::AttachDef(status, node.node->def());
}

KernelRunner::Share StockKernelRunner::ShareOf(const KernelNode& node, const Value* inputs) const {
  static_assert(kFullWave == kRowsOfWave);
  const NativeKernel& native = table_->entry(node).native;
  const NativeShare share = native.share(native, inputs);
  return {share.operand, share.rows};
}

bool StockKernelRunner::RunTogether(const KernelNode& node, absl::Span<KernelCall> calls) {
  NativeCall native_calls[kFullWave];
  for (size_t i = 0; i < calls.size(); ++i) native_calls[i] = {calls[i].inputs, calls[i].outputs};
  const NativeKernel& native = table_->entry(node).native;
  return native.run_together(native, absl::MakeConstSpan(native_calls, calls.size()));
}

inline bool StockKernelRunner::RunNative(const KernelNode& node, const KernelTable::Entry& entry,
                                         KernelCall* call) const {
  if (entry.native.run == nullptr || ABSL_PREDICT_FALSE(shows_operators_)) return false;
  if (entry.native.run(entry.native, native_context_, call->inputs, call->outputs)) return true;
  return FlattenRopes(node, call) && entry.native.run(entry.native, native_context_, call->inputs, call->outputs);
}

absl::Status StockKernelRunner::Run(const KernelNode& node, absl::Span<KernelCall> calls) {
  const KernelTable::Entry& entry = table_->entry(node);
  for (KernelCall& call : calls) {
    if (RunNative(node, entry, &call)) {
      entry.NoteNativeRun();
      continue;
    }
    TFR_RETURN_IF_ERROR(RunOne(node, entry, &call, &scratch_[call.worker]));
  }
  return absl::OkStatus();
}

// What an asynchronous kernel needs until it is done.
struct StockKernelRunner::InFlight {
  InFlight(const OpKernelContext::Params& shared, tensorflow::CancellationManager* cancellation)
      : scratch(shared, cancellation) {}

  Scratch scratch;
  std::unique_ptr<OpKernelContext> context;
  tensorflow::NodeExecStatsInterface* stats = nullptr;
};

std::unique_ptr<StockKernelRunner::Scratch> StockKernelRunner::TakeSpareScratch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!spare_scratch_.empty()) {
      std::unique_ptr<Scratch> scratch = std::move(spare_scratch_.back());
      spare_scratch_.pop_back();
      return scratch;
    }
  }
  auto scratch = std::make_unique<Scratch>(*context_->params(), cancellation_);
  scratch->random = table_->NextSeed();
  return scratch;
}

void StockKernelRunner::GiveBack(std::unique_ptr<Scratch> scratch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  spare_scratch_.push_back(std::move(scratch));
}

void StockKernelRunner::RunAsync(const KernelNode& node, KernelCall* call, std::function<void(absl::Status)> done) {
  const KernelTable::Entry& entry = table_->entry(node);
  if (entry.async == nullptr) {
    if (RunNative(node, entry, call)) return done(absl::OkStatus());  // as on the worker, for the same bits
    std::unique_ptr<Scratch> scratch = TakeSpareScratch();
    absl::Status status = RunOne(node, entry, call, scratch.get());
    GiveBack(std::move(scratch));
    return done(std::move(status));
  }
  auto* flight = new InFlight(*context_->params(), cancellation_);
  const absl::Status prepared = Prepare(node, entry, *call, &flight->scratch);
  if (!prepared.ok()) {
    delete flight;
    return done(prepared);
  }
  flight->context = std::make_unique<OpKernelContext>(&flight->scratch.params, static_cast<int>(node.outputs.size()));
  flight->stats = StartStats(node);
  const tsl::profiler::TraceMe trace([&] { return entry.kernel->TraceString(*flight->context, /*verbose=*/false); },
                                     TraceLevel(entry));
  auto finish = [this, flight, call, &node, &entry, done = std::move(done)] {
    EndStats(flight->stats, flight->context.get());
    absl::Status status = flight->context->status();
    if (status.ok()) {
      TakeOutputs(node, entry, flight->scratch, flight->context.get(), call);
    } else {
      status = tensorflow::AttachDef(status, node.node->def());
    }
    delete flight;
    done(std::move(status));
  };
  tensorflow::Device* const launcher = table_->launcher();
  if (launcher != nullptr) {
    launcher->ComputeAsync(entry.async, flight->context.get(), std::move(finish));
  } else {
    entry.async->ComputeAsync(flight->context.get(), std::move(finish));
  }
}

}  // namespace tensorflow_recursion
