"""A body that was traced with its gradient is cut into a forward and a backward function.

The backward function gets every tensor that it reads of the forward one from the record, apart from captured tensors,
which are passed to it again, and constants, which it makes again.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Hashable, Sequence

import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import copies, functions, handles, nodes, origins
from tensorflow_recursion._tf import tracing as tf_tracing
from tensorflow_recursion._tf.copies import Source
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion.forward_backward.bodies import BodyWithGradient
from tensorflow_recursion.forward_backward.pairs import Pair, Templates
from tensorflow_recursion.traces import results

tf1 = tf.compat.v1


def cut(body: BodyWithGradient, pair: Pair, *, with_templates: bool) -> None:
    """Give `pair` its forward and its backward function, and templates of the two; changes the graph of `body`."""
    gradient = _backward(body)
    with body.graph.as_default():
        retained, awaited = _cut_off(gradient, body)
        record = tf1.placeholder(tf.variant, [], name="record")
        with tf1.control_dependencies(awaited):
            retain = ops.retain(retained, pair.forward)
        recalled = ops.recall(record, retained, pair.forward)
        _read_instead(gradient, retained, recalled)
    inputs = {tensor.op for tensor in [*body.args, *body.captures, *body.dys]}
    made = origins.origins_of(body.graph.get_operations())
    forward = [op for op in body.graph.get_operations() if op in body.forward and op not in inputs]
    backward = [op for op in _backward(body) if op not in (retain, record.op)]

    def make(name: str, prefix: str, operations: Sequence[tf.Operation], *ends: Sequence[tf.Tensor]) -> TracedFunction:
        takes, returns = ends
        out_names = [f"{prefix}_{i}" for i in range(len(returns))]
        return tf_tracing.make_function(body.graph, name, operations, takes, returns, out_names, made)

    xs = [*body.args, *body.captures]
    dys = [*body.dys, *body.captures]
    for function in pair.functions:  # something may still refer to those of the trace before
        functions.remove_from_eager_context(function)
    pair.functions = (
        make(pair.forward, "y", [*forward, retain], xs, [*body.results, retain.outputs[0]]),
        make(pair.backward, "dx", backward, [record, *dys], body.dxs),
    )
    if with_templates:
        unpacked = [op for op in backward if record is not next(iter(op.inputs), None)]  # without the recall
        of_forward = make(f"{pair.forward}_template", "y", forward, xs, [*body.results, *retained])
        of_backward = make(f"{pair.backward}_template", "dx", unpacked, [*recalled, *dys], body.dxs)
        copies.set_source(of_forward, Source(body.graph, xs, forward))
        copies.set_source(of_backward, Source(body.graph, [*retained, *dys], unpacked))
        pair.templates = Templates(
            of_forward,
            of_backward,
            tuple(tf.TensorSpec.from_tensor(tensor) for tensor in retained),
            tuple(awaited),
            tuple(handles.with_gradient(handles.handle_data(tensor)) for tensor in retained),
            tuple(handles.handle_data(tensor) for tensor in body.dys),
            tuple(handles.handle_data(tensor) for tensor in body.captures),
            tuple(handles.gradient_elements([*body.args, *body.captures][i]) for i in pair.trainable),
        )


def _backward(body: BodyWithGradient) -> list[tf.Operation]:
    """The operations of the graph that are neither of the forward function nor an input of one of the two."""
    inputs = {tensor.op for tensor in [*body.args, *body.captures, *body.dys]}
    return [op for op in body.graph.get_operations() if op not in body.forward and op not in inputs]


def _cut_off(gradient: Sequence[tf.Operation], body: BodyWithGradient) -> tuple[list[tf.Tensor], list[tf.Operation]]:
    """Let the gradient neither read forward operations nor wait for them, and make constants anew.

    Returns two lists: the other tensors of the forward function that the gradient has read, and the operations that
    the record has to wait for. These are the forward operations that the gradient has waited for, because it begins
    with the record. So the gradient of a `tf.py_function` runs after the function, whose tape it takes. Checks of
    stated shapes are among them, too, because the gradient takes the shapes for granted.
    """
    captures = {capture.ref() for capture in body.captures}
    args = {arg.op for arg in body.args}
    retained: dict[Hashable, tf.Tensor] = {}
    constants: dict[Hashable, tf.Tensor] = {}
    awaited: dict[tf.Operation, None] = {}
    for op in gradient:
        for i, tensor in enumerate(op.inputs):
            key = tensor.ref()
            if key in captures or (tensor.op not in body.forward and tensor.op not in args):
                continue
            if tensor.op.type == "Const":
                if key not in constants:
                    constants[key] = nodes.copy_of(tensor)
                nodes.replace_input(op, i, constants[key])
            else:
                retained.setdefault(key, tensor)
        awaited.update(dict.fromkeys(source for source in op.control_inputs if source in body.forward))
        nodes.keep_control_inputs(op, lambda source: source not in body.forward)
    awaited.update(
        dict.fromkeys(op for op in body.graph.get_operations() if op in body.forward and results.is_check(op))
    )
    return list(retained.values()), list(awaited)


def _read_instead(operations: Sequence[tf.Operation], old: Sequence[tf.Tensor], new: Sequence[tf.Tensor]) -> None:
    """Let the operations read the `new` tensors in place of the `old` ones."""
    replacements = {tensor.ref(): value for tensor, value in zip(old, new, strict=True)}
    for op in operations:
        for i, tensor in enumerate(op.inputs):
            if (value := replacements.get(tensor.ref())) is not None:
                nodes.replace_input(op, i, value)
