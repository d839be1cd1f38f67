// SPDX-License-Identifier: Apache-2.0
#include "cc/program/program_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow_recursion {
namespace {

// An id as the number that StrCat takes.
uint32_t Number(uint32_t id) { return id; }

const char* Name(RegionKind kind) {
  switch (kind) {
    case RegionKind::kRoot:
      return "root";
    case RegionKind::kFunction:
      return "function";
    case RegionKind::kLoop:
      return "loop";
  }
  return "";
}

const char* Name(OpKind kind) {
  switch (kind) {
    case OpKind::kScalar:
      return "scalar";
    case OpKind::kPiece:
      return "piece";
    case OpKind::kPass:
      return "pass";
    case OpKind::kSwitch:
      return "switch";
    case OpKind::kBranch:
      return "branch";
    case OpKind::kSwitchN:
      return "switch_n";
    case OpKind::kMerge:
      return "merge";
    case OpKind::kUnion:
      return "union";
    case OpKind::kCallSite:
      return "site";
    case OpKind::kLoopStart:
      return "loop_start";
    case OpKind::kLoopNext:
      return "loop_next";
    case OpKind::kRetval:
      return "retval";
    case OpKind::kRetain:
      return "retain";
    case OpKind::kRecall:
      return "recall";
    case OpKind::kSend:
      return "send";
    case OpKind::kKernel:
      return "kernel";
    case OpKind::kGate:
      return "gate";
    case OpKind::kResult:
      return "result";
    case OpKind::kExit:
      return "exit";
    case OpKind::kArgument:
      return "argument";
    case OpKind::kEntry:
      return "entry";
    case OpKind::kFrameStart:
      return "frame_start";
  }
  return "";
}

const char* Name(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kData:
      return "data";
    case EdgeKind::kControl:
      return "control";
    case EdgeKind::kOnly:
      return "only";
    case EdgeKind::kMerge:
      return "merge";
    case EdgeKind::kGate:
      return "gate";
    case EdgeKind::kCallArgument:
      return "argument";
    case EdgeKind::kResult:
      return "result";
    case EdgeKind::kExit:
      return "exit";
    case EdgeKind::kUnion:
      return "union";
  }
  return "";
}

// The text that tells the operator from others of its kind.
std::string Label(const Program& program, const Op& op) {
  switch (op.kind) {
    case OpKind::kScalar:
    case OpKind::kKernel:
    case OpKind::kSend:
      return absl::StrCat(program.KernelOf(op).name, " (", program.KernelOf(op).op, ")");
    case OpKind::kPiece:
      return program.PieceOf(op).name;
    case OpKind::kCallSite: {
      const CallSite& site = program.SiteOf(op);
      return absl::StrCat(site.name, " (call ", site.call_id, " of ", site.callee_name, ")");
    }
    case OpKind::kLoopStart:
    case OpKind::kLoopNext:
      return program.LoopOf(op).name;
    case OpKind::kRetain:
    case OpKind::kRecall:
      return program.RecordOf(op).name;
    case OpKind::kGate:
      return absl::StrCat("of branch ", static_cast<uint32_t>(op.branch()));
    default:
      return absl::StrCat(op.index);
  }
}

void AppendPorts(const Region& region, const Op& op, std::string* text) {
  for (uint32_t i = 0; i <= op.num_ports && op.port + i < region.ports.size(); ++i) {
    const Port& port = region.ports[op.port + i];
    for (uint32_t e = port.begin; e < port.end; ++e) {
      const Edge& edge = region.edges[e];
      absl::StrAppend(text, "    port ", i, " -> op ", Number(edge.op), " ", Name(edge.kind), " slot ",
                      Number(edge.slot), "\n");
    }
    const DeathList& dead = region.port_deaths[op.port + i];
    for (uint32_t d = dead.begin; d < dead.end; ++d) {
      const DeathEvent& event = region.deaths[d];
      const OpKind kind = region.ops[event.op].kind;
      absl::StrAppend(text, "    dead ", i, " -> op ", Number(event.op), " ", Name(kind), " input ", event.index, "\n");
    }
  }
}

void AppendRegion(const Program& program, const Region& region, std::string* text) {
  absl::StrAppend(text, "region ", region.id, " ", Name(region.kind), " ", region.name, ": ",
                  region.frame_template.size(), " bytes a frame besides its header, ", region.num_slots, " slots, ",
                  region.num_counted, " counts\n");
  for (uint32_t i = 0; i < region.ops.size(); ++i) {
    const Op& op = region.ops[i];
    absl::StrAppend(text, "  op ", i, " ", Name(op.kind), " ", Label(program, op), " waits for ", op.num_tokens, "\n");
    AppendPorts(region, op, text);
  }
}

}  // namespace

std::string ProgramText(const Program& program) {
  std::string text;
  for (const Region& region : program.regions) AppendRegion(program, region, &text);
  return text;
}

void LogProgram(const Program& program) {
  if (!VLOG_IS_ON(1)) return;
  for (absl::string_view line : absl::StrSplit(ProgramText(program), '\n')) VLOG(1) << line;
}

}  // namespace tensorflow_recursion
