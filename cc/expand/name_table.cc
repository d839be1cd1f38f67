// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/name_table.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cc/base/names.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;

// Takes the prefix of a function's body, or of a copy of it, off the name of a node.
bool ConsumePrefix(absl::string_view prefix, absl::string_view* node) {
  if (absl::ConsumePrefix(node, prefix)) return true;
  prefix.remove_suffix(1);
  if (!absl::ConsumePrefix(node, absl::StrCat(prefix, kCopySuffix))) return false;
  const size_t digits = std::min(node->find_first_not_of("0123456789"), node->size());
  node->remove_prefix(digits);
  return digits > 0 && absl::ConsumePrefix(node, "/");
}

// The names of the body's nodes, without the prefix, up to their first slash. Those in the FunctionDef are enough:
// what is expanded inside the body only adds names below them.
std::unordered_set<std::string> TopNames(const FunctionDef& function) {
  std::unordered_set<std::string> names;
  auto add = [&](const std::string& name) { names.insert(name.substr(0, name.find('/'))); };
  for (const auto& arg : function.signature().input_arg()) add(arg.name());
  for (const auto& arg : function.signature().output_arg()) add(arg.name());
  for (const NodeDef& node : function.node_def()) add(node.name());
  return names;
}

}  // namespace

std::string NameTable::Unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !taken_.insert(name).second; ++i) name = absl::StrCat(wanted, "_", i);
  return name;
}

GraphNames NamesOf(const tensorflow::GraphDef& graph) {
  GraphNames names;
  for (const NodeDef& node : graph.node()) {
    names.nodes.Take(node.name());
    const auto marked = node.attr().find(kTakenNamesAttr);
    if (marked != node.attr().end()) {
      for (const std::string& name : marked->second.list().s()) names.nodes.Take(name);
    }
    const auto frame = node.attr().find("frame_name");
    if (frame != node.attr().end()) names.frames.Take(frame->second.s());
  }
  return names;
}

// Node names start with a letter, a digit or a dot, and hold few other characters; function names may be anything.
std::string PrefixFor(const std::string& function) {
  std::string prefix = function;
  for (char& c : prefix) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("_.\\/>-", c)) c = '_';
  }
  if (!std::isalnum(static_cast<unsigned char>(prefix[0]))) prefix.insert(0, "function");
  return prefix + "/";
}

std::vector<std::string> TakenNames(const std::vector<std::string>& nodes,
                                    const tensorflow::FunctionDefLibrary& functions) {
  std::vector<std::string> taken;
  for (const FunctionDef& function : functions.function()) {
    const std::string prefix = PrefixFor(function.signature().name());
    std::unordered_set<std::string> top_names;
    for (const std::string& node : nodes) {
      absl::string_view rest = node;
      if (!ConsumePrefix(prefix, &rest)) continue;
      if (top_names.empty()) top_names = TopNames(function);
      if (top_names.count(std::string(rest.substr(0, rest.find('/'))))) taken.push_back(node);
    }
  }
  return taken;
}

}  // namespace tensorflow_recursion
