"""Which functions are differentiated together, for which static shapes, until what is assumed of them holds.

A function is traced for the static shapes of its outermost call, along with what it reaches, and again when a call in
a body passes something else, when it returns something else than was guessed, or when weights turn out to be used in
another way.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tensorflow_recursion import _contributions, _cut, _shapes, _tf
from tensorflow_recursion._shapes import Shapes

if TYPE_CHECKING:
    from tensorflow_recursion._library import Definition, Library

# Traces of one function after which its shapes are given up.
_MAX_ROUNDS = 8
_OTHERWISE = "otherwise"

Handles = tuple[_tf.HandleData | None, ...]


@dataclasses.dataclass(eq=False)
class Trace:
    """The forward and the backward function of one function in one group.

    Attributes:
      definition: what is differentiated.
      forward, backward: names of the two functions.
      arg_shapes: static shapes of the declared arguments, as far as all calls of the group agree.
      handles: what all calls of the group agree on of the variables whose handles are declared arguments.
      trainable: positions of the arguments and captures that have a gradient.
      result_shapes: static shapes of the results, None before the first trace.
      rounds: number of traces.
      functions: the two functions, once traced.
    """

    definition: Definition
    forward: str
    backward: str
    arg_shapes: Shapes
    handles: Handles
    trainable: tuple[int, ...]
    result_shapes: Shapes | None = None
    rounds: int = 0
    functions: tuple[_tf.TracedFunction, ...] = ()


class Group:
    """A function and those it reaches, differentiated for outermost calls with the same static shapes."""

    def __init__(self, library: Library, number: int, is_shaped: bool, order: int) -> None:
        self.order = order  # of the derivatives that the outermost calls return
        self._library = library
        self._number = number
        self._is_shaped = is_shaped
        self._traces: dict[str, Trace] = {}
        self._pending: list[Trace] = []
        # How the bodies use a weight: a kind of contributions, _OTHERWISE, or None as long as none is known. Weights
        # are captured tensors and arguments; those that are handed to each other by calls are one, told by the first.
        self._uses: dict[Any, str | None] = {}
        self._same: dict[Any, Any] = {}

    def weight_of(self, definition: Definition, position: int) -> Any:
        """What an input of a function is as a weight: the captured tensor, or the argument."""
        count = len(definition.inputs)
        if position < count:
            return (definition.user_name, position)
        return (None, self._library.captures(definition.user_name)[position - count].ref())

    def kind_of(self, weight: Any) -> str | None:
        """The kind of contributions that the gradient for a weight is made of; None if it is dense."""
        kind = self._uses.get(self._first(weight))
        return None if kind == _OTHERWISE else kind

    def note_uses(self, weight: Any, tensor: tf.Tensor, uses: Sequence[_contributions.Use]) -> None:
        """Learn how one body uses a weight; if that changes the picture, all are traced again."""
        before = dict(self._uses), dict(self._same)
        kinds = {use.kind for use in uses} - {_contributions.CALL}
        for kind in kinds:
            can_be = kind is not None and _contributions.can_be(kind, tensor)
            self._restrict(weight, kind if can_be else _OTHERWISE)
        for use in uses:
            if use.target is not None and (first := self._first(use.target)) != self._first(weight):
                if (kind := self._uses.get(first)) is not None:
                    self._restrict(weight, kind)
                self._same[first] = self._first(weight)
        if (self._uses, self._same) != before:
            for other in self._traces.values():
                if other.rounds > 0:
                    self._postpone(other)

    def _first(self, weight: Any) -> Any:
        while weight in self._same:
            weight = self._same[weight]
        return weight

    def _restrict(self, weight: Any, kind: str) -> None:
        first = self._first(weight)
        known = self._uses.get(first)
        self._uses[first] = kind if known in (None, kind) else _OTHERWISE

    def forward_name(self, definition_name: str) -> str:
        """The forward function of the function that is called `definition_name` in the graph."""
        return f"{definition_name}__forward{self._number}"

    def require(self, definition: Definition, op: tf.Operation) -> Trace:
        """The trace for a call `op` of `definition`: as it is, not yet made if a trace of this group is in progress."""
        arguments = tuple(op.inputs)[: len(definition.inputs)]
        shapes = tuple(tensor.shape if self._is_shaped else tf.TensorShape(None) for tensor in arguments)
        handles = tuple(_tf.handle_data(tensor) for tensor in arguments)
        trace = self._traces.get(definition.user_name)
        if trace is None:
            forward = self.forward_name(definition.graph_name)
            backward = f"{definition.graph_name}__backward{self._number}"
            trainable = tuple(i for i, tensor in enumerate(op.inputs) if _tf.is_trainable(tensor))
            trace = Trace(definition, forward, backward, shapes, handles, trainable)
            self._traces[definition.user_name] = trace
            self._pending.append(trace)
            return trace
        shapes = tuple(map(_shapes.join, trace.arg_shapes, shapes))
        handles = tuple(map(_tf.join_handle_data, trace.handles, handles))
        if (shapes, handles) != (trace.arg_shapes, trace.handles):
            trace.arg_shapes, trace.handles = shapes, handles
            self._postpone(trace)
        return trace

    def result_shapes(self, name: str) -> Shapes | None:
        """What is known of the shapes that calls of `name` in bodies of this group return."""
        trace = self._traces.get(name)
        return None if trace is None else trace.result_shapes

    def traces(self) -> list[Trace]:
        """Of all functions that were differentiated in the group."""
        return list(self._traces.values())

    def settle(self) -> list[_tf.TracedFunction]:
        """Make what is pending; returns all functions of the group."""
        try:
            while self._pending:
                self._make(self._pending.pop())
        except Exception:
            for state in (self._traces, self._pending, self._uses, self._same):
                state.clear()
            raise
        return [function for trace in self._traces.values() for function in trace.functions]

    def _postpone(self, trace: Trace) -> None:
        if trace not in self._pending:
            self._pending.append(trace)

    def _make(self, trace: Trace) -> None:
        trace.rounds += 1
        if trace.rounds > _MAX_ROUNDS:
            trace.arg_shapes = tuple(tf.TensorShape(None) for _ in trace.arg_shapes)
        body = self._library.new_body(trace.definition)
        split = _cut.Split(trace, body, self, self._library)
        trace.functions = split.functions
        # A guess that the trace confirms is true by induction over the depth of the recursion.
        guess = trace.result_shapes
        if trace.rounds > _MAX_ROUNDS:
            shapes = tuple(tf.TensorShape(None) for _ in split.results)
        elif guess is None:
            shapes = tuple(_shapes.guess(result) for result in split.results)
            guess = tuple(tf.TensorShape(None) for _ in split.results)
        else:
            shapes = tuple(
                _shapes.join(known, result.shape) for known, result in zip(guess, split.results, strict=True)
            )
        trace.result_shapes = shapes
        if not _shapes.are_same(shapes, guess):
            for other in self._traces.values():
                self._postpone(other)
