"""Calls in a graph that were made before everything they reach was defined.

What such a call has to pass is not known yet: its callee may turn out to capture tensors. Its results are identities,
so that they can be moved to another Invoke node, which passes more.
"""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import graphs, nodes
from tensorflow_recursion.ops import Result
from tensorflow_recursion.traces.definitions import Tensors
from tensorflow_recursion.traces.tracing import Traces, are_same

tf1 = tf.compat.v1

# Makes an Invoke node from the callee's name, its declared arguments, its captures and the name of the node.
Invoke: TypeAlias = Callable[[str, Sequence[tf.Tensor], Tensors, str], tf.Operation]


@dataclasses.dataclass(eq=False)
class UnresolvedCall:
    """A call outside every body whose callee still reaches a function without a definition.

    Attributes:
      name: the user's name of the callee.
      op: the Invoke node.
      captures: the captures it passes.
      results: identities of the outputs (a NoOp if there are none), which can be moved to another Invoke node; empty if
        the call sits in a nested function graph, where that cannot be done.
    """

    name: str
    op: tf.Operation
    captures: Tensors
    results: tuple[tf.Operation, ...]


class UnresolvedCalls:
    """The unresolved calls of one outermost graph."""

    def __init__(self, graph: tf.Graph, traces: Traces, invoke: Invoke) -> None:
        self._graph = graph
        self._traces = traces
        self._invoke = invoke
        self._calls: list[UnresolvedCall] = []

    def add(self, name: str, op: tf.Operation, captures: Tensors) -> Result:
        """Note the call `op` of `name`, which passes `captures`; returns what stands for its results."""
        results = _movable_results(op) if op.graph is self._graph else ()
        self._calls.append(UnresolvedCall(name, op, captures, results))
        if not results:
            return ops.result_of(op)
        if not results[0].outputs:
            return results[0]
        return results[0].outputs[0] if len(results) == 1 else tuple(result.outputs[0] for result in results)

    def to_move(self) -> list[UnresolvedCall]:
        """The calls that pass something else than their callees capture.

        Raises:
          ValueError: if one of them cannot be moved.
        """
        found = [call for call in self._calls if not are_same(call.captures, self._traces.captures(call.name))]
        for call in found:
            if not call.results:
                captured = ", ".join(map(_described, self._traces.captures(call.name)))
                raise ValueError(
                    f"Function '{call.name}' captures {captured}, but node {call.op.name!r} calls it in a nested "
                    f"function graph (a branch, a loop, a dataset function) that was built before '{call.name}' and "
                    "all it calls were defined; define them before that call, or pass what is captured as arguments"
                )
        return found

    def move(self, call: UnresolvedCall) -> None:
        """Make the call anew, with the captures it lacks; the old node remains, without consumers."""
        captures = self._traces.captures(call.name)
        arguments = list(call.op.inputs)[: ops.num_arguments(call.op) - len(call.captures)]
        with nodes.place_of(call.op):
            op = self._invoke(call.name, arguments, captures, call.op.name)
        if len(op.outputs) > 1:
            for result, output in zip(call.results, op.outputs[:-1], strict=True):
                nodes.replace_input(result, 0, output)
        else:
            nodes.replace_control_input(call.results[0], op)
        call.op, call.captures = op, captures

    def take_resolved(self) -> list[UnresolvedCall]:
        """Forget the calls that only reach what is defined now, and return them."""
        resolved = [call for call in self._calls if self._traces.is_closed(call.name)]
        for call in resolved:
            self._calls.remove(call)
        return resolved


def _described(tensor: tf.Tensor) -> str:
    """What an error says of a tensor that a function captures."""
    if not graphs.is_eager_tensor(tensor):
        return repr(tensor.name)
    return "a variable" if tensor.dtype == tf.resource else "an eager tensor"


def _movable_results(op: tf.Operation) -> tuple[tf.Operation, ...]:
    """An identity of each output of a call, or an operation that waits for it."""
    with tf1.name_scope(op.name + "/"):
        if len(op.outputs) > 1:
            return tuple(tf.identity(output, name="result").op for output in op.outputs[:-1])
        with tf.control_dependencies([op]):
            return (tf1.no_op(name="result"),)
