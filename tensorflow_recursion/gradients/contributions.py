"""Gradients of weights, summed once instead of in every frame.

A weight that a recursion captures or passes on is used by every frame, so its gradient is a sum over all frames. Where
all bodies use it in one way, what the frames hand up is the list of terms, not computed: pairs (x, dy) of a product
x W, whose gradients add up to one product of all x, stacked, and all dy (of W x both are transposed); or pairs
(values, indices) of rows that were gathered, which are the IndexedSlices of the whole. Whoever asked for the gradient
from outside computes it, and so does a body that passes on something else than what it was given.

This is safe because it concerns only terms that `tf.gradients` makes anyway: an operator that uses the weight gets a
gradient function that wraps what its own would compute. A weight that is used in any other way is left alone.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles, nodes
from tensorflow_recursion._tf.typed import registered_gradient

tf1 = tf.compat.v1

_NUM_ROWS = "_num_rows"
# An attribute of a product in Python: which of its inputs are weights.
_WEIGHTS = "_recursion_weights"
# How far two numbers that ought to be equal may differ by rounding, as a part of the largest one; by their size in
# bytes.
_TOLERANCES = {2: 0.1, 4: 1e-3, 8: 1e-7}


class Kind(enum.Enum):
    """What the terms of a weight's gradient are."""

    PRODUCT = enum.auto()  # pairs (x, dy) of a product x W or W x
    ROWS = enum.auto()  # pairs (values, indices) of rows that were gathered
    SLICES = enum.auto()  # the same of rows that were sliced, maybe besides; as for TensorFlow, the sum is dense
    OTHER = enum.auto()  # nothing that can be collected

    def with_other(self, other: Kind) -> Kind:
        """What they are where some are of another kind."""
        if self is other:
            return self
        return Kind.SLICES if {self, other} == {Kind.ROWS, Kind.SLICES} else Kind.OTHER


def can_be(kind: Kind, weight: tf.Tensor) -> bool:
    """Whether a weight's gradient can be collected from terms of this kind: its shape, or that of a row, is known."""
    _, shape = handles.gradient_type(weight)
    if kind is Kind.OTHER or shape.rank is None:
        return False
    if kind is Kind.PRODUCT:
        return bool(shape.rank == 2 and shape.num_elements())
    return bool(shape.rank >= 1 and shape[1:].is_fully_defined())


def contribute_from(op: tf.Operation, position: int, kind: Kind, weight: tf.Tensor) -> None:
    """Let the gradient function of `op`, which reads the weight as its input `position`, hand out a term for it.

    What it reads may stand for the weight in a branch, of which less is known than of the weight.
    """
    _, shape = handles.gradient_type(weight)
    if kind is Kind.SLICES:
        gradient = functools.partial(_row_gradient, shape=shape.as_list())
    elif kind is Kind.ROWS:
        gradient = functools.partial(_rows_gradient, row_shape=shape[1:].as_list())
    else:
        weights = {**getattr(op, _WEIGHTS, {}), position: shape.as_list()}  # both inputs of a product may be weights
        setattr(op, _WEIGHTS, weights)
        gradient = functools.partial(_product_gradient, weights=weights)
    nodes.set_gradient_function(op, gradient)


def _product_gradient(
    op: tf.Operation, grad: tf.Tensor, *, weights: Mapping[int, Sequence[int]]
) -> list[tf.Tensor | None]:
    """Gradients of a product of two matrices, or of a batch of products with one weight, which may be transposed.

    Each input in `weights`, which says what shape it has, gets a term.
    """
    return [
        _term(op, grad, position, weights[position]) if position in weights else _dense(op, grad, position)
        for position in (0, 1)
    ]


def _term(op: tf.Operation, grad: tf.Tensor, position: int, shape: Sequence[int]) -> tf.Tensor:
    """The term of a matrix is a pair of which the product is its gradient once the first of the two is transposed."""
    x = tf.math.conj(op.inputs[1 - position])
    are_transposed = _are_transposed(op)
    if are_transposed[1 - position] == bool(position):
        x = _transposed(x)
    pair = (x, grad) if position == 1 else (_transposed(grad), x)
    if are_transposed[position]:
        pair = pair[1], pair[0]
    if op.type != "MatMul":
        pair = tf.reshape(pair[0], [-1, shape[0]]), tf.reshape(pair[1], [-1, shape[1]])
    return ops.contribute(*pair)


def _dense(op: tf.Operation, grad: tf.Tensor, position: int) -> tf.Tensor:
    """The gradient for a factor that is no weight."""
    other = tf.math.conj(op.inputs[1 - position])
    of_a, of_b = _are_transposed(op)
    if position == 0:
        if of_a:
            return tf.matmul(other, grad, transpose_a=of_b, transpose_b=True)
        return tf.matmul(grad, other, transpose_b=not of_b)
    if of_b:
        return tf.matmul(grad, other, transpose_a=True, transpose_b=of_a)
    return tf.matmul(other, grad, transpose_a=not of_a)


def _are_transposed(op: tf.Operation) -> tuple[bool, bool]:
    first, second = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    return op.get_attr(first), op.get_attr(second)


def _transposed(matrix: tf.Tensor) -> tf.Tensor:
    """A matrix, or a batch, transposed; a row or a column, which is much the same in memory, without copying it."""
    if matrix.shape.rank == 2 and 1 in matrix.shape.as_list():
        return tf.reshape(matrix, [-1, 1] if matrix.shape[0] == 1 else [1, -1])
    return tf.linalg.matrix_transpose(matrix)


def _rows_gradient(op: tf.Operation, grad: tf.Tensor, *, row_shape: list[int]) -> list[tf.Tensor | None]:
    values = tf.reshape(grad, [-1, *row_shape])
    indices = tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1])
    return [ops.contribute(values, indices), *[None] * (len(op.inputs) - 1)]


def _row_gradient(op: tf.Operation, grad: tf.Tensor, *, shape: list[int | None]) -> list[tf.Tensor | None]:
    """Gradients of `x[i]` for x, which has a `shape`, and i, which counts from the end if it is negative."""
    num_rows = tf.shape(op.inputs[0], tf.int64)[0] if shape[0] is None else shape[0]
    index = tf.math.floormod(tf.cast(op.inputs[1][:1], tf.int64), num_rows)
    return [ops.contribute(tf.reshape(grad, [1, *shape[1:]]), index), None, None, None]


def total(kind: Kind, contributions: tf.Tensor, weight: tf.Tensor, is_dense: bool) -> Any:
    """The gradient for a weight, the sum of its contributions: a tensor, or IndexedSlices where it may be sparse."""
    dtype, shape = handles.gradient_type(weight)
    if kind is Kind.PRODUCT:
        x, dy = ops.collect(contributions, (dtype, dtype), (shape[:1], shape[1:]))
        return ops.total(tf.matmul(x, dy, transpose_a=True), contributions)
    values, indices = ops.collect(contributions, (dtype, tf.int64), (shape[1:], tf.TensorShape([])))
    if is_dense or kind is Kind.SLICES or shape[0] is None:  # as where branches give gradients of unequal shapes for it
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
