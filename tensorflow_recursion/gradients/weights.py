"""How bodies use weights: which of them have a gradient that can be collected from terms.

A weight is a captured tensor, or an argument that is handed on. Weights that calls hand to each other are one.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import function_calls, handles, nodes, patches
from tensorflow_recursion.definitions import Definition
from tensorflow_recursion.gradients import contributions, terms, weight_views
from tensorflow_recursion.gradients.contributions import Kind, Part
from tensorflow_recursion.gradients.terms import Terms
from tensorflow_recursion.gradients.tracer import Tracer
from tensorflow_recursion.gradients.weight_views import Step
from tensorflow_recursion.tracing import body_around

_STANDS_FOR_INPUT = ("Identity", "ReadVariableOp")
_CALLS = (names.INVOKE, *function_calls.OPERATORS)

# Function and position of an argument; or None and a reference to the captured tensor.
Weight: TypeAlias = tuple[str | None, Hashable]


@dataclasses.dataclass(frozen=True)
class Use:
    """An operator that reads a weight, or a view of it.

    Attributes:
      op: the operator.
      position: of what it reads among its inputs.
      part: the part of the gradient that it makes terms for; None for a call.
      terms: how it makes them; None if it does not.
      target: what the weight is in the callee; None for anything but a call that hands it on.
    """

    op: tf.Operation
    position: int
    part: Part | None
    terms: Terms | None = None
    target: Weight | None = None


@dataclasses.dataclass(frozen=True)
class _Name:
    """A tensor that stands for a weight in a body, or for a view of it.

    Attributes:
      tensor: in the body, in a branch or in a loop.
      shape: the static shape of the weight or the view, of which less may be known inside of a branch.
      steps: from the weight to the view; none if it is the weight.
    """

    tensor: tf.Tensor
    shape: tf.TensorShape
    steps: tuple[Step, ...] = ()


@dataclasses.dataclass
class Usage:
    """All that a body does with a weight.

    Attributes:
      tensors: what stands for the weight inside of branches and loops and behind loops, its identities and its views.
      makers: the operators that make views, with the position of what they make them of.
      uses: the operators that read any of these.
    """

    tensors: list[tf.Tensor]
    makers: list[tuple[tf.Operation, int]]
    uses: list[Use]

    def is_collectable(self) -> bool:
        """Whether every use makes terms."""
        return all(use.terms is not None for use in self.uses)

    def add(self, other: Usage) -> None:
        """Take in what is done with one of the tensors."""
        self.tensors += other.tensors
        self.makers += other.makers
        self.uses += other.uses

    def collect(self, number_of: Callable[[Part], int]) -> None:
        """Let all uses hand out terms; `number_of` is the number of a part."""
        for use in self.uses:
            if use.part is not None and use.terms is not None:
                terms.contribute_from(use.op, use.position, use.terms, number_of(use.part))
        for op, position in self.makers:
            weight_views.hand_on_terms(op, position)
        for tensor in self.tensors:
            patches.set_zeros(tensor, ops.contribute_none)


def usage(
    weight: tf.Tensor, results: Sequence[tf.Tensor], target_of: Callable[[tf.Operation, int], Weight | None]
) -> Usage:
    """All uses of an argument or captured tensor in a body, with its branches and loops, which are If, Case and While.

    Args:
      weight: the tensor inside the body: the weight, or its variable's handle.
      results: what the body returns.
      target_of: of a call and the position of an input, what the callee has there; None if that is not to be known.
    """

    def usage_of(name: _Name) -> Usage:
        tensor = name.tensor
        found = Usage([tensor], [], [])
        if any(tensor is result for result in results) or _is_returned(tensor):
            found.uses.append(Use(tensor.op, 0, Part(Kind.OTHER)))
        for op, position in _readers(tensor):
            others = _stands_for(op, position)
            for other in others:
                found.add(usage_of(dataclasses.replace(name, tensor=other)))
            if not others and not nodes.has_no_gradient(op):
                found.add(usage_by(op, position, name))
        return found

    def usage_by(op: tf.Operation, position: int, name: _Name) -> Usage:
        """What `op` does with a weight or a view: it makes a view that is used, or it uses it.

        Rows that are gathered from a weight are a use, whatever is done with them: of those its gradient is sparse.
        """
        use = _use(op, position, name)
        if use.part == Part(Kind.ROWS):
            return Usage([], [], [use])
        made = Usage([], [], [])
        for tensor, step in weight_views.views(op, position):
            made.add(usage_of(_Name(tensor, tensor.shape, (*name.steps, step))))
        if made.tensors and made.is_collectable():
            made.makers.append((op, position))
            return made
        if op.type in _CALLS and not name.steps and (target := target_of(op, position)) is not None:
            return Usage([], [], [Use(op, position, None, target=target)])
        return Usage([], [], [use])

    return usage_of(_Name(weight, handles.gradient_type(weight)[1]))


def _use(op: tf.Operation, position: int, name: _Name) -> Use:
    """The use of a weight or a view that `op` makes."""
    found = None if name.shape.rank is None else terms.find(op, position, name.shape)
    if found is None or not contributions.can_be(found.kind, found.shape):
        return Use(op, position, Part(Kind.OTHER))
    return Use(op, position, Part(found.kind, (*name.steps, *found.steps)), found)


def _readers(tensor: tf.Tensor) -> Iterator[tuple[tf.Operation, int]]:
    """The inputs that `tensor` is."""
    for op in tensor.consumers():
        yield from ((op, position) for position, source in enumerate(op.inputs) if source is tensor)


def _stands_for(op: tf.Operation, position: int) -> list[tf.Tensor]:
    """The tensors that are input `position` of `op` under another name; none if `op` makes use of it."""
    if op.type in (*nodes.CONDITIONALS, *nodes.CASES) and position > 0:
        return [branch.inputs[position - 1] for branch in nodes.branches(op)]
    if op.type in nodes.LOOPS:
        body = nodes.loop_body(op)
        is_unchanged = _origin(body.outputs[position]) is body.inputs[position]
        return [body.inputs[position], op.outputs[position]] if is_unchanged else []
    return [op.outputs[0]] if op.type in _STANDS_FOR_INPUT else []


def _origin(tensor: tf.Tensor) -> tf.Tensor:
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _is_returned(tensor: tf.Tensor) -> bool:
    """Whether a branch returns a tensor, or the body of a loop does other than to the next iteration."""
    graph = tensor.graph
    return any(
        output is tensor and not (nodes.is_loop_body(graph) and _origin(tensor) is graph.inputs[position])
        for position, output in enumerate(getattr(graph, "outputs", ()))
    )


class Weights:
    """The parts of the gradients for the weights of a group, as far as bodies have been traced."""

    def __init__(self, tracer: Tracer, *, all_dense: bool) -> None:
        """`all_dense` says that every gradient is computed where it arises, whatever it is made of."""
        self._all_dense = all_dense
        self._tracer = tracer
        self._parts: dict[Weight, set[Part]] = {}
        self._numbers: dict[Part, int] = {}
        # Weights that are the same -> the first of them, or one nearer to it.
        self._same: dict[Weight, Weight] = {}
        # Those that several frames have: captured tensors, and arguments that a call hands on.
        self._shared: set[Weight] = set()

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

    def parts_of(self, weight: Weight) -> Mapping[Part, int]:
        """The parts that the gradient for a weight is collected from, with their numbers; none if it is dense.

        It is dense of what one frame has alone. There is nothing to be summed, and terms are more work.
        """
        first = self._first(weight)
        parts = self._parts.get(first, ())
        if self._all_dense or first not in self._shared or any(part.kind is Kind.OTHER for part in parts):
            return {}
        return {part: number for part, number in self._numbers.items() if part in parts}

    def number_of(self, part: Part) -> int:
        """The number of a part, which is the same for all weights of the group."""
        return self._numbers.setdefault(part, len(self._numbers))

    def note_uses(self, weight: Weight, uses: Sequence[Use], *, is_captured: bool) -> None:
        """Learn how one body uses a weight."""
        if self._all_dense:
            return
        if is_captured or any(use.target is not None for use in uses):
            self._shared.add(self._first(weight))
        for use in uses:
            if use.part is not None:
                self.number_of(use.part)
                self._parts.setdefault(self._first(weight), set()).add(use.part)
        for use in uses:
            if use.target is not None and (first := self._first(use.target)) != self._first(weight):
                self._parts.setdefault(self._first(weight), set()).update(self._parts.get(first, ()))
                self._same[first] = self._first(weight)

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
        self._numbers.clear()
        self._same.clear()
        self._shared.clear()

    def _first(self, weight: Weight) -> Weight:
        while weight in self._same:
            weight = self._same[weight]
        return weight
