// Which bodies stand in the graph for one function: one, or a copy for each combination of devices of its resources.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_COPIES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_COPIES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/expand/call_program.h"
#include "tensorflow/core/framework/function.pb.h"

namespace tensorflow_recursion {

// A body stands in the graph once for all calls that pass resources of the same devices, and records of one function.
// The copies of `F` are called `F`, `F__copy1`, `F__copy2` and so on.
class CopyTable {
 public:
  using IsTaken = std::function<bool(const std::string& name)>;

  // `is_taken` says whether a function has that name already; it must live as long as the table.
  explicit CopyTable(IsTaken is_taken) : is_taken_(std::move(is_taken)) {}

  // Finds the copy of a function that a call with `handles` (by argument) may run, and makes a new one if there is
  // none:
  // `*is_new` says so. `*name` is the copy's. InvalidArgument if there would be more copies than make sense.
  absl::Status Find(const tensorflow::FunctionDef& function, const std::vector<Handle>& handles, std::string* name,
                    bool* is_new);

 private:
  struct Copy {
    std::string name;
    std::vector<Handle> handles;  // that its first call passes, by argument
  };
  struct Copies {
    std::vector<Copy> all;
    std::vector<bool> tells_apart;  // by argument: whether there may be several copies because of it
  };

  std::string NewName(const std::string& function, int number) const;

  const IsTaken is_taken_;
  std::map<std::string, Copies> copies_;  // by function
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_COPIES_H_
