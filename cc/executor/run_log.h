// Writes what a traced run does to the log, frame by frame, for people who want to follow one.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_LOG_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_LOG_H_

#include <string>

#include "cc/executor/frame.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// A run is traced if RunOptions ask for a trace. Its lines come when the environment has TF_CPP_VMODULE=run_log=1:
//
//     open [1,3] Fib
//     fire [1,3] Fib/Less = true
//     close [1,3] Fib
//
// tools/tour draws its pictures of frames from them.
void LogFrameOpened(const Program& program, const Frame& frame);
void LogFrameClosed(const Program& program, const Frame& frame);
// `outputs` are as the kernel has left them. An empty one is dead.
void LogKernel(const Program& program, const Frame& frame, const KernelNode& node, const Value* outputs);
// For operators that run without a kernel: Retain and Recall.
void LogOperator(const Program& program, const Frame& frame, const std::string& name);

// The frame's tag, the innermost call site first: "[1,3]"; an iteration of a loop is "name#0", the root "[]".
// Of a long tag the middle is counted: "[1,1,1,1,...90 more...,1,1,1,3]".
std::string FrameTagText(const Program& program, const Frame& frame);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_LOG_H_
