"""Gradients of weights, summed once instead of in every frame.

A weight that a recursion captures or passes on is used by every frame, so its gradient is a sum over all frames. Where
all bodies use it in one way, what the frames hand up is the list of terms, not computed: pairs (x, dy) of a product
x W, whose gradients add up to one product of all x, stacked, and all dy; or pairs (values, indices) of rows that were
gathered, which are the IndexedSlices of the whole. Whoever asked for the gradient from outside computes it, and so
does a body that passes on something else than what it was given.

Safe because it is about terms that `tf.gradients` makes anyway: an operator that uses the weight gets a gradient
function that wraps what its own would compute. A weight that is used in any other way is left alone.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import _tf, ops

tf1 = tf.compat.v1

PRODUCT = "product"
ROWS = "rows"
CALL = "call"

_PASSES_ON = ("Identity", "ReadVariableOp")
_NUM_ROWS = "_num_rows"
# Up to what part of the largest two equal numbers of so many bytes may differ by rounding.
_TOLERANCES = {2: 0.1, 4: 1e-3, 8: 1e-7}


@dataclasses.dataclass(frozen=True)
class Use:
    """An operator that reads a weight: as PRODUCT, ROWS or CALL, which hands it to `target`; otherwise None."""

    op: tf.Operation
    kind: str | None
    target: Any = None


def uses(
    weight: tf.Tensor, results: Sequence[tf.Tensor], target_of: Callable[[tf.Operation, int], Any]
) -> Iterator[Use]:
    """All uses of an argument or captured tensor in a body that control flow v2 has made, branches included.

    Args:
      weight: the tensor inside the body: the weight, or its variable's handle.
      results: what the body returns.
      target_of: of a call and the position of an input, what the callee has there; None if that is not to be known.
    """
    for tensor in inner_tensors(weight):
        if any(tensor is result for result in [*results, *getattr(tensor.graph, "outputs", ())]):
            yield Use(tensor.op, None)
        for op, position in _readers(tensor):
            if not _stands_for(op, position):
                yield _use(op, position, target_of)


def inner_tensors(weight: tf.Tensor) -> list[tf.Tensor]:
    """The tensor, what stands for it inside branches, and what only passes it on."""
    found, pending = [], [weight]
    while pending:
        tensor = pending.pop()
        found.append(tensor)
        for op, position in _readers(tensor):
            pending += _stands_for(op, position)
    return found


def _readers(tensor: tf.Tensor) -> Iterator[tuple[tf.Operation, int]]:
    """The inputs that `tensor` is."""
    for op in tensor.consumers():
        yield from ((op, position) for position, source in enumerate(op.inputs) if source is tensor)


def _stands_for(op: tf.Operation, position: int) -> list[tf.Tensor]:
    """The tensors that are input `position` of `op` under another name; none if `op` makes use of it."""
    if op.type in _tf.CONDITIONALS and position > 0:
        return [branch.inputs[position - 1] for branch in _tf.branches(op)]
    return [op.outputs[0]] if op.type in _PASSES_ON else []


def _use(op: tf.Operation, position: int, target_of: Callable[[tf.Operation, int], Any]) -> Use:
    kind = None
    if op.type == ops.INVOKE:
        target = target_of(op, position)
        return Use(op, None if target is None else CALL, target)
    if op.type == "MatMul" and position == 1 and op.inputs[0] is not op.inputs[1] and not op.get_attr("transpose_a"):
        kind = PRODUCT
    elif op.type == "ResourceGather" and op.get_attr("batch_dims") == 0:
        kind = ROWS
    elif op.type == "GatherV2" and position == 0 and op.get_attr("batch_dims") == 0:
        kind = ROWS if tf.get_static_value(op.inputs[2]) == 0 else None
    return Use(op, kind)


def can_be(kind: str, weight: tf.Tensor) -> bool:
    """Whether a weight's gradient can be collected from terms of this kind: its shape must be known."""
    dtype, shape = _tf.gradient_type(weight)
    return shape.is_fully_defined() and shape.rank >= 1 and (kind != PRODUCT or shape.rank == 2)


def use_contributions(op: tf.Operation, kind: str) -> None:
    """Let the gradient function of `op`, a use of this kind, hand out a term for the weight."""
    op._gradient_function = {PRODUCT: _product_gradient, ROWS: _rows_gradient}[kind]


def _product_gradient(op: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
    x, weight = (tf.math.conj(tensor) for tensor in op.inputs)
    transposed = op.get_attr("transpose_b")
    dx = tf.matmul(grad, weight, transpose_b=not transposed)
    return [dx, ops.contribute(grad, x) if transposed else ops.contribute(x, grad)]


def _rows_gradient(op: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
    row_shape = _tf.gradient_type(op.inputs[0])[1][1:].as_list()
    values = tf.reshape(grad, [-1, *row_shape])
    indices = tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1])
    return [ops.contribute(values, indices), *[None] * (len(op.inputs) - 1)]


def total(kind: str, contributions: tf.Tensor, weight: tf.Tensor, is_dense: bool) -> Any:
    """The gradient itself: a tensor, or IndexedSlices of rows unless it is to be dense."""
    dtype, shape = _tf.gradient_type(weight)
    if kind == PRODUCT:
        x, dy = ops.collect(contributions, (dtype, dtype), (shape[:1], shape[1:]))
        return ops.total(tf.matmul(x, dy, transpose_a=True), contributions)
    values, indices = ops.collect(contributions, (dtype, tf.int64), (shape[1:], tf.TensorShape([])))
    if is_dense:
        return ops.total(tf.math.unsorted_segment_sum(values, indices, shape[0]), contributions)
    _tf.set_size(values.op, _NUM_ROWS, shape[0])
    return tf.IndexedSlices(values, indices, tf.constant(shape.as_list(), tf.int32))


@tf.RegisterGradient(ops.COLLECT)
def _rows_gradient_again(op: tf.Operation, grad: Any, _: Any) -> tf.Tensor:
    """Of rows, for the weight's gradient as a whole, which is what can be differentiated again.

    So what is made of the rows has to depend on their sum alone where several are of one row of the weight.
    """
    indices = op.outputs[1]
    grad = tf.convert_to_tensor(grad)
    whole = tf.math.unsorted_segment_mean(grad, indices, op.get_attr(_NUM_ROWS))
    tolerance = _TOLERANCES[grad.dtype.real_dtype.size] * tf.reduce_max(tf.abs(grad))
    is_off = tf.reduce_any(tf.abs(tf.gather(whole, indices) - grad) > tolerance)  # NaN is not
    message = (
        f"Gradient {op.name!r} of a weight that is gathered from has several rows for one of the weight, which count "
        "differently in what is differentiated; sum them first, by tf.convert_to_tensor of the IndexedSlices"
    )
    with tf.control_dependencies([tf1.Assert(tf.logical_not(is_off), [message])]):
        return tf.identity(whole)
