// Adds nodes to the final graph, and notes which function's body each is part of.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_NODE_WRITER_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_NODE_WRITER_H_

#include <string>

#include "cc/expand/name_table.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow_recursion {

// Every node gets an attribute that names its owner, see kBodyAttr: the function whose body it is part of, or nothing
// for the main graph. It is known here, so that nobody has to find it out again later, except for nodes that stock
// passes add. The graph and the names must outlive the writer.
class NodeWriter {
 public:
  NodeWriter(NameTable* names, tensorflow::GraphDef* graph) : names_(names), graph_(graph) {}

  // Says that the nodes to come are part of the body of `function`, or of the main graph if it is empty.
  void SetOwner(const std::string& function) { owner_ = function; }

  // Adds a node without inputs. The pointer stays valid.
  tensorflow::NodeDef* Add(const std::string& name, const char* op, const std::string& device);

  // Adds the constant `true`.
  tensorflow::NodeDef* AddTrue(const std::string& name, const std::string& device);

  // Adds an Entry, Result, Call or Return, for argument or output `index` of `function`.
  tensorflow::NodeDef* AddPort(const std::string& name, const char* op, const std::string& device,
                               tensorflow::DataType type, const std::string& function, int index);

  // Adds a copy of `node` without its inputs.
  tensorflow::NodeDef* AddCopy(const tensorflow::NodeDef& node);

  // Does what AddCopy does, but the copy has the owner that `node` names, or no owner if it names none.
  tensorflow::NodeDef* AddOwned(const tensorflow::NodeDef& node);

  // A name that is free.
  std::string Unique(const std::string& wanted) { return names_->Unique(wanted); }

  // How many nodes there are so far.
  int size() const { return graph_->node_size(); }
  // Gives a control edge from `source` to the nodes from `first` on that have no input.
  void StartWith(const std::string& source, int first);

 private:
  void Stamp(tensorflow::NodeDef* node) const;

  NameTable* const names_;
  tensorflow::GraphDef* const graph_;
  std::string owner_;
};

// Returns "^node".
std::string Control(const std::string& node);

// The shape at `index` of an attribute that lists `expected_count` of them. Unknown if the node does not say.
tensorflow::TensorShapeProto StatedShape(const tensorflow::NodeDef& node, const char* attr, int index,
                                         int expected_count);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_NODE_WRITER_H_
