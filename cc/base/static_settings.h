// What a process says of calls that make static graphs of their own: those outside of a session's graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_STATIC_SETTINGS_H_
#define TENSORFLOW_RECURSION_CC_BASE_STATIC_SETTINGS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "cc/base/export.h"
#include "cc/base/options.h"

namespace tensorflow_recursion {

// This environment variable turns static execution of such calls off from the start of the process, if it is 0.
inline constexpr char kStaticVariable[] = "TENSORFLOW_RECURSION_STATIC";

// Whether such calls are static, with which options, and what happens if one cannot be made static.
struct StaticSettings {
  bool is_on = true;
  Options options;
  OnFallback on_fallback = OnFallback::kWarn;
};

// All of these may be called in any thread, while calls run.
TENSORFLOW_RECURSION_EXPORT StaticSettings GetStaticSettings();
TENSORFLOW_RECURSION_EXPORT void SetStaticSettings(const StaticSettings& settings);

// Returns another number after every SetStaticSettings. Whoever keeps what it has derived from the settings compares
// this number, to learn whether they have changed.
int64_t StaticSettingsVersion();

// InvalidArgument if the environment variable is neither 0 nor 1.
absl::Status CheckStaticVariable();

// How many outermost calls were run by their own kernels since the process has started, rather than by a session.
struct OutermostCalls {
  int64_t as_static = 0;
  int64_t as_dynamic = 0;
};
TENSORFLOW_RECURSION_EXPORT OutermostCalls CountOutermostCalls();
void NoteOutermostCall(bool is_static);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_STATIC_SETTINGS_H_
