"""Differentiates sums that are computed later than their terms: gives the gradients for the terms.

The terms of a weight's gradient are a variant, which loops and branches may keep: in lists, or in optionals. TensorFlow
takes the gradient for what it keeps for a value of the same kind, and makes zeros like it. So the gradient for terms is
a variant of their type, too: one term that holds the gradient for the sum. Zeros have no term, and several add up.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles, nodes
from tensorflow_recursion._tf.typed import registered_gradient
from tensorflow_recursion.weight_gradients.sizes import dims

# The part of terms that hold a gradient for the sum, which no part of the sum has.
_OF_GRADIENTS = -1


@registered_gradient(names.TOTAL)
def _gradient_of_total(_: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
    return [None, for_terms(grad)]


def for_terms(grad: tf.Tensor) -> tf.Tensor:
    """The gradient for terms, from that for their sum."""
    grad = tf.convert_to_tensor(grad)
    row = tf.reshape(grad, [1, -1])
    terms = ops.contribute(row, tf.zeros([1], row.dtype), _OF_GRADIENTS)
    handles.set_handle_data([terms], [handles.OF_RECORD])
    return terms


@registered_gradient(names.CONTRIBUTE)
def _gradient_of_term(op: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
    """The gradient for what `for_terms` was given. Other terms have none: their sum is differentiated instead."""
    if not _holds_gradient(op):
        raise LookupError(f"Gradient {op.name!r}: a term of a sum that is not computed yet has no gradient")
    return [None if nodes.is_zeros(grad) else for_sum(grad, op.inputs[0]), None]


def for_sum(grad: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """The gradient for a sum, from that for its terms, which `for_terms` has made, or zeros; `like` is a weight."""
    dtype, shape = handles.gradient_type(like)
    sizes = dims(shape) if shape.is_fully_defined() else tf.shape(handles.zeros_for(like))
    source = grad
    while source.op.type == "Identity":
        source = source.op.inputs[0]
    if source.op.type == names.CONTRIBUTE and _holds_gradient(source.op):
        return tf.reshape(source.op.inputs[0], sizes)
    row = tf.TensorShape([shape.num_elements()])
    rows, _ = ops.collect(grad, (dtype, dtype), (row, tf.TensorShape([])), _OF_GRADIENTS)
    rows = tf.reshape(rows, tf.concat([tf.shape(rows)[:1], sizes], 0))  # without a term its columns are not known
    return ops.total(tf.ensure_shape(tf.reduce_sum(rows, 0), shape), grad)


def _holds_gradient(term: tf.Operation) -> bool:
    return int(term.get_attr(names.PART)) == _OF_GRADIENTS
