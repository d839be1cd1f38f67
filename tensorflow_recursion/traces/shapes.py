"""Static shapes of what functions take and return, as far as they are known."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion._tf import nodes

Shapes: TypeAlias = tuple[tf.TensorShape, ...]


def join(a: tf.TensorShape, b: tf.TensorShape) -> tf.TensorShape:
    """The most that is true of both shapes."""
    return a.most_specific_common_supertype([b]) or tf.TensorShape(None)


def shown(shapes: Shapes | None) -> tuple[str, ...] | None:
    """What is known of shapes, to be compared (two unknown dimensions count as the same)."""
    return None if shapes is None else tuple(map(str, shapes))


def are_same(a: Shapes, b: Shapes) -> bool:
    """Whether the same is known of both lists of shapes."""
    return shown(a) == shown(b)


def guess(result: tf.Tensor) -> tf.TensorShape:
    """The static shape of a result, or, where a conditional leaves it open, that of the branch that says most."""
    while result.op.type == "Identity":
        result = result.op.inputs[0]
    shapes = [result.shape, *(guess(output) for output in nodes.branch_outputs(result))]

    def known(shape: tf.TensorShape) -> tuple[bool, int]:
        return (shape.rank is not None, 0 if shape.rank is None else sum(dim is not None for dim in shape.as_list()))

    return max(shapes, key=known)
