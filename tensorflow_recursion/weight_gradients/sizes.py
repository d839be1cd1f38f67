"""Sizes of axes, of which some may be open: only a run tells those."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf


def product(sizes: Sequence[int | None]) -> int | None:
    """The product of sizes; None if one of them is open."""
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def dims(shape: tf.TensorShape) -> list[int | None]:
    """The dimensions of a static shape of known rank. (Its elements are objects where v2 behavior is disabled.)"""
    found: list[int | None] = shape.as_list()
    return found


def sizes_of(tensor: tf.Tensor, axes: Iterable[int], shape: tf.TensorShape | None = None) -> list[Any]:
    """The sizes of some axes of a tensor: numbers where its static shape tells, else scalars of int32.

    `shape` is its static shape if more is known than the tensor tells, as where it stands for a weight in a branch. If
    it is a handle, the shape has to be known.
    """
    known = tensor.shape if shape is None else shape
    found = [(axis, tf.compat.dimension_value(known[axis])) for axis in axes]
    is_open = any(size is None for _, size in found)
    at_run_time: Any = tf.shape(tensor) if is_open else None
    return [at_run_time[axis] if size is None else size for axis, size in found]


def product_of(sizes: Sequence[Any]) -> Any:
    """The product of sizes as `sizes_of` returns them."""
    return functools.reduce(operator.mul, sizes, 1)


def per(total: tf.Tensor, parts: Any) -> tf.Tensor:
    """How many of a total each part has, an int64; 0 if there are no parts."""
    return tf.cast(total, tf.int64) // tf.maximum(tf.cast(parts, tf.int64), 1)


def reshaped(tensor: tf.Tensor, sizes: Sequence[Any]) -> tf.Tensor:
    """Reshape to sizes, one of which is None and follows from the rest. TensorFlow cannot compute it beside a 0."""
    known = [size for size in sizes if size is not None]
    if all(isinstance(size, int) for size in known):
        return tf.reshape(tensor, [-1 if size is None else size for size in sizes])
    rest = tf.cast(per(tf.size(tensor), product_of(known)), tf.int32)
    return tf.reshape(tensor, [rest if size is None else size for size in sizes])
