// The builder's view of a program: one Draft per future operator, linked by sources instead of edges.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_GRAPH_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cc/analysis/regions.h"
#include "cc/program/program.h"
#include "cc/values/device_memory.h"

namespace tensorflow_recursion {

// Where a value or a control signal comes from.
struct Source {
  static constexpr int kWholeOp = -1;  // a control signal of the operator, not of one port
  int draft = 0;
  int port = 0;

  bool operator<(const Source& other) const { return draft != other.draft ? draft < other.draft : port < other.port; }
  bool operator==(const Source& other) const { return draft == other.draft && port == other.port; }
};

struct Input {
  static constexpr int kNoConstant = -1;
  Source source;               // when constant is kNoConstant
  int constant = kNoConstant;  // index in Program::constants
  std::vector<Source> guards;  // of a constant: what must be live for it to be

  bool is_constant() const { return constant != kNoConstant; }
};

struct Draft {
  Draft(OpKind kind, int region, const tensorflow::Node* node) : kind(kind), region(region), node(node) {}

  OpKind kind;
  int region;
  const tensorflow::Node* node;  // that it was made for; names it in errors
  std::vector<Input> inputs;
  std::vector<Source> controls;
  int num_ports = 0;
  uint32_t index = 0;  // as Op::index; of a switch: the draft of the branch on its predicate
  ScalarFunction scalar = nullptr;
  bool may_be_dead = false;  // its kernel may leave outputs unset (_Recv)
  bool takes_dead = false;   // see Op
  bool is_partial = false;   // of a loop of which a part may be dead: its start, the end of an iteration, or an entry
  bool is_removed = false;   // nothing refers to it any more
};

struct SiteDraft {
  int64_t call_id = 0;
  std::string name;
  std::string callee;
  int draft = -1;
  std::map<int, const tensorflow::Node*> calls;    // by argument
  std::map<int, const tensorflow::Node*> returns;  // by result
  const tensorflow::Node* join = nullptr;          // says that the call lives, where another device decides it
  const tensorflow::Node* announcement = nullptr;  // tells the others, where this one does
  int announce_port = -1;
};

struct LoopDraft {
  int region = 0;  // of the body
  int start = -1;
  int next = -1;
  std::vector<const tensorflow::Node*> enters;
  std::vector<const tensorflow::Node*> nexts;
  std::vector<const tensorflow::Node*> merges;
  std::vector<const tensorflow::Node*> exits;
  const tensorflow::Node* condition = nullptr;           // its LoopCond
  std::vector<std::vector<Source>> next_controls;        // of each NextIteration
  std::map<const tensorflow::Node*, int> entries;        // of a Merge, and of an Enter read otherwise
  std::map<const tensorflow::Node*, int> index_entries;  // of a Merge whose value_index is read
  int num_entries = 0;
  bool crosses_devices = false;  // a value is sent or received in it, or in a loop in it
  bool is_partial = false;       // see Loop
};

// Whether the Enter brings a value from outside of its loop to all iterations.
bool IsLoopConstant(const tensorflow::Node& enter);

// Sets `order` to all drafts, each behind its sources. InvalidArgument if they form a cycle.
absl::Status SortDrafts(const std::vector<Draft>& drafts, std::vector<int>* order);

// Calls `visit` with all that the draft waits for.
template <typename Visit>
void ForEachSource(const Draft& draft, Visit visit) {
  for (const Input& input : draft.inputs) {
    if (!input.is_constant()) visit(input.source);
    for (const Source& guard : input.guards) visit(guard);
  }
  for (const Source& control : draft.controls) visit(control);
}

// Turns nodes into drafts. Node kinds that only rename a value (Identity, LoopCond, Switch(p, p),
// Return, NextIteration, ...) become sources of other drafts.
class DraftBuilder {
 public:
  DraftBuilder(const tensorflow::Graph& graph, const GraphRegions& regions, const DeviceMemory& memory,
               Program* program)
      : graph_(graph), regions_(regions), memory_(memory), program_(program) {}

  absl::Status Build();

  const GraphRegions& regions() const { return regions_; }
  const DeviceMemory& memory() const { return memory_; }

  std::vector<Draft> drafts;
  std::vector<SiteDraft> sites;
  std::vector<LoopDraft> loops;
  // Per function region: the entry drafts by argument (-1: none) and the frame_start draft (-1: none).
  std::map<int, std::vector<int>> entries;
  std::map<int, int> frame_starts;
  std::map<int, int> num_results;
  std::map<std::pair<int, int>, const tensorflow::Node*> results;  // by function region and index
  bool crosses_devices = false;  // values are sent to other devices or received from them

 private:
  absl::Status CollectSites();
  absl::Status CollectSitePiece(const tensorflow::Node* node, SiteDraft* site);
  absl::Status NumberArguments();
  void FindCrossings();
  absl::Status CollectLoops();
  absl::Status CheckSite(const SiteDraft& site) const;
  absl::Status MakeDrafts();
  absl::Status MakeDraft(const tensorflow::Node* node);
  absl::Status MakeEntry(const tensorflow::Node* node);
  absl::Status MakeKernel(const tensorflow::Node* node);
  absl::Status MakeRecord(const tensorflow::Node* node);
  void MakeLoopEntries(LoopDraft* loop);
  absl::Status LinkDrafts();
  absl::Status Link(int draft);
  absl::Status LinkSite(const SiteDraft& site);
  absl::Status LinkLoop(LoopDraft* loop);
  absl::Status LinkNext(LoopDraft* loop);
  absl::Status LinkCondition(const LoopDraft& loop, std::vector<Input>* inputs);

  int Add(Draft draft);
  bool IsAlias(const tensorflow::Node* node) const;
  absl::Status Resolve(const tensorflow::Node* node, int port, Source* source);
  absl::Status ResolveInput(const tensorflow::Node* node, int input, Input* result);
  absl::Status ResolveLive(const tensorflow::Node* node, int input, Input* result);
  absl::Status ResolveToken(const tensorflow::Node* node, Input* result);
  absl::Status ResolveControls(const tensorflow::Node* node, std::vector<Source>* controls);
  absl::Status ResolvePassed(const tensorflow::Node* call, std::vector<const tensorflow::Node*>* pending,
                             std::vector<Source>* controls);
  absl::Status ResolveControl(const tensorflow::Node* node, std::vector<Source>* controls);
  Source JoinDeadOrAlive(int draft, std::vector<Source> controls);
  absl::Status BranchOf(const tensorflow::Node* pred_switch, int* branch);
  absl::Status BranchOn(const Source& predicate, int region, int* branch);
  absl::Status ConstantOf(const tensorflow::Node* node, int* constant);
  absl::Status ConstantDraft(const tensorflow::Node* node, int* draft);
  bool IsPredicateSwitch(const tensorflow::Node* node) const;
  std::pair<const tensorflow::Node*, int> Origin(const tensorflow::Edge* edge) const;
  int LoopOfRegion(int region) const;

  const tensorflow::Graph& graph_;
  const GraphRegions& regions_;
  const DeviceMemory& memory_;
  Program* program_;
  std::vector<int> draft_of_;  // node id -> draft
  std::map<const tensorflow::Node*, int> constants_;
  std::map<const tensorflow::Node*, int> constant_drafts_;
  std::map<std::pair<int, Source>, int> branches_;  // (region, predicate) -> kBranch draft
  std::map<int64_t, int> site_of_id_;
  std::map<int, int> loop_of_region_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_GRAPH_H_
