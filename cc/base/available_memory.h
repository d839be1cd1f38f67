// How much memory the machine has left, and how much runs leave it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_AVAILABLE_MEMORY_H_
#define TENSORFLOW_RECURSION_CC_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensorflow_recursion {

// The environment variable that says how many MiB of memory a recursion has to leave the machine. With 0 no run looks
// at the memory.
inline constexpr char kMemoryReserveVariable[] = "TENSORFLOW_RECURSION_MEMORY_RESERVE";

// Without the variable, it has to leave a sixteenth of the memory that there is, but no more than 512 MiB.
inline constexpr int64_t kReservedPart = 16;
inline constexpr int64_t kLargestDefaultReserve = int64_t{512} << 20;

inline constexpr int64_t kUnknownMemory = -1;

// How many bytes of memory there are, and how many of them are available.
struct MemoryLevel {
  int64_t total = kUnknownMemory;
  int64_t available = kUnknownMemory;
};

// Reads the machine's level in the text of /proc/meminfo.
MemoryLevel MemoryOfMachine(absl::string_view meminfo);

// Reads a control group's level in the texts of its files: its limit ("max" if there is none), what it takes, and its
// statistics. There, the line `inactive_file` tells the memory that the system takes back when there is need, which is
// available, too. The level of a group without a limit is unknown.
MemoryLevel MemoryOfGroup(absl::string_view limit, absl::string_view usage, absl::string_view statistics,
                          absl::string_view inactive_file);

// Takes each amount from the level where it is smaller. One that is unknown in a level is taken from the other.
MemoryLevel SmallerOf(const MemoryLevel& one, const MemoryLevel& other);

// Reads the level that is valid for this process: the machine's, or its control group's where that is lower. It takes
// some 50 us.
MemoryLevel ReadMemoryLevel();

// How many bytes of memory ReadMemoryLevel() finds available, or kUnknownMemory.
int64_t AvailableMemory();

// How many bytes a recursion has to leave, which stays the same while the process lives. 0 if the memory is not known.
int64_t MemoryReserve();

// The same for a given text of the variable, which may be nullptr, and a given level.
int64_t MemoryReserveOf(const char* text, const MemoryLevel& level);

// InvalidArgument if the variable is no number of MiB.
absl::Status CheckMemoryReserveVariable();

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_AVAILABLE_MEMORY_H_
