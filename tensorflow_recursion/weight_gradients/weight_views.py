"""What a body makes of a weight alone: `w[:, :n]`, `tf.transpose(w)`, `tf.cast(w, tf.bfloat16)`, `0.5 * w`.

The gradient for such a view of a weight can be collected as that for a weight, and becomes a gradient for the weight
once, where it was asked for. That is right as long as the view is linear in the weight: then the step from one gradient
to the other depends on no values, which may be others by then. A body that computes `tf.tanh(w)` makes no view.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import nodes

tf1 = tf.compat.v1

# Operators that are linear in an input, or affine, if all others are constants; and which inputs these may be.
_ANY_INPUT = range(1000)
_LINEAR: dict[str, tuple[int, ...] | range] = {
    **dict.fromkeys(("Transpose", "Reshape", "ExpandDims", "Squeeze", "Cast"), (0,)),
    **dict.fromkeys(("StridedSlice", "Slice", "GatherV2", "SplitV", "Unpack", "ReverseV2", "Roll"), (0,)),
    **dict.fromkeys(("Neg", "RealDiv", "Sum", "Mean", "Pad", "PadV2", "Tile", "BroadcastTo"), (0,)),
    **dict.fromkeys(("MatrixBandPart", "MatrixDiagPartV3"), (0,)),
    **dict.fromkeys(("Mul", "Add", "AddV2", "Sub"), (0, 1)),
    **dict.fromkeys(("ConcatV2", "Pack"), _ANY_INPUT),
    "Split": (1,),
}


@dataclasses.dataclass(frozen=True)
class _Constant:
    """A constant input. It can be compared, and holds no graph."""

    dtype: tf.DType
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, value: Any, dtype: tf.DType) -> _Constant:
        array = np.asarray(value, dtype.as_numpy_dtype)
        return cls(dtype, array.shape, array.tobytes())

    def array(self) -> Any:
        return np.frombuffer(self.data, self.dtype.as_numpy_dtype).reshape(self.shape)

    def tensor(self) -> tf.Tensor:
        return tf.constant(self.array(), self.dtype)


@dataclasses.dataclass(frozen=True)
class Step:
    """An operator that makes a view of a weight, or of another view.

    Attributes:
      op_type: the operator.
      attributes: those that its inputs do not tell, by name, as bytes.
      position: which input the weight is.
      constants: the other inputs.
      output: which output the view is.
    """

    op_type: str
    attributes: tuple[tuple[str, bytes], ...]
    position: int
    constants: tuple[_Constant, ...]
    output: int

    def view_of(self, tensor: tf.Tensor) -> tf.Tensor:
        """Add this operator to the default graph."""
        inputs = [constant.tensor() for constant in self.constants]
        inputs.insert(self.position, tensor)
        attrs = {name: tf1.AttrValue.FromString(value) for name, value in self.attributes}
        return tf1.get_default_graph().create_op(self.op_type, inputs, attrs=attrs).outputs[self.output]

    def of_dtype(self, dtype: tf.DType) -> Step:
        """The step where the tensor is of another floating dtype."""
        constants = [_Constant.of(one.array(), dtype) if one.dtype.is_floating else one for one in self.constants]
        attributes = []
        for name, value in self.attributes:
            attr = tf1.AttrValue.FromString(value)
            if attr.WhichOneof("value") == "type" and tf.as_dtype(attr.type).is_floating:
                attr.type = dtype.as_datatype_enum
            attributes.append((name, attr.SerializeToString()))
        return dataclasses.replace(self, attributes=tuple(attributes), constants=tuple(constants))


def transposed(order: Sequence[int] = (1, 0)) -> Step:
    """The step from a tensor to one with its axes in another order."""
    return Step("Transpose", (), 0, (_Constant.of(order, tf.int32),), 0)


def reshaped(shape: Sequence[int | None]) -> Step:
    """The step from a tensor to one of another shape, of which one dimension may be open."""
    return Step("Reshape", (), 0, (_Constant.of([-1 if size is None else size for size in shape], tf.int32),), 0)


def views(op: tf.Operation, position: int) -> Iterator[tuple[tf.Tensor, Step]]:
    """The results of `op` if they are views of its input `position`, each with the step that leads to it."""
    source = op.inputs[position]
    if position not in _LINEAR.get(op.type, ()) or not all(_can_be(tensor) for tensor in [source, *op.outputs]):
        return
    constants = []
    for i, tensor in enumerate(op.inputs):
        if i != position:
            value = tf.get_static_value(tensor)
            if value is None and op.type == "Reshape" and op.outputs[0].shape.as_list().count(None) < 2:
                value = [-1 if size is None else size for size in op.outputs[0].shape.as_list()]
            if value is None:
                return
            constants.append(_Constant.of(value, tensor.dtype))
    attrs = sorted((name, value) for name, value in op.node_def.attr.items() if not name.startswith("_"))
    attributes = tuple((name, value.SerializeToString()) for name, value in attrs)
    for i, view in enumerate(op.outputs):
        yield view, Step(op.type, attributes, position, tuple(constants), i)


def _can_be(tensor: tf.Tensor) -> bool:
    return bool(tensor.dtype.is_floating and tensor.shape.rank is not None)


def hand_on_terms(op: tf.Operation, position: int) -> None:
    """Let `op`, which makes views, hand on the terms for them: these are terms for its input `position`."""
    nodes.set_gradient_function(op, functools.partial(_terms, position=position))


def _terms(op: tf.Operation, *grads: Any, position: int) -> list[tf.Tensor | None]:
    terms = [grad for grad in grads if grad is not None and grad.dtype == tf.variant]  # not the zeros of TensorFlow
    found: list[tf.Tensor | None] = [None] * len(op.inputs)
    if terms:
        found[position] = ops.contribute_view(tf.add_n(terms) if len(terms) > 1 else terms[0])
    return found


def view(weight: tf.Tensor, steps: Iterable[Step]) -> tf.Tensor:
    """Make a view of a weight."""
    for step in steps:
        weight = step.view_of(weight)
    return weight


def of_dtype(steps: Iterable[Step], dtype: tf.DType) -> tuple[Step, ...]:
    """The steps in one floating dtype from the first on, so that none has to change it."""
    return tuple(step.of_dtype(dtype) for step in steps if step.op_type != "Cast")
