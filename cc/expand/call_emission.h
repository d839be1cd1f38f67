// Writes what one call becomes in the final graph: a Call for each argument, a Return for each output.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_CALL_EMISSION_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_CALL_EMISSION_H_

#include <string>
#include <vector>

#include "cc/expand/call_program.h"
#include "cc/expand/emission_names.h"
#include "cc/expand/keep_alives.h"
#include "cc/expand/loop_pivots.h"
#include "cc/expand/node_writer.h"
#include "cc/expand/wiring.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// Writes the calls of one program. Emit() (emission.cc) makes one.
class CallEmitter {
 public:
  CallEmitter(const CallProgram& program, const EmissionNames& names, const Wiring& wiring, KeepAlives* keep_alives,
              NodeWriter* writer)
      : program_(program),
        names_(names),
        wiring_(wiring),
        keep_alives_(keep_alives),
        writer_(writer),
        loop_pivots_(writer) {}

  // Writes the call at `position` of `list`, which is the main graph or a body. There is a node with the call's name
  // only if someone fetches it, feeds it or waits for it.
  void Emit(const NodeList& list, int position);

 private:
  void EmitCalls(const NodeList& list, const tensorflow::NodeDef& invoke);
  std::vector<std::string> Pivots(const NodeList& list, const tensorflow::NodeDef& invoke, size_t num_arguments);
  void EmitReturns(const tensorflow::NodeDef& invoke, bool is_in_main);
  std::string BundleAllButFirst(const tensorflow::NodeDef& invoke, std::vector<std::string>* waits);
  void EmitFetched(const tensorflow::NodeDef& invoke, const Fetch& fetch, bool awaited);
  static void Await(const SiteNames& site, const std::vector<int>& read, tensorflow::NodeDef* node);

  const CallProgram& program_;
  const EmissionNames& names_;
  const Wiring& wiring_;
  KeepAlives* const keep_alives_;
  NodeWriter* const writer_;
  LoopPivots loop_pivots_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_CALL_EMISSION_H_
