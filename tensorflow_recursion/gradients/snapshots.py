"""Snapshots of the variables that a call is given, for derivatives that run the function once more.

Take for example, with a variable w that is 2,

    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x)  # x * w * w, and f may assign to w itself
        dx = inner.gradient(y, x)
    w.assign(100.0)
    outer.gradient(dx, w)  # 2 * w = 4

To differentiate dx, f runs again. It must not read what w is by then, nor may it assign to w a second time. So the call
takes a snapshot of its variables, the gradient call carries it along, and when f runs again, it is given variables of
its own with the values in the snapshot.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import assignments, graphs, handles

tf1 = tf.compat.v1


def taken_before_call(
    inputs: Sequence[tf.Tensor], assigned: assignments.Kinds
) -> contextlib.AbstractContextManager[None]:
    """Let a call with these inputs, which is made inside, come after a snapshot of the variables among them.

    The call may assign to variables of the kinds `assigned`.

    There is none where nothing orders reads and writes of variables, in the graph of a session, nor if the variables
    are on several devices or in another process: a snapshot is taken where they are.
    """
    variables = _variables_among(inputs)
    has_variables = any(map(handles.handle_data, variables.values()))
    is_ordered = graphs.is_func_graph(graphs.enclosing_graphs(tf1.get_default_graph())[-1])
    if not has_variables or not is_ordered or not graphs.are_beside_each_other(list(variables.values())):
        return contextlib.nullcontext()
    of_kinds = [i for i, handle in variables.items() if assignments.is_among(handle, assigned)]
    waiting: contextlib.AbstractContextManager[None] = tf.control_dependencies([ops.snapshot(variables, of_kinds)])
    return waiting


def of_call(op: tf.Operation) -> list[tf.Tensor]:
    """The snapshot that was taken for a call, or nothing."""
    return [source.outputs[0] for source in op.control_inputs if source.type == names.SNAPSHOT]


def with_variables_of(snapshot: Sequence[tf.Tensor], inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The inputs of a call with new variables, as they were in its snapshot, if there is one."""
    variables = _variables_among(inputs)
    copies = ops.variables_of(snapshot[0], variables) if snapshot and variables else {}
    return [copies.get(i, tensor) for i, tensor in enumerate(inputs)]


def _variables_among(inputs: Sequence[tf.Tensor]) -> dict[int, tf.Tensor]:
    """The handles among the inputs of a call, by their positions."""
    return {i: tensor for i, tensor in enumerate(inputs) if tensor.dtype.base_dtype == tf.resource}
