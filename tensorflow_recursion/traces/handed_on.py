"""What is known of the lists and handles that bodies and their calls return.

A body is traced for lists of any dtype, and for handles of any variable. So where it hands on what it was given, its
trace does not tell what a call returns. The call does, by its arguments.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls, handles, nodes
from tensorflow_recursion._tf.handles import HandleData

# The graph of the function that a call runs; None if it is not known.
FindGraph: TypeAlias = Callable[[tf.Operation], Any]

# Operators whose outputs are their first input, as far as handle data goes.
_HAND_ON = ("Identity", "Switch", "Enter", "Exit", "NextIteration", "StopGradient", "TensorListResize")

# Tensors by their ids: those of TensorFlow 2 cannot be in sets.
_Tensors: TypeAlias = dict[int, tf.Tensor]


def known_of(tensor: tf.Tensor, find_graph: FindGraph = lambda call: None) -> HandleData | None:
    """What is known of a list or a handle, as far as what it is made of tells; calls do not without `find_graph`."""
    return _Search(find_graph).known_of(tensor.dtype, lambda question: [tensor])


def known_of_result(graph: Any, position: int, given: Sequence[tf.Tensor], find_graph: FindGraph) -> HandleData | None:
    """What is known of the result at `position` of a call that runs `graph`, by what the call is `given`."""
    search = _Search(find_graph)
    dtype = graph.outputs[position].dtype
    return search.known_of(dtype, lambda question: search.returned(graph, position, given, question))


@dataclasses.dataclass(eq=False)
class _Question:
    """What some tensors may be, each of which is followed back to its `ends`.

    An end is an argument of the function that the tensors are in, which each call gives something else, or a tensor
    that tells what it is, or one of which nothing is known.
    """

    starts: Callable[[_Question], Iterable[tf.Tensor]]  # asked with the question, which it may depend on others for
    arguments: Sequence[tf.Tensor] = ()
    ends: _Tensors = dataclasses.field(default_factory=dict)
    dependents: set[_Question] = dataclasses.field(default_factory=set)  # asked anew when there are more ends


class _Search:
    """Finds what tensors may be, through all functions that are called on the way.

    Each result of a function is one question, however many calls there are, and the answers are a least fixed point:
    each begins without ends, and is asked anew when one that it depends on has more of them. In
    `f(n, l) = cond(n < 1, l, g(n, l))`, where `g(n, l) = f(n - 1, h(l))`, the only end of f is l at first; so g's is
    what h returns, and then f has that end, too.
    """

    def __init__(self, find_graph: FindGraph) -> None:
        self._find_graph = find_graph
        self._results: dict[tuple[Any, int], _Question] = {}
        self._pending: list[_Question] = []

    def known_of(self, dtype: tf.DType, starts: Callable[[_Question], Iterable[tf.Tensor]]) -> HandleData | None:
        """What is known of all that `starts` may be. The shape is open where one of them is not known."""
        if not handles.has_data(dtype):
            return None
        asked = _Question(starts)
        self._pending.append(asked)
        while self._pending:
            question = self._pending.pop()
            ends = self._ends(question)
            if len(ends) > len(question.ends):
                question.ends = ends
                self._pending += question.dependents
        return _joined([handles.handle_data(end) for end in asked.ends.values()])

    def returned(self, graph: Any, position: int, given: Sequence[tf.Tensor], question: _Question) -> list[tf.Tensor]:
        """What a call of `graph` returns at `position` that is `given` this; `question` depends on it."""
        result = self._results.get((graph, position))
        if result is None:
            result = _Question(lambda _: [graph.outputs[position]], graph.inputs)
            self._results[graph, position] = result
            self._pending.append(result)
        result.dependents.add(question)
        given_as = {id(argument): value for argument, value in zip(graph.inputs, given, strict=False)}
        return [given_as.get(key, end) for key, end in result.ends.items()]

    def _ends(self, question: _Question) -> _Tensors:
        arguments = {id(argument) for argument in question.arguments}
        ends: _Tensors = {}
        seen = set()
        pending = list(question.starts(question))
        while pending:
            tensor = pending.pop()
            if id(tensor) in seen:
                continue
            seen.add(id(tensor))
            is_end = id(tensor) in arguments or handles.handle_data(tensor) is not None
            sources = None if is_end else self._sources(tensor, question)
            if sources is None:
                ends[id(tensor)] = tensor
            else:
                pending += sources
        return ends

    def _sources(self, tensor: tf.Tensor, question: _Question) -> Sequence[tf.Tensor] | None:
        """What `tensor` may be, as its operator tells; None if it does not."""
        if not tf.is_symbolic_tensor(tensor):
            return None
        op = tensor.op
        if (outer := nodes.captured_by(tensor)) is not None:
            return [outer]
        if op.type in _HAND_ON:
            return [op.inputs[0]]
        if op.type in nodes.LOOPS:
            return [op.inputs[tensor.value_index]]
        if op.type == "Merge":
            return list(op.inputs)
        if (callee := self._called_by(op)) is not None:
            return self.returned(callee, tensor.value_index, op.inputs, question)
        return nodes.branch_outputs(tensor) or None

    def _called_by(self, op: tf.Operation) -> Any:
        if op.type == names.INVOKE:
            return self._find_graph(op)
        return function_calls.called_graph(op) if op.type in function_calls.OPERATORS else None


def _joined(ends: Sequence[HandleData | None]) -> HandleData | None:
    """What is true of all of these; the shape is open where nothing is known of one."""
    found = None
    for known in ends:
        if known is not None and found is not None and not handles.are_of_one_dtype(found, known):
            return None
        found = handles.join_handle_data(found, known)
    return handles.with_open_shape(found) if found is not None and None in ends else found
