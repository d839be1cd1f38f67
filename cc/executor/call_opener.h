// Opens the frames of calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_CALL_OPENER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_CALL_OPENER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "cc/base/ids.h"
#include "cc/executor/compiled_calls.h"
#include "cc/executor/frame.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/incomplete_sites.h"
#include "cc/executor/partial_calls.h"
#include "cc/executor/token_router.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Not thread-safe: it is the worker's own, and so are the frames that it opens.
class CallOpener {
 public:
  CallOpener(WorkerContext* context, FrameStore* frames, PartialCalls* partial_calls, IncompleteSites* incomplete_sites,
             TokenRouter* router, CompiledCalls* compiled);

  // Opens the frame of the main graph with the arguments of the run, which it takes over.
  void OpenRoot(std::vector<Value> arguments);

  // Opens the callee's frame with the arguments that have come to the caller's slots. The call's count in the caller's
  // `live` becomes the child's.
  void Open(Frame* caller, OpId op);

  // Opens a call that another worker has given away, with all its arguments, which it takes over.
  void OpenGiven(Frame* caller, OpId op, std::vector<Value>* arguments);

  // Goes on with a call in compiled code that was suspended.
  void ResumeCompiled();

  // To be called when a part of a call in compiled code has come back from another worker.
  void EndFork(Fork* fork);

  // Opens the frame's calls that have only some of their arguments. To be called when there is nothing else to do.
  void OpenIncomplete(Frame* frame);

 private:
  bool CheckDepth(const Frame* caller, const CallSite& site);
  void Reopen(std::optional<CompiledCalls::Returned> call);
  void OpenInFrame(Frame* caller, OpId index, std::vector<Value>* arguments);
  void NoteMainCall() const;
  void DropDead(Frame* caller, OpId index, const PartialCall& partial);
  Frame* NewChild(Frame* caller, OpId index, const CallSite& site);
  void TakeArguments(Frame* caller, OpId index, Frame* child);
  Invariants* NewInvariants(const Frame* child, const Value* passed, const CallSite& site);
  void Start(Frame* child, const Value* arguments, uint32_t num_arguments, const CallSite& site);

  WorkerContext* const context_;
  FrameStore* const frames_;
  PartialCalls* const partial_calls_;
  IncompleteSites* const incomplete_sites_;
  TokenRouter* const router_;
  CompiledCalls* const compiled_;
  // The arguments of the call that is being opened.
  std::vector<Value> arguments_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_CALL_OPENER_H_
