// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/copies.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;

// How many copies of one function there may be: more than any real cluster needs, and fewer than a forged graph could
// ask for.
constexpr int kMaxCopies = 1024;

// Says of each argument whether calls that pass values of different devices there need different bodies. Those that
// pass resources and records do. Lists of tensors are variants as well, but these are sent where they are needed.
std::vector<bool> FindWhatTellsApart(const FunctionDef& function) {
  std::unordered_set<std::string> records;
  for (const tensorflow::NodeDef& node : function.node_def()) {
    if (IsRecall(node) && node.input_size() > 0) records.insert(node.input(0));
  }
  std::vector<bool> tells_apart;
  for (const auto& argument : function.signature().input_arg()) {
    tells_apart.push_back(argument.type() == tensorflow::DT_RESOURCE || records.count(argument.name()) > 0);
  }
  return tells_apart;
}

// Whether a call with `handles` may run the body that was made for `made_for`. Handles of which nothing is known do not
// count.
bool Suits(const std::vector<bool>& tells_apart, const std::vector<Handle>& made_for,
           const std::vector<Handle>& handles) {
  for (size_t i = 0; i < tells_apart.size(); ++i) {
    if (!tells_apart[i] || !handles[i].is_known) continue;
    if (!made_for[i].is_known || made_for[i].device != handles[i].device) return false;
    if (!handles[i].record_of.empty() && made_for[i].record_of != handles[i].record_of) return false;
  }
  return true;
}

}  // namespace

absl::Status CopyTable::Find(const FunctionDef& function, const std::vector<Handle>& handles, std::string* name,
                             bool* is_new) {
  const std::string& base = function.signature().name();
  Copies& copies = copies_[base];
  if (copies.all.empty()) copies.tells_apart = FindWhatTellsApart(function);
  const auto found = std::find_if(copies.all.begin(), copies.all.end(),
                                  [&](const Copy& copy) { return Suits(copies.tells_apart, copy.handles, handles); });
  *is_new = found == copies.all.end();
  if (!*is_new) {
    *name = found->name;
    return absl::OkStatus();
  }
  if (static_cast<int>(copies.all.size()) == kMaxCopies) {
    return InvalidArgument("Function '", UserName(base), "': its calls pass resources of more than ", kMaxCopies,
                           " combinations of devices; the function's body stands in the graph once for each");
  }
  *name = NewName(base, static_cast<int>(copies.all.size()));
  copies.all.push_back({*name, handles});
  return absl::OkStatus();
}

// The first copy has the name of the function.
std::string CopyTable::NewName(const std::string& function, int number) const {
  if (number == 0) return function;
  for (;; ++number) {
    std::string name = absl::StrCat(function, kCopySuffix, number);
    if (!is_taken_(name)) return name;
  }
}

}  // namespace tensorflow_recursion
