// The configuration of a session that runs calls statically.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_PASSES_SWITCHED_ON_H_
#define TENSORFLOW_RECURSION_TESTS_CC_PASSES_SWITCHED_ON_H_

#include "cc/base/names.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow_recursion {

inline tensorflow::ConfigProto SwitchedOn() {
  tensorflow::ConfigProto config;
  config.mutable_graph_options()->mutable_rewrite_options()->add_custom_optimizers()->set_name(kOptimizerName);
  return config;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_PASSES_SWITCHED_ON_H_
