"""How a body uses weights, in itself and in its branches and loops: which of its operators make terms for them.

Take a body f(x, w) with a matrix w of 100 x 100 numbers, that computes

    f(x @ tf.transpose(w), w)    # a MatMul, a Transpose, and a call

1. Names are found: the tensors that stand for w or for a view of it. The argument itself is one, and the placeholders
   that w is inside of branches and loops would be others. `tf.transpose(w)` is linear in w. So its result is the name
   of a view, with one step from w to it.
2. Each operator that reads a name is classified, as a *reading*. The Transpose has the reading that makes a view. The
   MatMul uses the view: its gradient for w can be handed out as terms, pairs (x, dy) of one part, that of products with
   `tf.transpose(w)`. The call uses w: it hands w on to the argument 1 of f, which is the *target* of this use.
3. It is decided what is done with each name, the last ones first (`Usage`). All that is done with the view makes terms.
   So the Transpose hands on those terms as terms for w, and what is done with w are two uses, the MatMul and the call.
   Were one of them no such use, or the body to return w, that would be an *obstacle*, and the gradient dense.

Now let the body compute `x @ tf.tanh(w)`. The Tanh is an obstacle, because it is not linear. Then the user is told what
to do. As w is large, its gradient is worth a change of the program (`may_move`), and `tf.tanh(w)` depends on arguments
alone (`FixedValues`). If a caller computed it, and passed it on in place of w, it would be a weight itself. So the
result of the Tanh is an *imagined* name (`is_imagined`), and is looked at as other names are. Only a MatMul reads it,
which makes terms. So the change is worth it, and the Tanh is the operator to be moved to the caller, `Use.movable`.

Where a branch returns w, or `tf.where` selects w, the result is one of several weights, a `Choice`. Whether each of
them is a weight is known after all of them were looked at. `UsesInBody.settle` says it then.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles, nodes
from tensorflow_recursion.weight_gradients import contributing, contributions, weight_views
from tensorflow_recursion.weight_gradients.contributions import Kind, Part
from tensorflow_recursion.weight_gradients.fixed_values import FixedValues
from tensorflow_recursion.weight_gradients.usages import Choice, Usage, Use, Weight
from tensorflow_recursion.weight_gradients.weight_views import Step

# The gradient for a smaller weight takes hardly longer than its terms do.
_ELEMENTS_OF_A_LARGE_WEIGHT = 4_000
_SELECTIONS = ("Select", "SelectV2")
_STANDS_FOR_INPUT = ("Identity", "EnsureShape", "ReadVariableOp")
# A view that takes more steps is none: each step is taken once more where the gradient is asked for.
_MOST_STEPS = 50


@dataclasses.dataclass(eq=False)
class _Name:
    """A tensor that stands for a weight in a body, or for a view of it.

    Attributes:
      weight: the argument of the body, or what stands in it for a captured tensor.
      tensor: the tensor that is the name: in the body, in a branch or in a loop.
      shape: the static shape of the weight or the view, of which less may be known inside of a branch.
      steps: the operators that make the view of the weight, `tf.transpose` for example; none if it is the weight.
      may_move: whether the weight is large, so that it is worth computing outside of the recursion what is made of it.
      is_imagined: whether it is a weight only if it is computed outside of the recursion, as `tf.tanh(w)`.
      readings: the operators that read it; None as long as it was not looked at.
      usage: what is done with it; None as long as that is not known.
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
      use: how it uses the name; None if it has no gradient for it, or only gives it other names, as an Identity does.
      names: those other names.
      views: the names of the views that it makes, as a Transpose does.
      results: the imagined names of its results, as of a Tanh; None if they could not be computed elsewhere.
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


class _Choices:
    """The outputs in one body that are one of several weights."""

    def __init__(self, fixed: FixedValues) -> None:
        self._fixed = fixed
        # The conditional that a branch belongs to, and the choices among weights by references to what is chosen.
        self._conditionals: dict[tf.Graph, tf.Operation] = {}
        self._choices: dict[Hashable, Choice] = {}

    def note_conditional(self, op: tf.Operation) -> None:
        """Learn of a conditional, of which branches may return weights."""
        self._conditionals.update((branch, op) for branch in nodes.branches(op))

    def by_conditional(self, name: _Name) -> Iterator[_Reading]:
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

    def by_selection(self, op: tf.Operation, position: int, name: _Name) -> Choice | None:
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
            or self._fixed.arguments_of(op) == frozenset()
        ):
            return None
        return self._choice(op.outputs[0], 2, position - 1, name)

    def _choice(self, output: tf.Tensor, count: int, number: int, name: _Name) -> Choice:
        """Note that branch `number` of so many returns a name as `output`."""
        choice = self._choices.setdefault(output.ref(), Choice([{} for _ in range(count)]))
        choice.weights[number][name.weight.ref()] = name.shape
        return choice


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
        self.fixed = FixedValues(arguments, captures)
        self._results = results
        self._target_of = target_of
        # The imagined names of what operators make of weights, of which all depends on arguments and captures alone.
        self._results_of: dict[tf.Operation, list[_Name]] = {}
        # References to what stands for weights, without a view, and to these.
        self._standing_for: dict[Hashable, Hashable] = {}
        self._choices = _Choices(self.fixed)

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
                name.readings += self._choices.by_conditional(name)
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

    def handed_otherwise(self, body: tf.Graph, weights: Mapping[Hashable, Weight]) -> Iterator[Weight]:
        """The weights of callees for which calls in the body pass another value than that weight, its tanh for example.

        `weights` says which weights the arguments and captured tensors of this body are; their usages have to be known.
        A tf.function that is given no weight is left as it is.
        """
        for op in nodes.operations_within(body):
            if op.type not in ops.CALLS:
                continue
            given = [weights.get(self._standing_for.get(tensor.ref())) for tensor in op.inputs]
            if op.type == names.INVOKE or any(weight is not None for weight in given):
                targets = ((self._target_of(op, position), weight) for position, weight in enumerate(given))
                yield from (target for target, weight in targets if target is not None and target != weight)

    # -- What an operator makes of a name that it reads ----------------------------------------------------------------

    def _reading(self, op: tf.Operation, position: int, name: _Name) -> _Reading:
        """How `op` reads a name: it gives it another name, selects it, makes a view of it, or uses it."""
        if op.type in nodes.BRANCHING:
            self._choices.note_conditional(op)
        if others := _stands_for(op, position):
            if name.may_move:
                self.fixed.note_same(name.tensor, others)
            return _Reading(op, position, None, [name.derived(tensor, name.shape, name.steps) for tensor in others])
        if nodes.has_no_gradient(op) or (not op.outputs and op.inputs[position].dtype != tf.resource):
            return _Reading(op, position, None)
        if (choice := self._choices.by_selection(op, position, name)) is not None:
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
        if not views and use.is_obstacle and name.may_move and self.fixed.arguments_of(op) is not None:
            if op not in self._results_of:
                self._results_of[op] = [
                    _Name(name.weight, tensor, tensor.shape, may_move=True, is_imagined=True) for tensor in op.outputs
                ]
            results = self._results_of[op]
        return _Reading(op, position, use, (), views, results)

    # -- What is done with a name, of which the names that are made of it are known ------------------------------------

    def _usage_of(self, name: _Name, readings: Sequence[_Reading]) -> Usage:
        """All that is done with a name: by those that read it, and by the body that returns it."""
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
        # A view, of which all uses make terms: as `tf.transpose(w)`, which a MatMul reads.
        made = Usage()
        for view in reading.views:
            made.take(_usage(view))
        if made.tensors and made.is_collectable():
            made.makers.append((op, position))
            return made
        # A row W[k] of a stack of matrices that products read: these make the terms, for the whole stack.
        products = contributing.find_of_row(op, position, name.shape)
        if products is not None and not self._is_returned(op.outputs[0]):
            part = Part(Kind.ROW_PRODUCT, name.steps)
            uses = [Use(product, i, part, found) for (product, i), found in products.items()]
            return Usage(tensors=[op.outputs[0]], makers=[(op, position)], uses=uses)
        # A call that hands a weight on; what it does with an imagined weight is not followed.
        if op.type in ops.CALLS and not name.steps:
            target = None if name.is_imagined else self._target_of(op, position)
            if name.is_imagined or target is not None:
                return Usage(uses=[Use(op, position, None, target=target)])
        if not use.is_obstacle:
            return Usage(uses=[use])
        # A view with uses that make no terms: these are what the user can change. Then obstacles of other kinds.
        if made.uses:
            return Usage(uses=made.obstacles())
        if op.type in ops.CALLS and name.steps and self.fixed.arguments_of(op.inputs[position].op) is not None:
            use = dataclasses.replace(use, movable=op.inputs[position].op)
        return Usage(uses=[use]) if reading.results is None else _beyond(use, reading.results)

    def _is_returned(self, tensor: tf.Tensor) -> bool:
        return any(tensor is result for result in self._results) or _is_returned(tensor)


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
