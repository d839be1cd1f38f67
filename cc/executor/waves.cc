// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/waves.h"

#include <algorithm>
#include <utility>

namespace tensorflow_recursion {

Wave* Waves::Find(const KernelNode& node) {
  for (Wave& wave : waves_) {
    if (wave.node == &node) return &wave;
  }
  return nullptr;
}

Wave* Waves::Add(const KernelNode& node, const KernelRunner::Share& share, Frame* frame, OpId op, const Op& shape,
                 Value* inputs) {
  if (share.operand == nullptr || shape.num_inputs > kMostInputsOfWave) return nullptr;
  Wave* wave = Find(node);
  if (wave == nullptr) {
    if (waves_.size() == kMostWaves) return nullptr;
    wave = &waves_.emplace_back();
    wave->node = &node;
    wave->operand = share.operand;
    if (!spare_.empty()) {
      wave->calls = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (wave->operand != share.operand) return nullptr;
  wave->rows += share.rows;
  WaitingCall& call = wave->calls.emplace_back();
  call.frame = frame;
  call.op = op;
  for (size_t i = 0; i < shape.num_inputs; ++i) call.inputs[i] = inputs[i].Take();
  ++frame->live;
  return wave;
}

Wave* Waves::fullest() {
  return &*std::max_element(waves_.begin(), waves_.end(), [](const Wave& a, const Wave& b) { return a.rows < b.rows; });
}

Wave Waves::Take(Wave* wave) {
  Wave taken = std::move(*wave);
  if (wave != &waves_.back()) *wave = std::move(waves_.back());
  waves_.pop_back();
  return taken;
}

void Waves::Recycle(Wave wave) {
  wave.calls.clear();
  spare_.push_back(std::move(wave.calls));
}

void Waves::Clear() {
  for (Wave& wave : waves_) {
    for (WaitingCall& call : wave.calls) {
      const size_t count = call.frame->region->ops[call.op].num_inputs;
      for (size_t i = 0; i < count; ++i) call.inputs[i].Release();
    }
  }
  waves_.clear();
}

}  // namespace tensorflow_recursion
