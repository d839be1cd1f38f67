"""Which terms operators make of the gradients for weights that they read, and how they make them.

An operator that uses a weight gets a gradient function that hands out what its own would multiply or scatter:

- a product x W the matrices x and dy, of which the product is the gradient once the first of them is transposed; of a
  stack of matrices W, a stack of each;
- what gathers or slices rows the gradients for these rows, and which ones they are.

Other uses are brought into one of these forms by a view of the weight: that of an element `w[i, j]` is one of a row of
the weight as a vector.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import nodes
from tensorflow_recursion.gradients import weight_views
from tensorflow_recursion.gradients.contributions import Kind
from tensorflow_recursion.gradients.weight_views import Step

_PRODUCTS_OF_BATCHES = ("BatchMatMulV2", "BatchMatMulV3")
_PRODUCTS = ("MatMul", *_PRODUCTS_OF_BATCHES)
_SLICES = ("StridedSlice", "Slice")
_ELEMENTS_OF_A_SMALL_TERM = 1000
# A view is small beside a weight that has this many times its elements.
_SMALL_PART = 4
# The gradient for a stack of more matrices is made of those for the matrices that are picked from it.
_MOST_MATRICES = 64
# A batch of products of tensors with more axes has a dense gradient.
_MOST_AXES = 13
# An attribute of an operation in Python: which terms it makes, by the position of the weight.
_TERMS = "_recursion_terms"

# The two tensors of a term, made from the gradient for what the operator returns.
_Pair: TypeAlias = tuple[tf.Tensor, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Terms:
    """The terms that an operator makes of the gradient for one of its inputs.

    Attributes:
      kind: what they are.
      make: makes one.
      shape: the static shape of what they are terms for: of the input, or of a view of it.
      steps: to that view.
    """

    kind: Kind
    make: Callable[[tf.Operation, tf.Tensor], _Pair]
    shape: tf.TensorShape
    steps: tuple[Step, ...] = ()


def find(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """The terms that `op` makes for its input `position`, of which the static `shape` is known; None if there are none.

    What it reads may stand for the weight in a branch, of which less is known than of the weight.
    """
    if op.type in _PRODUCTS:
        return _of_product(op, position, shape)
    if op.type == "Einsum":
        return _of_einsum(op, position, shape)
    if op.type == "ResourceGather" and op.get_attr("batch_dims") == 0:
        return Terms(Kind.ROWS, functools.partial(_rows, row_shape=shape[1:].as_list()), shape)
    if op.type == "GatherV2" and position == 0 and op.get_attr("batch_dims") == 0:
        return _of_gather(op, shape)
    if op.type in ("ResourceGatherNd", "GatherNd") and position == 0:
        return _of_gather_nd(op, shape)
    if op.type in _SLICES and position == 0:
        return _of_slice(op, shape)
    return None


def find_whole(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """The terms for a view that `op` makes, a column for example, that is small beside what it is made of.

    Whatever uses the view, its own gradient is one row of a matrix, of which all calls have the same.
    """
    made = list(weight_views.views(op, position))
    if len(made) != 1 or len(op.outputs) != 1:
        return None
    view, step = made[0]
    size = view.shape.num_elements()
    if not size or not shape.is_fully_defined() or size * _SMALL_PART > shape.num_elements():
        return None
    row = tf.TensorShape([1, size])
    return Terms(Kind.SLICES, _whole, row, (step, weight_views.reshaped(row.as_list())))


def _whole(op: tf.Operation, grad: tf.Tensor) -> _Pair:
    return tf.reshape(grad, [1, op.outputs[0].shape.num_elements()]), tf.zeros([1], tf.int64)


def find_of_row(op: tf.Operation, position: int, shape: tf.TensorShape) -> dict[tuple[tf.Operation, int], Terms] | None:
    """The terms of all products with a matrix that `op` picks from a stack of them, in `x @ w[k]` for example.

    None if it picks no matrix, or if that is used in another way. Keys are the products, and which factor it is.
    """
    if shape.rank != 3 or not shape.is_fully_defined() or shape[0] > _MOST_MATRICES:
        return None
    if not _picks_row(op, position, shape):
        return None
    matrix = op.outputs[0]
    if matrix.dtype not in (tf.float32, tf.float64):  # those of sixteen bits would round the matrix's number
        return None
    found = {}
    for reader in matrix.consumers():
        for i, source in enumerate(reader.inputs):
            if source is matrix:
                if reader.type != "MatMul" or not _has_few_rows(reader, i):
                    return None
                make = functools.partial(_factors_of_row, position=i, shape=shape.as_list(), picker=op)
                found[reader, i] = Terms(Kind.ROW_PRODUCT, make, shape)
    return found


def _picks_row(op: tf.Operation, position: int, shape: tf.TensorShape) -> bool:
    """Whether `op` takes one row of its input, by a number."""
    if op.type == "ResourceGather" or (
        op.type == "GatherV2" and position == 0 and tf.get_static_value(op.inputs[2]) == 0
    ):
        return bool(op.inputs[1].shape.rank == 0 and op.get_attr("batch_dims") == 0)
    if op.type != "StridedSlice" or position > 0 or op.get_attr("new_axis_mask"):
        return False
    taken = _taken(op, shape)
    return taken is not None and taken[0].is_one and all(axis.is_whole for axis in taken[1:])


def _factors_of_row(
    op: tf.Operation, grad: tf.Tensor, *, position: int, shape: Sequence[int], picker: tf.Operation
) -> _Pair:
    """The term of a product with row k of a stack: the pair of the product, with a column more that says k."""
    first, second = _factors(op, grad, position=position, shape=shape[1:])
    taken = _taken(picker, shape) if picker.type == "StridedSlice" else None
    index = tf.cast(picker.inputs[1], tf.int64) if taken is None else _begin(picker, taken[0])
    row = tf.math.floormod(index, shape[0])
    rows = tf.fill([tf.shape(first)[0], 1], tf.cast(row, first.dtype))
    return tf.concat([first, rows], 1), second


def contribute_from(op: tf.Operation, position: int, terms: Terms, part: int) -> None:
    """Let the gradient function of `op`, which reads a weight as its input `position`, hand out a term for it.

    Args:
      op: the operator.
      position: of the weight.
      terms: what `find` has found.
      part: the number of the part of the gradient that they belong to.
    """
    known = {**getattr(op, _TERMS, {}), position: (terms, part)}  # both inputs of a product may be weights
    setattr(op, _TERMS, known)
    nodes.set_gradient_function(op, functools.partial(_gradient, terms=known))


def _gradient(op: tf.Operation, grad: Any, *, terms: Mapping[int, tuple[Terms, int]]) -> list[tf.Tensor | None]:
    grad = tf.convert_to_tensor(grad)  # IndexedSlices where rows are gathered from what `op` returns
    found = []
    for position in range(len(op.inputs)):
        if position in terms:
            of_weight, part = terms[position]
            found.append(ops.contribute(*of_weight.make(op, grad), part))
        elif op.type == "MatMul" or (op.type in _PRODUCTS and op.inputs[1 - position].shape.rank == 2):
            found.append(_dense(op, grad, position))
        elif op.type in (*_PRODUCTS, "Einsum"):
            found.append(nodes.registered_gradients(op, grad)[position])
        else:
            found.append(None)
    return found


def _is_small(size: int, weight: tf.TensorShape) -> bool:
    """Whether a term of so many elements is no larger than the weight, or small.

    Terms are kept until all calls have made theirs. A product of two weights, `u @ v`, makes larger ones.
    """
    return bool(size <= max(weight.num_elements(), _ELEMENTS_OF_A_SMALL_TERM))


# -- Products ----------------------------------------------------------------------------------------------------------


def _of_product(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    if op.type in _PRODUCTS_OF_BATCHES:
        if op.inputs[position].dtype.is_complex:
            return None  # they conjugate what they transpose
        if shape.rank != 2:
            return _of_stack(op, position, shape)
    if not _has_few_rows(op, position):
        return None
    return Terms(Kind.PRODUCT, functools.partial(_factors, position=position, shape=shape.as_list()), shape)


def _has_few_rows(op: tf.Operation, position: int) -> bool:
    """Whether a term of a product is small; of x W with an open number of rows it is.

    Those of W x are transposed copies besides, which do not pay for an x of many columns.
    """
    weight, result = op.inputs[position].shape, op.outputs[0].shape
    if not (weight.is_fully_defined() and result.is_fully_defined()):
        return position == 1 or result.rank is None or result[-1] is not None
    of_weight = result[-1 if position == 1 else -2]
    rows = result.num_elements() // max(of_weight, 1)  # of x in x W; columns of x in W x
    return _is_small(rows * sum(weight.as_list()), weight)


def _factors(op: tf.Operation, grad: tf.Tensor, *, position: int, shape: Sequence[int]) -> _Pair:
    """The term of a factor of a product of matrices, or of a batch of products, which may be transposed."""
    x = tf.math.conj(op.inputs[1 - position])
    are_transposed = _are_transposed(op)
    if are_transposed[1 - position] == bool(position):
        x = _transposed(x)
    pair = (x, grad) if position == 1 else (_transposed(grad), x)
    if are_transposed[position]:
        pair = pair[1], pair[0]
    if op.type != "MatMul":
        pair = tf.reshape(pair[0], [-1, shape[0]]), tf.reshape(pair[1], [-1, shape[1]])
    return pair


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


def _of_einsum(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """Those of a product of a weight and one tensor, `...i,ij->...j` or `bki,kij->bkj` for example."""
    factors, _, result = op.get_attr("equation").decode().replace(" ", "").partition("->")
    axes = factors.split(",")
    if len(axes) != 2 or not shape.is_fully_defined() or op.inputs[position].dtype.is_complex:
        return None
    of_weight, of_x, rank = axes[position], axes[1 - position], op.inputs[1 - position].shape.rank
    if "..." in of_x and rank is not None:
        unused = [axis for axis in string.ascii_letters if axis not in factors]
        unnamed = "".join(unused[: rank - len(of_x.replace("...", ""))])
        of_x, result = of_x.replace("...", unnamed), result.replace("...", unnamed)
    if "." in of_weight + of_x:
        return None
    return _by_axes(op, position, shape, (of_weight, of_x, result))


def _of_stack(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """Those of a batch of products with a weight that is a stack of matrices.

    A factor is repeated along an axis of the batch that it has not, or of which it has a single place.
    """
    x = op.inputs[1 - position].shape
    if x.rank is None or not x[:-2].is_fully_defined() or not shape.is_fully_defined():
        return None
    sizes = [shape.as_list(), x.as_list()] if position == 0 else [x.as_list(), shape.as_list()]
    rank = max(shape.rank, x.rank)
    if rank > _MOST_AXES:
        return None
    *batch, row, inner, column = list(string.ascii_lowercase[: rank + 1])
    padded = [[1] * (rank - len(one)) + one for one in sizes]
    factors = []
    for i, matrix in enumerate((row + inner, inner + column)):
        others = string.ascii_uppercase[i * _MOST_AXES :]  # for axes that are none of the result
        is_repeated = [padded[i][k] == 1 != padded[1 - i][k] for k in range(rank - 2)]
        of_batch = [others[k] if is_repeated[k] else batch[k] for k in range(rank - len(sizes[i]), rank - 2)]
        factors.append("".join(of_batch) + (matrix[::-1] if _are_transposed(op)[i] else matrix))
    return _by_axes(op, position, shape, (factors[position], factors[1 - position], "".join([*batch, row, column])))


def _by_axes(op: tf.Operation, position: int, shape: tf.TensorShape, axes: tuple[str, str, str]) -> Terms | None:
    """Those of a product in which each axis has a letter; `axes` are those of the weight, of x and of the result.

    Each axis of the weight is one of x too, or of the result, or of both, and no axis of these is lost or repeated, but
    those of size 1. The weight is a matrix once its axes are ordered by that, or a stack of matrices.
    """
    of_weight, of_x, result = axes
    if any(len(set(one)) < len(one) for one in axes):
        return None
    x = op.inputs[1 - position].shape
    sizes: dict[str, int | None] = {axis: x[i] if x.rank is not None else None for i, axis in enumerate(of_x)}
    sizes.update(zip(of_weight, shape.as_list(), strict=True))
    stack = [axis for axis in of_weight if axis in of_x and axis in result]
    inner = [axis for axis in of_weight if axis in of_x and axis not in result]
    outer = [axis for axis in of_weight if axis not in of_x]
    rows = [axis for axis in of_x if axis not in of_weight]
    if any(sizes[axis] != 1 for axis in (*outer, *rows) if axis not in result):
        return None
    matrices = [math.prod(sizes[axis] or 0 for axis in group) for group in (stack, inner, outer)]
    if not _are_small(x, matrices, shape) or not set(result) <= {*stack, *rows, *outer}:
        return None
    view = matrices if stack else matrices[1:]
    order = [of_weight.index(axis) for axis in (*stack, *inner, *outer)]
    steps = [weight_views.transposed(order)] if order != sorted(order) else []
    if view != [shape[i] for i in order]:
        steps.append(weight_views.reshaped(view))
    make = functools.partial(
        _factors_by_axes,
        position=position,
        orders=(
            [of_x.index(axis) for axis in (*rows, *stack, *inner)],
            [result.index(axis) for axis in (*rows, *stack, *outer) if axis in result],
        ),
        sizes=([*view[:-2], view[-2]], [*view[:-2], view[-1]]),
    )
    return Terms(Kind.BATCH_PRODUCT if stack else Kind.PRODUCT, make, tf.TensorShape(view), tuple(steps))


def _are_small(x: tf.TensorShape, matrices: Sequence[int], weight: tf.TensorShape) -> bool:
    """Whether a term is small; `matrices` is the weight as a stack: how many, and of which size.

    Those of an open number of rows are. A stack of vectors, of which terms are as large as the weight, is none.
    """
    count, inner, outer = matrices
    if count > 1 and min(inner, outer) == 1:
        return False
    return x.num_elements() is None or _is_small(
        x.num_elements() // max(count * inner, 1) * count * (inner + outer), weight
    )


def _factors_by_axes(
    op: tf.Operation,
    grad: tf.Tensor,
    *,
    position: int,
    orders: tuple[Sequence[int], Sequence[int]],
    sizes: tuple[Sequence[int], Sequence[int]],
) -> _Pair:
    x, dy = (
        tf.reshape(_ordered(tensor, order), [-1, *row])
        for tensor, order, row in zip((op.inputs[1 - position], grad), orders, sizes, strict=True)
    )
    return x, dy


def _ordered(tensor: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
    """A tensor with its elements in the order that its axes have in `order`."""
    long = [axis for axis in order if tensor.shape.rank is None or tensor.shape[axis] != 1]
    return tensor if long == sorted(long) else tf.transpose(tensor, order)


# -- Rows --------------------------------------------------------------------------------------------------------------


def _of_gather(op: tf.Operation, shape: tf.TensorShape) -> Terms | None:
    axis = tf.get_static_value(op.inputs[2])
    if axis == 0:
        return Terms(Kind.ROWS, functools.partial(_rows, row_shape=shape[1:].as_list()), shape)
    if axis is None or not shape.is_fully_defined():
        return None
    axis = int(axis) % shape.rank
    make = functools.partial(_rows_of_axis, before=shape[:axis].as_list(), after=shape[axis + 1 :].as_list())
    return Terms(Kind.SLICES, make, *_in_front(shape, [axis]))


def _rows(op: tf.Operation, grad: tf.Tensor, *, row_shape: Sequence[int]) -> _Pair:
    return tf.reshape(grad, [-1, *row_shape]), tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1])


def _rows_of_axis(op: tf.Operation, grad: tf.Tensor, *, before: Sequence[int], after: Sequence[int]) -> _Pair:
    """The term of what is gathered along another axis than the first."""
    rows = tf.transpose(tf.reshape(grad, [math.prod(before), -1, math.prod(after)]), [1, 0, 2])
    return tf.reshape(rows, [-1, *before, *after]), tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1])


def _of_gather_nd(op: tf.Operation, shape: tf.TensorShape) -> Terms | None:
    """Rows, or what has several indices each: rows of the weight with these axes as one."""
    indices = op.inputs[1].shape
    axes = indices[-1] if indices.rank else None
    if not axes:
        return None
    if axes == 1 and indices.rank == 2:
        return Terms(Kind.ROWS, functools.partial(_rows, row_shape=shape[1:].as_list()), shape)
    if axes > 1 and not shape.is_fully_defined() or axes > shape.rank:
        return None
    make = functools.partial(_places, shape=shape.as_list())
    return Terms(Kind.SLICES, make, *_in_front(shape, list(range(axes))))


def _places(op: tf.Operation, grad: tf.Tensor, *, shape: Sequence[int]) -> _Pair:
    """The term of what GatherNd reads."""
    axes = op.inputs[1].shape[-1]
    indices = tf.reshape(tf.cast(op.inputs[1], tf.int64), [-1, axes])
    return tf.reshape(grad, [-1, *shape[axes:]]), tf.reduce_sum(indices * _distances(shape, axes), 1)


def _in_front(shape: tf.TensorShape, axes: Sequence[int]) -> tuple[tf.TensorShape, tuple[Step, ...]]:
    """The static shape of the view that has some axes of a weight in front, as one, and the steps to it."""
    order = [*axes, *(i for i in range(shape.rank) if i not in axes)]
    ordered = [shape[i] for i in order]
    steps = [weight_views.transposed(order)] if order != sorted(order) else []
    if len(axes) > 1:
        ordered = [math.prod(ordered[: len(axes)]), *ordered[len(axes) :]]
        steps.append(weight_views.reshaped(ordered))
    return tf.TensorShape(ordered), tuple(steps)


def _distances(shape: Sequence[int], axes: int) -> list[int]:
    """How far apart two neighbours on each of the first `axes` axes are once these axes are one."""
    return [math.prod(shape[i + 1 : axes]) for i in range(axes)]


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
    """Of `x[i]`, `x[i, ..., j]`, `x[:, i]`, `x[i:j]`, `x[i, None, j:j + 1]`, `tf.slice(x, [i, 0], [1, n])`, and so on.

    A range of another axis than the first is taken only if it is small.
    """
    taken = _taken(op, shape)
    if taken is None:
        return None
    ones = [i for i, axis in enumerate(taken) if axis.is_one]
    ranges = [i for i, axis in enumerate(taken) if not axis.is_one and not axis.is_whole]
    axes = [*ones, *ranges]
    if not axes or len(ranges) > 1 or (axes != [0] and not shape.is_fully_defined()):
        return None
    if ranges and axes != [0] and not _is_small_range(op, taken, ranges[0], shape):
        return None
    make = functools.partial(_sliced, shape=shape.as_list(), taken=taken, ones=ones, ranges=ranges)
    return Terms(Kind.SLICES, make, *_in_front(shape, axes))


def _taken(op: tf.Operation, shape: Sequence[int | None]) -> list[_Taken] | None:
    """What a slice takes of each axis of a weight; None if it has other strides, or nobody knows."""
    if op.type == "Slice":
        begins, sizes = (tf.get_static_value(op.inputs[i], partial=True) for i in (1, 2))
        if begins is None or sizes is None:
            return None
        are_whole = [begin == 0 and size in (-1, n) for begin, size, n in zip(begins, sizes, shape, strict=True)]
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
    size = op.outputs[0].shape.num_elements()
    if size is None and (extent := _extent(op, taken[axis].entry)) is not None:
        size = extent * math.prod(shape[i] for i, of_axis in enumerate(taken) if of_axis.is_whole)
    return size is not None and size * _SMALL_PART <= shape.num_elements()


def _extent(op: tf.Operation, entry: int | None) -> int | None:
    """How many places a StridedSlice takes from an entry on, in `x[i:i + 2]` and `x[i - 2:i]`; None if nobody knows."""
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
    shape: Sequence[int | None],
    taken: Sequence[_Taken],
    ones: Sequence[int],
    ranges: Sequence[int],
) -> _Pair:
    """The term of a slice: the rows of the view that has what is not taken whole in front, and which ones they are.

    A place that is given counts from the end if it is negative.
    """
    index = tf.zeros([], tf.int64)
    for axis in ones:
        size = _size(op, shape, axis)
        place = tf.math.floormod(_begin(op, taken[axis]), size)
        index = index * size + place if axis != ones[0] else place
    whole = [shape[i] for i, axis in enumerate(taken) if axis.is_whole]
    if not ranges:
        return tf.reshape(grad, [1, *whole]), tf.reshape(index, [1])
    [axis] = ranges
    if grad.shape.rank is None or ones or grad.shape.rank != len(shape):  # new axes
        grad = tf.reshape(grad, [-1 if i == axis else shape[i] for i in range(len(shape)) if i not in ones])
    place = sum(i not in ones for i in range(axis))
    if place:
        grad = tf.transpose(grad, [place, *(i for i in range(grad.shape.rank) if i != place)])
    size = tf.cast(_size(op, shape, axis), tf.int64)
    begin = _begin(op, taken[axis])
    begin = tf.clip_by_value(tf.where(begin < 0, begin + size, begin), 0, size)
    places = begin + tf.range(tf.shape(grad, tf.int64)[0])
    return grad, index * size + places if ones else places


def _begin(op: tf.Operation, taken: _Taken) -> tf.Tensor:
    return tf.zeros([], tf.int64) if taken.entry is None else tf.cast(op.inputs[1][taken.entry], tf.int64)


def _size(op: tf.Operation, shape: Sequence[int | None], axis: int) -> Any:
    size = shape[axis]
    return tf.shape(op.inputs[0], tf.int64)[axis] if size is None else size
