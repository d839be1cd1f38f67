// The immutable tables that the executor runs: regions, their operators, and the edges between them.
//
// A region is a piece of graph whose operators share a frame: the root, a function's body, a loop's
// body. A frame is an array of Values ("slots", for inputs that have to wait for others) followed by
// pending counts. An operator fires when its count reaches zero, and delivers its outputs along its
// ports' edges. One that waits for a single thing has neither slot nor count: it fires with what comes.
//
// Death is not a token that travels. An operator with a dead input would never do anything, so its
// count is simply left above zero; what must learn of a death (merges, calls, results, sends, some
// loops) is computed per source of death when the program is built (DeathList), and told in one step.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

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

namespace tensorflow_recursion {

// kOnly, data or control: the one thing that its operator waits for.
enum class EdgeKind : uint8_t { kData, kControl, kOnly, kMerge, kGate, kCallArgument, kResult, kExit, kUnion };

// One consumer of a port. `slot` is where a data edge stores its value; `index` is the input's position, or of a
// control edge into a union the bit that it sets.
struct Edge {
  OpId op;
  SlotId slot;
  uint16_t index;
  EdgeKind kind;
};

// A half-open range in Region::edges, control edges last.
struct Port {
  uint32_t begin = 0;
  uint32_t controls = 0;
  uint32_t end = 0;
};

// Something that learns of a death: that input `index` of `op` is dead, or of a kResult that it is dead itself. What an
// operator does about it follows from its kind (cc/executor/death_teller.cc).
struct DeathEvent {
  OpId op;
  uint16_t index;
};

// A half-open range in Region::deaths.
struct DeathList {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Region;

// A function that is compiled besides being a region. Immutable but for the flag.
struct CompiledFunction {
  int number = 0;  // in the code
  // Set by a run that finds that the function does what compiled code can't, as reading a row of a matrix where it was
  // thought to read a number: it runs in frames from then on. Relaxed: whoever sees it late finds the same out.
  mutable std::atomic<bool> is_unfit{false};
};

// A call site, which an operator of kind kCallSite in the caller names by its index.
struct CallSite {
  int64_t call_id = 0;
  std::string name;         // of the call node
  std::string callee_name;  // kept even when this partition holds no part of the callee
  const Region* callee = nullptr;
  const CompiledFunction* compiled = nullptr;  // nullptr: calls open frames
  uint32_t announce_port = 0;                  // tells other devices that the call lives; kNone on one device
  bool waits_for_announcement = false;         // another device says by the last input whether the call lives
  uint32_t num_invariants = 0;                 // of a recursion that it enters, its last inputs
};

// A value that a loop hands to one of its iterations: from slot `slot` of the operator that collected
// it to entry `entry` of the body, and to `index_entry` which merge input it was (kNone: unread).
struct LoopDelivery {
  uint32_t slot = 0;
  OpId entry;
  OpId index_entry;
  bool is_last = true;  // of the deliveries from this slot
};

struct Loop {
  std::string name;  // the frame_name attribute
  uint64_t key = 0;  // its hash
  bool in_function = false;
  bool crosses_devices = false;  // iterations take place also if nothing lives in them: other devices wait for that
  bool is_partial = false;       // runs with those variables that live; else they all do or none
  const Region* parent = nullptr;
  const Region* body = nullptr;
  OpId start_op;                        // kLoopStart, in the parent: collects the Enters
  std::vector<LoopDelivery> starts;     // Enters, delivered to the first iteration
  std::vector<LoopDelivery> constants;  // constant Enters, delivered to every iteration
  std::vector<LoopDelivery> nexts;      // NextIterations, collected by the body's kLoopNext
  // The kLoopNext of a partial loop has further inputs: what goes to the Exits, and at the end what lives if the
  // condition holds. Behind its inputs, the kLoopStart has a bit for each Exit that has let its value out.
  uint32_t num_nexts = 0;
  uint32_t num_exits = 0;
};

// A merge that lets its first input through, and a branch, wait for nothing that has to be counted. So the 16 bits of
// their pending counts say what has been decided. In a merge's, bit i says that input i is dead, and kMergeDecided that
// a live input has come: there is room for 15 inputs. A branch's is 0 until the predicate comes, then 1 or 2: the side
// that was taken, plus one.
inline constexpr uint16_t kMergeDecided = 0x8000;
inline constexpr uint16_t kMaxFirstThroughInputs = 15;

// What a table of inputs says of an invariant: its number among those of the recursion. No input is dead, so Dead can
// stand for that.
inline Value InvariantEntry(uint32_t invariant) {
  Value entry = Value::Dead();
  entry.position = invariant;
  return entry;
}
inline bool IsInvariantEntry(const Value& entry) { return entry.is_dead(); }

// Where an operator finds its inputs when it fires.
enum class InputsIn : uint8_t {
  kSlots,            // in `num_inputs` slots from `slot` on
  kArrival,          // its only input is the value that has just arrived, which was never put into a slot
  kTable,            // by Region::inputs from `slot` on: a constant, an invariant (InvariantEntry()), or Empty and the
                     // slot in `position`
  kTableAndArrival,  // the same, but input `only` is the value that has just arrived
};

struct Op {
  OpKind kind;
  InputsIn inputs = InputsIn::kSlots;
  bool has_controls = false;        // the last port holds control edges alone, and is not empty
  bool may_be_dead = false;         // its kernel may leave outputs unset
  bool lets_first_through = false;  // a merge with nothing to do but to hand its first live input on
  bool takes_dead = false;          // of a loop's start or next: fires with dead inputs too, which lie in their slots
  bool reads_element = false;       // a kScalar whose kernel takes what PackIndices() makes of its inputs
  uint16_t num_inputs = 0;
  uint16_t num_ports = 0;   // data ports; port num_ports is the control port
  uint16_t only = 0;        // of kTableAndArrival
  uint32_t num_tokens = 0;  // arrivals it waits for: its pending count in a new frame
  uint32_t slot = 0;        // the first input, or where it is told; of a gate its data
  PortId port;              // of its port 0: an index in Region::ports and Region::port_deaths
  uint32_t index = 0;       // site, loop, kernel, piece, record, result, exit, argument or retval index; of a
                            // branch its first gate in Region::gates; of a gate its branch
  uint32_t gates_end = 0;   // of a branch
  SlotId lending_slot;      // of an entry: the slot that keeps its tensor while others borrow it
  ScalarFunction scalar = nullptr;
};

struct Region {
  RegionKind kind = RegionKind::kRoot;
  std::string name;  // function or loop name; empty for the root
  uint32_t id = 0;
  const Loop* loop = nullptr;

  std::vector<Op> ops;       // the ones that fire come first, and of these the ones with a count
  uint32_t num_counted = 0;  // pending counts
  uint32_t num_firing = 0;
  std::vector<Port> ports;
  std::vector<DeathList> port_deaths;  // parallel to ports: what dies when this port is dead
  std::vector<Edge> edges;
  std::vector<DeathEvent> deaths;

  std::vector<OpId> entries;  // ops of kind kEntry, by argument or loop entry; kNone if unused
  OpId frame_start;           // op of kind kFrameStart
  std::vector<OpId> sources;  // firing ops that wait for nothing
  std::vector<OpId> gates;    // ops of kind kGate, by branch
  uint32_t num_results = 0;

  std::vector<Value> inputs;  // by operator, of those that find theirs by a table
  SlotId tag_slot;            // where a frame keeps its tag (two slots), if values cross devices

  SlotId invariants_slot;                 // where a frame keeps its recursion's invariants, if that has any
  uint32_t num_invariants = 0;            // of a function: its last arguments
  std::vector<uint32_t> told_invariants;  // of a function: those that some read as they read other arguments

  // A frame's slots and pending counts at birth.
  uint32_t num_slots = 0;
  std::vector<unsigned char> frame_template;

  // The arguments that every call passes come first.
  size_t first_invariant() const { return entries.size() - num_invariants; }
  bool is_function() const { return kind == RegionKind::kFunction; }
  // The root, and the loops that stand in it: everything outside of all bodies.
  bool is_in_main_graph() const { return kind == RegionKind::kRoot || (loop != nullptr && !loop->in_function); }
};

// Owns every table of one partition graph. Immutable once built; shared by concurrent runs.
struct Program {
  Options options;
  std::deque<Region> regions;  // regions[0] is the root
  std::deque<CallSite> sites;
  std::deque<Loop> loops;
  std::vector<KernelNode> kernels;
  std::unique_ptr<const Code> code;  // nullptr if no function is compiled
  std::deque<CompiledFunction> compiled;
  std::unique_ptr<const Code> piece_code;  // nullptr if there are no pieces
  std::deque<Piece> pieces;                // by Op::index of a kPiece
  size_t max_inputs = 0;                   // of an operator
  std::vector<RecordType> records;         // by Op::index of a Retain or Recall
  std::deque<ConstantTensor> constants;
  tensorflow::DataTypeVector argument_types;
  tensorflow::DataTypeVector retval_types;
};

// Builds the tables for `graph`, which must outlive them and runs on a device with `memory`. InvalidArgument if the
// graph's operators and attributes do not fit together; the message names the node.
absl::Status BuildProgram(const tensorflow::Graph& graph, const DeviceMemory& memory,
                          std::unique_ptr<Program>* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_PROGRAM_H_
