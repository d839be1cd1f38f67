// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/invocation.h"

#include <cstdint>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cc/base/call_path.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/kernels/flat_stack.h"
#include "cc/kernels/invoke_op.h"
#include "cc/kernels/recursion.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::CallFrameInterface;
using tensorflow::DataTypeString;
using tensorflow::FunctionLibraryRuntime;
using tensorflow::OpKernelContext;
using tensorflow::RendezvousInterface;
using tensorflow::Tensor;

// How many dynamic calls are under way in this process that no other call of ours has made. A recursion that goes
// through an operator with a rendezvous of its own (PartitionedCall) is noticed only here.
std::atomic<int64_t> outermost_calls{0};

// Where operators run inline (in some functions of tf.data), a While waits for its body, so calls cannot be put off,
// and nest on stacks. They may use so many stacks, of 8 MB each. Returns may use more, because they cannot fail.
constexpr int kMaxThreadsOfCalls = 200;
constexpr int kMaxThreadsOfReturns = 2000;

// One call that is under way. It is the call frame from which the callee's executor reads arguments and to which it
// writes results.
//
// It is also the rendezvous of that executor. If, While and Case hand the rendezvous on to their branches, though not
// the call frame. So a call inside of the body, however deep in control flow, finds the call around it. Everything that
// is asked of the rendezvous goes to the real one.
//
// StartInvocation() makes and starts it, and it deletes itself when the callee is done. A call outlives all calls that
// its body makes.
class Invocation final : public CallFrameInterface, public RendezvousInterface {
 public:
  Invocation(InvokeOp& kernel, OpKernelContext* ctx, tensorflow::AsyncOpKernel::DoneCallback done)
      : kernel_(kernel),
        ctx_(ctx),
        done_(std::move(done)),
        parent_(Enclosing(ctx->rendezvous())),
        recursion_(parent_ == nullptr ? new Recursion(ctx->rendezvous()) : parent_->recursion_),
        depth_(parent_ == nullptr ? outermost_calls.fetch_add(1, std::memory_order_relaxed) + 1 : parent_->depth_ + 1) {
    // That outermost calls are counted together only limits a recursion that is not noticed otherwise.
    if (parent_ == nullptr && depth_ <= kernel.max_depth()) depth_ = 1;
  }

  ~Invocation() override {
    if (parent_ != nullptr) return;
    outermost_calls.fetch_sub(1, std::memory_order_relaxed);
    delete recursion_;
  }

  void Start() {
    absl::StatusOr<FunctionLibraryRuntime::Handle> handle = kernel_.HandleIn(ctx_->function_library(), *recursion_);
    if (!handle.ok()) {
      Finish(handle.status());
      return;
    }
    handle_ = *handle;
    if (depth_ > kernel_.max_depth()) {
      Finish(TooDeep());
    } else if (!ctx_->run_all_kernels_inline()) {
      RunFlat([this] { Run(); });
    } else if (!RunNested([this] { Run(); }, kMaxThreadsOfCalls)) {
      Finish(TooDeepInline());
    }
  }

  // The call that `rendezvous` is, or nullptr if it is none.
  static Invocation* Enclosing(RendezvousInterface* rendezvous) {
    if (rendezvous == nullptr || typeid(*rendezvous) != typeid(Invocation)) return nullptr;
    return static_cast<Invocation*>(rendezvous);
  }

  // CallFrameInterface: hands over the kernel's own inputs and outputs, without copies. Threads of the executor read
  // arguments and write results, each index by its own _Arg or _Retval node.
  size_t num_args() const override { return kernel_.num_arguments(); }
  size_t num_retvals() const override { return kernel_.num_results(); }

  absl::Status GetArg(int index, const Tensor** value) override {
    if (index < 0 || index >= kernel_.num_arguments()) return NoSuch("argument", index);
    *value = &ctx_->input(index);
    return absl::OkStatus();
  }

  absl::Status SetRetval(int index, const Tensor& value) override {
    if (index < 0 || index >= kernel_.num_results()) return NoSuch("output", index);
    if (value.dtype() != ctx_->expected_output_dtype(index)) {
      return InvalidArgument(Subject(), ": output ", index, " is ", DataTypeString(value.dtype()), ", expected ",
                             DataTypeString(ctx_->expected_output_dtype(index)));
    }
    if (ctx_->mutable_output(index) != nullptr) {
      return InvalidArgument(Subject(), ": output ", index, " is returned twice");
    }
    ctx_->set_output(index, value);
    return absl::OkStatus();
  }

  // RendezvousInterface: hands everything on to the real rendezvous.
  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value, const bool is_dead) override {
    return recursion_->rendezvous == nullptr ? NoRendezvous() : recursion_->rendezvous->Send(key, args, value, is_dead);
  }

  void RecvAsync(const ParsedKey& key, const Args& args, DoneCallback done) override {
    if (recursion_->rendezvous == nullptr) {
      done(NoRendezvous(), Args(), args, Tensor(), /*is_dead=*/false);
    } else {
      recursion_->rendezvous->RecvAsync(key, args, std::move(done));
    }
  }

  // Every executor between the failing node and the session asks for this, and only the first is obeyed.
  void StartAbort(const absl::Status& status) override {
    if (recursion_->rendezvous == nullptr || recursion_->aborted.exchange(true)) return;
    recursion_->rendezvous->StartAbort(status);
  }

 private:
  void Run() {
    FunctionLibraryRuntime::Options options(ctx_->step_id());
    options.rendezvous = this;
    options.cancellation_manager = ctx_->cancellation_manager();
    options.collective_executor = ctx_->collective_executor();
    options.step_container = ctx_->step_container();
    options.stats_collector = ctx_->stats_collector();
    options.runner = ctx_->runner();
    options.run_all_kernels_inline = ctx_->run_all_kernels_inline();
    ctx_->function_library()->Run(options, handle_, this, [this](const absl::Status& status) { Finish(status); });
  }

  void Finish(const absl::Status& status) {
    status_ = status.ok() ? CheckOutputs() : status;
    if (!status_.ok()) recursion_->Record(status_, kernel_.function(), [this] { return Path(); });
    if (!ctx_->run_all_kernels_inline()) {
      RunFlat([this] { Return(); });
    } else if (!RunNested([this] { Return(); }, kMaxThreadsOfReturns)) {
      Return();
    }
  }

  // Hands the result to the caller. An inner call passes on only the code of its error, because every executor on the
  // way appends its node's name, which would cost n^2 characters at depth n.
  void Return() {
    if (!status_.ok()) {
      ctx_->SetStatus(parent_ == nullptr ? recursion_->FirstError() : absl::Status(status_.code(), "in a nested call"));
    }
    auto done = std::move(done_);
    delete this;
    done();
  }

  // Finds outputs that got no value, as those of a dead branch do. Nobody else reports them.
  absl::Status CheckOutputs() const {
    for (int i = 0; i < kernel_.num_results(); ++i) {
      if (ctx_->mutable_output(i) == nullptr) {
        return InvalidArgument(Subject(), ": the function's output ", i, " got no value");
      }
    }
    return absl::OkStatus();
  }

  std::string Path() const {
    const int64_t length = parent_ == nullptr ? 1 : depth_;
    std::vector<std::string> outer, inner;
    int64_t position = length;
    for (const Invocation* call = this; call != nullptr; call = call->parent_, --position) {
      if (position <= kCallPathEnd) {
        outer.insert(outer.begin(), UserName(call->kernel_.function()));
      } else if (length - position < kCallPathEnd) {
        inner.insert(inner.begin(), UserName(call->kernel_.function()));
      }
    }
    return FormatCallPath(outer, length, inner);
  }

  std::string Subject() const {
    return absl::StrCat("Call '", kernel_.name(), "' of function '", UserName(kernel_.function()), "'");
  }

  absl::Status TooDeep() const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "Recursion of function '", UserName(kernel_.function()), "' reached depth ", depth_, ", the limit is ",
        kernel_.max_depth(), "; the environment variable ", kDynamicMaxDepthVariable, " raises it"));
  }

  absl::Status TooDeepInline() const {
    return absl::ResourceExhaustedError(
        absl::StrCat("Recursion of function '", UserName(kernel_.function()), "' reached depth ", depth_, " and holds ",
                     kMaxThreadsOfCalls,
                     " threads, the limit where operators run inline; let the dataset use inter-op parallelism"));
  }

  absl::Status NoSuch(absl::string_view what, int index) const {
    return InvalidArgument(Subject(), ": the body uses ", what, " ", index, ", which the function does not have");
  }

  absl::Status NoRendezvous() const { return absl::InternalError(absl::StrCat(Subject(), ": no rendezvous here")); }

  InvokeOp& kernel_;
  OpKernelContext* const ctx_;
  FunctionLibraryRuntime::Handle handle_ = tensorflow::kInvalidHandle;
  tensorflow::AsyncOpKernel::DoneCallback done_;
  // The call around this one; null for the outermost.
  Invocation* const parent_;
  // The outermost call owns it.
  Recursion* const recursion_;
  int64_t depth_;
  absl::Status status_;
};

}  // namespace

bool IsInsideOfInvocation(const OpKernelContext& ctx) { return Invocation::Enclosing(ctx.rendezvous()) != nullptr; }

void StartInvocation(InvokeOp& kernel, OpKernelContext* ctx, tensorflow::AsyncOpKernel::DoneCallback done) {
  (new Invocation(kernel, ctx, std::move(done)))->Start();
}

}  // namespace tensorflow_recursion
