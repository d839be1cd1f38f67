"""Gradients of weights, summed once instead of in every frame.

A weight that a recursion captures or passes on is used by every frame, so its gradient is a sum over all frames. Where
all uses of it are of certain kinds, what the frames hand up is the list of terms, not computed: pairs (x, dy) of a
product x W, whose gradients add up to one product of all x, stacked, and all dy (of W x both are transposed); or pairs
(values, indices) of rows that were gathered, which are the IndexedSlices of the whole. Whoever asked for the gradient
from outside computes it, and so does a body that passes on something else than what it was given.

A weight may be used in several ways: as a factor, by its rows, transposed. Then its gradient has several parts, and
each term says by a number which of them it belongs to.

This is safe because it concerns only terms that `tf.gradients` makes anyway: an operator that uses the weight gets a
gradient function that wraps what its own would compute. A weight that is used in any other way is left alone.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles, nodes
from tensorflow_recursion._tf.typed import registered_gradient
from tensorflow_recursion.weight_gradients import gradients_of_sums, weight_views
from tensorflow_recursion.weight_gradients.sizes import dims, sizes_of
from tensorflow_recursion.weight_gradients.weight_views import Step

tf1 = tf.compat.v1

_NUM_ROWS = "_num_rows"
# How far two numbers that ought to be equal may differ by rounding, as a part of the largest one; by their size in
# bytes.
_TOLERANCES = {2: 0.1, 4: 1e-3, 8: 1e-7}


class Kind(enum.Enum):
    """What the terms of a weight's gradient are."""

    PRODUCT = enum.auto()  # pairs (x, dy) of a product x W or W x
    BATCH_PRODUCT = enum.auto()  # the same of a batch of products x[k] W[k], for all k at once
    ROW_PRODUCT = enum.auto()  # the same of a product x W[k]; x has a column more, which says k
    ROWS = enum.auto()  # pairs (values, indices) of rows that were gathered
    SLICES = enum.auto()  # the same of rows that were sliced; as for TensorFlow, the sum is dense
    OTHER = enum.auto()  # nothing that can be collected


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a weight's gradient, of which all terms are alike: they come from uses of one kind of the same view.

    Attributes:
      kind: what the terms are.
      steps: the operators that make the view of the weight; none if the weight itself is used.
    """

    kind: Kind
    steps: tuple[Step, ...] = ()


def can_be(kind: Kind, shape: tf.TensorShape) -> bool:
    """Whether a gradient of a static shape, which may be open, can be collected from terms of this kind."""
    if kind is Kind.OTHER or shape.rank is None:
        return False
    if kind in (Kind.ROWS, Kind.SLICES):
        return bool(shape.rank >= 1)
    if kind is Kind.ROW_PRODUCT and not shape.is_fully_defined():
        return False
    return bool(shape.rank == (2 if kind is Kind.PRODUCT else 3) and shape.num_elements() != 0)


def total(parts: Mapping[Part, int], contributions: tf.Tensor, weight: tf.Tensor, is_dense: bool) -> Any:
    """The gradient for a weight, the sum of its contributions: a tensor, or IndexedSlices where it may be sparse.

    `parts` are the parts of it, with their numbers.
    """
    _, shape = handles.gradient_type(weight)
    if set(parts) == {Part(Kind.ROWS)} and not is_dense and shape.is_fully_defined():
        values, indices = _collected_rows(contributions, parts[Part(Kind.ROWS)], *handles.gradient_type(weight))
        nodes.set_attribute(values.op, _NUM_ROWS, tf1.AttrValue(i=shape[0]))
        return tf.IndexedSlices(values, indices, tf.constant(shape.as_list(), tf.int32))
    of_parts = [_sum(part, number, contributions, weight) for part, number in parts.items()]
    return ops.total(of_parts[0] if len(of_parts) == 1 else tf.add_n(of_parts), contributions)


def _sum(part: Part, number: int, contributions: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """A part of the gradient for a weight.

    Terms of two bytes are added up in four, as rounding would lose what comes after some hundreds of them. The step
    from the view to the weight is then one in four bytes, too: only the whole gradient has to fit the weight's dtype.
    """
    dtype, shape = handles.gradient_type(weight)
    if not part.steps:
        zeros = None if shape.is_fully_defined() else handles.zeros_for(weight)
        return tf.cast(_sum_of_view(part.kind, number, contributions, dtype, shape, zeros), dtype)
    like = tf.zeros(shape, dtype) if shape.is_fully_defined() else handles.zeros_for(weight)
    view = weight_views.view(like, part.steps)
    grad = _sum_of_view(part.kind, number, contributions, view.dtype, view.shape, view)
    if grad.dtype != view.dtype:
        like = tf.cast(like, grad.dtype)
        view = weight_views.view(like, weight_views.of_dtype(part.steps, grad.dtype))
    return tf.cast(tf1.gradients([view], [like], [grad])[0], dtype)


def _sum_of_view(
    kind: Kind, number: int, contributions: tf.Tensor, dtype: tf.DType, shape: tf.TensorShape, like: tf.Tensor | None
) -> tf.Tensor:
    """The gradient for a view of a dtype; `like` has its dimensions where these are open."""
    if kind is Kind.PRODUCT:
        return tf.matmul(*_collected_factors(contributions, number, dtype, shape, like, [[0], [1]]), transpose_a=True)
    if kind is Kind.BATCH_PRODUCT:
        x, dy = _collected_factors(contributions, number, dtype, shape, like, [[0, 1], [0, 2]])
        return tf.einsum("rki,rkj->kij", x, dy)
    if kind is Kind.ROW_PRODUCT:
        x, dy = ops.collect(contributions, (dtype, dtype), (tf.TensorShape([shape[1] + 1]), shape[2:]), number)
        rows = tf.cast(x[:, -1], tf.int32)
        of_rows = zip(
            tf.dynamic_partition(x[:, :-1], rows, shape[0]), tf.dynamic_partition(dy, rows, shape[0]), strict=True
        )
        return tf.stack([tf.matmul(x, dy, transpose_a=True) for x, dy in of_rows])
    values, indices = _collected_rows(contributions, number, dtype, shape)
    if not shape[1:].is_fully_defined():
        values = tf.reshape(values, [tf.shape(values)[0], *sizes_of(like, range(1, shape.rank))])
    [num_rows] = dims(shape[:1])
    num_rows = tf.shape(like)[0] if num_rows is None else num_rows
    return tf.math.unsorted_segment_sum(_summable(values), indices, num_rows)


def _summable(terms: tf.Tensor) -> tf.Tensor:
    """Terms of a dtype in which many can be added up."""
    return tf.cast(terms, tf.float32) if terms.dtype.is_floating and terms.dtype.size < tf.float32.size else terms


def _collected_factors(
    contributions: tf.Tensor,
    number: int,
    dtype: tf.DType,
    shape: tf.TensorShape,
    like: tf.Tensor | None,
    axes: Sequence[Sequence[int]],
) -> list[tf.Tensor]:
    """The factors of products, summable ones; rows of the first and of the second have the sizes of these `axes`.

    Those are axes of the view. Without a term, Collect knows nothing of sizes that are open.
    """
    shapes = [tf.TensorShape([dims(shape)[i] for i in of_rows]) for of_rows in axes]
    found = ops.collect(contributions, (dtype, dtype), (shapes[0], shapes[1]), number)
    return [
        _summable(rows if row.is_fully_defined() else tf.reshape(rows, [tf.shape(rows)[0], *sizes_of(like, of_rows)]))
        for rows, row, of_rows in zip(found, shapes, axes, strict=True)
    ]


def _collected_rows(contributions: tf.Tensor, number: int, dtype: tf.DType, shape: tf.TensorShape) -> list[tf.Tensor]:
    return ops.collect(contributions, (dtype, tf.int64), (shape[1:], tf.TensorShape([])), number)


@registered_gradient(names.COLLECT)
def _rows_gradient_again(op: tf.Operation, grad: Any, _: Any) -> tf.Tensor | None:
    """The gradient for the contributions of a gathered weight, from the gradient `grad` for the rows made of them.

    Contributions that become a dense sum have their gradient from that sum (`gradients_of_sums`). TensorFlow asks here
    all the same, with zeros, where a loop or a function keeps such contributions: then there is no gradient.

    Several rows may belong to one row of the weight. Only their sum has a gradient, so `grad` must be the same for all
    of them, as it is where they are only summed. It is not in `tf.square(rows.values)`, for example; then the run
    fails.
    """
    if _NUM_ROWS not in op.node_def.attr:
        return None
    indices = op.outputs[1]
    grad = tf.convert_to_tensor(grad)
    whole = _mean_of_rows(grad, indices, op.get_attr(_NUM_ROWS))
    tolerance = _TOLERANCES[grad.dtype.real_dtype.size] * tf.reduce_max(tf.abs(grad))
    is_off = tf.reduce_any(tf.abs(tf.gather(whole, indices) - grad) > tolerance)  # NaN is not
    message = (
        f"Gradient {op.name!r} of a weight that is gathered from has several rows for one of the weight, which count "
        "differently in what is differentiated; sum them first, by tf.convert_to_tensor of the IndexedSlices"
    )
    with tf.control_dependencies([tf1.Assert(tf.logical_not(is_off), [message])]):
        return gradients_of_sums.for_terms(tf.identity(whole))


def _mean_of_rows(rows: tf.Tensor, indices: tf.Tensor, num_rows: int) -> tf.Tensor:
    """The mean of the rows that have an index, for each index.

    `tf.math.unsorted_segment_mean` takes no complex numbers, and counts in the dtype of the rows: in bfloat16 to 256.
    """
    counts = tf.math.unsorted_segment_sum(tf.ones_like(indices), indices, num_rows)
    counts = tf.reshape(tf.maximum(counts, 1), tf.concat([[num_rows], tf.ones([tf.rank(rows) - 1], tf.int32)], 0))
    sums_of_rows = tf.math.unsorted_segment_sum(_summable(rows), indices, num_rows)
    return tf.cast(sums_of_rows / tf.cast(counts, sums_of_rows.dtype), rows.dtype)
