// Calls and loops that get some of their inputs dead and others alive, as a Switch outside of conditionals makes them:
// wherever their operators are, they compute what they do on one device.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/kernels/partitions.h"

namespace tensorflow_recursion {
namespace {

constexpr int kDead = Outcome::kDead;

class DeadInputsTest : public PartitionTest {
 protected:
  // What one device computes is what is expected of it, and what all others compute.
  void ExpectEverywhere(const StaticGraph& graph, const std::vector<int>& arguments, const std::vector<int>& expected) {
    EXPECT_EQ(RunOn(graph, {{"", kDeviceA}}, arguments), expected);
    ExpectAnywhere(graph, arguments, expected);
  }
};

// main/choice: x0 where x1 < 0 (:1), else (:0).
StaticGraph& BeginMain(StaticGraph* graph) {
  graph->Arg("x0", 0).Arg("x1", 1).Const("zero", 0).Op("less", "Less", {"x1", "zero"});
  return graph->Op("choice", "Switch", {"x0", "less"});
}

// F(x, y) = -x, -y, 7
StaticGraph& AddNegations(StaticGraph* graph) {
  graph->Function("F", {"x", "y"}).Op("F/neg_x", "Neg", {"F/x"}).Op("F/neg_y", "Neg", {"F/y"});
  graph->Const("F/seven", 7, {"^F/frame_start"}).Result("F", "F/neg_x").Result("F", "F/neg_y", 1);
  return graph->Result("F", "F/seven", 2);
}

void AddThreeRetvals(StaticGraph* graph) {
  for (int i = 0; i < 3; ++i) graph->Retval(absl::StrCat("main/return_", i), i);
}

TEST_F(DeadInputsTest, ACallWithOneDeadArgumentLives) {
  StaticGraph graph;
  BeginMain(&graph).Call("main", "F", 1, {"choice", "x0"}, 3);
  AddThreeRetvals(&AddNegations(&graph));
  ExpectEverywhere(graph, {4, 1}, {-4, -4, 7});
  ExpectEverywhere(graph, {4, -1}, {kDead, -4, 7});
}

TEST_F(DeadInputsTest, ArgumentsThatDieApartEachKeepACallAlive) {
  StaticGraph graph;
  BeginMain(&graph).Op("also", "Less", {"x0", "zero"}).Op("other", "Switch", {"x1", "also"});
  graph.Call("main", "F", 1, {"choice", "other"}, 3);
  AddThreeRetvals(&AddNegations(&graph));
  ExpectEverywhere(graph, {4, 1}, {-4, -1, 7});
  ExpectEverywhere(graph, {4, -1}, {kDead, 1, 7});
  ExpectEverywhere(graph, {-4, 1}, {4, kDead, 7});
  ExpectEverywhere(graph, {-4, -1}, {kDead, kDead, kDead});
}

TEST_F(DeadInputsTest, OneOfTwoArgumentsIsAlwaysAlive) {
  StaticGraph graph;
  BeginMain(&graph).Call("main", "F", 1, {"choice", "choice:1"}, 3);
  AddThreeRetvals(&AddNegations(&graph));
  ExpectEverywhere(graph, {4, 1}, {-4, kDead, 7});
  ExpectEverywhere(graph, {4, -1}, {kDead, -4, 7});
}

TEST_F(DeadInputsTest, AConstantDoesNotKeepACallAlive) {
  StaticGraph graph;
  BeginMain(&graph).Call("main", "F", 1, {"choice", "zero"}, 3);
  AddThreeRetvals(&AddNegations(&graph));
  ExpectEverywhere(graph, {4, 1}, {-4, 0, 7});
  ExpectEverywhere(graph, {4, -1}, {kDead, kDead, kDead});
}

TEST_F(DeadInputsTest, ADeadControlInputKillsACall) {
  StaticGraph graph;
  BeginMain(&graph).Op("pivot", "Identity", {"choice"}).Call("main", "F", 1, {"x0", "choice:1", "^pivot"}, 3);
  AddThreeRetvals(&AddNegations(&graph));
  ExpectEverywhere(graph, {4, 1}, {-4, kDead, 7});
  ExpectEverywhere(graph, {4, -1}, {kDead, kDead, kDead});
}

// What is dead at the call is dead at the calls below: down(n, x, y) = n > 0 ? down(n - 1, y, x) : x - y, or what
// lives.
TEST_F(DeadInputsTest, DeadArgumentsAreDeadAtAllDepths) {
  StaticGraph graph;
  BeginMain(&graph).Const("five", 5).Call("main", "D", 1, {"five", "choice", "x1"}, 3).Function("D", {"n", "x", "y"});
  graph.Const("D/zero", 0, {"^D/frame_start"})
      .Const("D/one", 1, {"^D/frame_start"})
      .Op("D/done", "Equal", {"D/n", "D/zero"});
  for (const std::string name : {"n", "x", "y"}) graph.Op("D/s_" + name, "Switch", {"D/" + name, "D/done"});
  graph.Op("D/less", "Sub", {"D/s_n", "D/one"}).Call("D/call", "D", 2, {"D/less", "D/s_y", "D/s_x"}, 3);
  graph.Op("D/sub", "Sub", {"D/s_x:1", "D/s_y:1"});
  Merge(&graph, "D/m_x", {"D/call/return_0", "D/s_x:1"}).Result("D", "D/m_x");
  Merge(&graph, "D/m_y", {"D/call/return_1", "D/s_y:1"}).Result("D", "D/m_y", 1);
  Merge(&graph, "D/m", {"D/call/return_2", "D/sub"}).Result("D", "D/m", 2);
  AddThreeRetvals(&graph);
  ExpectEverywhere(graph, {4, 1}, {1, 4, 1 - 4});
  ExpectEverywhere(graph, {4, -1}, {-1, kDead, kDead});
}

// A loop in the main graph, in front of which there is a call. Its variables start with `variables` and go on with
// last/<position>, which the caller adds. They end when the first one is no longer below `limit`.
class Loop {
 public:
  Loop(StaticGraph* graph, const std::string& limit, const Inputs& variables) : graph_(*graph) {
    AddNegations(&graph_).Call("before", "F", 2, {"x0", "x1"}, 3);
    graph_.Const("start", 0).Enter("enter_limit", limit, "loop", true);
    for (const std::string& variable : variables) Add(variable);
    graph_.Op("below", "Less", {"variable/0", "enter_limit"});
  }

  // Yields the variables at the end.
  void End() {
    graph_.Node("condition", "LoopCond", {"below"});
    for (int i = 0; i < num_variables_; ++i) {
      graph_.Op(At("switch", i), "Switch", {At("variable", i), "condition"});
      graph_.Op(At("body", i), "Identity", {At("switch", i) + ":1"}).Op(At("exit", i), "Exit", {At("switch", i)});
      graph_.Op(At("next", i), "NextIteration", {At("last", i)}).Retval(At("exit", i), i);
    }
  }

 private:
  static std::string At(const char* kind, int i) { return absl::StrCat(kind, "/", i); }

  void Add(const std::string& start) {
    graph_.Enter(At("enter", num_variables_), start, "loop");
    Merge(&graph_, At("variable", num_variables_), {At("enter", num_variables_), At("next", num_variables_)});
    ++num_variables_;
  }

  StaticGraph& graph_;
  int num_variables_ = 0;
};

// last/0: one more than body/0
void AddCount(StaticGraph* graph) { graph->Const("one", 1, {"^body/0"}).Op("last/0", "AddV2", {"body/0", "one"}); }

TEST_F(DeadInputsTest, ALoopRunsWithTheVariablesThatLive) {
  StaticGraph graph;
  BeginMain(&graph);
  Loop loop(&graph, "x0", {"start", "choice", "start"});
  AddCount(&graph);
  graph.Op("last/1", "AddV2", {"body/1", "one"}).Op("last/2", "AddV2", {"body/2", "body/0"});
  loop.End();
  ExpectEverywhere(graph, {4, 1}, {4, 8, 0 + 1 + 2 + 3});
  ExpectEverywhere(graph, {4, -1}, {4, kDead, 0 + 1 + 2 + 3});
  ExpectEverywhere(graph, {0, 1}, {0, 0, 0});
  ExpectEverywhere(graph, {0, -1}, {0, kDead, 0});
}

TEST_F(DeadInputsTest, ALoopIsDeadWhenItsConditionIs) {
  StaticGraph graph;
  BeginMain(&graph);
  Loop loop(&graph, "choice", {"start", "x0"});
  AddCount(&graph);
  graph.Op("last/1", "AddV2", {"body/1", "one"});
  loop.End();
  ExpectEverywhere(graph, {4, 1}, {4, 8});
  ExpectEverywhere(graph, {4, -1}, {kDead, kDead});
}

TEST_F(DeadInputsTest, ALoopIsDeadWhenAllItsVariablesAre) {
  StaticGraph graph;
  BeginMain(&graph);
  Loop loop(&graph, "x0", {"choice", "choice"});
  AddCount(&graph);
  graph.Op("last/1", "AddV2", {"body/1", "x_in"}).Enter("x_in", "x0", "loop", true);
  loop.End();
  ExpectEverywhere(graph, {4, 1}, {4, 4});
  ExpectEverywhere(graph, {4, -1}, {kDead, kDead});
}

TEST_F(DeadInputsTest, AVariableThatDiesInOneIterationIsDeadInAllThatFollow) {
  StaticGraph graph;
  BeginMain(&graph);
  Loop loop(&graph, "x0", {"start", "x0", "x0"});
  AddCount(&graph);
  graph.Const("two", 2, {"^body/0"}).Op("early", "Less", {"body/0", "two"});
  graph.Op("dies", "Switch", {"body/1", "early"}).Op("last/1", "AddV2", {"dies:1", "one"});
  // That reads the variable which dies: it dies an iteration later.
  graph.Op("last/2", "AddV2", {"body/2", "body/1"});
  loop.End();
  ExpectEverywhere(graph, {2, 1}, {2, 4, 2 + 2 + 3});
  ExpectEverywhere(graph, {3, 1}, {3, kDead, 3 + 3 + 4 + 5});
  ExpectEverywhere(graph, {4, 1}, {4, kDead, kDead});
  ExpectEverywhere(graph, {7, 1}, {7, kDead, kDead});
}

TEST_F(DeadInputsTest, ALoopEndsWhenNoVariableGoesOn) {
  StaticGraph graph;
  BeginMain(&graph);
  Loop loop(&graph, "x0", {"start", "x1"});
  graph.Const("one", 1, {"^body/0"}).Op("more", "AddV2", {"body/0", "one"});
  graph.Const("two", 2, {"^body/0"}).Op("early", "Less", {"more", "two"});
  graph.Op("count", "Switch", {"more", "early"}).Op("last/0", "Identity", {"count:1"});
  graph.Op("same", "Switch", {"body/1", "early"}).Op("last/1", "Identity", {"same:1"});
  loop.End();
  ExpectEverywhere(graph, {1, 9}, {1, 9});
  ExpectEverywhere(graph, {0, 9}, {0, 9});
  ExpectEverywhere(graph, {5, 9}, {kDead, kDead});
}

TEST_F(DeadInputsTest, CallsInALoopGetWhatLives) {
  StaticGraph graph;
  BeginMain(&graph);
  Loop loop(&graph, "x0", {"start", "choice", "start"});
  AddCount(&graph);
  graph.Call("call", "F", 1, {"body/1", "body/0"}, 3);
  graph.Op("last/1", "Identity", {"call/return_0"}).Op("last/2", "AddV2", {"body/2", "call/return_1"});
  loop.End();
  ExpectEverywhere(graph, {3, 1}, {3, -3, -0 - 1 - 2});
  ExpectEverywhere(graph, {3, -1}, {3, kDead, -0 - 1 - 2});
}

// Graphs of functions, calls, loops and switches as they come.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) { random_.discard(5); }

  const StaticGraph& Make() {
    for (int i = 0; i < kArguments; ++i) graph_.Arg(absl::StrCat("x", i), i);
    Scope main{"", "", {"x0", "x1", "x2"}, {}, 3};
    Fill(&main, 4 + Below(4));
    if (call_ids_ == 0) Call(&main, "F2", {Any(main), Any(main), Any(main)});
    for (int i = 0; i < kResults; ++i) graph_.Retval(Any(main), i);
    for (int i = 0; i < kFunctions; ++i) AddFunction(i);
    return graph_;
  }

  static constexpr int kArguments = 3;

 private:
  static constexpr int kFunctions = 3;
  static constexpr int kResults = 3;

  struct Scope {
    std::string prefix;
    std::string function;
    std::vector<std::string> values;
    Inputs start;   // of constants
    int callees;    // functions of lower numbers are called
    int depth = 0;  // of loops
  };

  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
  std::string Any(const Scope& scope) { return scope.values[Below(static_cast<int>(scope.values.size()))]; }
  std::string Name(const Scope& scope, const char* base) { return absl::StrCat(scope.prefix, base, ++names_); }

  std::string Constant(const Scope& scope, int value) {
    const std::string name = Name(scope, "const");
    graph_.Const(name, value, scope.start);
    return name;
  }

  std::string Predicate(const Scope& scope, const std::string& value) {
    const std::string name = Name(scope, "less");
    graph_.Op(name, "Less", {value, Constant(scope, Below(7) - 3)});
    return name;
  }

  void Call(Scope* scope, const std::string& callee, const Inputs& inputs) {
    const std::string name = Name(*scope, "call");
    graph_.Call(name, callee, ++call_ids_, inputs, kResults);
    for (int i = 0; i < kResults; ++i) scope->values.push_back(absl::StrCat(name, "/return_", i));
  }

  void Fill(Scope* scope, int steps) {
    for (int i = 0; i < steps; ++i) Step(scope);
  }

  void Step(Scope* scope) {
    const std::string a = Any(*scope);
    const std::string b = Any(*scope);
    switch (Below(11)) {
      case 9:
      case 10:
        return Loop(scope);
      case 0: {
        const std::string name = Name(*scope, "add");
        graph_.Op(name, "AddV2", {a, b});
        scope->values.push_back(name);
        return;
      }
      case 1:
      case 2: {
        const std::string name = Name(*scope, "switch");
        graph_.Op(name, "Switch", {a, Predicate(*scope, b)});
        scope->values.push_back(name);
        scope->values.push_back(name + ":1");
        return;
      }
      case 3: {  // of which one at most lives
        const std::string name = Name(*scope, "switch");
        graph_.Op(name, "Switch", {a, Predicate(*scope, b)});
        const std::string sum = Name(*scope, "add");
        graph_.Op(sum, "AddV2", {name + ":1", Any(*scope)});
        scope->values.push_back(Name(*scope, "merge"));
        Merge(&graph_, scope->values.back(), {name, sum});
        return;
      }
      case 4: {
        const std::string pivot = Name(*scope, "pivot");
        graph_.Op(pivot, "Identity", {a});
        scope->values.push_back(Name(*scope, "const"));
        graph_.Const(scope->values.back(), Below(7) - 3, {"^" + pivot});
        return;
      }
      case 5: {
        const std::string name = Name(*scope, "effect");
        graph_.Kernel(name, {a}, 1, /*is_stateful=*/true);
        scope->values.push_back(name);
        return;
      }
      default: {
        if (scope->callees == 0) return;
        Inputs inputs = {a, b, Below(4) == 0 ? Constant(*scope, Below(7) - 3) : Any(*scope)};
        if (Below(5) == 0) {
          const std::string pivot = Name(*scope, "pivot");
          graph_.Op(pivot, "Identity", {Any(*scope)});
          inputs.push_back("^" + pivot);
        }
        Call(scope, absl::StrCat("F", Below(scope->callees)), inputs);
      }
    }
  }

  // Adds a loop of few iterations, with variables, values from outside, and a body as it comes.
  void Loop(Scope* scope) {
    if (scope->depth == 2) return;
    const std::string name = Name(*scope, "loop");
    const auto in = [&](const char* kind, int variable) { return absl::StrCat(name, "_", kind, variable); };
    const int num_variables = 2 + Below(3);
    const std::string pivot = Name(*scope, "pivot");
    graph_.Op(pivot, "Identity", {Any(*scope)});
    graph_.Const(in("start", 0), 0, {"^" + pivot});
    graph_.Enter(in("enter", 0), Below(3) == 0 ? in("start", 0) : Constant(*scope, 0), name);
    graph_.Enter(in("limit", 0), Constant(*scope, Below(4)), name, true).Enter(in("outer", 0), Any(*scope), name, true);
    graph_.Op(in("held", 0), "Identity", {in("outer", 0), "^" + in("body", 1)});
    Scope body{name + "_", scope->function, {in("held", 0)}, {"^" + in("body", 0)}, 0, scope->depth + 1};
    if (scope->function.empty()) body.callees = scope->callees;  // else there would be too many calls
    for (int i = 0; i < num_variables; ++i) {
      if (i > 0) graph_.Enter(in("enter", i), Any(*scope), name);
      Merge(&graph_, in("variable", i), {in("enter", i), in("next", i)});
      graph_.Op(in("switch", i), "Switch", {in("variable", i), in("cond", 0)});
      graph_.Op(in("body", i), "Identity", {in("switch", i) + ":1"}).Op(in("exit", i), "Exit", {in("switch", i)});
      body.values.push_back(in("body", i));
    }
    graph_.Op(in("less", 0), "Less", {in("variable", 0), in("limit", 0)})
        .Node(in("cond", 0), "LoopCond", {in("less", 0)});
    Fill(&body, 1 + Below(4));
    for (int i = 0; i < num_variables; ++i) {
      const std::string last = i == 0 ? in("count", 0) : Any(body);
      if (i == 0) graph_.Op(last, "AddV2", {in("body", 0), Constant(body, 1)});
      if (i > 0 && Below(6) == 0) {  // what lives in the last iteration too
        graph_.Op(in("next", i), "NextIteration", {Below(2) == 0 ? in("variable", i) : in("outer", 0)});
      } else if (i > 0 && Below(6) == 0) {
        graph_.Op(in("next", i), "NextIteration", {in("outer", 0), "^" + in("body", i)});
      } else {
        graph_.Op(in("next", i), "NextIteration", {last});
      }
      scope->values.push_back(in("exit", i));
    }
  }

  void AddFunction(int number) {
    const std::string function = absl::StrCat("F", number);
    graph_.Function(function, {"x", "y", "z"});
    const std::string in = function + "/";
    Scope scope{in, function, {in + "x", in + "y", in + "z"}, {"^" + in + "frame_start"}, number};
    Fill(&scope, 2 + Below(4));
    if (Below(2) == 0) {  // once more with x - 2 below
      const std::string done = Predicate(scope, in + "x");
      Inputs inputs;
      for (int i = 0; i < kArguments; ++i) {
        inputs.push_back(Name(scope, "down"));
        graph_.Op(inputs.back(), "Switch", {i == 0 ? in + "x" : Any(scope), done});
      }
      const std::string less = Name(scope, "sub");
      graph_.Op(less, "Sub", {inputs[0], Constant(scope, 2)});
      inputs[0] = less;
      Call(&scope, function, inputs);
      Fill(&scope, Below(3));
    }
    for (int i = 0; i < kResults; ++i) graph_.Result(function, Any(scope), i);
  }

  std::minstd_rand random_;
  StaticGraph graph_;
  int names_ = 0;
  int call_ids_ = 0;
};

// In parts, which several processes may run.
constexpr uint32_t kGraphsOfPart = 30;

class RandomDeadInputsTest : public DeadInputsTest, public testing::WithParamInterface<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Parts, RandomDeadInputsTest, testing::Range(0u, 5u));

TEST_P(RandomDeadInputsTest, GraphsComputeTheSameAnywhere) {
  int num_dead = 0;
  int num_live = 0;
  const uint32_t first = GetParam() * kGraphsOfPart + 1;
  for (uint32_t seed = first; seed < first + kGraphsOfPart; ++seed) {
    SCOPED_TRACE(absl::StrCat("graph ", seed));
    RandomGraph random(seed);
    const StaticGraph& graph = random.Make();
    const BuiltPartitions one = BuildPartitions(graph, {{"", kDeviceA}});
    ASSERT_TRUE(one.status.ok()) << one.status;
    std::vector<Example> examples;
    for (const std::vector<int>& arguments : {std::vector<int>{4, 1, -2}, std::vector<int>{-1, 2, 3}}) {
      const std::vector<int> expected = Run(one, arguments, 0, 1);
      for (uint64_t order = 1; order <= 3; ++order) EXPECT_EQ(Run(one, arguments, order, 1), expected);
      for (int value : expected) ++(value == kDead ? num_dead : num_live);
      examples.push_back({arguments, expected});
    }
    ExpectExamplesAnywhere(graph, examples, /*placements=*/6);
    if (HasFailure()) return;
  }
  EXPECT_GT(num_dead, 20);
  EXPECT_GT(num_live, 20);
}

}  // namespace
}  // namespace tensorflow_recursion
