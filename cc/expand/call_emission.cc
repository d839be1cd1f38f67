// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/call_emission.h"

#include <algorithm>

#include "cc/base/names.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::AddNodeAttr;
using tensorflow::NodeDef;

// The outputs of the node that has the call's name: as many as up to the last one that is wanted. For one that is not
// wanted, the first wanted one is repeated, so that nobody waits for an output that was not asked for.
std::vector<int> FetchedOutputs(const Fetch& fetch, int num_outputs) {
  std::vector<int> outputs;
  if (fetch.whole) {
    for (int i = 0; i < num_outputs; ++i) outputs.push_back(i);
    return outputs;
  }
  for (int i = 0; i <= *fetch.outputs.rbegin(); ++i) {
    outputs.push_back(fetch.outputs.count(i) ? i : *fetch.outputs.begin());
  }
  return outputs;
}

// How many outputs somebody reads or waits for. Each of them has a Return.
size_t NumReturns(const SiteNames& site) {
  return site.returns.size() - std::count(site.returns.begin(), site.returns.end(), "");
}

}  // namespace

void CallEmitter::Emit(const NodeList& list, int position) {
  const NodeDef& invoke = list.nodes[position];
  const bool is_in_main = &list == &program_.main;
  EmitCalls(list, invoke);
  EmitReturns(invoke, is_in_main);
  const auto fetch = is_in_main ? program_.fetches.find(invoke.name()) : program_.fetches.end();
  const bool awaited = list.awaited.count(position) > 0;
  if (fetch != program_.fetches.end()) {
    EmitFetched(invoke, fetch->second, awaited);
  } else if (awaited) {
    Await(*names_.FindSite(invoke.name()), {}, writer_->Add(invoke.name(), "NoOp", invoke.device()));
  }
}

void CallEmitter::EmitCalls(const NodeList& list, const NodeDef& invoke) {
  const std::string& function = CalleeOf(invoke);
  const BodyBoundary& callee = names_.boundary(function);
  const SiteNames& site = *names_.FindSite(invoke.name());
  std::vector<std::string> arguments, controls;
  for (const std::string& input : invoke.input()) {
    (input[0] == '^' ? controls : arguments).push_back(wiring_.Rewired(input));
  }
  std::vector<std::string> pivots = Pivots(list, invoke, arguments.size());
  if (arguments.empty()) {
    NodeDef* value = writer_->AddTrue(writer_->Unique(invoke.name() + "/call"), callee.argument_devices[0]);
    for (const std::string& control : controls) value->add_input(control);
    arguments.push_back(value->name());
    pivots.emplace_back();
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    NodeDef* call = writer_->AddPort(site.calls[i], kCallOp, callee.argument_devices[i], callee.argument_types[i],
                                     function, static_cast<int>(i));
    AddNodeAttr(kCallIdAttr, site.call_id, call);
    call->add_input(arguments[i]);
    for (const std::string& control : controls) call->add_input(control);
    if (!pivots[i].empty()) call->add_input(Control(pivots[i]));
  }
}

// For each argument that comes from outside of the loop that the call stands in, the node that it has to wait for.
std::vector<std::string> CallEmitter::Pivots(const NodeList& list, const NodeDef& invoke, size_t num_arguments) {
  std::vector<std::string> pivots(num_arguments);
  std::string condition;
  for (size_t i = 0; i < num_arguments; ++i) {
    if (!ComesFromOutside(list, invoke.input(static_cast<int>(i)))) continue;
    if (condition.empty()) condition = FindLoopCondition(list, invoke);
    if (condition.empty()) break;
    pivots[i] = loop_pivots_.Get(condition, names_.boundary(CalleeOf(invoke)).argument_devices[i]);
  }
  return pivots;
}

// Every Return waits for all Calls, so that all arguments are kept from being pruned by whatever reads an output.
void CallEmitter::EmitReturns(const NodeDef& invoke, bool is_in_main) {
  const std::string& function = CalleeOf(invoke);
  const BodyBoundary& callee = names_.boundary(function);
  const SiteNames& site = *names_.FindSite(invoke.name());
  const int num_outputs = static_cast<int>(site.returns.size()) - 1;
  std::vector<std::string> waits;
  waits.reserve(site.calls.size());
  for (const std::string& call : site.calls) waits.push_back(Control(call));
  std::vector<std::string> tokens;
  if (is_in_main) tokens.push_back(keep_alives_->Token(invoke));
  if (NumReturns(site) > 1 && waits.size() > 1) tokens.push_back(BundleAllButFirst(invoke, &waits));
  for (int i = 0; i <= num_outputs; ++i) {
    if (site.returns[i].empty()) continue;
    NodeDef* node =
        writer_->AddPort(site.returns[i], kReturnOp, callee.output_devices[i], callee.output_types[i], function, i);
    AddNodeAttr(kCallIdAttr, site.call_id, node);
    AddNodeAttr("N", static_cast<int>(tokens.size()), node);
    AddNodeAttr(
        kShapeAttr,
        i < num_outputs ? StatedShape(invoke, kOutputShapesAttr, i, num_outputs) : tensorflow::TensorShapeProto(),
        node);
    for (const std::vector<std::string>& inputs : {tokens, waits}) {
      for (const std::string& input : inputs) node->add_input(input);
    }
  }
}

// Moves all waits but the first to a KeepAlive, and returns its token. So there is an edge for each Call and each
// Return, not for each pair. The Returns may not wait for the first Return instead: Grappler would then take out a
// user's wait for the first where there is a wait for another, but at run time each Return comes by itself.
std::string CallEmitter::BundleAllButFirst(const NodeDef& invoke, std::vector<std::string>* waits) {
  NodeDef* bundle = writer_->Add(writer_->Unique(invoke.name() + "/calls"), kKeepAliveOp,
                                 names_.boundary(CalleeOf(invoke)).argument_devices[0]);
  for (size_t i = 1; i < waits->size(); ++i) bundle->add_input((*waits)[i]);
  waits->resize(1);
  return bundle->name();
}

// Writes the node that has the call's name, for those who fetch or feed it.
void CallEmitter::EmitFetched(const NodeDef& invoke, const Fetch& fetch, bool awaited) {
  const SiteNames& site = *names_.FindSite(invoke.name());
  const BodyBoundary& callee = names_.boundary(CalleeOf(invoke));
  const std::vector<int> outputs = FetchedOutputs(fetch, static_cast<int>(site.returns.size()) - 1);
  const char* op = outputs.empty() ? "NoOp" : outputs.size() == 1 ? "Identity" : "IdentityN";
  NodeDef* node = writer_->Add(invoke.name(), op, invoke.device());
  std::vector<tensorflow::DataType> types;
  for (int output : outputs) {
    node->add_input(site.returns[output]);
    types.push_back(callee.output_types[output]);
  }
  if (outputs.size() == 1) AddNodeAttr("T", types[0], node);
  if (outputs.size() > 1) AddNodeAttr("T", types, node);
  if (awaited) Await(site, outputs, node);
}

// Makes `node` wait for the Returns of all outputs but those in `read`, which it reads anyway.
void CallEmitter::Await(const SiteNames& site, const std::vector<int>& read, NodeDef* node) {
  for (size_t i = 0; i < site.returns.size(); ++i) {
    const bool is_read = std::count(read.begin(), read.end(), static_cast<int>(i)) > 0;
    if (!is_read && !site.returns[i].empty()) node->add_input(Control(site.returns[i]));
  }
}

}  // namespace tensorflow_recursion
