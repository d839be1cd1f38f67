// Holds compiled functions: their instructions, constants, and what an error or a special case has to know about them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_CODE_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_CODE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cc/bytecode/instruction.h"
#include "cc/values/record_layout.h"
#include "cc/values/scalar_ops.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// A tensor whose elements code reads, with its memory and sizes at hand. A register holds the address of an Array.
struct Array {
  explicit Array(const tensorflow::Tensor& tensor);

  const tensorflow::Tensor* tensor;
  const void* data;
  // The length of a vector. It is 0 if the tensor is none, so that one comparison finds both a wrong rank and a wrong
  // index.
  uint64_t length = 0;
  // The sizes of a matrix; 0 if the tensor is none.
  uint64_t rows = 0;
  uint64_t columns = 0;
};

// What a register holds in which an argument comes in or a result goes out. Nobody reads one of type DT_INVALID.
struct RegisterType {
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  bool is_array = false;

  bool is_record() const { return dtype == tensorflow::DT_VARIANT && !is_array; }
  bool operator==(const RegisterType& other) const { return dtype == other.dtype && is_array == other.is_array; }
};

// One compiled function.
struct CodeFunction {
  // The name by which users know the function, and that in the graph, where copies have names of their own.
  std::string name;
  std::string graph_name;
  // Where the function begins and ends in Code::instructions.
  uint32_t begin = 0;
  uint32_t end = 0;
  // How many registers a frame of the function needs room for: those that it writes, its arguments, its results.
  uint32_t frame_words = 0;
  // The first registers hold the arguments.
  std::vector<RegisterType> arguments;
  std::vector<RegisterType> results;
};

// What a call needs of its callee, without the rest.
struct CodeEntry {
  uint32_t begin = 0;
  uint32_t frame_words = 0;
  // If the first instruction is a ReturnUnless, these are its operands: the register that it returns, and the two that
  // it compares, of which the second may be a constant.
  uint16_t returned = 0;
  uint16_t x = 0;
  uint16_t y = 0;
};

// Says how an operator's kernel does what an instruction can't do, such as a division by zero.
struct KernelCase {
  // Where an input of the kernel is, and what it is: a number, a tensor whose elements are read, or a constant.
  struct Operand {
    enum class Kind : uint8_t { kNumber, kArray, kConstant };
    Kind kind;
    // A register; for a constant, an index of Code::constants.
    uint16_t position;
  };
  uint32_t instruction = 0;
  // The kernel, as the program numbers them, and the register that its result goes to.
  int kernel = 0;
  uint16_t result = 0;
  std::vector<Operand> operands;
};

// What errors say of a call: its node, and the name by which users know the callee.
struct CallNote {
  uint32_t instruction = 0;
  std::string site;
  std::string callee;
};

// How a call is split off that another thread may make while the call before it runs: "fork" and "join" of the theory.
// The other thread starts with a copy of the caller's registers at `begin`; the caller goes on at `rest`, where it
// joins the result instead of making the call itself.
struct ForkPlan {
  static constexpr uint32_t kNone = ~uint32_t{0};
  // The caller, and the callee of the call that is split off.
  uint32_t function = 0;
  uint32_t callee = 0;
  // How many of the caller's registers are copied.
  uint32_t num_registers = 0;
  uint32_t begin = 0;
  uint32_t rest = 0;
};

// All compiled functions of one program. Immutable once built; shared by concurrent runs.
struct Code {
  Code();

  // The first instruction is the one that an outermost call returns to.
  static constexpr uint32_t kHaltInstruction = 0;

  std::vector<Instruction> instructions;
  std::vector<uint64_t> constants;
  // What kApply instructions call.
  std::vector<NumberFunction> operators;
  std::vector<std::string> operator_names;
  // How the records are laid out that the code makes or reads.
  std::vector<RecordLayout> records;
  std::vector<CodeFunction> functions;
  // By function.
  std::vector<CodeEntry> entries;
  // These are ordered by instruction.
  std::vector<KernelCase> kernel_cases;
  std::vector<CallNote> calls;
  // The code of fork plans stands behind that of all functions, from `functions_end` on. `plan_of_call` says by the
  // last word of a call which plan belongs to it, or ForkPlan::kNone.
  std::vector<ForkPlan> fork_plans;
  std::vector<uint32_t> plan_of_call;
  uint32_t functions_end = ~uint32_t{0};
  // Constant tensors whose elements are read. The addresses of the arrays are among the constants.
  std::deque<tensorflow::Tensor> tensors;
  std::deque<Array> arrays;

  // The function that the instruction is part of, or was copied from; nullptr for those before all functions.
  const CodeFunction* FunctionAt(uint32_t instruction) const;
  // These return nullptr if there is none.
  const KernelCase* KernelCaseAt(uint32_t instruction) const;
  const CallNote* CallAt(uint32_t instruction) const;
  // The plan for the call that may be split off while another call runs, whose last word is `instruction`; nullptr if
  // there is none.
  const ForkPlan* PlanOfCall(uint32_t instruction) const {
    if (instruction >= plan_of_call.size() || plan_of_call[instruction] == ForkPlan::kNone) return nullptr;
    return &fork_plans[plan_of_call[instruction]];
  }
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_CODE_H_
