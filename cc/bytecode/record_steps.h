// Writes the steps that make a record for a gradient, and that read one.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_RECORD_STEPS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_RECORD_STEPS_H_

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/compile_context.h"
#include "cc/bytecode/step_writer.h"

namespace tensorflow_recursion {

// The steps of a kRetain node make the record, then set its values one by one.
void EmitRetain(NodeId id, CompileContext* context, StepWriter* writer);

// The steps of a kRecall node check the record, then read its values one by one.
void EmitRecall(NodeId id, CompileContext* context, StepWriter* writer);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_RECORD_STEPS_H_
