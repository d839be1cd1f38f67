"""Gradients of weights, summed once instead of in every frame.

A weight that a recursion captures or passes on is used by every frame, so its gradient is a sum over all frames. Where
all bodies use it in one way, what the frames hand up is the list of terms, not computed: pairs (x, dy) of a product
x W, whose gradients add up to one product of all x, stacked, and all dy; or pairs (values, indices) of rows that were
gathered, which are the IndexedSlices of the whole. Whoever asked for the gradient from outside computes it, and so
does a body that passes on something else than what it was given.

This is safe because it concerns only terms that `tf.gradients` makes anyway: an operator that uses the weight gets a
gradient function that wraps what its own would compute. A weight that is used in any other way is left alone.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import functools
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles, nodes
from tensorflow_recursion._tf.typed import registered_gradient

tf1 = tf.compat.v1

_NUM_ROWS = "_num_rows"
# How far two numbers that ought to be equal may differ by rounding, as a part of the largest one; by their size in
# bytes.
_TOLERANCES = {2: 0.1, 4: 1e-3, 8: 1e-7}


class Kind(enum.Enum):
    """What the terms of a weight's gradient are."""

    PRODUCT = enum.auto()  # pairs (x, dy) of a product x W
    ROWS = enum.auto()  # pairs (values, indices) of rows that were gathered
    OTHER = enum.auto()  # nothing that can be collected


def can_be(kind: Kind, weight: tf.Tensor) -> bool:
    """Whether a weight's gradient can be collected from terms of this kind: its shape must be known."""
    _, shape = handles.gradient_type(weight)
    if kind is Kind.OTHER or not shape.is_fully_defined():
        return False
    return bool(shape.rank == 2 if kind is Kind.PRODUCT else shape.rank >= 1)


def contribute_from(op: tf.Operation, kind: Kind, weight: tf.Tensor) -> None:
    """Let the gradient function of `op`, a use of this kind, hand out a term for the weight.

    `op` may read what stands for the weight in a branch, of which less is known than of the weight.
    """
    _, shape = handles.gradient_type(weight)
    rows = functools.partial(_rows_gradient, row_shape=shape[1:].as_list())
    nodes.set_gradient_function(op, _product_gradient if kind is Kind.PRODUCT else rows)


def _product_gradient(op: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
    x, weight = (tf.math.conj(tensor) for tensor in op.inputs)
    transposed = op.get_attr("transpose_b")
    dx = tf.matmul(grad, weight, transpose_b=not transposed)
    return [dx, ops.contribute(grad, x) if transposed else ops.contribute(x, grad)]


def _rows_gradient(op: tf.Operation, grad: tf.Tensor, *, row_shape: list[int]) -> list[tf.Tensor | None]:
    values = tf.reshape(grad, [-1, *row_shape])
    indices = tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1])
    return [ops.contribute(values, indices), *[None] * (len(op.inputs) - 1)]


def total(kind: Kind, contributions: tf.Tensor, weight: tf.Tensor, is_dense: bool) -> Any:
    """The gradient for a weight, the sum of its contributions: a tensor, or IndexedSlices of rows unless `is_dense`."""
    dtype, shape = handles.gradient_type(weight)
    if kind is Kind.PRODUCT:
        x, dy = ops.collect(contributions, (dtype, dtype), (shape[:1], shape[1:]))
        return ops.total(tf.matmul(x, dy, transpose_a=True), contributions)
    values, indices = ops.collect(contributions, (dtype, tf.int64), (shape[1:], tf.TensorShape([])))
    if is_dense or shape[0] is None:  # as where branches give gradients of unequal shapes for it
        num_rows = tf.shape(handles.zeros_for(weight))[0] if shape[0] is None else shape[0]
        return ops.total(tf.math.unsorted_segment_sum(values, indices, num_rows), contributions)
    nodes.set_attribute(values.op, _NUM_ROWS, tf1.AttrValue(i=shape[0]))
    return tf.IndexedSlices(values, indices, tf.constant(shape.as_list(), tf.int32))


@registered_gradient(names.COLLECT)
def _rows_gradient_again(op: tf.Operation, grad: Any, _: Any) -> tf.Tensor:
    """The gradient for the contributions of a gathered weight, from the gradient `grad` for the rows made of them.

    Several rows may belong to one row of the weight. Only their sum has a gradient, so `grad` must be the same for all
    of them, as it is where they are only summed. It is not in `tf.square(rows.values)`, for example; then the run
    fails.
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
