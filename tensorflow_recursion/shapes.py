"""Static shapes of what functions take and return, and of the elements of lists, as far as they are known."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion._tf import function_calls, handles, nodes

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


def elements_of(result: tf.Tensor) -> handles.HandleData | None:
    """What is known of a list or a handle that a body returns, or a `tf.function` that it calls.

    Of one that a conditional leaves open, it is the dtype in its branches.
    """
    data = handles.handle_data(result)
    while data is None and result.op.type == "Identity":
        result = result.op.inputs[0]
        data = handles.handle_data(result)
    if data is not None or not handles.has_data(result.dtype):
        return data
    called = function_calls.called_graph(result.op)
    if called is not None:
        return elements_of(called.outputs[result.value_index])
    for output in nodes.branch_outputs(result):
        if (data := elements_of(output)) is not None:
            data = handles.HandleData.FromString(data.SerializeToString())
            for known in data.shape_and_type:
                known.shape.CopyFrom(tf.TensorShape(None).as_proto())
            return data
    return None
