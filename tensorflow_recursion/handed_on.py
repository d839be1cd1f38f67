"""What is known of the lists and handles that bodies and their calls return.

A body is traced for lists of any dtype, and for handles of any variable. So where it hands on what it was given, its
trace does not tell what a call returns. The call does, by its arguments.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls, handles, nodes
from tensorflow_recursion._tf.handles import HandleData

# The graph of the function that a call runs; None if it is not known.
FindGraph: TypeAlias = Callable[[tf.Operation], Any]

# Operators whose outputs are their first input, as far as handle data goes.
_HAND_ON = ("Identity", "Switch", "Enter", "Exit", "NextIteration", "StopGradient", "TensorListResize")

# How many tensors are looked at, at most, for one result. Functions that call each other have more ways through one
# another than can be followed: ten of which each calls all others have millions. What is not found is not known.
_MAX_LOOKED_AT = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class _Call:
    """A call that is looked into: the graph that it runs, what it gives to that, and the call whose graph it is in."""

    graph: Any
    given: Sequence[tf.Tensor]
    around: _Call | None

    def argument(self, tensor: tf.Tensor) -> tf.Tensor | None:
        """What the call gives to the graph as `tensor`; None if that is no argument of the graph."""
        given = zip(self.graph.inputs, self.given, strict=False)
        return next((argument for placeholder, argument in given if placeholder is tensor), None)

    def is_inside(self, graph: Any) -> bool:
        """Whether this call, or one around it, runs `graph`."""
        return self.graph is graph or (self.around is not None and self.around.is_inside(graph))


def known_of(result: tf.Tensor) -> HandleData | None:
    """What is known of a list or a handle that a body returns, as far as the body tells."""
    return _known(result, None, lambda call: None)


def known_of_result(graph: Any, position: int, given: Sequence[tf.Tensor], find_graph: FindGraph) -> HandleData | None:
    """What is known of the result at `position` of a call that runs `graph`, by what the call is `given`."""
    return _known(graph.outputs[position], _Call(graph, given, None), find_graph)


def _known(result: tf.Tensor, call: _Call | None, find_graph: FindGraph) -> HandleData | None:
    """What is known of what `result` may be. The shape is open if that is several things, or may be one not known."""
    if not handles.has_data(result.dtype):
        return None
    found, is_open, seen = None, False, set()
    pending = [(result, call)]
    while pending:
        tensor, call = pending.pop()
        if (id(tensor), call) in seen:
            continue
        seen.add((id(tensor), call))
        if len(seen) > _MAX_LOOKED_AT:
            return None
        known = handles.handle_data(tensor)
        if known is None:
            sources = list(_sources(tensor, call, find_graph)) if tf.is_symbolic_tensor(tensor) else []
            is_open |= len(sources) != 1
            pending += sources
        elif found is not None and not handles.are_of_one_dtype(found, known):
            return None
        else:
            found = handles.join_handle_data(found, known)
    return handles.with_open_shape(found) if found is not None and is_open else found


def _sources(tensor: tf.Tensor, call: _Call | None, find_graph: FindGraph) -> Iterator[tuple[tf.Tensor, _Call | None]]:
    """What `tensor` may be, which is in the graph that `call` runs; nothing is looked into outside of that."""
    op = tensor.op
    if call is not None and (argument := call.argument(tensor)) is not None:
        yield argument, call.around
    elif (outer := nodes.captured_by(tensor)) is not None:
        yield outer, call
    elif op.type in _HAND_ON:
        yield op.inputs[0], call
    elif op.type in nodes.LOOPS:
        yield op.inputs[tensor.value_index], call
    elif op.type == "Merge":
        yield from ((source, call) for source in op.inputs)
    elif op.type == names.INVOKE or op.type in function_calls.OPERATORS:
        callee = find_graph(op) if op.type == names.INVOKE else function_calls.called_graph(op)
        if callee is not None and not (call is not None and call.is_inside(callee)):
            yield callee.outputs[tensor.value_index], _Call(callee, op.inputs, call)
    else:
        yield from ((output, call) for output in nodes.branch_outputs(tensor))
