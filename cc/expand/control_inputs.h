// Makes control inputs by which a node waits for a value, and lives only where the value does.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_CONTROL_INPUTS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_CONTROL_INPUTS_H_

#include <map>
#include <string>

#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {

inline bool IsControl(const std::string& input) {
  return tensorflow::IsTensorIdControl(tensorflow::ParseTensorName(input));
}

// Makes them for the values of one list of nodes. A wait for a Switch as a whole would not tell which side it has
// taken, and a wait for a call would be for all of its outputs. So a value of these gets an Identity to wait for:
// "switch:1" becomes "^switch/pivot".
class ControlInputs {
 public:
  ControlInputs(NameTable* names, NodeList* list) : names_(*names), list_(*list) {}

  // The control input for `value`, a data or control input of some node of the list.
  std::string By(const std::string& value);

 private:
  NameTable& names_;
  NodeList& list_;
  // The Identities, by the value that they hand on.
  std::map<std::string, std::string> pivots_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_CONTROL_INPUTS_H_
