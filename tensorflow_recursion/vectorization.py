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

    Where the shape of a row is open, elements without a row do not have it: all are made as large as the largest. One
    more of zeros tells the shape where there is none to stack.
    """

    def largest(i: tf.Tensor, sizes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.maximum(sizes, tf.shape(tf.ensure_shape(elements.read(i), output.shape)))

    def pad(i: tf.Tensor, padded: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        element = tf.ensure_shape(elements.read(i), output.shape)
        missing = tf.stack([tf.zeros_like(sizes), sizes - tf.shape(element)], 1)
        return i + 1, padded.write(i, tf.pad(element, missing))

    known = output.shape.as_list()
    _, sizes = tf.while_loop(lambda i, _: i < number, largest, [0, tf.constant([size or 0 for size in known])])
    _, padded = tf.while_loop(lambda i, _: i < number, pad, [0, tf.TensorArray(output.dtype, number + 1)])
    stacked = padded.write(number, tf.zeros(sizes, output.dtype)).stack()[:-1]
    return tf.ensure_shape(stacked, [None, *known])


def register() -> None:
    """Tell TensorFlow how to run the operators of this package where it vectorizes what is around them."""
    vectorized.register_loop(names.INVOKE, ops.repeat, unread=ops.contribute_none)
    vectorized.leave_out_converted(names.INVOKE, (names.INVOKE, names.SNAPSHOT, names.VARIABLES_OF))
    for op_type in (names.CONTRIBUTE, names.CONTRIBUTE_NONE, names.TOTAL):
        vectorized.register_loop(op_type, ops.repeat)
    vectorized.register_loop(names.COLLECT, ops.repeat, _padded)
    for op_type in (names.SNAPSHOT, names.VARIABLES_OF):
        vectorized.register_once(op_type, ops.repeat)
