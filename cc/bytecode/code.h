// Compiled functions: their instructions, constants, and what an error or a special case has to know about them.
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

// A tensor that code reads elements of, laid open. A register holds the address of one.
struct Array {
  explicit Array(const tensorflow::Tensor& tensor);

  const tensorflow::Tensor* tensor;
  const void* data;
  uint64_t length = 0;   // of a vector; 0 else, so that one comparison finds both a wrong rank and a wrong index
  uint64_t rows = 0;     // of a matrix; 0 else
  uint64_t columns = 0;  // of a matrix
};

// What a register holds, where values come in or go out. DT_INVALID: nothing that anybody reads.
struct RegisterType {
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  bool is_array = false;

  bool is_record() const { return dtype == tensorflow::DT_VARIANT && !is_array; }
  bool operator==(const RegisterType& other) const { return dtype == other.dtype && is_array == other.is_array; }
};

struct CodeFunction {
  std::string name;        // as users know it
  std::string graph_name;  // in the graph, where copies of a function have names of their own
  uint32_t begin = 0;      // in Code::instructions
  uint32_t end = 0;
  uint32_t frame_words = 0;             // registers that it or a call of it may write
  std::vector<RegisterType> arguments;  // its first registers
  std::vector<RegisterType> results;
};

// What a call needs of its callee, without the rest.
struct CodeEntry {
  uint32_t begin = 0;
  uint32_t frame_words = 0;
  // If its first instruction is a ReturnUnless: the operands of that.
  uint16_t returned = 0;
  uint16_t x = 0;
  uint16_t y = 0;  // a register or a constant
};

// How an instruction that its operator can't do (a division by zero, say) is done by the operator's kernel.
struct KernelCase {
  struct Operand {
    enum class Kind : uint8_t { kNumber, kArray, kConstant };
    Kind kind;
    uint16_t position;  // a register, or an index of Code::constants
  };
  uint32_t instruction = 0;
  int kernel = 0;  // as the program numbers kernels
  uint16_t result = 0;
  std::vector<Operand> operands;
};

// A call as errors name it.
struct CallNote {
  uint32_t instruction = 0;
  std::string site;    // the call node
  std::string callee;  // as users know it
};

// How a call is split off that another thread may make while the call before it runs: "fork" and "join" of the theory.
// The other thread starts with a copy of the caller's registers at `begin`; the caller goes on at `rest`, where it
// joins the result instead of making the call itself.
struct ForkPlan {
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t function = 0;       // the caller
  uint32_t callee = 0;         // of the call that is split off
  uint32_t num_registers = 0;  // of the caller that are to be copied
  uint32_t begin = 0;
  uint32_t rest = 0;
};

// All compiled functions of one program. Immutable once built; shared by concurrent runs.
struct Code {
  Code();

  // The first one is what an outermost call returns to.
  static constexpr uint32_t kHaltInstruction = 0;

  std::vector<Instruction> instructions;
  std::vector<uint64_t> constants;
  std::vector<NumberFunction> operators;  // of kApply
  std::vector<std::string> operator_names;
  std::vector<RecordLayout> records;  // that are made or read
  std::vector<CodeFunction> functions;
  std::vector<CodeEntry> entries;          // by function
  std::vector<KernelCase> kernel_cases;    // by instruction
  std::vector<CallNote> calls;             // by instruction
  std::vector<ForkPlan> fork_plans;        // by instruction; their code is behind all functions
  std::vector<uint32_t> plan_of_call;      // by a call's last word: a fork plan, or ForkPlan::kNone
  uint32_t functions_end = ~uint32_t{0};   // where the code of plans begins
  std::deque<tensorflow::Tensor> tensors;  // that arrays below point into
  std::deque<Array> arrays;                // whose addresses are constants

  // The function that the instruction is part of, or was copied from; nullptr for those before all functions.
  const CodeFunction* FunctionAt(uint32_t instruction) const;
  // nullptr if there is none.
  const KernelCase* KernelCaseAt(uint32_t instruction) const;
  const CallNote* CallAt(uint32_t instruction) const;
  // What may be split off while the call runs whose last word is `instruction`; nullptr if nothing can.
  const ForkPlan* PlanOfCall(uint32_t instruction) const {
    if (instruction >= plan_of_call.size() || plan_of_call[instruction] == ForkPlan::kNone) return nullptr;
    return &fork_plans[plan_of_call[instruction]];
  }
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_CODE_H_
