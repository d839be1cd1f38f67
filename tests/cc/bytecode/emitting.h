// What tests of emitters share: the flow graph of a function F, and the context in which it is compiled.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_EMITTING_H_
#define TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_EMITTING_H_

#include <gtest/gtest.h>

#include <memory>

#include "cc/analysis/superfluous_waits.h"
#include "cc/bytecode/blocks.h"
#include "cc/bytecode/candidates.h"
#include "cc/bytecode/code.h"
#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/compile_context.h"
#include "cc/bytecode/element_reads.h"
#include "cc/bytecode/steps.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {

class EmittingTest : public ::testing::Test {
 protected:
  // To be called when the graph is complete.
  void MakeContext() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    ASSERT_TRUE(built_->status.ok()) << built_->status;
    const absl::Status status = DropSuperfluousWaits(&built_->flow);
    ASSERT_TRUE(status.ok()) << status;
    reads_ = FindElementReads(flow());
    blocks_ = std::make_unique<Blocks>(flow());
    context_ =
        std::make_unique<CompileContext>(CompileContext{flow(), reads_, blocks_.get(), &builder_, &code_, {}, {}, {}});
    for (NodeId id : built_->Order()) {
      if (flow().nodes[id].is_removed) continue;
      blocks_->Place(id);
      context_->nodes[FunctionOf(flow(), flow().nodes[id].region)].push_back(id);
    }
    for (const auto& [region, function] : flow().functions) {
      context_->functions.emplace(region, static_cast<int>(context_->functions.size()));
    }
  }

  const FlowGraph& flow() const { return built_->flow; }
  RegionId F() const { return flow().regions.FindFunction("F"); }

  StaticGraph graph_;
  std::unique_ptr<BuiltFlow> built_;
  ElementReads reads_;
  std::unique_ptr<Blocks> blocks_;
  Code code_;
  CodeBuilder builder_{&code_};
  std::unique_ptr<CompileContext> context_;
  // What is emitted.
  FunctionSteps steps_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_EMITTING_H_
