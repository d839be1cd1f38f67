"""Operators that contribute to the gradients of weights: finds their terms, and lets their gradients hand these out.

An operator that uses a weight gets a gradient function that hands out what its own would multiply or scatter. Other
uses are brought into the form of a product or of a slice by a view of the weight.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import nodes
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion.weight_gradients import products, rows, weight_views
from tensorflow_recursion.weight_gradients.contributions import Kind
from tensorflow_recursion.weight_gradients.terms import SMALL_PART, Term, Terms

_SPARSE_PRODUCT = "SparseTensorDenseMatMul"
# The gradient for a stack of more matrices is made of those for the matrices that are picked from it.
_MOST_MATRICES = 64
# Of an operation: which terms it makes, by the position of the weight, and the number of their part.
_TERMS: Attribute[dict[int, tuple[Terms, int]]] = Attribute(names.TERMS)


def find(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """The terms that `op` makes for its input `position`, a weight of static `shape`; None if it makes none.

    The shape is given because the input may be what stands for the weight in a branch, and tell less of it.
    """
    if op.type in products.PRODUCTS:
        return products.of_product(op, position, shape)
    if op.type == "Einsum":
        return products.of_einsum(op, position, shape)
    if op.type == _SPARSE_PRODUCT:
        return rows.of_sparse_product(op, shape) if position == len(op.inputs) - 1 else None
    return rows.of_part(op, shape) if position == 0 else None


def find_whole(op: tf.Operation, position: int, shape: tf.TensorShape) -> Terms | None:
    """The terms for a view that `op` makes, a column for example, that is small beside what it is made of.

    Whatever uses the view, the gradient for the view is the term: one row of numbers, of the same place in all calls.
    """
    made = list(weight_views.views(op, position))
    if len(made) != 1 or len(op.outputs) != 1:
        return None
    view, step = made[0]
    size = view.shape.num_elements()
    if not size or not shape.is_fully_defined() or size * SMALL_PART > shape.num_elements():
        return None
    row = tf.TensorShape([1, size])
    return Terms(Kind.SLICES, _whole, row, (step, weight_views.reshaped(row.as_list())))


def _whole(op: tf.Operation, grad: tf.Tensor) -> Term:
    return tf.reshape(grad, [1, op.outputs[0].shape.num_elements()]), tf.zeros([1], tf.int64)


def find_of_row(op: tf.Operation, position: int, shape: tf.TensorShape) -> dict[tuple[tf.Operation, int], Terms] | None:
    """The terms of all products with a matrix that `op` picks from a stack of them, in `x @ w[k]` for example.

    None if it picks no matrix, or if that is used in another way. Keys are the products, and which factor it is.
    """
    if shape.rank != 3 or not shape.is_fully_defined() or shape.as_list()[0] > _MOST_MATRICES:
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
                if reader.type != "MatMul" or not products.has_few_rows(reader, i):
                    return None
                make = functools.partial(_factors_of_row, position=i, shape=shape, picker=op)
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
    taken = rows.what_is_taken(op, shape)
    return taken is not None and taken[0].is_one and all(axis.is_whole for axis in taken[1:])


def _factors_of_row(
    op: tf.Operation, grad: tf.Tensor, *, position: int, shape: tf.TensorShape, picker: tf.Operation
) -> Term:
    """The term of a product with row k of a stack: the pair of the product, with a column more that says k."""
    first, second = products.factors(op, grad, position=position, shape=shape[1:])
    taken = rows.what_is_taken(picker, shape) if picker.type == "StridedSlice" else None
    index = tf.cast(picker.inputs[1], tf.int64) if taken is None else rows.begin_of(picker, taken[0])
    row = tf.math.floormod(index, shape.as_list()[0])
    column = tf.fill([tf.shape(first)[0], 1], tf.cast(row, first.dtype))
    return tf.concat([first, column], 1), second


def contribute_from(op: tf.Operation, position: int, terms: Terms, part: int) -> None:
    """Let the gradient function of `op`, which reads a weight as its input `position`, hand out a term for it.

    Args:
      op: the operator.
      position: of the weight.
      terms: what `find` has found.
      part: the number of the part of the gradient that they belong to.
    """
    known = {**(_TERMS.of(op) or {}), position: (terms, part)}  # both inputs of a product may be weights
    _TERMS.set(op, known)
    nodes.set_gradient_function(op, functools.partial(_gradient, terms=known))


def _gradient(op: tf.Operation, grad: Any, *, terms: Mapping[int, tuple[Terms, int]]) -> list[tf.Tensor | None]:
    grad = tf.convert_to_tensor(grad)  # IndexedSlices where rows are gathered from what `op` returns
    found = []
    for position in range(len(op.inputs)):
        if position in terms:
            of_weight, part = terms[position]
            found.append(ops.contribute(*of_weight.make(op, grad), part))
        elif op.type == "MatMul" or (op.type in products.PRODUCTS and op.inputs[1 - position].shape.rank == 2):
            found.append(products.dense(op, grad, position))
        elif op.type in (*products.PRODUCTS, "Einsum", _SPARSE_PRODUCT):
            found.append(nodes.registered_gradients(op, grad)[position])
        else:
            found.append(None)
    return found
