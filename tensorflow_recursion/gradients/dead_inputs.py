"""Lets the inputs of a gradient call be dead where the gradient that was asked for is."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion._tf import graphs, handles, nodes

tf1 = tf.compat.v1


def dead_together(inputs: Sequence[tf.Tensor], grads: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The `inputs` of a gradient call, which become dead where one of the `grads` is dead.

    A gradient is dead if its call is in a branch that is not taken. In one graph the inputs are dead, too. But where a
    function computes the gradient of another function, it gets an empty tensor in place of a dead result. So the inputs
    go through a Switch, whose condition is dead if a gradient is: it reads a Merge of the gradient alone, which
    Grappler leaves as it is.

    That is not enough where a gradient was made of zeros like an empty tensor, because these are live. Therefore the
    condition is false if a number among the inputs turns out to be an empty tensor.
    """
    graph = tf1.get_default_graph()
    sources = {id(tensor.graph): tensor.graph for tensor in inputs if tf.is_symbolic_tensor(tensor)}
    if not grads or all(source is graph or not graphs.has_switches(source) for source in sources.values()):
        return list(inputs)
    are_live = [tf.equal(tf.raw_ops.Merge(inputs=[grad]).value_index, 0) for grad in grads]
    numbers = [tensor for tensor in inputs if tensor.graph is not graph and _is_number(tensor)]
    are_live += [_is_there(tensor) for tensor in numbers[:1]]
    is_live = functools.reduce(tf.logical_and, are_live)
    gated = [tf.raw_ops.Switch(data=tensor, pred=is_live).output_true for tensor in inputs]
    for tensor in gated:
        nodes.set_gradient_function(tensor.op, lambda _, __, grad: [grad, None])
    handles.set_handle_data(gated, [handles.handle_data(tensor) for tensor in inputs])
    return gated


def _is_number(tensor: tf.Tensor) -> bool:
    return bool(tensor.shape.rank == 0 and (tensor.dtype.is_floating or tensor.dtype.is_integer))


def _is_there(number: tf.Tensor) -> tf.Tensor:
    """Whether a tensor that should be a number is one, not empty.

    Grappler would replace the size of a number by 1. It does not know how many values Unique finds.
    """
    return tf.raw_ops.Size(input=tf.raw_ops.Unique(x=tf.reshape(number, [-1])).y) > 0
