// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/partial_calls.h"

namespace tensorflow_recursion {

bool PartialCalls::AddDeadArgument(Frame* caller, OpId op, uint32_t argument) {
  PartialCall& call = Make(caller, op);
  if (call.is_dead(argument)) return false;
  call.dead_arguments.push_back(argument);
  return true;
}

void PartialCalls::EraseAll(const Frame* caller) {
  for (uint32_t i = 0; i < caller->region->num_counted; ++i) {
    if (caller->region->ops[i].kind == OpKind::kCallSite) Erase(caller, OpId(i));
  }
}

}  // namespace tensorflow_recursion
