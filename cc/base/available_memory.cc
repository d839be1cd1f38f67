// SPDX-License-Identifier: Apache-2.0
#include "cc/base/available_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

// Where a process in a container finds the files of its own control group.
constexpr char kGroup[] = "/sys/fs/cgroup/";
constexpr char kGroupOfVersion1[] = "/sys/fs/cgroup/memory/";

int64_t NumberIn(absl::string_view text) {
  int64_t number = 0;
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number) && number >= 0 ? number : kUnknownMemory;
}

// Returns the number in the line that begins with `name` and a space or a colon.
int64_t NumberOf(absl::string_view name, absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, name)) continue;
    if (!absl::ConsumePrefix(&line, ":") && !absl::ConsumePrefix(&line, " ")) continue;
    absl::ConsumeSuffix(&line, " kB");
    return NumberIn(line);
  }
  return kUnknownMemory;
}

int64_t SmallerKnown(int64_t one, int64_t other) {
  if (one == kUnknownMemory || other == kUnknownMemory) return std::max(one, other);
  return std::min(one, other);
}

// Returns the text of a file, or "" if there is none.
std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

MemoryLevel ReadGroup(const std::string& folder, const char* limit, const char* usage, const char* inactive_file) {
  const std::string limit_text = ReadText(folder + limit);
  if (limit_text.empty()) return MemoryLevel();
  return MemoryOfGroup(limit_text, ReadText(folder + usage), ReadText(folder + "memory.stat"), inactive_file);
}

// Returns false if the text is no number, or a negative one.
bool ReadMebibytes(const char* text, int64_t* bytes) {
  int64_t mebibytes = 0;
  if (!absl::SimpleAtoi(text, &mebibytes) || mebibytes < 0) return false;
  *bytes = std::min(mebibytes, std::numeric_limits<int64_t>::max() >> 20) << 20;
  return true;
}

bool IsSet(const char* text) { return text != nullptr && *text != '\0'; }

}  // namespace

MemoryLevel MemoryOfMachine(absl::string_view meminfo) {
  const auto bytes = [&](absl::string_view name) {
    const int64_t kibibytes = NumberOf(name, meminfo);
    return kibibytes == kUnknownMemory ? kUnknownMemory : kibibytes << 10;
  };
  return {bytes("MemTotal"), bytes("MemAvailable")};
}

MemoryLevel MemoryOfGroup(absl::string_view limit, absl::string_view usage, absl::string_view statistics,
                          absl::string_view inactive_file) {
  const int64_t most = NumberIn(limit);
  const int64_t taken = NumberIn(usage);
  if (most == kUnknownMemory || taken == kUnknownMemory) return MemoryLevel();
  const int64_t inactive = std::max<int64_t>(NumberOf(inactive_file, statistics), 0);
  return {most, std::max<int64_t>(most - std::max<int64_t>(taken - inactive, 0), 0)};
}

MemoryLevel SmallerOf(const MemoryLevel& one, const MemoryLevel& other) {
  return {SmallerKnown(one.total, other.total), SmallerKnown(one.available, other.available)};
}

MemoryLevel ReadMemoryLevel() {
  const MemoryLevel machine = MemoryOfMachine(ReadText("/proc/meminfo"));
  const MemoryLevel group = ReadGroup(kGroup, "memory.max", "memory.current", "inactive_file");
  if (group.total != kUnknownMemory) return SmallerOf(machine, group);
  return SmallerOf(
      machine, ReadGroup(kGroupOfVersion1, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"));
}

int64_t AvailableMemory() { return ReadMemoryLevel().available; }

int64_t MemoryReserveOf(const char* text, const MemoryLevel& level) {
  if (level.available == kUnknownMemory) return 0;
  int64_t reserve = 0;
  if (IsSet(text) && ReadMebibytes(text, &reserve)) return reserve;
  return std::min(std::max<int64_t>(level.total, 0) / kReservedPart, kLargestDefaultReserve);
}

int64_t MemoryReserve() {
  static const int64_t reserve = MemoryReserveOf(std::getenv(kMemoryReserveVariable), ReadMemoryLevel());
  return reserve;
}

absl::Status CheckMemoryReserveVariable() {
  const char* const text = std::getenv(kMemoryReserveVariable);
  int64_t ignored = 0;
  if (!IsSet(text) || ReadMebibytes(text, &ignored)) return absl::OkStatus();
  return InvalidArgument("Environment variable ", kMemoryReserveVariable, " is '", text,
                         "', expected a number of MiB, or 0");
}

}  // namespace tensorflow_recursion
