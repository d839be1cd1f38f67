"""Calls and their gradients under `tf.vectorized_map`, `jacobian` and `batch_jacobian`, which vectorize what they can.

A recursion cannot be vectorized: how deep it goes depends on each element. So calls are made one after the other.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import vectorized


def _padded(output: tf.Tensor, elements: tf.TensorArray, number: Any) -> tf.Tensor:
    """Stacks tensors that differ in their number of rows; rows of zeros, which add nothing to a sum, are appended.

    One more of zeros tells the shape where there is none to stack.
    """

    def longest(i: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.maximum(rows, tf.shape(elements.read(i))[0])

    def pad(i: tf.Tensor, padded: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        element = tf.ensure_shape(elements.read(i), output.shape)
        missing = [[0, rows - tf.shape(element)[0]], *[[0, 0]] * (element.shape.rank - 1)]
        return i + 1, padded.write(i, tf.pad(element, missing))

    _, rows = tf.while_loop(lambda i, _: i < number, longest, [0, 0])
    _, padded = tf.while_loop(lambda i, _: i < number, pad, [0, tf.TensorArray(output.dtype, number + 1)])
    return padded.write(number, tf.zeros([rows, *output.shape[1:]], output.dtype)).stack()[:-1]


def register() -> None:
    """Tell TensorFlow how to run the operators of this package where it vectorizes what is around them."""
    vectorized.register_loop(names.INVOKE, ops.repeat, unread=ops.contribute_none)
    for op_type in (names.CONTRIBUTE, names.CONTRIBUTE_NONE, names.TOTAL):
        vectorized.register_loop(op_type, ops.repeat)
    vectorized.register_loop(names.COLLECT, ops.repeat, _padded)
    for op_type in (names.SNAPSHOT, names.VARIABLES_OF):
        vectorized.register_once(op_type, ops.repeat)
