// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/candidates.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

using Functions = std::set<std::string>;

class CandidatesTest : public ::testing::Test {
 protected:
  // The functions that can be compiled.
  Functions Find() {
    built_ = std::make_unique<BuiltFlow>(graph_);
    EXPECT_TRUE(built_->status.ok()) << built_->status;
    const FlowGraph& flow = built_->flow;
    order_ = built_->Order();
    reads_ = FindElementReads(flow);
    blocks_ = std::make_unique<Blocks>(flow);
    types_ = std::make_unique<RegisterTypes>(flow, reads_);
    candidates_ = std::make_unique<Candidates>(flow, order_, reads_, blocks_.get(), types_.get());
    const Functions found = NamesOf(candidates_->Find());
    for (const auto& [region, node] : candidates_->misfits()) {
      misfits_[flow.regions.regions()[region].name] = node->name();
    }
    return found;
  }

  Functions Restrict(const Functions& functions) {
    std::set<RegionId> regions;
    for (const std::string& name : functions) regions.insert(built_->flow.regions.FindFunction(name));
    return NamesOf(candidates_->Restrict(regions));
  }

  Functions NamesOf(const std::set<RegionId>& regions) const {
    Functions names;
    for (RegionId region : regions) names.insert(built_->flow.regions.regions()[region].name);
    return names;
  }

  void ExpectMisfit(const std::string& node) {
    EXPECT_EQ(Find(), Functions());
    EXPECT_EQ(misfits_["F"], node);
  }

  StaticGraph graph_;
  std::map<std::string, std::string> misfits_;  // the node that is to blame, by function
  std::unique_ptr<BuiltFlow> built_;
  std::vector<NodeId> order_;
  ElementReads reads_;
  std::unique_ptr<Blocks> blocks_;
  std::unique_ptr<RegisterTypes> types_;
  std::unique_ptr<Candidates> candidates_;
};

TEST_F(CandidatesTest, ArithmeticBranchesLoopsAndCallsCanBeCompiled) {
  graph_.Function("F", {"n"});
  AddSumOfFibs(&graph_, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  AddFib(&graph_, 3);
  EXPECT_EQ(Find(), (Functions{"F", "Fib"}));
  EXPECT_TRUE(misfits_.empty());
}

TEST_F(CandidatesTest, FunctionOfALoopIsTheOneAroundIt) {
  AddFib(&graph_, 3);
  graph_.Function("F", {"n"});
  AddSumOfFibs(&graph_, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  Find();
  const FlowGraph& flow = built_->flow;
  ASSERT_EQ(flow.loops.size(), 1);
  EXPECT_EQ(FunctionOf(flow, flow.loops[0].region), flow.regions.FindFunction("F"));
  EXPECT_EQ(FunctionOf(flow, flow.regions.FindFunction("Fib")), flow.regions.FindFunction("Fib"));
  EXPECT_EQ(FunctionOf(flow, GraphRegions::kRoot), kNone);
}

TEST_F(CandidatesTest, AKernelIsToBlame) {
  graph_.Function("F", {"n"}).Kernel("F/kernel", {"F/n"}).Result("F", "F/kernel");
  ExpectMisfit("F/kernel");
}

TEST_F(CandidatesTest, CallersOfWhatCantBeCompiledCantEither) {
  graph_.Function("G", {"n"}).Kernel("G/kernel", {"G/n"}).Result("G", "G/kernel");
  graph_.Function("F", {"n"}).Call("F/call", "G", 2, {"F/n"}).Result("F", "F/call/return_0");
  graph_.Function("E", {"n"}).Call("E/call", "F", 3, {"E/n"}).Result("E", "E/call/return_0");
  AddFib(&graph_, 4);
  EXPECT_EQ(Find(), Functions{"Fib"});
  EXPECT_EQ(misfits_, (std::map<std::string, std::string>{{"G", "G/kernel"}}));
}

TEST_F(CandidatesTest, RestrictDropsCallersOfOthers) {
  graph_.Function("F", {"n"}).Call("F/call", "Fib", 2, {"F/n"}).Result("F", "F/call/return_0");
  AddFib(&graph_, 3);
  EXPECT_EQ(Find(), (Functions{"F", "Fib"}));
  EXPECT_EQ(Restrict({"Fib"}), Functions{"Fib"});
  EXPECT_EQ(Restrict({"F"}), Functions());
}

TEST_F(CandidatesTest, AFunctionWithoutResultsHasNothingToCompile) {
  graph_.Function("F", {"n"}).Op("F/neg", "Neg", {"F/n"});
  EXPECT_EQ(Find(), Functions());
  EXPECT_TRUE(misfits_.empty());
}

TEST_F(CandidatesTest, AResultLivesWheneverItsFunctionIsCalled) {
  graph_.Function("F", {"n"}).Const("F/two", 2, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/two"});
  graph_.Op("F/switch", "Switch", {"F/n", "F/less"}).Result("F", "F/switch:1");
  ExpectMisfit("F/result_0");
}

TEST_F(CandidatesTest, ACallHasAllOfItsArgumentsOrNone) {
  graph_.Function("F", {"n"}).Const("F/two", 2, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/two"});
  graph_.Op("F/switch", "Switch", {"F/n", "F/less"}).Call("F/call", "G", 2, {"F/n", "F/switch:1"});
  graph_.Result("F", "F/n");
  graph_.Function("G", {"a", "b"}).Op("G/sum", "AddV2", {"G/a", "G/b"}).Result("G", "G/sum");
  EXPECT_EQ(Find(), Functions{"G"});
  EXPECT_EQ(misfits_["F"], "F/call/call_0");
}

TEST_F(CandidatesTest, NobodyReadsWhichInputOfAMergeWon) {
  graph_.Function("F", {"n"}).Const("F/two", 2, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/two"});
  graph_.Op("F/switch", "Switch", {"F/n", "F/less"}).Op("F/neg", "Neg", {"F/switch"});
  Merge(&graph_, "F/merge", {"F/neg", "F/switch:1"}).Op("F/position", "Neg", {"F/merge:1"});
  graph_.Result("F", "F/position");
  ExpectMisfit("F/merge");
}

TEST_F(CandidatesTest, ArithmeticIsOnNumbers) {
  tensorflow::Tensor pair(kInt, tensorflow::TensorShape({2}));
  pair.flat<int32_t>().setConstant(1);
  graph_.Function("F", {"n"}).Node("F/pair", "Const", {"^F/frame_start"}, {{"dtype", kInt}, {"value", pair}});
  graph_.Op("F/sum", "AddV2", {"F/n", "F/pair"}).Result("F", "F/sum");
  ExpectMisfit("F/sum");
}

// x[i] + x would need x as an array and as a number: no node is to blame, but no register can hold it.
TEST_F(CandidatesTest, AValueIsANumberOrAnArray) {
  graph_.Function("F", {"x", "i"}).Const("F/axis", 0, {"^F/frame_start"});
  graph_.Node("F/read", "GatherV2", {"F/x", "F/i", "F/axis"},
              {{"Tparams", kInt}, {"Tindices", kInt}, {"Taxis", kInt}, {"batch_dims", 0}});
  graph_.Op("F/sum", "AddV2", {"F/read", "F/x"}).Result("F", "F/sum");
  AddFib(&graph_, 2);
  EXPECT_EQ(Find(), Functions{"Fib"});
  EXPECT_TRUE(misfits_.empty());
}

TEST_F(CandidatesTest, ALoopThatNeverGoesRoundIsNone) {
  graph_.Function("F", {"n"}).Enter("F/enter", "F/n", "loop").Op("F/exit", "Exit", {"F/enter"});
  graph_.Result("F", "F/exit");
  EXPECT_EQ(Find(), Functions());
}

}  // namespace
}  // namespace tensorflow_recursion
