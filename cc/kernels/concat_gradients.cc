// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/concat_gradients.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/analysis/regions.h"
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

// Inputs of the operators, and of the one that they become.
constexpr int kAxis = 0;
constexpr int kFirstShape = 1;
constexpr int kSliced = 0;
constexpr int kBegin = 1;
constexpr int kSize = 2;

// One output of a node.
struct NodeOutput {
  Node* node = nullptr;
  int output = 0;

  bool operator==(const NodeOutput& other) const { return node == other.node && output == other.output; }
};

// A concatenation's gradient.
struct ConcatGradient {
  Node* offset = nullptr;     // the ConcatOffset
  std::vector<Node*> slices;  // by part
  NodeOutput gradient;
  std::vector<NodeOutput> parts;  // values or shapes; behind those of the parts, what is only waited for
  std::vector<bool> are_shapes;
  std::vector<Node*> waiting;  // the ConcatOffset, and those that made its shapes for nobody else
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

// Finds the slices of one tensor that take all that the ConcatOffset says, and nothing else.
bool FindSlices(ConcatGradient* found) {
  const Node& offset = *found->offset;
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
    // One that waits for another one's reader would close a circle.
    if (slice == nullptr || HasControlInputs(*slice) || !IsPlainValue(slice->output_type(0))) return false;
    if (!(InputOf(*slice, kSize) == InputOf(offset, kFirstShape + static_cast<int>(i)))) return false;
    if (i == 0) found->gradient = InputOf(*slice, kSliced);
    if (!(InputOf(*slice, kSliced) == found->gradient)) return false;
  }
  return !found->slices.empty() && !tensorflow::IsRefType(found->gradient.node->output_type(found->gradient.output));
}

// A Slice takes -1 for all that is left, which no shape has.
bool IsConstantShape(const Node& node) {
  tensorflow::Tensor shape;
  if (!node.IsConstant() || !tensorflow::GetNodeAttr(node.attrs(), "value", &shape).ok() || shape.dims() != 1) {
    return false;
  }
  const auto sizes = shape.vec<int32_t>();
  return std::all_of(sizes.data(), sizes.data() + sizes.size(), [](int32_t size) { return size >= 0; });
}

bool IsShapeOfValues(const Node& node) {
  if (node.type_string() != "Shape" && node.type_string() != "ShapeN") return false;
  return node.num_inputs() > 0 && !tensorflow::IsRefType(node.input_type(0));
}

// Whether only the readers read the node, and only as a shape. A Slice may also cut the shape itself, as its first
// input, and needs it then.
bool IsReadOnlyAsShapeBy(const Node& node, const std::set<const Node*>& readers) {
  return std::all_of(node.out_edges().begin(), node.out_edges().end(), [&readers](const tensorflow::Edge* edge) {
    return !edge->dst()->IsOp() || (edge->dst_input() >= kFirstShape && readers.count(edge->dst()) > 0);
  });
}

// Says what the shapes are made of. False if one of them may be no shape of a tensor.
bool FindParts(ConcatGradient* found) {
  std::set<const Node*> readers(found->slices.begin(), found->slices.end());
  readers.insert(found->offset);
  std::set<std::pair<const Node*, int>> taken;
  found->waiting = {found->offset};
  for (size_t i = 0; i < found->slices.size(); ++i) {
    const NodeOutput shape = InputOf(*found->offset, kFirstShape + static_cast<int>(i));
    const bool is_of_values = IsShapeOfValues(*shape.node);
    if (!is_of_values && !IsConstantShape(*shape.node)) return false;
    const bool is_ours = is_of_values && IsReadOnlyAsShapeBy(*shape.node, readers);
    found->parts.push_back(is_ours ? InputOf(*shape.node, shape.output) : shape);
    found->are_shapes.push_back(!is_ours);
    if (!is_ours) continue;
    taken.emplace(shape.node, shape.output);
    if (std::count(found->waiting.begin(), found->waiting.end(), shape.node) == 0) found->waiting.push_back(shape.node);
  }
  // A ShapeN has waited for all of its inputs.
  for (size_t i = 1; i < found->waiting.size(); ++i) {
    for (int j = 0; j < found->waiting[i]->num_inputs(); ++j) {
      if (!taken.emplace(found->waiting[i], j).second) continue;
      found->parts.push_back(InputOf(*found->waiting[i], j));
      found->are_shapes.push_back(false);
    }
  }
  return true;
}

NodeDef DefOf(const ConcatGradient& gradient) {
  const NodeDef& offset = gradient.offset->def();
  NodeDef def;
  def.set_name(offset.name());
  def.set_op(kConcatGradientOp);
  def.set_device(offset.device());
  *def.mutable_experimental_debug_info() = offset.experimental_debug_info();
  std::vector<NodeOutput> inputs = {InputOf(*gradient.offset, kAxis), gradient.gradient};
  inputs.insert(inputs.end(), gradient.parts.begin(), gradient.parts.end());
  for (const NodeOutput& input : inputs) def.add_input(absl::StrCat(input.node->name(), ":", input.output));
  tensorflow::DataTypeVector types;
  for (const NodeOutput& part : gradient.parts) types.push_back(part.node->output_type(part.output));
  tensorflow::AddNodeAttr("T", gradient.slices[0]->output_type(0), &def);
  tensorflow::AddNodeAttr("Tparts", types, &def);
  tensorflow::AddNodeAttr("N", static_cast<int>(gradient.slices.size()), &def);
  tensorflow::AddNodeAttr("are_shapes", gradient.are_shapes, &def);
  const tensorflow::AttrValue* const body = gradient.offset->attrs().Find(kBodyAttr);
  if (body != nullptr) tensorflow::AddNodeAttr(kBodyAttr, *body, &def);
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
  const NodeOutput axis = InputOf(*gradient.offset, kAxis);
  absl::Status status;
  Node* const merged = graph->AddNode(def, &status);
  TFR_RETURN_IF_ERROR(status);
  merged->set_assigned_device_name(gradient.offset->assigned_device_name());
  int input = 0;
  graph->AddEdge(axis.node, axis.output, merged, input++);
  graph->AddEdge(gradient.gradient.node, gradient.gradient.output, merged, input++);
  for (const NodeOutput& part : gradient.parts) graph->AddEdge(part.node, part.output, merged, input++);
  for (const Node* node : gradient.waiting) {
    for (const tensorflow::Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) graph->AddControlEdge(edge->src(), merged);
    }
  }
  for (size_t i = 0; i < gradient.slices.size(); ++i) {
    MoveReaders(gradient.slices[i], merged, static_cast<int>(i), graph);
  }
  for (Node* slice : gradient.slices) graph->RemoveNode(slice);
  for (Node* node : gradient.waiting) graph->RemoveNode(node);
  return absl::OkStatus();
}

std::vector<Node*> FindOffsets(const Graph& graph) {
  std::vector<Node*> offsets;
  for (Node* node : graph.op_nodes()) {
    const bool is_offset = node->type_string() == "ConcatOffset" && node->output_type(0) == tensorflow::DT_INT32;
    if (is_offset) offsets.push_back(node);
  }
  return offsets;
}

}  // namespace

absl::Status MergeConcatGradients(Graph* graph) {
  std::vector<Node*> offsets = FindOffsets(*graph);
  if (offsets.empty()) return absl::OkStatus();
  GraphRegions regions;
  if (!regions.Build(*graph).ok()) return absl::OkStatus();  // who builds the program finds the same fault
  // The main graph is the session's: its concatenations are large, and TensorFlow slices by several threads.
  auto is_in_main_graph = [&regions](const Node* offset) { return !regions.IsInFunction(offset); };
  offsets.erase(std::remove_if(offsets.begin(), offsets.end(), is_in_main_graph), offsets.end());
  for (Node* offset : offsets) {
    ConcatGradient found;
    found.offset = offset;
    if (FindSlices(&found) && FindParts(&found)) TFR_RETURN_IF_ERROR(Merge(found, graph));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
