"""Terms of what gathers or slices parts of a weight: the gradients for these parts, and which ones they are.

The parts are rows of the weight, or of a view of it: an element `w[i, j]` is a row of the weight as a vector.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import tensorflow as tf

from tensorflow_recursion.weight_gradients import weight_views
from tensorflow_recursion.weight_gradients.contributions import Kind
from tensorflow_recursion.weight_gradients.sizes import dims, per, product, product_of, reshaped, sizes_of
from tensorflow_recursion.weight_gradients.terms import SMALL_PART, Term, Terms

_SLICES = ("StridedSlice", "Slice")
_GATHERS = ("GatherV2", "ResourceGather")
_GATHERS_OF_ELEMENTS = ("GatherNd", "ResourceGatherNd")


def of_part(op: tf.Operation, shape: tf.TensorShape) -> Terms | None:
    """The terms of an operator that takes a part of its first input, of static shape `shape`; None if it makes none."""
    if op.inputs[0].dtype == tf.resource and not shape[1:].is_fully_defined():
        return None  # a handle does not tell the sizes of a row
    if op.type in _GATHERS:
        return _of_gather(op, shape)
    if op.type in _GATHERS_OF_ELEMENTS:
        return _of_gather_nd(op, shape)
    return _of_slice(op, shape) if op.type in _SLICES else None


def _of_gather(op: tf.Operation, shape: tf.TensorShape) -> Terms | None:
    axis = tf.get_static_value(op.inputs[2]) if op.type == "GatherV2" else 0
    if axis is None:
        return None
    axis, batch_dims = int(axis) % shape.rank, op.get_attr("batch_dims")
    if axis == 0 and batch_dims == 0:
        return Terms(Kind.ROWS, functools.partial(_rows, shape=shape), shape)
    if batch_dims == 0:
        return _in_front(functools.partial(_rows_of_axis, shape=shape, axis=axis), shape, [axis])
    if batch_dims != axis:
        return None
    return _in_front(functools.partial(_rows_of_batch, shape=shape, axis=axis), shape, list(range(axis + 1)))


def _rows(op: tf.Operation, grad: tf.Tensor, *, shape: tf.TensorShape) -> Term:
    row = sizes_of(op.inputs[0], range(1, shape.rank), shape)
    return reshaped(grad, [None, *row]), tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1])


def _rows_of_axis(op: tf.Operation, grad: tf.Tensor, *, shape: tf.TensorShape, axis: int) -> Term:
    """The term of what is gathered along another axis than the first."""
    sizes = sizes_of(op.inputs[0], range(shape.rank), shape)
    before, after = sizes[:axis], sizes[axis + 1 :]
    count = tf.size(op.inputs[1])
    rows = tf.reshape(grad, [product_of(before), count, product_of(after)])
    indices = tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1])
    return tf.reshape(tf.transpose(rows, [1, 0, 2]), [count, *before, *after]), indices


def _rows_of_batch(op: tf.Operation, grad: tf.Tensor, *, shape: tf.TensorShape, axis: int) -> Term:
    """The term of `tf.gather(..., batch_dims=axis)`: each place of the axes before `axis` has indices of its own."""
    sizes = sizes_of(op.inputs[0], range(shape.rank), shape)
    batch = tf.cast(product_of(sizes[:axis]), tf.int64)
    indices = tf.reshape(tf.cast(op.inputs[1], tf.int64), tf.stack([batch, per(tf.size(op.inputs[1]), batch)]))
    places = tf.range(batch)[:, tf.newaxis] * tf.cast(sizes[axis], tf.int64) + indices
    return reshaped(grad, [None, *sizes[axis + 1 :]]), tf.reshape(places, [-1])


def _of_gather_nd(op: tf.Operation, shape: tf.TensorShape) -> Terms | None:
    """Rows, or what has several indices each: rows of the weight with these axes as one."""
    indices = op.inputs[1].shape
    axes = dims(indices)[-1] if indices.rank else None
    if not axes:
        return None
    if axes == 1 and indices.rank == 2:
        return Terms(Kind.ROWS, functools.partial(_rows, shape=shape), shape)
    if axes > shape.rank:
        return None
    return _in_front(functools.partial(_places, shape=shape), shape, list(range(axes)))


def _places(op: tf.Operation, grad: tf.Tensor, *, shape: tf.TensorShape) -> Term:
    """The term of what GatherNd reads."""
    axes = op.inputs[1].shape.as_list()[-1]
    indices = tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1, axes])
    sizes = sizes_of(op.inputs[0], range(1, shape.rank), shape)
    # How far apart two neighbours on each of the axes are once these axes are one.
    distances = tf.cast(tf.stack([product_of(sizes[i : axes - 1]) for i in range(axes)]), tf.int64)
    return reshaped(grad, [None, *sizes[axes - 1 :]]), tf.reduce_sum(indices * distances, 1)


def _in_front(
    make: Callable[[tf.Operation, tf.Tensor], Term], shape: tf.TensorShape, axes: Sequence[int]
) -> Terms | None:
    """Terms for the view that has some axes of a weight in front, as one; None if there is no step to it."""
    order = [*axes, *(i for i in range(shape.rank) if i not in axes)]
    ordered = [dims(shape)[i] for i in order]
    steps = [weight_views.transposed(order)] if order != sorted(order) else []
    if len(axes) > 1:
        ordered = [product(ordered[: len(axes)]), *ordered[len(axes) :]]
        if ordered.count(None) > 1:
            return None
        steps.append(weight_views.reshaped(ordered))
    return Terms(Kind.SLICES, make, tf.TensorShape(ordered), tuple(steps))


@dataclasses.dataclass(frozen=True)
class _Taken:
    """What a slice takes of one axis.

    Attributes:
      is_one: whether it takes one place, and the result has no such axis.
      is_whole: whether it takes all places.
      entry: where the first place is in the slice's input that says where it begins; None if it is the first of all.
    """

    is_one: bool
    is_whole: bool
    entry: int | None


_WHOLE = _Taken(is_one=False, is_whole=True, entry=None)


def _of_slice(op: tf.Operation, shape: tf.TensorShape) -> Terms | None:
    """The terms of a slice; None if it makes none.

    Examples are `x[i]`, `x[i, ..., j]`, `x[:, i]`, `x[i:j]`, `x[i, None, j:j + 1]` and `tf.slice(x, [i, 0], [1, n])`.
    A range of another axis than the first is taken only if it is small.
    """
    taken = what_is_taken(op, shape)
    if taken is None:
        return None
    ones = [i for i, axis in enumerate(taken) if axis.is_one]
    ranges = [i for i, axis in enumerate(taken) if not axis.is_one and not axis.is_whole]
    axes = [*ones, *ranges]
    if not axes or len(ranges) > 1:
        return None
    if ranges and axes != [0] and not _is_small_range(op, taken, ranges[0], shape):
        return None
    return _in_front(functools.partial(_sliced, shape=shape, taken=taken, ones=ones, ranges=ranges), shape, axes)


def what_is_taken(op: tf.Operation, shape: tf.TensorShape) -> list[_Taken] | None:
    """What a slice takes of each axis of a weight; None if it has other strides, or nobody knows."""
    if op.type == "Slice":
        begins, sizes = (tf.get_static_value(op.inputs[i], partial=True) for i in (1, 2))
        if begins is None or sizes is None:
            return None
        known = zip(begins, sizes, dims(shape), strict=True)
        are_whole = [begin == 0 and size is not None and size in (-1, n) for begin, size, n in known]
        return [_WHOLE if is_whole else _Taken(False, False, i) for i, is_whole in enumerate(are_whole)]
    strides, count = tf.get_static_value(op.inputs[3]), op.inputs[1].shape.num_elements()
    if count is None or strides is None or any(strides != 1):
        return None
    has = {name: _bits(op.get_attr(f"{name}_mask"), count) for name in ("ellipsis", "new_axis", "begin", "end")}
    are_ones = _bits(op.get_attr("shrink_axis_mask"), count)
    mentioned = sum(not has["ellipsis"][i] and not has["new_axis"][i] for i in range(count))
    taken: list[_Taken] = []
    for i in range(count):
        if has["ellipsis"][i]:
            taken += [_WHOLE] * (len(shape) - mentioned)
        elif not has["new_axis"][i]:
            is_whole = has["begin"][i] and has["end"][i] and not are_ones[i]
            begins_before = has["begin"][i] and not are_ones[i]
            taken.append(_WHOLE if is_whole else _Taken(are_ones[i], False, None if begins_before else i))
    return taken + [_WHOLE] * (len(shape) - len(taken))


def _bits(mask: int, count: int) -> list[bool]:
    return [bool(mask >> i & 1) for i in range(count)]


def _is_small_range(op: tf.Operation, taken: Sequence[_Taken], axis: int, shape: tf.TensorShape) -> bool:
    """Whether a range is known to be small beside the weight. Terms are kept until all calls have made theirs."""
    extent = _extent(op, taken, axis, shape)
    size = product([dims(shape)[i] for i, one in enumerate(taken) if not one.is_whole])
    return extent is not None and (size is None or extent * SMALL_PART <= size)


def _extent(op: tf.Operation, taken: Sequence[_Taken], axis: int, shape: tf.TensorShape) -> int | None:
    """How many places a slice takes of an axis, also in `x[i:i + 2]` and `x[i - 2:i]`; None if nobody knows."""
    result, entry = op.outputs[0].shape, taken[axis].entry
    whole = product([dims(shape)[i] for i, one in enumerate(taken) if one.is_whole])
    if whole and result.is_fully_defined():
        return int(result.num_elements() // whole)
    ones = [i for i, one in enumerate(taken) if one.is_one]
    if (
        result.rank == len(taken) - len(ones)
        and (extent := dims(result)[axis - sum(i < axis for i in ones)]) is not None
    ):
        return int(extent)
    ends = [op.inputs[1].op, op.inputs[2].op]
    if entry is None or op.type != "StridedSlice" or any(end.type != "Pack" for end in ends):
        return None
    begin, end = (pack.inputs[entry] for pack in ends)
    found = None
    if end.op.type in ("Add", "AddV2") and any(tensor is begin for tensor in end.op.inputs):
        found = tf.get_static_value(next((tensor for tensor in end.op.inputs if tensor is not begin), begin))
    elif begin.op.type == "Sub" and begin.op.inputs[0] is end:
        found = tf.get_static_value(begin.op.inputs[1])
    return None if found is None else int(found)


def _sliced(
    op: tf.Operation,
    grad: tf.Tensor,
    *,
    shape: tf.TensorShape,
    taken: Sequence[_Taken],
    ones: Sequence[int],
    ranges: Sequence[int],
) -> Term:
    """The term of a slice: the rows of the view that has what is not taken whole in front, and which ones they are.

    A place that is given counts from the end if it is negative.
    """
    index = tf.zeros([], tf.int64)
    sizes = sizes_of(op.inputs[0], range(shape.rank), shape)
    for axis in ones:
        size = tf.cast(sizes[axis], tf.int64)
        place = tf.math.floormod(begin_of(op, taken[axis]), size)
        index = index * size + place if axis != ones[0] else place
    whole = [sizes[i] for i, axis in enumerate(taken) if axis.is_whole]
    if not ranges:
        return tf.reshape(grad, [1, *whole]), tf.reshape(index, [1])
    [axis] = ranges
    if grad.shape.rank is None or ones or grad.shape.rank != len(shape):  # new axes
        grad = reshaped(grad, [None if i == axis else sizes[i] for i in range(len(shape)) if i not in ones])
    place = sum(i not in ones for i in range(axis))
    if place:
        grad = tf.transpose(grad, [place, *(i for i in range(grad.shape.rank) if i != place)])
    size = tf.cast(sizes[axis], tf.int64)
    begin = begin_of(op, taken[axis])
    begin = tf.clip_by_value(tf.where(begin < 0, begin + size, begin), 0, size)
    places = begin + tf.range(tf.shape(grad, tf.int64)[0])
    return grad, index * size + places if ones else places


def of_sparse_product(op: tf.Operation, shape: tf.TensorShape) -> Terms | None:
    """Those of the dense factor of a product of a sparse matrix and a weight: a multiple of a row for each entry.

    Where the matrix has more entries than the weight has rows, a term is the sum of these rows, for all rows.
    """
    if op.get_attr("adjoint_b") or op.inputs[-1].dtype.is_complex or shape.rank != 2:
        return None
    return Terms(Kind.SLICES, functools.partial(_rows_of_entries, shape=shape), shape)


def _rows_of_entries(op: tf.Operation, grad: tf.Tensor, *, shape: tf.TensorShape) -> Term:
    entries, values, sparse_shape, weight = op.inputs
    is_adjoint = op.get_attr("adjoint_a")
    of_result, of_weight = (1, 0) if is_adjoint else (0, 1)
    [count] = sizes_of(weight, [0], shape)

    def one_for_each() -> Term:
        rows = tf.gather(grad, entries[:, of_result]) * values[:, tf.newaxis]
        return rows, tf.cast(entries[:, of_weight], tf.int64)

    def summed() -> Term:
        matrix = tf.SparseTensor(tf.cast(entries, tf.int64), values, tf.cast(sparse_shape, tf.int64))
        rows = tf.sparse.sparse_dense_matmul(matrix, grad, adjoint_a=not is_adjoint)
        return rows, tf.range(tf.cast(count, tf.int64))

    term: Term = tf.cond(tf.shape(entries)[0] <= count, one_for_each, summed)
    return term


def begin_of(op: tf.Operation, taken: _Taken) -> tf.Tensor:
    """The first place that a slice takes of an axis, as it was given."""
    return tf.zeros([], tf.int64) if taken.entry is None else tf.cast(op.inputs[1][taken.entry], tf.int64)
