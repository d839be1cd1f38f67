"""How a body uses weights, in itself and in its branches and loops: which of its operators make terms for them."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import function_calls, handles, nodes, patches
from tensorflow_recursion.gradients import contributions, terms, weight_views
from tensorflow_recursion.gradients.contributions import Kind, Part
from tensorflow_recursion.gradients.terms import Terms
from tensorflow_recursion.gradients.weight_views import Step

CALLS = (names.INVOKE, *function_calls.OPERATORS)
# The gradient for a smaller weight takes hardly longer than its terms do.
ELEMENTS_OF_A_LARGE_WEIGHT = 4_000

_STANDS_FOR_INPUT = ("Identity", "ReadVariableOp")
# A view that takes more steps is none: each step is taken once more where the gradient is asked for.
_MOST_STEPS = 50

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
      is_result: whether the use is that the body, or a branch, returns what `op` makes.
      may_move: whether terms could be made for the results of `op` if something else than the body computed them.
    """

    op: tf.Operation
    position: int
    part: Part | None
    terms: Terms | None = None
    target: Weight | None = None
    is_result: bool = False
    may_move: bool = False

    @property
    def is_obstacle(self) -> bool:
        """Whether this use alone makes the gradient dense."""
        return self.part == Part(Kind.OTHER)


@dataclasses.dataclass
class Usage:
    """All that a body does with a weight.

    Attributes:
      tensors: what stands for the weight inside of branches and loops and behind loops, its identities and its views.
      makers: the operators that make views, with the position of what they make them of.
      uses: the operators that read any of these.
    """

    tensors: list[tf.Tensor] = dataclasses.field(default_factory=list)
    makers: list[tuple[tf.Operation, int]] = dataclasses.field(default_factory=list)
    uses: list[Use] = dataclasses.field(default_factory=list)

    def is_collectable(self) -> bool:
        """Whether every use makes terms."""
        return all(use.terms is not None for use in self.uses)

    def obstacles(self) -> list[Use]:
        """The uses that make the gradient dense."""
        return [use for use in self.uses if use.is_obstacle]

    def take(self, other: Usage) -> None:
        """Add what `other` has, which may be changed by that: the longer lists of the two are kept."""
        for field in dataclasses.fields(self):
            mine, others = getattr(self, field.name), getattr(other, field.name)
            longer, shorter = (mine, others) if len(mine) >= len(others) else (others, mine)
            longer += shorter
            setattr(self, field.name, longer)

    def collect(self, number_of: Callable[[Part], int]) -> None:
        """Let all uses hand out terms; `number_of` is the number of a part."""
        for use in self.uses:
            if use.part is not None and use.terms is not None:
                terms.contribute_from(use.op, use.position, use.terms, number_of(use.part))
        for op, position in self.makers:
            weight_views.hand_on_terms(op, position)
        for tensor in self.tensors:
            patches.set_zeros(tensor, ops.contribute_none)


@dataclasses.dataclass(eq=False)
class _Name:
    """A tensor that stands for a weight in a body, or for a view of it.

    Attributes:
      tensor: in the body, in a branch or in a loop.
      shape: the static shape of the weight or the view, of which less may be known inside of a branch.
      steps: from the weight to the view; none if it is the weight.
      is_large: whether the weight is.
      is_imagined: whether it only would stand for a weight if something else than the body computed it.
      readings: the operators that read it, once it is looked at.
      usage: what is done with it, once that is known.
    """

    tensor: tf.Tensor
    shape: tf.TensorShape
    steps: tuple[Step, ...] = ()
    is_large: bool = False
    is_imagined: bool = False
    readings: list[_Reading] | None = None
    usage: Usage | None = None

    def derived(self, tensor: tf.Tensor, shape: tf.TensorShape, steps: tuple[Step, ...]) -> _Name:
        """Another tensor that stands for the same weight, or for a view of it."""
        return _Name(tensor, shape, steps, self.is_large, self.is_imagined)


@dataclasses.dataclass(eq=False)
class _Reading:
    """An operator that reads a name.

    Attributes:
      op: the operator.
      position: of the name among its inputs.
      use: how it uses the name; None if it only gives it other names.
      names: these other names.
      views: the names of the views that it makes.
      behind: names of its results, as if these were weights, if they could be computed elsewhere.
    """

    op: tf.Operation
    position: int
    use: Use | None
    names: Sequence[_Name] = ()
    views: Sequence[_Name] = ()
    behind: Sequence[_Name] = ()

    def made(self) -> list[_Name]:
        """All names that are made here."""
        return [*self.names, *self.views, *self.behind]


class UsesInBody:
    """Finds the uses of weights in one body."""

    def __init__(
        self,
        graph: tf.Graph,
        results: Sequence[tf.Tensor],
        target_of: Callable[[tf.Operation, int], Weight | None],
    ) -> None:
        """Look into a body whose conditionals and loops are If, Case and While.

        Args:
          graph: the body's.
          results: what the body returns.
          target_of: of a call and the position of an input, what the callee has there; None if that is not to be known.
        """
        self._graph = graph
        self._results = results
        self._target_of = target_of
        # The results of operators as weights of their own.
        self._behind: dict[tf.Operation, list[_Name]] = {}
        # Whether operators depend on nothing but constants and inputs of the body.
        self._depends_on_inputs: dict[tf.Operation, bool] = {}

    def usage(self, weight: tf.Tensor) -> Usage:
        """All uses of an argument or captured tensor: of the weight, or of its variable's handle."""
        _, shape = handles.gradient_type(weight)
        weight_name = _Name(weight, shape, is_large=is_large(shape))
        pending = [weight_name]
        while pending:  # no recursion: chains of operators may be long
            name = pending[-1]
            if name.readings is None:
                name.readings = [self._reading(op, position, name) for op, position in _readers(name.tensor)]
            unknown = [made for reading in name.readings for made in reading.made() if made.usage is None]
            if not unknown:
                name.usage = name.usage or self._usage_of(name, name.readings)
                pending.pop()
            pending += unknown
        return _usage(weight_name)

    def _reading(self, op: tf.Operation, position: int, name: _Name) -> _Reading:
        """How `op` reads a name."""
        if others := _stands_for(op, position):
            return _Reading(op, position, None, [name.derived(tensor, name.shape, name.steps) for tensor in others])
        if nodes.has_no_gradient(op):
            return _Reading(op, position, None)
        use = _use(op, position, name)
        views = []
        # Rows that are gathered from a weight are a use, whatever is done with them: of those its gradient is sparse.
        if use.part != Part(Kind.ROWS) and len(name.steps) < _MOST_STEPS:
            views = [
                name.derived(tensor, tensor.shape, (*name.steps, step))
                for tensor, step in weight_views.views(op, position)
            ]
        behind = []
        if not views and use.is_obstacle and name.is_large and self._is_of_inputs(op):
            if op not in self._behind:
                self._behind[op] = [
                    _Name(tensor, tensor.shape, is_large=True, is_imagined=True) for tensor in op.outputs
                ]
            behind = self._behind[op]
        return _Reading(op, position, use, (), views, behind)

    def _usage_of(self, name: _Name, readings: Iterable[_Reading]) -> Usage:
        found = Usage([name.tensor])
        if self._is_returned(name.tensor):
            found.uses.append(Use(name.tensor.op, 0, Part(Kind.OTHER), is_result=True))
        for reading in readings:
            for other in reading.names:
                found.take(_usage(other))
            if reading.use is not None:
                found.take(self._usage_by(reading, reading.use, name))
        return found

    def _usage_by(self, reading: _Reading, use: Use, name: _Name) -> Usage:
        """What an operator does with a weight or a view: it makes a view that is used, or it uses it."""
        op, position = reading.op, reading.position
        made = Usage()
        for view in reading.views:
            made.take(_usage(view))
        if made.tensors and made.is_collectable():
            made.makers.append((op, position))
            return made
        products = terms.find_of_row(op, position, name.shape)
        if products is not None and not self._is_returned(op.outputs[0]):
            part = Part(Kind.ROW_PRODUCT, name.steps)
            uses = [Use(product, i, part, found) for (product, i), found in products.items()]
            return Usage([op.outputs[0]], [(op, position)], uses)
        if op.type in CALLS and not name.steps:
            target = None if name.is_imagined else self._target_of(op, position)
            if name.is_imagined or target is not None:
                return Usage(uses=[Use(op, position, None, target=target)])
        return Usage(uses=_obstacles(use, made, reading.behind) if use.is_obstacle else [use])

    def _is_returned(self, tensor: tf.Tensor) -> bool:
        return any(tensor is result for result in self._results) or _is_returned(tensor)

    def _is_of_inputs(self, op: tf.Operation) -> bool:
        """Whether an operator depends on nothing but constants and inputs of the body."""
        known = self._depends_on_inputs
        pending = [op]
        while pending:
            sources = self._sources(pending[-1])
            if sources is None or any(known.get(source) is False for source in sources):
                known[pending.pop()] = False
            elif unknown := [source for source in sources if source not in known]:
                pending += unknown
            else:
                known[pending.pop()] = True
        return known[op]

    def _sources(self, op: tf.Operation) -> list[tf.Operation] | None:
        """What an operator depends on, which is nothing for inputs of the body; None if on more than its inputs."""
        if op.type != "Placeholder":
            return [tensor.op for tensor in op.inputs] if is_fixed(op) else None
        if op.graph is self._graph:
            return []
        outer = nodes.captured_by(op.outputs[0])
        return None if outer is None else [outer.op]


def is_large(shape: tf.TensorShape) -> bool:
    """Whether a dense gradient for a weight takes much longer than terms do."""
    size = shape.num_elements()
    return size is not None and size >= ELEMENTS_OF_A_LARGE_WEIGHT


def is_fixed(op: tf.Operation) -> bool:
    """Whether what an operator returns depends on nothing but its inputs, and no branch or callee computes it."""
    reads = op.type == "ReadVariableOp" or not op.op_def.is_stateful
    return reads and op.type not in (*CALLS, *nodes.HAVE_BRANCHES)


def _usage(name: _Name) -> Usage:
    assert name.usage is not None
    return name.usage


def _use(op: tf.Operation, position: int, name: _Name) -> Use:
    """The use of a weight or a view that `op` makes."""
    for find in (terms.find, terms.find_whole):
        found = None if name.shape.rank is None else find(op, position, name.shape)
        if found is not None and contributions.can_be(found.kind, found.shape):
            return Use(op, position, Part(found.kind, (*name.steps, *found.steps)), found)
    return Use(op, position, Part(Kind.OTHER))


def _obstacles(use: Use, made: Usage, behind: Sequence[_Name]) -> list[Use]:
    """The uses that make a gradient dense where `use`, by an operator of its own, does: the farthest from the weight.

    Args:
      use: the use.
      made: that of views that the operator makes.
      behind: names of its results, if these could be computed elsewhere. If nothing uses them, no gradient goes through
        the operator.
    """
    if made.uses or not behind:
        return made.obstacles() or [use]
    uses = [other for name in behind for other in _usage(name).uses]
    obstacles = [other for other in uses if other.is_obstacle]
    if obstacles and all(obstacle.may_move for obstacle in obstacles):
        return obstacles
    return [dataclasses.replace(use, may_move=not obstacles)] if uses else []


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
