// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_call_sites.h"

#include <string>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/verify_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataTypeString;
using tensorflow::DataTypeVector;
using tensorflow::NodeDef;
using tensorflow::OpDef;

std::string Describe(const NodeDef& invoke) {
  return absl::StrCat("Call of '", UserName(CalleeOf(invoke)), "' (node '", invoke.name(), "')");
}

// `what` is "argument" or "output", and `verb` says what the function does with it: "takes" or "returns".
absl::Status VerifyTypes(const NodeDef& invoke, const DataTypeVector& given,
                         const google::protobuf::RepeatedPtrField<OpDef::ArgDef>& expected, const char* what,
                         const char* verb) {
  if (static_cast<int>(given.size()) != expected.size()) {
    return InvalidArgument(Describe(invoke), ": the call has ", given.size(), " ", what, "s, the function ", verb, " ",
                           expected.size());
  }
  for (int i = 0; i < expected.size(); ++i) {
    const OpDef::ArgDef& arg = expected[i];
    if (arg.type() == tensorflow::DT_INVALID) {
      return InvalidArgument(Describe(invoke), ": ", what, " ", i, " ('", arg.name(), "') has no fixed type");
    }
    if (arg.type() != given[i] || arg.is_ref()) {
      return InvalidArgument(Describe(invoke), ": ", what, " ", i, " ('", arg.name(), "') is ",
                             DataTypeString(given[i]), ", the function ", verb, " ", DataTypeString(arg.type()),
                             arg.is_ref() ? "_ref" : "");
    }
  }
  return absl::OkStatus();
}

int DataInputs(const NodeDef& node) {
  int count = 0;
  for (const std::string& input : node.input()) count += input.empty() || input[0] != '^';
  return count;
}

}  // namespace

absl::Status VerifyCallSite(const tensorflow::Node& invoke, const tensorflow::FunctionLibraryDefinition& library) {
  return VerifyCallSite(DefinitionWithEdges(invoke), library);
}

absl::Status VerifyCallSite(const NodeDef& invoke, const tensorflow::FunctionLibraryDefinition& library) {
  const std::string& callee = CalleeOf(invoke);
  if (callee.empty()) return InvalidArgument("Node '", invoke.name(), "': attribute f names no function");
  const tensorflow::FunctionDef* definition = library.Find(callee);
  if (definition == nullptr) {
    return InvalidArgument(Describe(invoke), ": the function is declared but has no definition in the graph");
  }
  const OpDef& signature = definition->signature();
  if (signature.attr_size() > 0 || invoke.attr().at(kCalleeAttr).func().attr_size() > 0) {
    return InvalidArgument(Describe(invoke), ": the function takes attributes, which recursive functions cannot");
  }
  DataTypeVector inputs, ignored, outputs;
  GetNodeAttr(invoke, kIgnoredTypesAttr, &ignored).IgnoreError();  // it has a default
  if (!GetNodeAttr(invoke, kArgumentTypesAttr, &inputs).ok() || !GetNodeAttr(invoke, kResultTypesAttr, &outputs).ok()) {
    return InvalidArgument(Describe(invoke), ": attribute Tin or Tout is missing");
  }
  if (DataInputs(invoke) != static_cast<int>(inputs.size() + ignored.size())) {
    return InvalidArgument(Describe(invoke), ": the node has ", DataInputs(invoke), " inputs, Tin and Tignored say ",
                           inputs.size() + ignored.size());
  }
  TFR_RETURN_IF_ERROR(VerifyTypes(invoke, inputs, signature.input_arg(), "argument", "takes"));
  return VerifyTypes(invoke, outputs, signature.output_arg(), "output", "returns");
}

}  // namespace tensorflow_recursion
