// A linear scan over the steps in their order: a value occupies its register from the first step that writes it to the
// last one that reads it, or to the end of a loop that it is carried around.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_allocation.h"

#include <algorithm>
#include <limits>

namespace tensorflow_recursion {
namespace {

// Step i reads at time 2 i and writes at time 2 i + 1. So it may write to a register that it is the last one to read.
struct Interval {
  size_t begin = std::numeric_limits<size_t>::max();
  size_t end = 0;

  bool exists() const { return begin <= end; }
  void Include(size_t time) {
    begin = std::min(begin, time);
    end = std::max(end, time);
  }
  bool Overlaps(const Interval& other) const { return begin <= other.end && other.begin <= end; }
};

// Gives registers to the values of one function, first to those outside of calls' windows, then to those inside.
class Allocator {
 public:
  explicit Allocator(const FunctionSteps& function) : function_(function), intervals_(function.num_virtuals) {}

  RegisterAllocation Run() {
    FindIntervals();
    ExtendAroundLoops();
    result_.registers.resize(function_.num_virtuals);
    result_.windows.resize(function_.steps.size());
    PlaceValues();
    for (size_t i = 0; i < function_.steps.size(); ++i) {
      if (function_.steps[i].is(Opcode::kCall)) PlaceWindow(i);
    }
    for (VirtualId value : function_.is_in_window.ids()) {
      result_.spare = std::max<uint16_t>(result_.spare, static_cast<uint16_t>(result_.registers[value] + 1));
    }
    return std::move(result_);
  }

 private:
  void FindIntervals() {
    for (VirtualId argument : function_.arguments) intervals_[argument].Include(0);
    for (size_t i = 0; i < function_.steps.size(); ++i) {
      for (VirtualId value : function_.steps[i].operands) intervals_[value].Include(2 * i);
      for (VirtualId value : function_.steps[i].results) intervals_[value].Include(2 * i + 1);
    }
  }

  // A value that exists when a loop begins and is read in it must live to the loop's end, for the next iteration.
  void ExtendAroundLoops() {
    IdVector<LabelId, size_t> bound(function_.num_labels);
    for (size_t i = 0; i < function_.steps.size(); ++i) {
      const Step& step = function_.steps[i];
      if (step.BindsLabel()) bound[step.bound] = i;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < function_.steps.size(); ++i) {
        if (!function_.steps[i].is(Opcode::kRepeat)) continue;
        const size_t begin = 2 * bound[function_.steps[i].labels[0]];
        for (Interval& interval : intervals_) {
          const bool is_carried = interval.exists() && interval.begin < begin && interval.end >= begin;
          if (!is_carried || interval.end >= 2 * i + 1) continue;
          interval.end = 2 * i + 1;
          changed = true;
        }
      }
    }
  }

  void PlaceValues() {
    std::vector<VirtualId> order;
    for (VirtualId value : intervals_.ids()) {
      if (!function_.is_in_window[value] && intervals_[value].exists()) order.push_back(value);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](VirtualId a, VirtualId b) { return intervals_[a].begin < intervals_[b].begin; });
    for (size_t i = 0; i < function_.arguments.size(); ++i) Occupy(function_.arguments[i], i);
    for (VirtualId value : order) {
      const auto& arguments = function_.arguments;
      if (std::find(arguments.begin(), arguments.end(), value) != arguments.end()) continue;
      size_t lowest = 0;
      while (lowest < occupied_.size() && occupied_[lowest].Overlaps(intervals_[value])) ++lowest;
      Occupy(value, lowest);
    }
  }

  // Values come in the order in which they begin, so the last one in a register says when the register is free again.
  void Occupy(VirtualId value, size_t number) {
    if (number >= occupied_.size()) occupied_.resize(number + 1);
    occupied_[number] = intervals_[value];
    result_.registers[value] = static_cast<uint16_t>(number);
  }

  // A window begins behind all registers that are in use while its arguments come in and its results go out, with one
  // word between them for where to return.
  void PlaceWindow(size_t call) {
    const Step& step = function_.steps[call];
    Interval used;
    used.Include(2 * call);
    const auto include = [&](const std::vector<VirtualId>& values) {
      for (VirtualId value : values) {
        if (!function_.is_in_window[value]) continue;
        used.Include(intervals_[value].begin);
        used.Include(intervals_[value].end);
      }
    };
    include(step.operands);
    include(step.results);
    size_t first = 0;
    for (VirtualId value : intervals_.ids()) {
      const bool counts = !function_.is_in_window[value] && intervals_[value].exists();
      if (counts && intervals_[value].Overlaps(used)) first = std::max<size_t>(first, result_.registers[value] + 1u);
    }
    const size_t window = first + 1;
    result_.windows[call] = static_cast<uint16_t>(window);
    for (const auto* values : {&step.operands, &step.results}) {
      for (size_t i = 0; i < values->size(); ++i) {
        if (function_.is_in_window[(*values)[i]]) result_.registers[(*values)[i]] = static_cast<uint16_t>(window + i);
      }
    }
  }

  const FunctionSteps& function_;
  IdVector<VirtualId, Interval> intervals_;
  // By register, when the last value is in it.
  std::vector<Interval> occupied_;
  RegisterAllocation result_;
};

}  // namespace

RegisterAllocation AllocateRegisters(const FunctionSteps& function) { return Allocator(function).Run(); }

}  // namespace tensorflow_recursion
