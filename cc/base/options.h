// Options of static execution: their names in the optimizer's parameter_map, their defaults.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_OPTIONS_H_
#define TENSORFLOW_RECURSION_CC_BASE_OPTIONS_H_

#include <cstdint>

namespace tensorflow_recursion {

// Frames deep a static run may nest before it ends in ResourceExhaustedError. A frame of a small
// function takes 100 to 250 bytes.
inline constexpr int64_t kDefaultMaxDepth = 2'000'000;

// Frames take no more than this, unless max_depth is set higher than its default: a runaway recursion of
// large frames, or on several workers, ends in time too. The tensors that they hold come on top.
inline constexpr int64_t kDefaultMaxFrameBytes = int64_t{512} << 20;

// 0: as many workers as pay, at most one per inter-op thread.
inline constexpr int64_t kDefaultWorkers = 0;

// How a user raises max_depth, for messages: in a session, and where calls make static graphs of their own.
inline constexpr char kDepthSettingOfSession[] =
    "by the optimizer's parameter max_depth, as in session_config(max_depth=...)";
inline constexpr char kDepthSettingOfCall[] =
    "with max_depth: an argument of the function's decorator, or of tfr.config.set_options(max_depth=...)";

// Travels from the optimizer to the executor as attributes of every Recursion>FrameStart node, but for the last.
struct Options {
  int64_t max_depth = kDefaultMaxDepth;
  int64_t workers = kDefaultWorkers;
  bool compile = true;  // functions on numbers run as bytecode, see docs/bytecode.md
  const char* depth_setting = kDepthSettingOfSession;
};

// What a session does when a call cannot be made static.
enum class OnFallback { kWarn, kError };

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_OPTIONS_H_
