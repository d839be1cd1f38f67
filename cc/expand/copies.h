// Decides which bodies a function has in the graph: one, or a copy for each combination of devices of its resources.
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

  // `is_taken` says whether a function has that name already. It must live as long as the table.
  explicit CopyTable(IsTaken is_taken) : is_taken_(std::move(is_taken)) {}

  // Sets `*name` to that of the copy that a call with `handles` (by argument) may run, and `*is_new` to whether the
  // copy is a new one, made because there was none. InvalidArgument if there would be more copies than make sense.
  absl::Status Find(const tensorflow::FunctionDef& function, const std::vector<Handle>& handles, std::string* name,
                    bool* is_new);

 private:
  // One body of a function.
  struct Copy {
    std::string name;
    // What its first call passes, by argument.
    std::vector<Handle> handles;
  };
  // All bodies of one function.
  struct Copies {
    std::vector<Copy> all;
    // By argument, whether calls that pass different devices there need different copies.
    std::vector<bool> tells_apart;
  };

  std::string NewName(const std::string& function, int number) const;

  const IsTaken is_taken_;
  // By function.
  std::map<std::string, Copies> copies_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_COPIES_H_
