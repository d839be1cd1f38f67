// The immutable tables that the executor runs: regions, their operators, and the edges between them.
//
// A region is a part of a graph whose operators share a frame: the root, a function's body, or a loop's body. A frame
// is a header, then an array of Values, its slots, in which inputs wait for others, then pending counts. An operator
// fires when its count reaches zero, and delivers its outputs along its ports' edges. One that waits for a single thing
// has neither slot nor count: it fires with what comes. For example, the addition of fib has two slots and a count that
// begins with 2; the comparison n < 2 has neither, because it waits for n alone.
//
// Within a frame no token tells that a value is dead. An operator with a dead input never fires, because its count
// stays above zero. Some must learn of a death (merges, calls, results, sends, some loops). When the program is built,
// these are listed for each place where something can die (DeathList), so that they are told in one step.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cc/analysis/kernel_node.h"
#include "cc/analysis/op_kind.h"
#include "cc/analysis/regions.h"
#include "cc/base/ids.h"
#include "cc/base/options.h"
#include "cc/bytecode/code.h"
#include "cc/program/piece.h"
#include "cc/values/device_memory.h"
#include "cc/values/record.h"
#include "cc/values/scalar_ops.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow_recursion {

// What happens to a value, or to a control signal, at the end of an edge.
enum class EdgeKind : uint8_t {
  // A value goes into its slot and counts as one arrival.
  kData,
  // A control signal counts as one arrival.
  kControl,
  // A value or a control signal is the only thing that the operator waits for, and fires it.
  kOnly,
  // These values go on at once, or wait for their branch or their call, as the operator's kind says.
  kMerge,
  kGate,
  kCallArgument,
  kResult,
  kExit,
  // A control signal sets its bit in a union's slots.
  kUnion,
};

// Leads from a port to one operator that reads it. `slot` is where the value waits; `index` says which of the
// operator's inputs it is, or at a union which bit.
struct Edge {
  OpId op;
  SlotId slot;
  uint16_t index;
  EdgeKind kind;
};

// The edges out of a port: those in Region::edges from `begin` on, before `end`. Control edges come last, from
// `controls` on.
struct Port {
  uint32_t begin = 0;
  uint32_t controls = 0;
  uint32_t end = 0;
};

// Operator `op` learns that its input `index` is dead. (A kResult has one input only, so its index is 0.) What it does
// about that follows from its kind (cc/executor/death_teller.cc).
struct DeathEvent {
  OpId op;
  uint16_t index;
};

// Who has to learn of a death: the entries of Region::deaths from `begin` on, before `end`.
struct DeathList {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Region;

// A function that is compiled. It is a region as well, for the calls that run in frames. Immutable but for the flag.
struct CompiledFunction {
  // Which function of Program::code it is.
  int number = 0;
  // A run sets this when it finds that the function does what compiled code can't. For example, it reads a row of a
  // matrix where it was thought to read a number. From then on the function runs in frames. Relaxed, because a run that
  // sees the flag too late finds out the same.
  mutable std::atomic<bool> is_unfit{false};
};

// A call site, which an operator of kind kCallSite in the caller names by its index.
struct CallSite {
  int64_t call_id = 0;
  // The name of the call's node, and the name by which users know the callee.
  std::string name;
  std::string callee_name;
  const Region* callee = nullptr;
  // The callee's code; nullptr if calls open frames.
  const CompiledFunction* compiled = nullptr;
  // The port that tells other devices that the call lives; kNone if no other device waits for this one.
  uint32_t announce_port = 0;
  // Another device says by the last input whether the call lives.
  bool waits_for_announcement = false;
  // If the call enters a recursion: how many of its last inputs are invariants of that.
  uint32_t num_invariants = 0;
  // What the call reads then; the values are further invariants.
  std::vector<InvariantRead> invariant_reads;
  // How many results of operators its frames will share.
  uint32_t num_kept_results = 0;
};

// Hands a value to an iteration of a loop: what lies in slot `slot` of the operator that has collected the values goes
// to `entry` in the body. If the body reads which input of its merge the value is, that number goes to `index_entry`,
// which is else kNone.
struct LoopDelivery {
  uint32_t slot = 0;
  OpId entry;
  OpId index_entry;
  // No further delivery reads the slot.
  bool is_last = true;
};

// A loop, whose iterations are frames of `body`. For example, `tf.while_loop` over i and x has two variables: their
// values enter by `starts`, go from one iteration to the next by `nexts`, and leave by the ports of the start.
struct Loop {
  // The attribute frame_name of its Enters, and a hash of that.
  std::string name;
  uint64_t key = 0;
  bool in_function = false;
  // An iteration takes place even if nothing lives in it, because other devices wait for that.
  bool crosses_devices = false;
  // The loop runs with those variables that live. In any other loop all variables live or none.
  bool is_partial = false;
  // The region around the loop, and that of its body.
  const Region* parent = nullptr;
  const Region* body = nullptr;
  // The kLoopStart in the parent, which collects the Enters.
  OpId start_op;
  // What the start hands to the first iteration, and what it hands to every iteration (constant Enters).
  std::vector<LoopDelivery> starts;
  std::vector<LoopDelivery> constants;
  // What the kLoopNext in the body, which collects the NextIterations, hands to the next iteration.
  std::vector<LoopDelivery> nexts;
  // The kLoopNext of a partial loop has further inputs: what goes to the Exits, and at the end what lives if the
  // condition holds. Behind its inputs, the kLoopStart has a bit for each Exit that has let its value out.
  uint32_t num_nexts = 0;
  uint32_t num_exits = 0;
};

// Merges that only let their first input through, and branches, have nothing to count. The 16 bits of their pending
// counts say instead what has been decided. In a merge's, bit i says that input i is dead, and kMergeDecided says that
// a live input has come: there is room for 15 inputs. A branch's is 0 until the predicate comes, then 1 if the
// predicate is false and 2 if it is true.
inline constexpr uint16_t kMergeDecided = 0x8000;
inline constexpr uint16_t kMaxFirstThroughInputs = 15;

// In a table of inputs (Region::inputs), a dead value stands for an invariant, and tells its number among those of the
// recursion. Nothing else in such a table is dead.
inline Value InvariantEntry(uint32_t invariant) {
  Value entry = Value::Dead();
  entry.position = invariant;
  return entry;
}
inline bool IsInvariantEntry(const Value& entry) { return entry.is_dead(); }

// Where an operator finds its inputs when it fires.
enum class InputsIn : uint8_t {
  // They lie in slots `slot`, `slot` + 1 and so on.
  kSlots,
  // The operator's only input is the value that has just arrived, which was never put into a slot.
  kArrival,
  // Region::inputs has a table of them, which begins at `slot`. Each entry is a constant, an invariant
  // (InvariantEntry()), or Empty with the number of a slot in `position`.
  kTable,
  // There is such a table, but input `arriving_input` is the value that has just arrived.
  kTableAndArrival,
};

// An operator of a region, which exists once for all frames. What belongs to one frame (inputs that wait, the pending
// count) lies in that frame, at the place that is said here.
struct Op {
  OpKind kind;
  InputsIn inputs = InputsIn::kSlots;
  // Some operator waits by a control edge for this one as a whole.
  bool has_controls = false;
  // The kernel may leave outputs unset, which are then dead.
  bool may_be_dead = false;
  // A merge that does no more than hand on its first live input.
  bool lets_first_through = false;
  // The start or the end of an iteration that fires when inputs are dead, too. Dead ones lie in their slots.
  bool takes_dead = false;
  // A kScalar whose kernel takes what PackIndices() makes of its inputs.
  bool reads_element = false;
  uint16_t num_inputs = 0;
  // How many ports yield values. Behind them is one more, for the control edges of the operator as a whole.
  uint16_t num_ports = 0;
  // For kTableAndArrival: which input it is that arrives.
  uint16_t arriving_input = 0;
  // How many arrivals the operator waits for: its pending count in a new frame.
  uint32_t num_tokens = 0;
  // The first slot that is the operator's own (Frame::slots_of), or, if `inputs` says so, the first entry of its table
  // (Region::TableOf). Inputs lie in the slots; a gate keeps its data there, a merge and a union say which inputs are
  // dead or have come.
  uint32_t slot = 0;
  // Port 0: its place in Region::ports and Region::port_deaths, where the other ports follow.
  PortId port;
  // Which call site, loop, kernel, piece or record the operator is about, which Program::SiteOf and so on look up; or
  // the number of a result, exit, argument or return value. Its `kind` says which of these it is. The gates of a branch
  // begin there in Region::gates (Region::GatesOf); of a gate it is the branch.
  uint32_t index = 0;
  // Of a branch: where its gates end.
  uint32_t gates_end = 0;
  // For an entry: the lending slot, which keeps its tensor while frames below borrow it; else kNone.
  SlotId lending_slot;
  // What a kScalar computes.
  ScalarFunction scalar = nullptr;

  // The branch of a gate.
  OpId branch() const {
    DCHECK(kind == OpKind::kGate);
    return OpId(index);
  }
  bool reads_table() const { return inputs == InputsIn::kTable || inputs == InputsIn::kTableAndArrival; }
};

// The operators of a function's body, of a loop's body or of the main graph, and what a frame of it looks like.
struct Region {
  RegionKind kind = RegionKind::kRoot;
  // The name of the function or the loop; empty for the root.
  std::string name;
  uint32_t id = 0;
  // The loop that the region is the body of, if it is one.
  const Loop* loop = nullptr;

  // First come the operators with a pending count, then the others that fire, then those that never do. Operator i has
  // pending count i.
  std::vector<Op> ops;
  uint32_t num_counted = 0;
  uint32_t num_firing = 0;
  // The ports of all operators, one operator after the other, and who must learn of it when one of them is dead.
  std::vector<Port> ports;
  std::vector<DeathList> port_deaths;
  std::vector<Edge> edges;
  std::vector<DeathEvent> deaths;

  // The kEntry of each argument, or of each value that an iteration is given; kNone where nobody reads it.
  std::vector<OpId> entries;
  OpId frame_start;
  // The operators that fire when the frame opens, because they wait for nothing.
  std::vector<OpId> sources;
  // The gates of one branch after the other.
  std::vector<OpId> gates;
  // The names, for errors, of the graph's nodes that the branches and switches were made for.
  std::map<OpId, std::string> deciding_nodes;
  uint32_t num_results = 0;

  // The tables of inputs of all operators that have one.
  std::vector<Value> inputs;
  // The first of two slots in which a frame keeps its tag, if values cross devices.
  SlotId tag_slot;

  // Where a frame finds the invariants of its recursion, if there are any.
  SlotId invariants_slot;
  // Of a function: how many of its last arguments are invariants. Some operators cannot read invariants by a table.
  // They get those of `delivered_invariants` from entries, as other arguments.
  uint32_t num_invariants = 0;
  std::vector<uint32_t> delivered_invariants;

  // The slots and pending counts of a frame that has just been opened.
  uint32_t num_slots = 0;
  std::vector<unsigned char> frame_template;

  // The gates of a branch.
  absl::Span<const OpId> GatesOf(const Op& branch) const {
    DCHECK(branch.kind == OpKind::kBranch);
    return {gates.data() + branch.index, branch.gates_end - branch.index};
  }
  OpId IdOf(const Op& op) const { return OpId(static_cast<uint32_t>(&op - ops.data())); }
  // The operator's table of inputs, which has an entry for each of them.
  const Value* TableOf(const Op& op) const {
    DCHECK(op.reads_table());
    return inputs.data() + op.slot;
  }

  // The invariants come behind the arguments that every call passes.
  size_t first_invariant() const { return entries.size() - num_invariants; }
  bool is_function() const { return kind == RegionKind::kFunction; }
  // Whether it is outside of all bodies: the root, or a loop in it.
  bool is_in_main_graph() const { return kind == RegionKind::kRoot || (loop != nullptr && !loop->in_function); }
};

// Owns every table of one partition graph. Immutable once built; shared by concurrent runs.
struct Program {
  // What an operator is about, if it is of one of these kinds.
  const CallSite& SiteOf(const Op& op) const {
    DCHECK(op.kind == OpKind::kCallSite);
    return sites[op.index];
  }
  const Loop& LoopOf(const Op& op) const {
    DCHECK(op.kind == OpKind::kLoopStart || op.kind == OpKind::kLoopNext);
    return loops[op.index];
  }
  const KernelNode& KernelOf(const Op& op) const {
    DCHECK(op.kind == OpKind::kKernel || op.kind == OpKind::kScalar || op.kind == OpKind::kSend);
    return kernels[op.index];
  }
  const RecordType& RecordOf(const Op& op) const {
    DCHECK(op.kind == OpKind::kRetain || op.kind == OpKind::kRecall);
    return records[op.index];
  }
  const Piece& PieceOf(const Op& op) const {
    DCHECK(op.kind == OpKind::kPiece);
    return pieces[op.index];
  }

  Options options;
  // The first is the root.
  std::deque<Region> regions;
  // By Op::index.
  std::deque<CallSite> sites;
  std::deque<Loop> loops;
  std::vector<KernelNode> kernels;
  std::vector<RecordType> records;
  std::deque<Piece> pieces;
  // The code of the functions that are compiled, and that of the pieces; nullptr if there are none.
  std::unique_ptr<const Code> code;
  std::unique_ptr<const Code> piece_code;
  std::deque<CompiledFunction> compiled;
  // How many inputs the operator with the most has.
  size_t max_inputs = 0;
  std::deque<ConstantTensor> constants;
  // The variables that calls read when they enter recursions, which have to be readable when a run begins.
  std::vector<ArgumentRead> shared_reads;
  tensorflow::DataTypeVector argument_types;
  tensorflow::DataTypeVector retval_types;
};

// When variables are read that bodies read: by each frame, as TensorFlow does it, or when a recursion is entered, if
// nobody can tell the difference.
enum class VariableReads { kInEveryFrame, kOncePerRecursion };

// Builds the tables for `graph`, which must outlive them and runs on a device with `memory`. InvalidArgument if the
// graph's operators and attributes do not fit together; the message names the node.
absl::Status BuildProgram(const tensorflow::Graph& graph, const DeviceMemory& memory, VariableReads variable_reads,
                          std::unique_ptr<Program>* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_H_
