// How much memory the machine has left, and how much runs leave it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_AVAILABLE_MEMORY_H_
#define TENSORFLOW_RECURSION_CC_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensorflow_recursion {

// In MiB: what a recursion leaves the machine. 0: nobody looks.
inline constexpr char kMemoryReserveVariable[] = "TENSORFLOW_RECURSION_MEMORY_RESERVE";

// Without the variable it is this part of the memory that there is, and no more than that.
inline constexpr int64_t kReservedPart = 16;
inline constexpr int64_t kLargestDefaultReserve = int64_t{512} << 20;

inline constexpr int64_t kUnknownMemory = -1;

// In bytes.
struct MemoryLevel {
  int64_t total = kUnknownMemory;
  int64_t available = kUnknownMemory;
};

// Of the text of /proc/meminfo.
MemoryLevel MemoryOfMachine(absl::string_view meminfo);

// Of the texts of a control group's files: its limit ("max": none), what it takes, and its statistics, in which
// `inactive_file` names the memory that the system takes back when there is need. Unknown if it has no limit.
MemoryLevel MemoryOfGroup(absl::string_view limit, absl::string_view usage, absl::string_view statistics,
                          absl::string_view inactive_file);

// Of each the smaller one, of those that are known.
MemoryLevel SmallerOf(const MemoryLevel& one, const MemoryLevel& other);

// Of the process: the machine's, or its control group's if that has less. It takes some 50 us.
MemoryLevel ReadMemoryLevel();

// What is available of it, in bytes, or kUnknownMemory.
int64_t AvailableMemory();

// In bytes, the same while the process lives. 0 if the memory is not known.
int64_t MemoryReserve();

// By the variable's text, which may be nullptr.
int64_t MemoryReserveOf(const char* text, const MemoryLevel& level);

// InvalidArgument if the variable is no number of MiB.
absl::Status CheckMemoryReserveVariable();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_AVAILABLE_MEMORY_H_
