// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/concat_gradients.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cc/analysis/node_owners.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Which inputs the operators have, and the one that they become.
constexpr int kAxis = 0;
constexpr int kFirstShape = 1;
constexpr int kSliced = 0;
constexpr int kBegin = 1;
constexpr int kSize = 2;

constexpr int kNoAxis = -1;

// One output of a node.
struct NodeOutput {
  Node* node = nullptr;
  int output = 0;

  bool operator==(const NodeOutput& other) const { return node == other.node && output == other.output; }
};

// The nodes that make a concatenation's gradient, and what the one operator reads that they become.
struct ConcatGradient {
  // The ConcatOffset; nullptr if the slices lie where constants say.
  Node* offset = nullptr;
  // The Slice of each part.
  std::vector<Node*> slices;
  NodeOutput axis;
  NodeOutput gradient;
  // The value or the shape of each part; behind these, values that the operator only waits for.
  std::vector<NodeOutput> parts;
  std::vector<bool> are_shapes;
  // What goes besides the slices: the ConcatOffset, and nodes that made its shapes for nobody else.
  std::vector<Node*> removed;
  // What the operator waits for by control edges, besides.
  std::vector<Node*> awaited;
};

NodeOutput InputOf(const Node& node, int index) {
  const tensorflow::Edge* edge = nullptr;
  if (!node.input_edge(index, &edge).ok()) return {};
  return {edge->src(), edge->src_output()};
}

bool HasControlInputs(const Node& node) {
  return std::any_of(node.in_edges().begin(), node.in_edges().end(),
                     [](const tensorflow::Edge* edge) { return edge->IsControlEdge() && edge->src()->IsOp(); });
}

bool IsPlainValue(tensorflow::DataType dtype) {
  return tensorflow::DataTypeCanUseMemcpy(dtype) && !tensorflow::IsRefType(dtype);
}

// Finds the slices if they cut one tensor, take each part that the ConcatOffset has a beginning for, and nobody else
// reads the ConcatOffset. Returns false if it is otherwise.
bool FindSlices(ConcatGradient* found) {
  const Node& offset = *found->offset;
  found->axis = InputOf(offset, kAxis);
  found->slices.assign(offset.num_outputs(), nullptr);
  for (const tensorflow::Edge* edge : offset.out_edges()) {
    if (edge->IsControlEdge()) {
      if (edge->dst()->IsOp()) return false;
      continue;
    }
    const bool is_begin = edge->dst()->type_string() == "Slice" && edge->dst_input() == kBegin;
    if (!is_begin || found->slices[edge->src_output()] != nullptr) return false;
    found->slices[edge->src_output()] = edge->dst();
  }
  for (size_t i = 0; i < found->slices.size(); ++i) {
    const Node* const slice = found->slices[i];
    // If a slice waited for a reader of another slice, the new operator would wait for itself.
    if (slice == nullptr || HasControlInputs(*slice) || !IsPlainValue(slice->output_type(0))) return false;
    if (!(InputOf(*slice, kSize) == InputOf(offset, kFirstShape + static_cast<int>(i)))) return false;
    if (i == 0) found->gradient = InputOf(*slice, kSliced);
    if (!(InputOf(*slice, kSliced) == found->gradient)) return false;
  }
  return !found->slices.empty() && !tensorflow::IsRefType(found->gradient.node->output_type(found->gradient.output));
}

// Reads the sizes if the node is a constant vector without negative numbers. (To a Slice, -1 means all that is left,
// which is no size.) Returns false if it is not.
bool ReadSizes(const Node& node, std::vector<int32_t>* sizes) {
  Tensor value;
  if (!node.IsConstant() || !tensorflow::GetNodeAttr(node.attrs(), "value", &value).ok()) return false;
  if (value.dtype() != tensorflow::DT_INT32 || value.dims() != 1) return false;
  const auto numbers = value.vec<int32_t>();
  sizes->assign(numbers.data(), numbers.data() + numbers.size());
  return std::all_of(sizes->begin(), sizes->end(), [](int32_t size) { return size >= 0; });
}

bool IsConstantShape(const Node& node) {
  std::vector<int32_t> sizes;
  return ReadSizes(node, &sizes);
}

bool IsShapeOfValues(const Node& node) {
  if (node.type_string() != "Shape" && node.type_string() != "ShapeN") return false;
  return node.num_inputs() > 0 && !tensorflow::IsRefType(node.input_type(0));
}

// If Grappler knows an output of a ShapeN, it puts a constant in its place, which waits for the ShapeN and is named
// after it. Returns that output if `node` is such a constant.
NodeOutput ReplacedShape(const Node& node) {
  for (const tensorflow::Edge* edge : node.in_edges()) {
    absl::string_view name = node.name();
    int output = 0;
    const bool is_replaced = node.IsConstant() && edge->src()->type_string() == "ShapeN" &&
                             absl::ConsumePrefix(&name, absl::StrCat("ConstantFolding/", edge->src()->name())) &&
                             absl::ConsumePrefix(&name, "-matshapes-") && absl::SimpleAtoi(name, &output);
    if (is_replaced && output >= 0 && output < edge->src()->num_outputs()) return {edge->src(), output};
  }
  return {};
}

// Knows who reads the shapes of the parts: the slices, the ConcatOffset, and constants that have replaced an output of
// a ShapeN and that nobody else reads.
class ShapeReaders {
 public:
  explicit ShapeReaders(const ConcatGradient& gradient) : readers_(gradient.slices.begin(), gradient.slices.end()) {
    readers_.insert(gradient.offset);
    for (int i = kFirstShape; i < gradient.offset->num_inputs(); ++i) {
      const NodeOutput shape = InputOf(*gradient.offset, i);
      if (ReplacedShape(*shape.node).node != nullptr && ReadShape(*shape.node)) constants_.insert(shape.node);
    }
  }

  // What the shape was before Grappler replaced it.
  NodeOutput Origin(const NodeOutput& shape) const {
    return constants_.count(shape.node) > 0 ? ReplacedShape(*shape.node) : shape;
  }

  // Whether only these read the node, and only as a shape. (A Slice may also cut the shape itself, as its first input.)
  bool ReadShape(const Node& node) const {
    return std::all_of(node.out_edges().begin(), node.out_edges().end(), [this](const tensorflow::Edge* edge) {
      const bool is_shape = edge->dst_input() >= kFirstShape && readers_.count(edge->dst()) > 0;
      return !edge->dst()->IsOp() || is_shape || constants_.count(edge->dst()) > 0;
    });
  }

 private:
  std::set<const Node*> readers_;
  std::set<Node*> constants_;
};

// Finds the values or shapes of the parts, and the nodes that go. Returns false if one of the shapes may be no shape of
// a tensor.
bool FindParts(ConcatGradient* found) {
  const ShapeReaders readers(*found);
  std::set<std::pair<const Node*, int>> taken;
  found->removed = {found->offset};
  for (size_t i = 0; i < found->slices.size(); ++i) {
    const NodeOutput given = InputOf(*found->offset, kFirstShape + static_cast<int>(i));
    const NodeOutput shape = readers.Origin(given);
    const bool is_of_values = IsShapeOfValues(*shape.node);
    if (!is_of_values && !IsConstantShape(*shape.node)) return false;
    const bool is_ours = is_of_values && readers.ReadShape(*shape.node);
    found->parts.push_back(is_ours ? InputOf(*shape.node, shape.output) : given);
    found->are_shapes.push_back(!is_ours);
    if (!is_ours) continue;
    taken.emplace(shape.node, shape.output);
    for (Node* node : {shape.node, given.node}) {
      if (std::count(found->removed.begin(), found->removed.end(), node) == 0) found->removed.push_back(node);
    }
  }
  // A ShapeN that goes has waited for all of its inputs, so the new operator does.
  for (size_t i = 1; i < found->removed.size(); ++i) {
    for (int j = 0; j < found->removed[i]->num_inputs(); ++j) {
      if (!taken.emplace(found->removed[i], j).second) continue;
      found->parts.push_back(InputOf(*found->removed[i], j));
      found->are_shapes.push_back(false);
    }
  }
  return true;
}

// The operator whose name and device the new one gets.
const Node& ModelOf(const ConcatGradient& gradient) {
  return gradient.offset != nullptr ? *gradient.offset : *gradient.slices[0];
}

NodeDef DefLike(const Node& model, const std::string& name, const std::string& op) {
  NodeDef def;
  def.set_name(name);
  def.set_op(op);
  def.set_device(model.def().device());
  *def.mutable_experimental_debug_info() = model.def().experimental_debug_info();
  CopyOwner(model.def(), &def);
  return def;
}

NodeDef DefOf(const ConcatGradient& gradient) {
  NodeDef def = DefLike(ModelOf(gradient), ModelOf(gradient).name(), kConcatGradientOp);
  std::vector<NodeOutput> inputs = {gradient.axis, gradient.gradient};
  inputs.insert(inputs.end(), gradient.parts.begin(), gradient.parts.end());
  for (const NodeOutput& input : inputs) def.add_input(absl::StrCat(input.node->name(), ":", input.output));
  tensorflow::DataTypeVector types;
  for (const NodeOutput& part : gradient.parts) types.push_back(part.node->output_type(part.output));
  tensorflow::AddNodeAttr("T", gradient.slices[0]->output_type(0), &def);
  tensorflow::AddNodeAttr("Tparts", types, &def);
  tensorflow::AddNodeAttr("N", static_cast<int>(gradient.slices.size()), &def);
  tensorflow::AddNodeAttr("are_shapes", gradient.are_shapes, &def);
  return def;
}

void MoveReaders(Node* slice, Node* merged, int output, Graph* graph) {
  const std::vector<const tensorflow::Edge*> edges(slice->out_edges().begin(), slice->out_edges().end());
  for (const tensorflow::Edge* edge : edges) {
    if (edge->IsControlEdge()) {
      graph->AddControlEdge(merged, edge->dst());
    } else {
      graph->AddEdge(merged, output, edge->dst(), edge->dst_input());
    }
  }
}

absl::Status Merge(const ConcatGradient& gradient, Graph* graph) {
  const NodeDef def = DefOf(gradient);
  absl::Status status;
  Node* const merged = graph->AddNode(def, &status);
  TFR_RETURN_IF_ERROR(status);
  merged->set_assigned_device_name(ModelOf(gradient).assigned_device_name());
  int input = 0;
  graph->AddEdge(gradient.axis.node, gradient.axis.output, merged, input++);
  graph->AddEdge(gradient.gradient.node, gradient.gradient.output, merged, input++);
  for (const NodeOutput& part : gradient.parts) graph->AddEdge(part.node, part.output, merged, input++);
  for (const Node* node : gradient.removed) {
    for (const tensorflow::Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) graph->AddControlEdge(edge->src(), merged);
    }
  }
  for (Node* node : gradient.awaited) graph->AddControlEdge(node, merged);
  for (size_t i = 0; i < gradient.slices.size(); ++i) {
    MoveReaders(gradient.slices[i], merged, static_cast<int>(i), graph);
  }
  for (Node* slice : gradient.slices) graph->RemoveNode(slice);
  for (Node* node : gradient.removed) graph->RemoveNode(node);
  return absl::OkStatus();
}

// --- Where all shapes are known -------------------------------------------------------------------

// A Slice whose beginning and size are constants.
struct ConstantSlice {
  Node* node;
  std::vector<int32_t> begin, size;
};

// Whether a constant waits only for its branch. If it waited for a reader of another slice, the new operator would wait
// for itself.
bool WaitsForItsBranch(const Node& constant) {
  return std::all_of(constant.in_edges().begin(), constant.in_edges().end(), [](const tensorflow::Edge* edge) {
    const Node& source = *edge->src();
    if (!source.IsOp() || source.IsSwitch() || source.type_string() == kFrameStartOp) return true;
    if (source.IsIdentity()) return InputOf(source, 0).node->IsSwitch();
    return source.IsConstant() && WaitsForItsBranch(source);
  });
}

bool ReadConstantSlice(Node* node, ConstantSlice* slice) {
  *slice = {node, {}, {}};
  if (HasControlInputs(*node) || !IsPlainValue(node->output_type(0))) return false;
  const Node &begin = *InputOf(*node, kBegin).node, &size = *InputOf(*node, kSize).node;
  return ReadSizes(begin, &slice->begin) && ReadSizes(size, &slice->size) && WaitsForItsBranch(begin) &&
         WaitsForItsBranch(size) && slice->begin.size() == slice->size.size();
}

// The dimension along which the slices lie one behind the other from 0 on; kNoAxis if there is none. `slices` are
// sorted by their beginnings.
int AxisOf(const std::vector<ConstantSlice>& slices) {
  int axis = kNoAxis;
  int64_t end = 0;
  for (const ConstantSlice& slice : slices) {
    if (slice.begin.size() != slices[0].begin.size()) return kNoAxis;
    for (size_t d = 0; d < slice.begin.size(); ++d) {
      const bool is_behind = slice.begin[d] != 0;
      if (is_behind && axis == kNoAxis) axis = static_cast<int>(d);
      if (is_behind && axis != static_cast<int>(d)) return kNoAxis;
    }
  }
  if (axis == kNoAxis) return kNoAxis;
  for (const ConstantSlice& slice : slices) {
    if (slice.begin[axis] != end || slice.size[axis] == 0) return kNoAxis;
    end += slice.size[axis];
    for (size_t d = 0; d < slice.size.size(); ++d) {
      if (static_cast<int>(d) != axis && slice.size[d] != slices[0].size[d]) return kNoAxis;
    }
  }
  return axis;
}

// Adds a constant for the axis, which waits for the same as the size of the first slice.
absl::Status AddAxis(const ConstantSlice& first, int axis, Graph* graph, Node** node) {
  NodeDef def = DefLike(*first.node, graph->NewName(absl::StrCat(first.node->name(), "/axis")), "Const");
  Tensor value(static_cast<int32_t>(axis));
  value.AsProtoTensorContent(def.mutable_attr()->operator[]("value").mutable_tensor());
  tensorflow::AddNodeAttr("dtype", tensorflow::DT_INT32, &def);
  absl::Status status;
  *node = graph->AddNode(def, &status);
  TFR_RETURN_IF_ERROR(status);
  (*node)->set_assigned_device_name(first.node->assigned_device_name());
  for (const tensorflow::Edge* edge : InputOf(*first.node, kSize).node->in_edges()) {
    graph->AddControlEdge(edge->src(), *node);
  }
  return absl::OkStatus();
}

absl::Status MergeConstantSlices(std::vector<ConstantSlice> slices, Graph* graph) {
  std::sort(slices.begin(), slices.end(),
            [](const ConstantSlice& a, const ConstantSlice& b) { return a.begin < b.begin; });
  const int axis = slices.size() < 2 ? kNoAxis : AxisOf(slices);
  if (axis == kNoAxis) return absl::OkStatus();
  ConcatGradient gradient;
  gradient.gradient = InputOf(*slices[0].node, kSliced);
  if (tensorflow::IsRefType(gradient.gradient.node->output_type(gradient.gradient.output))) return absl::OkStatus();
  for (const ConstantSlice& slice : slices) {
    gradient.slices.push_back(slice.node);
    gradient.parts.push_back(InputOf(*slice.node, kSize));
    gradient.are_shapes.push_back(true);
    gradient.awaited.push_back(InputOf(*slice.node, kBegin).node);
  }
  TFR_RETURN_IF_ERROR(AddAxis(slices[0], axis, graph, &gradient.axis.node));
  return Merge(gradient, graph);
}

// Finds the groups in an order that is the same in every process.
std::vector<std::vector<ConstantSlice>> FindConstantSlices(const std::vector<Node*>& nodes) {
  std::map<std::pair<int, int>, std::vector<ConstantSlice>> by_value;
  for (Node* node : nodes) {
    ConstantSlice slice;
    if (!ReadConstantSlice(node, &slice)) continue;
    const NodeOutput cut = InputOf(*node, kSliced);
    by_value[{cut.node->id(), cut.output}].push_back(std::move(slice));
  }
  std::vector<std::vector<ConstantSlice>> found;
  found.reserve(by_value.size());
  for (auto& [value, slices] : by_value) found.push_back(std::move(slices));
  return found;
}

// The nodes of bodies with this operator. Concatenations of the main graph are large, and TensorFlow slices them by
// several threads.
std::vector<Node*> NodesOfBodies(const Graph& graph, const char* op) {
  std::vector<Node*> nodes;
  for (Node* node : graph.op_nodes()) {
    if (node->type_string() == op && IsMarkedAsPartOfBody(*node)) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

absl::Status MergeConcatGradients(Graph* graph) {
  for (std::vector<ConstantSlice>& constant : FindConstantSlices(NodesOfBodies(*graph, "Slice"))) {
    TFR_RETURN_IF_ERROR(MergeConstantSlices(std::move(constant), graph));
  }
  for (Node* offset : NodesOfBodies(*graph, "ConcatOffset")) {
    if (offset->output_type(0) != tensorflow::DT_INT32) continue;
    ConcatGradient found;
    found.offset = offset;
    if (FindSlices(&found) && FindParts(&found)) TFR_RETURN_IF_ERROR(Merge(found, graph));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
