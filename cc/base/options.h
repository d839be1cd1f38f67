// Options of static execution: their names in the optimizer's parameter_map, their defaults.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_OPTIONS_H_
#define TENSORFLOW_RECURSION_CC_BASE_OPTIONS_H_

#include <cstdint>

namespace tensorflow_recursion {

// How many frames deep a static run may go before it ends in ResourceExhaustedError. A frame of a small function takes
// 100 to 250 bytes.
inline constexpr int64_t kDefaultMaxDepth = 2'000'000;

// How many bytes frames may take, unless max_depth is set higher than its default. So a runaway recursion ends in time
// if its frames are large or several workers go deep at once. The tensors that frames hold do not count.
inline constexpr int64_t kDefaultMaxFrameBytes = int64_t{512} << 20;

// 0 stands for as many workers as pay, but no more than there are inter-op threads.
inline constexpr int64_t kDefaultWorkers = 0;

// These say in messages how a user raises max_depth: in a session, and where calls make static graphs of their own.
inline constexpr char kDepthSettingOfSession[] =
    "by the optimizer's parameter max_depth, as in session_config(max_depth=...)";
inline constexpr char kDepthSettingOfCall[] =
    "with max_depth: an argument of the function's decorator, or of tfr.config.set_options(max_depth=...)";

// The optimizer hands the first three to the executor as attributes of every Recursion>FrameStart node. The last one
// follows from what has made the graph.
struct Options {
  int64_t max_depth = kDefaultMaxDepth;
  int64_t workers = kDefaultWorkers;
  // Functions on numbers run as bytecode, see docs/bytecode.md.
  bool compile = true;
  const char* depth_setting = kDepthSettingOfSession;
};

// What a session does when a call cannot be made static.
enum class OnFallback { kWarn, kError };

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_OPTIONS_H_
