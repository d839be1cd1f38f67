"""What the bodies of a group tell while they are traced, and which traces rest on less than is known by now.

Whoever traces a body asks: which values in a record have a gradient? What does that function return? The first answers
are guesses. For example, f calls g, and g calls f: when f is traced, nothing is known of g yet. A trace keeps each
question with the answer that it was given, and is stale, which means that the body has to be traced again, if the
question has another answer later.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import tensorflow as tf

from tensorflow_recursion.forward_backward.tracer import Tracer
from tensorflow_recursion.traces.definitions import Definition
from tensorflow_recursion.traces.traced_bodies import body_around
from tensorflow_recursion.weight_gradients.contributions import Part
from tensorflow_recursion.weight_gradients.usages import Weight
from tensorflow_recursion.weight_gradients.weights import Weights

_Answer = TypeVar("_Answer")


class Told:
    """The questions that were asked during one trace, and what the answers were."""

    def __init__(self) -> None:
        self._answers: list[tuple[Callable[[], Any], Any]] = []

    def add(self, question: Callable[[], Any], answer: Any) -> None:
        """Note the answer to a question."""
        self._answers.append((question, answer))

    def is_stale(self) -> bool:
        """Whether an answer has become another one."""
        return any(question() != answer for question, answer in self._answers)


class Knowledge:
    """What is known of the functions of a group so far. It only grows.

    Attributes:
      weights: how the bodies of the group use their weights.
    """

    def __init__(self, tracer: Tracer, *, all_dense: bool) -> None:
        """`all_dense` says that no gradients of weights are collected."""
        self.weights = Weights(all_dense=all_dense)
        self._tracer = tracer
        # For each function whose records have gradients: which of the values in them have one.
        self._record_positions: dict[str, tuple[int, ...]] = {}
        self._has_zero_records = False
        # Of the trace in progress.
        self._told: Told | None = None

    @contextlib.contextmanager
    def tracing(self) -> Iterator[Told]:
        """Note what is asked inside."""
        outer, self._told = self._told, Told()
        try:
            yield self._told
        finally:
            self._told = outer

    def ask(self, question: Callable[[], _Answer]) -> _Answer:
        """The answer to a question, on which the trace in progress rests. The question must hold no graph."""
        answer = question()
        if self._told is not None:
            self._told.add(question, answer)
        return answer

    def weight_of(self, definition: Definition, position: int) -> Weight:
        """The weight that an input of a function is: a captured tensor, or an argument, which goes by its position.

        What a function that a body makes captures of that body goes by its position, too, because it is another tensor
        in each trace.
        """
        count = len(definition.inputs)
        if position < count:
            return (definition.lasting_name, position)
        capture = self._tracer.captures(definition.user_name)[position - count]
        is_of_body = tf.is_symbolic_tensor(capture) and body_around(capture.graph) is not None
        return (definition.lasting_name, position) if is_of_body else (None, capture.ref())

    def is_collected(self, definition: Definition, position: int) -> bool:
        """Whether the gradient for an input of a function is collected from terms; else it is dense."""
        weight = self.weight_of(definition, position)
        return self.ask(lambda: bool(self.weights.parts_of(weight)))

    def parts_of(self, definition: Definition, position: int) -> Mapping[Part, int]:
        """The parts of the gradient for an input of a function, with their numbers; none if it is dense."""
        weight = self.weight_of(definition, position)
        return self.ask(lambda: self.weights.parts_of(weight))

    def record_positions(self, owner: str) -> tuple[int, ...]:
        """Which values in the records of `owner` have a gradient."""
        return self.ask(lambda: self._record_positions.get(owner, ()))

    def note_record_gradient(self, owner: str, positions: Iterable[int]) -> tuple[int, ...]:
        """Learn that values in the records of `owner` have a gradient; returns which of them have one, by now."""
        known = self._record_positions.get(owner, ())
        self._record_positions[owner] = tuple(sorted({*known, *positions}))
        return self.record_positions(owner)

    def has_zero_records(self) -> bool:
        """Whether a gradient for a record may be zeros: scalars for tensors of any shape."""
        return self.ask(lambda: self._has_zero_records)

    def note_zero_records(self) -> None:
        """Learn that a call may have gradients for its results alone: zeros stand for the gradient of its record."""
        self._has_zero_records = True

    def clear(self) -> None:
        """Forget what was learned."""
        self.weights.clear()
        self._record_positions.clear()
        self._has_zero_records = False
