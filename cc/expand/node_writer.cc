// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/node_writer.h"

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {

using tensorflow::AddNodeAttr;
using tensorflow::NodeDef;

NodeDef* NodeWriter::Add(const std::string& name, const char* op, const std::string& device) {
  NodeDef* node = graph_->add_node();
  node->set_name(name);
  node->set_op(op);
  node->set_device(device);
  Stamp(node);
  return node;
}

NodeDef* NodeWriter::AddTrue(const std::string& name, const std::string& device) {
  NodeDef* node = Add(name, "Const", device);
  AddNodeAttr("dtype", tensorflow::DT_BOOL, node);
  AddNodeAttr("value", tensorflow::Tensor(true), node);
  return node;
}

NodeDef* NodeWriter::AddPort(const std::string& name, const char* op, const std::string& device,
                             tensorflow::DataType type, const std::string& function, int index) {
  NodeDef* node = Add(name, op, device);
  AddNodeAttr(kTypeAttr, type, node);
  AddNodeAttr(kFunctionAttr, function, node);
  AddNodeAttr(kIndexAttr, index, node);
  return node;
}

NodeDef* NodeWriter::AddCopy(const NodeDef& node) {
  NodeDef* copy = AddOwned(node);
  Stamp(copy);
  return copy;
}

NodeDef* NodeWriter::AddOwned(const NodeDef& node) {
  NodeDef* copy = graph_->add_node();
  *copy = node;
  copy->clear_input();
  return copy;
}

void NodeWriter::StartWith(const std::string& source, int first) {
  for (int i = first; i < graph_->node_size(); ++i) {
    NodeDef* node = graph_->mutable_node(i);
    if (node->input_size() == 0) node->add_input(Control(source));
  }
}

void NodeWriter::Stamp(NodeDef* node) const { (*node->mutable_attr())[kBodyAttr].set_s(owner_); }

std::string Control(const std::string& node) { return absl::StrCat("^", node); }

tensorflow::TensorShapeProto StatedShape(const NodeDef& node, const char* attr, int index, int expected_count) {
  const auto it = node.attr().find(attr);
  if (it != node.attr().end() && it->second.list().shape_size() == expected_count) {
    return it->second.list().shape(index);
  }
  tensorflow::TensorShapeProto unknown;
  unknown.set_unknown_rank(true);
  return unknown;
}

}  // namespace tensorflow_recursion
