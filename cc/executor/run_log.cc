// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/run_log.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cc/values/rope.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow_recursion {
namespace {

// How many call sites of a tag a line names at each end.
constexpr size_t kTagEnd = 4;

std::string Step(const Program& program, const Frame& frame) {
  if (frame.site_op == kNone) return absl::StrCat(frame.region->name, "#", frame.iteration);
  return absl::StrCat(program.SiteOf(frame.parent->region->ops[frame.site_op]).call_id);
}

// The text of a value: a number itself, but only the type and shape of a tensor, which may lie in a device's memory.
std::string Text(const Value& value, tensorflow::DataType dtype) {
  if (value.is_empty() || value.is_dead()) return "dead";
  if (value.is_scalar() && dtype == tensorflow::DT_BOOL) return value.boolean ? "true" : "false";
  if (value.is_scalar()) return TensorFromScalar(value, dtype).SummarizeValue(1);
  const std::string type = tensorflow::DataTypeString(dtype);
  if (value.kind == Value::Kind::kRope) return absl::StrCat(type, value.rope->shape().DebugString());
  const tensorflow::Tensor* tensor = value.tensor_or_null();
  return tensor == nullptr ? type : absl::StrCat(type, tensor->shape().DebugString());
}

std::string Place(const Program& program, const Frame& frame) {
  return absl::StrCat(FrameTagText(program, frame), " ", frame.region->name);
}

}  // namespace

std::string FrameTagText(const Program& program, const Frame& frame) {
  std::vector<std::string> steps;
  for (const Frame* at = &frame; at->parent != nullptr; at = at->parent) steps.push_back(Step(program, *at));
  if (steps.size() > 2 * kTagEnd) {
    const std::string between = absl::StrCat("...", steps.size() - 2 * kTagEnd, " more...");
    steps.erase(steps.begin() + kTagEnd, steps.end() - kTagEnd);
    steps.insert(steps.begin() + kTagEnd, between);
  }
  return absl::StrCat("[", absl::StrJoin(steps, ","), "]");
}

void LogFrameOpened(const Program& program, const Frame& frame) { VLOG(1) << "open " << Place(program, frame); }

void LogFrameClosed(const Program& program, const Frame& frame) { VLOG(1) << "close " << Place(program, frame); }

void LogKernel(const Program& program, const Frame& frame, const KernelNode& node, const Value* outputs) {
  if (!VLOG_IS_ON(1)) return;
  std::vector<std::string> texts;
  texts.reserve(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) texts.push_back(Text(outputs[i], node.outputs[i]));
  VLOG(1) << "fire " << FrameTagText(program, frame) << " " << node.name << " = " << absl::StrJoin(texts, "; ");
}

void LogOperator(const Program& program, const Frame& frame, const std::string& name) {
  VLOG(1) << "fire " << FrameTagText(program, frame) << " " << name;
}

}  // namespace tensorflow_recursion
