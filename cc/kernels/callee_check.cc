// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/callee_check.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataTypeString;
using tensorflow::DataTypeVector;

absl::Status CheckSignature(const std::string& function, const CallSignature& call, const DataTypeVector& arguments,
                            const DataTypeVector& outputs) {
  const std::string subject = absl::StrCat("Call '", call.name, "' of function '", function, "': ");
  if (call.arguments.size() != arguments.size()) {
    return InvalidArgument(subject, call.arguments.size(), " arguments given, the function takes ", arguments.size());
  }
  if (call.results.size() != outputs.size()) {
    return InvalidArgument(subject, call.results.size(), " outputs expected, the function returns ", outputs.size());
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (call.arguments[i] == arguments[i]) continue;
    return InvalidArgument(subject, "argument ", i, " is ", DataTypeString(call.arguments[i]), ", the function takes ",
                           DataTypeString(arguments[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (call.results[i] == outputs[i]) continue;
    return InvalidArgument(subject, "output ", i, " is read as ", DataTypeString(call.results[i]),
                           ", the function returns ", DataTypeString(outputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCallee(const tensorflow::FunctionLibraryDefinition& library, const tensorflow::NameAttrList& function,
                         const CallSignature& signature) {
  const tensorflow::FunctionDef* definition = library.Find(function.name());
  if (definition == nullptr) {
    return InvalidArgument(
        "Call '", signature.name, "': function '", UserName(function.name()),
        "' is declared but has no definition; define it, or let the GraphDef that calls it bring its "
        "functions along: tf.import_graph_def in tf.compat.v1.wrap_function does, in a tf.function it "
        "does not");
  }
  for (const tensorflow::NodeDef& node : definition->node_def()) {
    if (node.op() == "_Arg" || node.op() == "_Retval") {  // with a wrong index, one would end the process
      return InvalidArgument("Function '", UserName(function.name()), "': node '", node.name(), "' is a ", node.op(),
                             ", which a definition may not hold");
    }
  }
  tensorflow::NodeDef call;
  call.set_op(function.name());
  *call.mutable_attr() = function.attr();
  DataTypeVector arguments, outputs;
  const absl::Status typed = tensorflow::InOutTypesForNode(call, definition->signature(), &arguments, &outputs);
  if (!typed.ok()) return InvalidArgument("Function '", UserName(function.name()), "': ", typed.message());
  return CheckSignature(UserName(function.name()), signature, arguments, outputs);
}

}  // namespace tensorflow_recursion
