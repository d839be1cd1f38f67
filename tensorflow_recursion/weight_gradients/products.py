"""Terms of products with a weight: the matrices x and dy, of x W, of W x, of a batch of products, of an einsum.

The product of the two is the gradient, once the first of them is transposed; that of a stack of matrices W is made of a
stack of each.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion.weight_gradients import weight_views
from tensorflow_recursion.weight_gradients.contributions import Kind
from tensorflow_recursion.weight_gradients.sizes import dims, per, product, product_of, sizes_of
from tensorflow_recursion.weight_gradients.terms import Term, Terms, is_small, is_small_beside_open

_PRODUCTS_OF_BATCHES = ("BatchMatMulV2", "BatchMatMulV3")
PRODUCTS = ("MatMul", *_PRODUCTS_OF_BATCHES)
# A batch of products of tensors with more axes has a dense gradient.
_MOST_AXES = 13


def of_product(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """The terms of a product of matrices, or of a batch of products; None if it makes none."""
    if op.type in _PRODUCTS_OF_BATCHES:
        if op.inputs[position].dtype.is_complex:
            return None  # they conjugate what they transpose
        if shape.rank != 2:
            return _of_stack(op, position, shape)
    if not has_few_rows(op, position):
        return None
    if not shape.is_fully_defined() and not is_small_beside_open(_rows_of_product(op, position), shape.as_list()):
        return None
    return Terms(Kind.PRODUCT, functools.partial(factors, position=position, shape=shape), shape)


def _rows_of_product(op: tf.Operation, position: int) -> int | None:
    """How many rows x has in x W, or columns in W x, in all of a batch; None if nobody knows."""
    result = op.outputs[0].shape
    if result.rank is None:
        return None
    *batch, rows, columns = dims(result)
    return product([*batch, rows if position == 1 else columns])


def has_few_rows(op: tf.Operation, position: int) -> bool:
    """Whether a term of a product is small; of x W with an open number of rows it is.

    Those of W x are transposed copies besides, which do not pay for an x of many columns.
    """
    weight, result = op.inputs[position].shape, op.outputs[0].shape
    if not (weight.is_fully_defined() and result.is_fully_defined()):
        return position == 1 or result.rank is None or dims(result)[-1] is not None
    of_weight = result.as_list()[-1 if position == 1 else -2]
    rows = result.num_elements() // max(of_weight, 1)  # of x in x W; columns of x in W x
    return is_small(rows * sum(weight.as_list()), weight)


def factors(op: tf.Operation, grad: tf.Tensor, *, position: int, shape: tf.TensorShape) -> Term:
    """The term of a factor of a product of matrices, or of a batch of products, which may be transposed."""
    x = tf.math.conj(op.inputs[1 - position])
    are_transposed = _are_transposed(op)
    if are_transposed[1 - position] == bool(position):
        x = _transposed(x)
    pair = (x, grad) if position == 1 else (_transposed(grad), x)
    if are_transposed[position]:
        pair = pair[1], pair[0]
    if op.type != "MatMul":
        sizes = sizes_of(op.inputs[position], range(2), shape)
        rows = -1 if shape.is_fully_defined() else tf.reduce_prod(tf.shape(pair[0])[:-1])
        pair = tf.reshape(pair[0], [rows, sizes[0]]), tf.reshape(pair[1], [rows, sizes[1]])
    return pair


def dense(op: tf.Operation, grad: tf.Tensor, position: int) -> tf.Tensor:
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


def of_einsum(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """Those of a product of a weight and one tensor, `...i,ij->...j` or `bki,kij->bkj` for example."""
    factors, _, result = op.get_attr("equation").decode().replace(" ", "").partition("->")
    axes = factors.split(",")
    if len(axes) != 2 or shape.rank is None or op.inputs[position].dtype.is_complex:
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
    """The terms of a batch of products with a weight that is a stack of matrices.

    A factor that lacks an axis of the batch, or has size 1 there, is repeated along that axis.
    """
    x = op.inputs[1 - position].shape
    if x.rank is None or shape.rank is None:
        return None
    sizes = [shape.as_list(), x.as_list()] if position == 0 else [x.as_list(), shape.as_list()]
    rank = max(shape.rank, x.rank)
    if rank > _MOST_AXES:
        return None
    *batch, row, inner, column = list(string.ascii_lowercase[: rank + 1])
    padded = [[1] * (rank - len(one)) + one for one in sizes]
    is_repeated = [[padded[i][k] == 1 != padded[1 - i][k] for k in range(rank - 2)] for i in range(2)]
    # Only a run tells which factor is repeated along an open axis.
    is_open = [
        None in (padded[0][k], padded[1][k]) and not (is_repeated[0][k] or is_repeated[1][k]) for k in range(rank - 2)
    ]
    if any(is_open[1:]) or (any(is_open) and x.rank != shape.rank):
        return None
    factors = []
    for i, matrix in enumerate((row + inner, inner + column)):
        others = string.ascii_uppercase[i * _MOST_AXES :]  # for axes that are none of the result
        of_batch = [others[k] if is_repeated[i][k] else batch[k] for k in range(rank - len(sizes[i]), rank - 2)]
        factors.append("".join(of_batch) + (matrix[::-1] if _are_transposed(op)[i] else matrix))
    axes = (factors[position], factors[1 - position], "".join([*batch, row, column]))
    return _by_axes(op, position, shape, axes, is_repeated=any(is_open))


def _by_axes(
    op: tf.Operation, position: int, shape: tf.TensorShape, axes: tuple[str, str, str], *, is_repeated: bool = False
) -> Terms | None:
    """The terms of a product in which each axis has a letter.

    `axes` are the letters of the weight, of x and of the result, as in an equation of `tf.einsum`.

    Each axis of the weight is one of x too, or of the result, or of both, and no axis of these is lost or repeated, but
    those of size 1. The weight is a matrix once its axes are ordered by that, or a stack of matrices. With
    `is_repeated`, the weight or x may be repeated along the first axis of all three.
    """
    of_weight, of_x, result = axes
    if any(len(set(one)) < len(one) for one in axes):
        return None
    x = op.inputs[1 - position].shape
    of_axes = [None] * len(of_x) if x.rank is None else dims(x)
    sizes: dict[str, int | None] = dict(zip(of_x, of_axes, strict=True))
    sizes.update(zip(of_weight, shape.as_list(), strict=True))
    stack = [axis for axis in of_weight if axis in of_x and axis in result]
    inner = [axis for axis in of_weight if axis in of_x and axis not in result]
    outer = [axis for axis in of_weight if axis not in of_x]
    rows = [axis for axis in of_x if axis not in of_weight]
    if any(sizes[axis] != 1 for axis in (*outer, *rows) if axis not in result):
        return None
    matrices = [product([sizes[axis] for axis in group]) for group in (stack, inner, outer)]
    if not _are_small(x, product([sizes[axis] for axis in rows]), matrices, shape):
        return None
    if not set(result) <= {*stack, *rows, *outer}:
        return None
    groups = [stack, inner, outer] if stack else [inner, outer]
    view = matrices if stack else matrices[1:]
    order = [of_weight.index(axis) for axis in (*stack, *inner, *outer)]
    steps = [weight_views.transposed(order)] if order != sorted(order) else []
    if view != [dims(shape)[i] for i in order]:
        if view.count(None) > 1:
            return None
        steps.append(weight_views.reshaped(view))
    make = functools.partial(
        _factors_by_axes,
        position=position,
        orders=(
            [of_x.index(axis) for axis in (*rows, *stack, *inner)],
            [result.index(axis) for axis in (*rows, *stack, *outer) if axis in result],
        ),
        shape=shape,
        groups=[[of_weight.index(axis) for axis in group] for group in groups],
        is_repeated=is_repeated,
    )
    return Terms(Kind.BATCH_PRODUCT if stack else Kind.PRODUCT, make, tf.TensorShape(view), tuple(steps))


def _are_small(x: tf.TensorShape, rows: int | None, matrices: Sequence[int | None], weight: tf.TensorShape) -> bool:
    """Whether a term is small; `matrices` is the weight as a stack: how many matrices, and of which size.

    A term with an open number of rows counts as small. Terms for a stack of vectors are as large as the weight, so they
    do not.
    """
    count, inner, outer = matrices
    if count != 1 and 1 in (inner, outer):
        return False
    if count is None or inner is None or outer is None:
        return is_small_beside_open(rows, matrices)
    return x.num_elements() is None or is_small(
        x.num_elements() // max(count * inner, 1) * count * (inner + outer), weight
    )


def _factors_by_axes(
    op: tf.Operation,
    grad: tf.Tensor,
    *,
    position: int,
    orders: tuple[Sequence[int], Sequence[int]],
    shape: tf.TensorShape,
    groups: Sequence[Sequence[int]],
    is_repeated: bool,
) -> Term:
    """The term of a product; `groups` are the axes of the weight that are one axis each of the matrices."""
    x = op.inputs[1 - position]
    if is_repeated:
        x = tf.broadcast_to(x, tf.concat([tf.shape(grad)[:1], tf.shape(x)[1:]], 0))
    rows: Any = -1
    *stack, inner, outer = (product_of(sizes_of(op.inputs[position], group, shape)) for group in groups)
    first, second = (_ordered(tensor, order) for tensor, order in zip((x, grad), orders, strict=True))
    if not all(isinstance(size, int) for size in (*stack, inner, outer)):
        # The number of rows, also where a matrix of the weight has no elements.
        repeats = sizes_of(x, orders[0][: len(orders[0]) - len(groups[-2])])
        rows = tf.cast(per(product_of(repeats), product_of(stack)), tf.int32)
    return tf.reshape(first, [rows, *stack, inner]), tf.reshape(second, [rows, *stack, outer])


def _ordered(tensor: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
    """A tensor with its elements in the order that its axes have in `order`."""
    long = [axis for axis in order if tensor.shape.rank is None or dims(tensor.shape)[axis] != 1]
    return tensor if long == sorted(long) else tf.transpose(tensor, order)
