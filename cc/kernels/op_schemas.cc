// Registers the schemas of the operators that calls of recursive functions are made of.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cc/base/names.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::PartialTensorShape;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// A record is a scalar. The types of what it is a handle of say that it is no number, so that nobody makes zeros for
// it.
absl::Status RecordShape(InferenceContext* c, int output, tensorflow::DataType elements) {
  c->set_output(output, c->Scalar());
  c->set_output_handle_shapes_and_types(
      output, std::vector<tensorflow::shape_inference::ShapeAndType>{{c->Scalar(), elements}});
  return absl::OkStatus();
}

// The shapes that the user has stated, else unknown ones. It never looks into the callee, because that would not end.
absl::Status StatedShapes(InferenceContext* c) {
  std::vector<PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr(kOutputShapesAttr, &shapes));
  const int num_results = c->num_outputs() - 1;
  for (int i = 0; i < num_results; ++i) {
    ShapeHandle shape = c->UnknownShape();
    if (static_cast<int>(shapes.size()) == num_results) {
      TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
    }
    c->set_output(i, shape);
  }
  return RecordShape(c, num_results, tensorflow::DT_INT64);  // int64 has no gradient, so TensorFlow makes no zeros
}

absl::Status ShapeFromAttr(InferenceContext* c) {
  PartialTensorShape shape;
  TF_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  ShapeHandle handle;
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shape, &handle));
  c->set_output(0, handle);
  return absl::OkStatus();
}

// `given`, but each dimension that is open in it is another one.
ShapeHandle Separate(InferenceContext* c, ShapeHandle given) {
  if (!c->RankKnown(given)) return c->UnknownShape();
  std::vector<tensorflow::shape_inference::DimensionHandle> dimensions;
  for (int i = 0; i < c->Rank(given); ++i) {
    const auto dimension = c->Dim(given, i);
    dimensions.push_back(c->ValueKnown(dimension) ? c->MakeDim(c->Value(dimension)) : c->UnknownDim());
  }
  return c->MakeShape(dimensions);
}

// Gives the output the shape of the input, but with new open dimensions. If the input is a handle, it does the same
// with the shapes that the handle tells, such as that of its variable.
absl::Status SeparateShape(InferenceContext* c) {
  c->set_output(0, Separate(c, c->input(0)));
  if (const auto* handle = c->input_handle_shapes_and_types(0); handle != nullptr) {
    std::vector<tensorflow::shape_inference::ShapeAndType> separate = *handle;
    for (auto& shape_and_type : separate) shape_and_type.shape = Separate(c, shape_and_type.shape);
    c->set_output_handle_shapes_and_types(0, separate);
  }
  return absl::OkStatus();
}

}  // namespace

// The operators are stateful, so that no stock pass folds, merges or moves them. Those that only compute a value need
// not be.

REGISTER_OP(kInvokeOp)
    .Input("args: Tin")
    .Input("ignored: Tignored")
    .Output("results: Tout")
    .Output("record: variant")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tignored: list(type) >= 0 = []")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .Attr("forward: string = ''")
    .Attr("record_of: list(func) = []")
    .Attr("output_shapes: list(shape) = []")
    .SetIsStateful()
    .SetShapeFn(StatedShapes)
    .Doc(R"doc(
Calls function `f`, which may call itself.

With the `function_transformation` optimizer the call becomes Call and Return operators around the one
body of `f`; without it the kernel runs `f` through TensorFlow's function runtime.

If anything reads `record`, the function called is `forward`, whose last output that is: what the gradient
of this call needs of it. `record_of`, of a gradient's call, holds the function that writes the record it reads:
the call keeps it in pruned function libraries. In a session's graph a pass lets the call that writes it do so, too.
`ignored` are not passed on: Python differentiates by them.
)doc");

REGISTER_OP(kRetainOp)
    .Input("values: T")
    .Output("record: variant")
    .Attr("T: list(type) >= 0")
    .Attr("function: string")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return RecordShape(c, 0, tensorflow::DT_VARIANT); })
    .Doc("What one invocation of `function` keeps for its gradient.");

REGISTER_OP(kRecallOp)
    .Input("record: variant")
    .Output("values: T")
    .Attr("T: list(type) >= 0")
    .Attr("function: string")
    .Attr("shapes: list(shape) = []")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      std::vector<PartialTensorShape> shapes;
      TF_RETURN_IF_ERROR(c->GetAttr("shapes", &shapes));
      if (static_cast<int>(shapes.size()) != c->num_outputs()) return tensorflow::shape_inference::UnknownShape(c);
      for (int i = 0; i < c->num_outputs(); ++i) {
        ShapeHandle shape;
        TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &shape));
        c->set_output(i, shape);
      }
      return absl::OkStatus();
    })
    .Doc("The values that the invocation of `function` with this record has retained.");

REGISTER_OP(kListOrZerosOp)
    .Input("list: variant")
    .Input("like: variant")
    .Output("result: variant")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape)
    .Doc("The list, or zeros like the list `like` where a record of zeros stands for them.");

REGISTER_OP(kBranchInputOp)
    .Input("value: T")
    .Output("inside: T")
    .Attr("T: type")
    .SetIsStateful()  // a constant in its place would live in a branch that is not taken
    .SetShapeFn(SeparateShape)
    .Doc("The value, in a branch or an iteration: what is found out of its shape there holds nowhere else.");

REGISTER_OP(kSnapshotOp)
    .Input("variables: T")
    .Output("snapshot: variant")
    .Attr("T: list(type) >= 1")
    .Attr("positions: list(int) >= 1")
    .Attr("assigned: list(int) = []")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) { return RecordShape(c, 0, tensorflow::DT_INT64); })
    .Doc(R"doc(
The values that variables have now, which are inputs of a call at the given positions.
The call may assign to those at the positions `assigned`.

In a frozen function, constants are in their places.
)doc");

REGISTER_OP(kVariablesOfOp)
    .Input("snapshot: variant")
    .Input("variables: T")
    .Output("copies: T")
    .Attr("T: list(type) >= 1")
    .Attr("positions: list(int) >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      for (int i = 0; i < c->num_outputs(); ++i) {
        c->set_output(i, c->input(i + 1));
        if (const auto* known = c->input_handle_shapes_and_types(i + 1)) {
          c->set_output_handle_shapes_and_types(i, *known);
        }
      }
      return absl::OkStatus();
    })
    .Doc("New variables with the values that `variables` had in the snapshot; or those themselves, if it has none.");

REGISTER_OP(kHasRunOp)
    .Input("after: N * int32")
    .Output("token: int32")
    .Attr("N: int >= 0")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc("A token that comes when what this waits for has run: operators, or others of its kind.");

// Contributions have the shape of the gradient that they stand for, as far as Python knows it, though the value is a
// scalar.
REGISTER_OP(kContributeOp)
    .Input("first: T")
    .Input("second: U")
    .Output("contributions: variant")
    .Attr("T: type")
    .Attr("U: type")
    .Attr("part: int = 0")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(
        "One term of a part of a weight's gradient, not computed yet: a product of matrices, or rows and their "
        "indices.");

REGISTER_OP(kContributeNoneOp)
    .Output("contributions: variant")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc("A gradient of zero terms.");

REGISTER_OP(kContributeViewOp)
    .Input("terms: variant")
    .Output("contributions: variant")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc("The terms for what a body makes of a weight, which has another shape, as terms of the weight.");

REGISTER_OP(kCollectOp)
    .Input("contributions: variant")
    .Output("first: T")
    .Output("second: U")
    .Attr("T: type")
    .Attr("U: type")
    .Attr("first_shape: shape")
    .Attr("second_shape: shape")
    .Attr("part: int = 0")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      const char* attrs[] = {"first_shape", "second_shape"};
      for (int i = 0; i < 2; ++i) {
        PartialTensorShape row;
        TF_RETURN_IF_ERROR(c->GetAttr(attrs[i], &row));
        ShapeHandle shape, rows = c->Vector(InferenceContext::kUnknownDim);
        TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(row, &shape));
        TF_RETURN_IF_ERROR(c->Concatenate(rows, shape, &shape));
        c->set_output(i, shape);
      }
      return absl::OkStatus();
    })
    .Doc(
        "The tensors of all terms of a part of a gradient, the first and the second of each concatenated along axis "
        "0.");

REGISTER_OP(kTotalOp)
    .Input("value: T")
    .Input("contributions: variant")
    .Output("total: T")
    .Attr("T: type")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape)
    .Doc("The gradient that was computed from contributions; its own gradient is theirs.");

REGISTER_OP(kConcatGradientOp)
    .Input("axis: int32")
    .Input("gradient: T")
    .Input("parts: Tparts")
    .Output("gradients: N * T")
    .Attr("T: type")
    .Attr("Tparts: list(type) >= 1")
    .Attr("N: int >= 1")
    .Attr("are_shapes: list(bool) >= 1")
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(
        "Cuts the gradient of a concatenation into those of its N parts, of which the values or the shapes come first "
        "in `parts`; what follows there is only waited for.");

REGISTER_OP(kImportOp)
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Does nothing. SavedModels have it so that its name says what to import.");

REGISTER_OP(kEntryOp)
    .Output("value: T")
    .Attr("T: type")
    .Attr("function: string")
    .Attr("index: int >= 0")
    .Attr("shape: shape = { unknown_rank: true }")
    .SetIsStateful()
    .SetShapeFn(ShapeFromAttr)
    .Doc("Argument `index` of the body of `function`: where the Calls of all its sites meet.");

REGISTER_OP(kFrameStartOp)
    .Attr("function: string")
    .Attr("max_depth: int")
    .Attr("workers: int")
    .Attr("compile: bool = false")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Fires once in every frame of `function`; starts the body's operators that have no input.");

REGISTER_OP(kResultOp)
    .Input("value: T")
    .Attr("T: type")
    .Attr("function: string")
    .Attr("index: int >= 0")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Output `index` of the body of `function`: feeds the Returns of the frame's call site.");

REGISTER_OP(kCallOp)
    .Input("value: T")
    .Attr("T: type")
    .Attr("function: string")
    .Attr("index: int >= 0")
    .Attr("call_id: int")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Pushes `call_id` on the tag of `value` and sends it to argument `index` of `function`.");

REGISTER_OP(kReturnOp)
    .Input("keep_alives: N * int32")
    .Output("value: T")
    .Attr("N: int >= 0")
    .Attr("T: type")
    .Attr("function: string")
    .Attr("index: int >= 0")
    .Attr("call_id: int")
    .Attr("shape: shape = { unknown_rank: true }")
    .SetIsStateful()
    .SetShapeFn(ShapeFromAttr)
    .Doc("Pops `call_id` off the tag of output `index` of `function`; drops tokens of other sites.");

REGISTER_OP(kAnnounceCallOp)
    .Output("announcement: bool")
    .Attr("function: string")
    .Attr("call_id: int")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc("Live when call `call_id` of `function` is, on the device that decides it.");

REGISTER_OP(kJoinCallOp)
    .Input("announcement: bool")
    .Attr("function: string")
    .Attr("call_id: int")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc("Opens call `call_id` of `function` on a further device that holds a part of the body.");

REGISTER_OP(kKeepAliveOp)
    .Output("token: int32")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc("Depends on what a Return has to keep from pruning: every body of one call graph component, or Calls.");

REGISTER_OP(kRunOp)
    .Input("args: Tin")
    .Output("results: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("graph: string")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc("Runs a serialized partition graph (GraphDef) by the tagged executor.");

}  // namespace tensorflow_recursion
