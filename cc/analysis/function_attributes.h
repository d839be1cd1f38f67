// Tells which functions a node names.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FUNCTION_ATTRIBUTES_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FUNCTION_ATTRIBUTES_H_

#include <vector>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// The functions that attributes of a node name, in lists too: branches of a conditional, for example. One may come
// twice.
std::vector<tensorflow::NameAttrList> FunctionsInAttributes(const tensorflow::NodeDef& node);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FUNCTION_ATTRIBUTES_H_
