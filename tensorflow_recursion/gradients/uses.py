"""How a body uses weights, in itself and in its branches and loops: which of its operators make terms for them."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import function_calls, handles, nodes, patches
from tensorflow_recursion.gradients import contributing, contributions, weight_views
from tensorflow_recursion.gradients.contributions import Kind, Part
from tensorflow_recursion.gradients.terms import Terms
from tensorflow_recursion.gradients.weight_views import Step

_CALLS = (names.INVOKE, *function_calls.OPERATORS)
# The gradient for a smaller weight takes hardly longer than its terms do.
_ELEMENTS_OF_A_LARGE_WEIGHT = 4_000
_SELECTIONS = ("Select", "SelectV2")
_STANDS_FOR_INPUT = ("Identity", "EnsureShape", "ReadVariableOp")
# A view that takes more steps is none: each step is taken once more where the gradient is asked for.
_MOST_STEPS = 50

# Function and position of an argument; or None and a reference to the captured tensor.
Weight: TypeAlias = tuple[str | None, Hashable]


@dataclasses.dataclass(eq=False)
class Choice:
    """An output that is one of several weights: of `tf.cond(b, lambda: v, lambda: w)`, or of `tf.where(b, v, w)`.

    Attributes:
      weights: for each branch of the conditional, references to what it returns there, as far as that is a weight, with
        its static shape. A branch that chooses, too, may return several. `tf.where` counts as one of two branches.
    """

    weights: list[dict[Hashable, tf.TensorShape]]

    def is_complete(self) -> bool:
        """Whether every branch returns a weight there, all of the same shape."""
        shapes = [shape for of_branch in self.weights for shape in of_branch.values()]
        are_alike = all(shape.is_fully_defined() and shape.as_list() == shapes[0].as_list() for shape in shapes)
        return all(self.weights) and are_alike

    def references(self) -> list[Hashable]:
        """References to all weights that it may be."""
        return [reference for of_branch in self.weights for reference in of_branch]


@dataclasses.dataclass(frozen=True)
class Use:
    """An operator that reads a weight, or a view of it.

    Attributes:
      op: the operator.
      position: of what it reads among its inputs.
      part: the part of the gradient that it makes terms for; None for a call.
      terms: how it makes them; None if it does not.
      target: what the weight is in the callee; None for anything but a call that hands it on.
      movable: of an obstacle, the operator whose result would be a weight with terms if it were computed outside of the
        recursion; None if there is none.
      choice: what a branch returns the weight for; None if this is no such use.
    """

    op: tf.Operation
    position: int
    part: Part | None
    terms: Terms | None = None
    target: Weight | None = None
    movable: tf.Operation | None = None
    choice: Choice | None = None

    @property
    def is_obstacle(self) -> bool:
        """Whether this use alone makes the gradient dense."""
        return self.part == Part(Kind.OTHER)


@dataclasses.dataclass(kw_only=True)
class Usage:
    """All that a body does with a weight.

    Attributes:
      tensors: what stands for the weight inside of branches and loops and behind loops, its identities and its views.
      makers: the operators that make views, with the position of what they make them of.
      selections: each `tf.where` that chooses the weight.
      uses: the operators that read any of these.
      ends: operators that read them where no gradient goes through, because nothing uses what they make.
    """

    tensors: list[tf.Tensor] = dataclasses.field(default_factory=list)
    makers: list[tuple[tf.Operation, int]] = dataclasses.field(default_factory=list)
    selections: list[tf.Operation] = dataclasses.field(default_factory=list)
    uses: list[Use] = dataclasses.field(default_factory=list)
    ends: list[tf.Operation] = dataclasses.field(default_factory=list)

    def is_collectable(self) -> bool:
        """Whether every use makes terms."""
        return all(use.terms is not None for use in self.uses)

    def obstacles(self) -> list[Use]:
        """The uses that make the gradient dense."""
        return [use for use in self.uses if use.is_obstacle]

    def take(self, other: Usage) -> None:
        """Add what `other` has, and take its lists if they are longer: nobody else may use `other` from then on."""
        for field in dataclasses.fields(self):
            mine, others = getattr(self, field.name), getattr(other, field.name)
            longer, shorter = (mine, others) if len(mine) >= len(others) else (others, mine)
            longer += shorter
            setattr(self, field.name, longer)

    def collect(self, number_of: Callable[[Part], int]) -> None:
        """Let all uses hand out terms; `number_of` is the number of a part."""
        for use in self.uses:
            if use.part is not None and use.terms is not None:
                contributing.contribute_from(use.op, use.position, use.terms, number_of(use.part))
        for op, position in self.makers:
            weight_views.hand_on_terms(op, position)
        for op in self.selections:
            nodes.set_gradient_function(op, _terms_of_selected)
        for op in self.ends:  # a loop that only compares what it reads has a gradient of zeros for it
            nodes.set_gradient_function(op, _no_gradient)
        for tensor in self.tensors:
            patches.set_zeros(tensor, ops.contribute_none)


@dataclasses.dataclass(eq=False)
class _Name:
    """A tensor that stands for a weight in a body, or for a view of it.

    Attributes:
      weight: an argument or a captured tensor of the body.
      tensor: in the body, in a branch or in a loop.
      shape: the static shape of the weight or the view, of which less may be known inside of a branch.
      steps: from the weight to the view; none if it is the weight.
      may_move: whether it is a large weight, or made of such ones, so that what is made of it may be worth moving.
      is_imagined: whether it would stand for a weight only if it were computed outside of the recursion.
      readings: the operators that read it, once it is looked at.
      usage: what is done with it, once that is known.
    """

    weight: tf.Tensor
    tensor: tf.Tensor
    shape: tf.TensorShape
    steps: tuple[Step, ...] = ()
    may_move: bool = False
    is_imagined: bool = False
    readings: list[_Reading] | None = None
    usage: Usage | None = None

    def derived(self, tensor: tf.Tensor, shape: tf.TensorShape, steps: tuple[Step, ...]) -> _Name:
        """Another tensor that stands for the same weight, or for a view of it."""
        return _Name(self.weight, tensor, shape, steps, self.may_move, self.is_imagined)


@dataclasses.dataclass(eq=False)
class _Reading:
    """An operator that reads a name.

    Attributes:
      op: the operator.
      position: of the name among its inputs.
      use: how it uses the name; None if it only gives it other names.
      names: these other names.
      views: the names of the views that it makes.
      results: names of its results, as if these were weights, if they could be computed outside of the recursion.
    """

    op: tf.Operation
    position: int
    use: Use | None
    names: Sequence[_Name] = ()
    views: Sequence[_Name] = ()
    results: Sequence[_Name] | None = None

    def made(self) -> list[_Name]:
        """All names that are made here."""
        return [*self.names, *self.views, *(self.results or ())]


class UsesInBody:
    """Finds the uses of weights in one body."""

    def __init__(
        self,
        arguments: Sequence[tf.Tensor],
        captures: Sequence[tf.Tensor],
        results: Sequence[tf.Tensor],
        target_of: Callable[[tf.Operation, int], Weight | None],
    ) -> None:
        """Look into a body whose conditionals and loops are If, Case and While.

        Args:
          arguments: those that have a gradient.
          captures: what stands in the body for the captured tensors.
          results: what the body returns.
          target_of: of a call and the position of an input, what the callee has there; None if that is not to be known.
        """
        # What is the same in all calls if these arguments are: captured tensors are in any case.
        self._fixed_by: dict[Hashable, frozenset[Hashable]] = {tensor.ref(): frozenset() for tensor in captures}
        self._fixed_by.update((tensor.ref(), frozenset([tensor.ref()])) for tensor in arguments)
        self._results = results
        self._target_of = target_of
        # The results of operators that depend on nothing but these and constants, and for each operator the arguments
        # that it depends on then; None if it depends on anything else.
        self._results_of: dict[tf.Operation, list[_Name]] = {}
        self._arguments_of: dict[tf.Operation, frozenset[Hashable] | None] = {}
        # References to what stands for weights, without a view, and to these.
        self._standing_for: dict[Hashable, Hashable] = {}
        # The conditional that a branch belongs to, and the choices among weights by references to what is chosen.
        self._conditionals: dict[tf.Graph, tf.Operation] = {}
        self._choices: dict[Hashable, Choice] = {}

    def usage(self, weight: tf.Tensor) -> Usage:
        """All uses of an argument or captured tensor: of the weight, or of its variable's handle."""
        _, shape = handles.gradient_type(weight)
        weight_name = _Name(weight, weight, shape, may_move=is_large(shape))
        pending = [weight_name]
        while pending:  # no recursion: chains of operators may be long
            name = pending[-1]
            if name.readings is None:
                if not name.steps and not name.is_imagined:
                    self._standing_for[name.tensor.ref()] = name.weight.ref()
                name.readings = [self._reading(op, position, name) for op, position in _readers(name.tensor)]
                name.readings += self._choosing(name)
            unknown = [made for reading in name.readings for made in reading.made() if made.usage is None]
            if not unknown:
                name.usage = name.usage or self._usage_of(name, name.readings)
                pending.pop()
            pending += unknown
        return _usage(weight_name)

    def settle(self, usage: Usage, weights: Mapping[Hashable, Weight]) -> None:
        """Say what choices are, once the usage of all weights is known: links between weights, or obstacles.

        `weights` says what arguments and captured tensors are, by references to them.
        """
        settled: list[Use] = []
        for use in usage.uses:
            if use.choice is None:
                settled.append(use)
            elif use.choice.is_complete():
                settled += [dataclasses.replace(use, target=weights[one]) for one in use.choice.references()]
            else:
                settled.append(dataclasses.replace(use, part=Part(Kind.OTHER)))
        usage.uses = settled

    def _reading(self, op: tf.Operation, position: int, name: _Name) -> _Reading:
        """How `op` reads a name."""
        if op.type in nodes.BRANCHING:
            self._conditionals.update((branch, op) for branch in nodes.branches(op))
        if others := _stands_for(op, position):
            if name.may_move and (arguments := self._arguments_behind(name.tensor)) is not None:
                self._fixed_by.update((tensor.ref(), arguments) for tensor in others)
            return _Reading(op, position, None, [name.derived(tensor, name.shape, name.steps) for tensor in others])
        if nodes.has_no_gradient(op) or (not op.outputs and op.inputs[position].dtype != tf.resource):
            return _Reading(op, position, None)
        if (choice := self._selecting(op, position, name)) is not None:
            chosen = name.derived(op.outputs[0], name.shape, ())
            return _Reading(op, position, Use(op, position, None, choice=choice), [chosen])
        use = _use(op, position, name)
        views = []
        # Rows that are gathered from a weight are a use, whatever is done with them: of those its gradient is sparse.
        if use.part != Part(Kind.ROWS) and len(name.steps) < _MOST_STEPS:
            views = [
                name.derived(tensor, tensor.shape, (*name.steps, step))
                for tensor, step in weight_views.views(op, position)
            ]
        results = None
        if not views and use.is_obstacle and name.may_move and self.arguments_of(op) is not None:
            if op not in self._results_of:
                self._results_of[op] = [
                    _Name(name.weight, tensor, tensor.shape, may_move=True, is_imagined=True) for tensor in op.outputs
                ]
            results = self._results_of[op]
        return _Reading(op, position, use, (), views, results)

    def _choosing(self, name: _Name) -> Iterator[_Reading]:
        """The conditionals that return a name if they take its branch."""
        op = self._conditionals.get(name.tensor.graph)
        if op is None or name.steps or name.is_imagined or not name.tensor.dtype.is_floating:
            return
        branches = nodes.branches(op)
        number = branches.index(name.tensor.graph)
        for i, output in enumerate(name.tensor.graph.outputs):
            if output is name.tensor:
                use = Use(op, i, None, choice=self._choice(op.outputs[i], len(branches), number, name))
                yield _Reading(op, i, use, [name.derived(op.outputs[i], name.shape, ())])

    def _selecting(self, op: tf.Operation, position: int, name: _Name) -> Choice | None:
        """The choice that `tf.where` makes of a name by one condition; None if `op` is anything else.

        What is the same in all calls is not looked at: it is better made once, and a warning says so.
        """
        if op.type not in _SELECTIONS or position == 0 or name.steps or name.is_imagined:
            return None
        shape = op.outputs[0].shape
        is_whole = shape.is_fully_defined() and name.shape.is_fully_defined() and shape == name.shape
        if (
            not is_whole
            or op.inputs[0].shape.rank != 0
            or not name.tensor.dtype.is_floating
            or self.arguments_of(op) == frozenset()
        ):
            return None
        return self._choice(op.outputs[0], 2, position - 1, name)

    def _choice(self, output: tf.Tensor, count: int, number: int, name: _Name) -> Choice:
        """Note that branch `number` of so many returns a name as `output`."""
        choice = self._choices.setdefault(output.ref(), Choice([{} for _ in range(count)]))
        choice.weights[number][name.weight.ref()] = name.shape
        return choice

    def _usage_of(self, name: _Name, readings: Sequence[_Reading]) -> Usage:
        found = Usage(tensors=[name.tensor])
        is_chosen = any(reading.use is not None and reading.use.choice is not None for reading in readings)
        if any(name.tensor is result for result in self._results) or (_is_returned(name.tensor) and not is_chosen):
            found.uses.append(Use(name.tensor.op, 0, Part(Kind.OTHER)))
        for reading in readings:
            for other in reading.names:
                found.take(_usage(other))
            if reading.use is not None and reading.use.choice is not None:
                found.uses.append(reading.use)
                found.selections += [reading.op] if reading.op.type in _SELECTIONS else []
            elif reading.use is not None:
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
        products = contributing.find_of_row(op, position, name.shape)
        if products is not None and not self._is_returned(op.outputs[0]):
            part = Part(Kind.ROW_PRODUCT, name.steps)
            uses = [Use(product, i, part, found) for (product, i), found in products.items()]
            return Usage(tensors=[op.outputs[0]], makers=[(op, position)], uses=uses)
        if op.type in _CALLS and not name.steps:
            target = None if name.is_imagined else self._target_of(op, position)
            if name.is_imagined or target is not None:
                return Usage(uses=[Use(op, position, None, target=target)])
        if not use.is_obstacle:
            return Usage(uses=[use])
        if made.uses:
            return Usage(uses=made.obstacles())
        if op.type in _CALLS and name.steps and self.arguments_of(op.inputs[position].op) is not None:
            use = dataclasses.replace(use, movable=op.inputs[position].op)
        return Usage(uses=[use]) if reading.results is None else _beyond(use, reading.results)

    def _is_returned(self, tensor: tf.Tensor) -> bool:
        return any(tensor is result for result in self._results) or _is_returned(tensor)

    def arguments_of(self, op: tf.Operation) -> frozenset[Hashable] | None:
        """References to the arguments that an operator depends on, besides constants and captured tensors.

        None if it depends on what may differ between calls whatever the arguments are, such as the result of a call.
        """
        known = self._arguments_of
        pending = [] if op in known else [op]
        while pending:
            sources = self._sources(pending[-1])
            if sources is None:
                known[pending.pop()] = None
            elif unknown := [tensor.op for tensor in sources if not self._is_known(tensor)]:
                pending += unknown
            else:
                found = [self._arguments_behind(tensor) for tensor in sources]
                of_inputs = [arguments for arguments in found if arguments is not None]
                known[pending.pop()] = frozenset().union(*of_inputs) if len(of_inputs) == len(found) else None
        return known[op]

    def _is_known(self, tensor: tf.Tensor) -> bool:
        return tensor.ref() in self._fixed_by or tensor.op in self._arguments_of

    def _arguments_behind(self, tensor: tf.Tensor) -> frozenset[Hashable] | None:
        """`arguments_of` what makes a tensor."""
        fixed_by = self._fixed_by.get(tensor.ref())
        return self.arguments_of(tensor.op) if fixed_by is None else fixed_by

    def _sources(self, op: tf.Operation) -> list[tf.Tensor] | None:
        """What an operator depends on; None if not only on its inputs."""
        if op.type != "Placeholder":
            is_fixed = op.type == "ReadVariableOp" or not op.op_def.is_stateful
            has_function = op.type in (*_CALLS, *nodes.HAVE_BRANCHES)
            return list(op.inputs) if is_fixed and not has_function else None
        if op.outputs[0].ref() in self._fixed_by:
            return [op.outputs[0]]
        outer = nodes.captured_by(op.outputs[0])
        return None if outer is None else [outer]

    def handed_otherwise(self, body: tf.Graph, weights: Mapping[Hashable, Weight]) -> Iterator[Weight]:
        """Weights of callees that calls in the body give anything else than that weight itself.

        `weights` says what arguments and captured tensors are, whose usages have to be known. A tf.function that is
        given no weight is left as it is.
        """
        for op in nodes.operations_within(body):
            if op.type not in _CALLS:
                continue
            given = [weights.get(self._standing_for.get(tensor.ref())) for tensor in op.inputs]
            if op.type == names.INVOKE or any(weight is not None for weight in given):
                targets = ((self._target_of(op, position), weight) for position, weight in enumerate(given))
                yield from (target for target, weight in targets if target is not None and target != weight)


def is_large(shape: tf.TensorShape) -> bool:
    """Whether a dense gradient for a weight takes much longer than terms do."""
    size = shape.num_elements()
    return size is not None and size >= _ELEMENTS_OF_A_LARGE_WEIGHT


def _usage(name: _Name) -> Usage:
    assert name.usage is not None
    return name.usage


def _use(op: tf.Operation, position: int, name: _Name) -> Use:
    """The use of a weight or a view that `op` makes."""
    for find in (contributing.find, contributing.find_whole):
        found = None if name.shape.rank is None else find(op, position, name.shape)
        if found is not None and contributions.can_be(found.kind, found.shape):
            return Use(op, position, Part(found.kind, (*name.steps, *found.steps)), found)
    return Use(op, position, Part(Kind.OTHER))


def _beyond(use: Use, results: Sequence[_Name]) -> Usage:
    """What is done with a weight by an operator that makes no terms, and whose results could be computed elsewhere.

    An obstacle is the last operator of this kind on a way from the weight to terms.
    """
    uses = [other for name in results for other in _usage(name).uses]
    if not uses:
        return Usage(ends=[use.op])
    obstacles = list({(other.op, other.position): other for other in uses if other.is_obstacle}.values())
    if any(obstacle.movable is None for obstacle in obstacles):
        return Usage(uses=[use])
    has_others = not all(other.is_obstacle for other in uses)
    return Usage(uses=[*([dataclasses.replace(use, movable=use.op)] if has_others else []), *obstacles])


def _terms_of_selected(op: tf.Operation, grad: Any) -> list[tf.Tensor | None]:
    """Hand on the terms for what `tf.where` selects as terms for the weight that it selects."""
    if grad is None or grad.dtype != tf.variant:  # zeros of TensorFlow
        return [None] * len(op.inputs)
    first, second = tf.cond(
        op.inputs[0],
        lambda: (tf.identity(grad), ops.contribute_none()),
        lambda: (ops.contribute_none(), tf.identity(grad)),
    )
    return [None, first, second]


def _no_gradient(op: tf.Operation, *_: Any) -> list[None]:
    return [None] * len(op.inputs)


def _readers(tensor: tf.Tensor) -> Iterator[tuple[tf.Operation, int]]:
    """The inputs that `tensor` is."""
    for op in dict.fromkeys(tensor.consumers()):
        yield from ((op, position) for position, source in enumerate(op.inputs) if source is tensor)


def _stands_for(op: tf.Operation, position: int) -> list[tf.Tensor]:
    """The tensors that are input `position` of `op` under another name; none if `op` makes use of it."""
    if op.type in nodes.BRANCHING and position > 0:
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
