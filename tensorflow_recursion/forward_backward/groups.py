"""Decides which functions are differentiated together, and for which static shapes.

A function is traced for the shapes that it states, or else for the static shapes of its outermost call, along with the
functions that it reaches. It is traced again when a call in a body passes something else, when it returns something
else than was guessed, or when weights turn out to be used in another way: until all that was assumed holds.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import functions, graphs, handles
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.handles import HandleData
from tensorflow_recursion.forward_backward import effects
from tensorflow_recursion.forward_backward.bodies import BodyWithGradient
from tensorflow_recursion.forward_backward.cut import cut
from tensorflow_recursion.forward_backward.knowledge import Knowledge
from tensorflow_recursion.forward_backward.modes import Modes
from tensorflow_recursion.forward_backward.pair_functions import BackwardFunction, ForwardFunction, PairFunction
from tensorflow_recursion.forward_backward.pairs import Handles, Pair
from tensorflow_recursion.forward_backward.tracer import Tracer
from tensorflow_recursion.traces import shapes as static_shapes
from tensorflow_recursion.traces.definitions import Definition, came_along, original_of
from tensorflow_recursion.traces.shapes import Shapes
from tensorflow_recursion.weight_gradients import obstacles

tf1 = tf.compat.v1

# How often the functions of a group may be traced again for what others have told, and two times more for each.
_MAX_SWEEPS = 30
# How often shapes of a function may turn out to be less than was assumed before nothing is assumed of them.
_MAX_CHANGES = 8
# Call sites of one function with so many different static shapes get groups of their own; later ones share one.
_MAX_SHAPED_GROUPS = 4

# Name of a function; static shapes of its arguments, None if they are not told apart; what is known of the variable or
# the elements, for each argument that is a handle or a list; what the gradient is for.
_Key: TypeAlias = tuple[str, tuple[str, ...] | None, tuple[Hashable, ...], "Purpose"]


class BackwardNames:
    """What the backward functions of a graph are called: as the user says, or by the function and the group."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        # For each name that a user gave: whose gradient has it, and in which group.
        self._owners: dict[str, tuple[str, int]] = {}

    def backward(self, definition: Definition, number: int) -> str:
        """The name in the `number`-th group. The one that the user gave goes to the first group that asks for it.

        Raises:
          ValueError: if the user gave a name that another function of the graph has.
        """
        registry = self._tracer.registry
        name = definition.gradient_name
        if name is None:
            return f"{registry.graph_name(definition.user_name)}{names.BACKWARD_SUFFIX}{number}"
        owner = self._owners.get(name)
        if owner is None:
            self._check_free(definition, name)
            owner = self._owners[name] = (definition.user_name, number)
        if owner[0] != definition.user_name:
            raise ValueError(
                f"Function '{names.shown(definition.user_name)}': grad_func is {name!r}, which is the gradient of "
                f"'{names.shown(owner[0])}'; give it another name"
            )
        return registry.graph_name(name) if owner[1] == number else f"{registry.graph_name(name)}{number}"

    def _check_free(self, definition: Definition, name: str) -> None:
        registry = self._tracer.registry
        is_known = name in registry.definitions or name in registry.declarations
        if is_known or functions.has_function(self._tracer.graph, registry.graph_name(name)):
            raise ValueError(
                f"Function '{names.shown(definition.user_name)}': grad_func is {name!r}, which is another function of "
                "the graph; give the gradient another name"
            )


class Purpose(enum.Enum):
    """What the gradients of a group are for."""

    REVERSE = enum.auto()  # for gradients in reverse mode: those of weights are collected
    FORWARD = enum.auto()  # for tangents, which forward accumulators ask of every operator: all gradients are dense
    TEMPLATES = enum.auto()  # to be differentiated as functions: they are dense, and never called in the user's graph


class Group:
    """A function and those it reaches, differentiated for outermost calls with the same static shapes.

    Attributes:
      known: what the bodies have told so far.
      purpose: what the gradients are for.
    """

    def __init__(
        self,
        tracer: Tracer,
        modes: Modes,
        backward_names: BackwardNames,
        lists: dict[str, Handles],
        number: int,
        is_shaped: bool,
        purpose: Purpose,
    ) -> None:
        """Makes the `number`-th group of a graph; `is_shaped` says whether static shapes are told apart in it.

        `lists` is what earlier groups have found out of lists that functions return, and learns what this one does.
        """
        self._lists = lists
        self.purpose = purpose
        self.known = Knowledge(tracer, all_dense=purpose is not Purpose.REVERSE)
        self._tracer = tracer
        self._modes = modes
        self._names = backward_names
        self._number = number
        self._is_shaped = is_shaped
        self._pairs: dict[str, Pair] = {}
        # Whose body is being traced.
        self._traced: Pair | None = None

    def forward_name(self, definition_name: str) -> str:
        """The forward function of the function that is called `definition_name` in the graph."""
        return f"{definition_name}{names.FORWARD_SUFFIX}{self._number}"

    def require(self, definition: Definition, inputs: Sequence[tf.Tensor]) -> Pair:
        """The pair for a call of `definition`, as far as it is made; `settle` makes what is missing."""
        arguments = inputs[: len(definition.inputs)]
        stated = definition.arg_shapes
        shapes = stated or tuple(tensor.shape if self._is_shaped else tf.TensorShape(None) for tensor in arguments)
        known = tuple(handles.handle_data(tensor) for tensor in arguments)
        if isinstance(definition, PairFunction):
            known = tuple(map(handles.join_handle_data, definition.argument_handles, known))
        if self._traced is not None:
            self._traced.callees.add(definition.lasting_name)
        pair = self._pairs.get(definition.lasting_name)
        if pair is None:
            forward = self.forward_name(self._tracer.registry.graph_name(definition.user_name))
            backward = self._names.backward(definition, self._number)
            trainable = tuple(_trainable(inputs, known))
            pair = Pair(definition, forward, backward, shapes, known, trainable)
            pair.result_handles = self._lists.get(definition.lasting_name, ())
            if isinstance(definition, PairFunction):
                pair.result_handles = definition.result_handles
            self._pairs[definition.lasting_name] = pair
        else:
            self._join(pair, definition, inputs, shapes, known)
        self.known.ask(lambda: (pair.trainable, pair.known_lists()))
        return pair

    def _join(
        self, pair: Pair, definition: Definition, inputs: Sequence[tf.Tensor], shapes: Shapes, known: Handles
    ) -> None:
        """Let `pair` serve another call: it takes what is true of the arguments of all of them."""
        if pair.definition is not definition:  # of an earlier trace of the body that makes it
            pair.definition, pair.changes = definition, 0
        shapes = tuple(map(static_shapes.join, pair.arg_shapes, shapes))
        pair.changes += not static_shapes.are_same(shapes, pair.arg_shapes)
        pair.arg_shapes = shapes
        pair.handles = tuple(map(handles.join_handle_data, pair.handles, known))
        pair.add_trainable(_trainable(inputs, pair.handles))

    def result_shapes(self, name: str, otherwise: Shapes | None) -> Shapes | None:
        """What is known of the shapes that calls of `name` in the group return; `otherwise` if nothing is."""

        def shapes() -> Shapes | None:
            pair = self._pair_of(name)
            return (None if pair is None else pair.result_shapes) or otherwise

        self.known.ask(lambda: static_shapes.shown(shapes()))
        return shapes()

    def result_handles(self, name: str, otherwise: Handles) -> Handles:
        """What is known of the lists that calls of `name` in the group return; `otherwise` if nothing is."""

        def lists() -> Handles:
            pair = self._pair_of(name)
            return (() if pair is None else pair.result_handles) or otherwise

        return self.known.ask(lists)

    def _pair_of(self, name: str) -> Pair | None:
        definition = self._tracer.registry.definitions.get(name)
        return None if definition is None else self._pairs.get(definition.lasting_name)

    def pairs(self) -> list[Pair]:
        """The pairs of all functions that were differentiated in the group."""
        return list(self._pairs.values())

    def owner_of_gradient(self, owner: str) -> str:
        """The owner of the records that hold the gradients for the values in those of `owner`."""
        return f"{owner}{names.GRADIENT_SUFFIX}{self._number}"

    def settle(self) -> list[TracedFunction]:
        """Trace the bodies that are new or stale, until none is; returns all functions of the group."""
        try:
            num_sweeps = 0
            while self._sweep():
                num_sweeps += 1
                self._check_end(num_sweeps)
            if num_sweeps:
                self._warn()
            for pair in self._pairs.values():
                pair.check_asked()
                self._lists[pair.definition.lasting_name] = pair.result_handles
        except BaseException:  # an interrupt by the user, too
            self._pairs.clear()
            self.known.clear()
            raise
        return [function for pair in self._pairs.values() for function in pair.functions]

    def _check_end(self, num_sweeps: int) -> None:
        """Raises LookupError if each trace of a body seems to make other functions, so that there is no end of them."""
        originals = {original_of(pair.definition).lasting_name: pair for pair in self._pairs.values()}
        if num_sweeps <= _MAX_SWEEPS + 2 * len(originals):
            return
        made = [original_of(pair.definition) for pair in originals.values()]
        local = ", ".join(f"'{names.shown(one.user_name)}'" for one in made if one.lasting_name != one.user_name)
        of = names.shown(made[0].user_name)
        raise LookupError(
            f"Function '{of}': a derivative of a gradient that its body takes does not come to an end, as each trace "
            f"of a body makes another {local or 'function'}; define that function outside of the body, and pass it as "
            "arguments what it reads of the body"
        )

    def _warn(self) -> None:
        """Warn of weights that many calls use, with gradients that could be collected, but are not, and of effects."""
        for pair in self._pairs.values():
            if pair.assignment is not None:
                effects.warn_of_assignment(pair.definition, pair.assignment)
        found = [obstacle for pair in self._pairs.values() for obstacle in pair.obstacles]
        if found:
            often = obstacles.repeated({name: pair.callees for name, pair in self._pairs.items()})
            used = [weight for name in often for weight in self._pairs[name].weights]
            obstacles.warn_of(found, used, self.known.weights)

    def _sweep(self) -> bool:
        """Go through the pairs once; returns whether one was traced.

        New pairs come first, in the order in which gradients asked for them: the gradient of a backward function tells
        which values in records have gradients, that of the forward function has to know. Then callees before callers.
        """
        was_traced = False
        new = [pair for pair in self._pairs.values() if pair.told is None]
        for pair in [*new, *(pair for pair in reversed(self._pairs.values()) if pair not in new)]:
            if pair.is_stale():
                self._make(pair)
                was_traced = True
        return was_traced

    def _make(self, pair: Pair) -> None:
        """Trace one function, and learn what it returns."""
        if pair.changes >= _MAX_CHANGES:
            pair.arg_shapes = tuple(tf.TensorShape(None) for _ in pair.arg_shapes)
        with self.known.tracing() as pair.told:
            self.known.ask(pair.assumed)
            new = self._tracer.new_body(pair.definition)
            self._traced = pair
            try:
                body = BodyWithGradient(
                    pair, new, self.known, self._tracer, self._modes, is_again=self.purpose is Purpose.TEMPLATES
                )
            finally:
                self._traced = None
        pair.weights, pair.obstacles, pair.assignment = body.weights, body.obstacles, body.assignment
        cut(body, pair, with_templates=self.purpose is Purpose.TEMPLATES)
        known = pair.result_handles or tuple(None for _ in body.results)
        pair.result_handles = tuple(map(handles.join_handle_data, known, body.result_handles))
        shapes = self._shapes_to_assume(pair, body.results)
        if pair.result_shapes is not None:
            pair.changes += not static_shapes.are_same(shapes, pair.result_shapes)
        elif not static_shapes.are_same(shapes, tuple(result.shape for result in body.results)):
            pair.told = None  # a guess, which the next trace confirms or takes back
        pair.result_shapes = shapes
        pair.add_trainable(body.found_trainable)

    @staticmethod
    def _shapes_to_assume(pair: Pair, results: list[tf.Tensor]) -> Shapes:
        """What the next trace is to take for the shapes of results.

        A guess that it confirms is true by induction over the depth of the recursion.
        """
        if pair.changes >= _MAX_CHANGES:
            return tuple(tf.TensorShape(None) for _ in results)
        if pair.result_shapes is None:
            return tuple(static_shapes.guess(result) for result in results)
        pairs = zip(pair.result_shapes, results, strict=True)
        return tuple(static_shapes.join(known, result.shape) for known, result in pairs)


def _trainable(inputs: Sequence[tf.Tensor], known: Sequence[HandleData | None]) -> Iterator[int]:
    """The positions of the inputs of a call that have a gradient; `known` is of those that are arguments."""
    for i, tensor in enumerate(inputs):
        if handles.is_trainable(tensor) or (i < len(known) and handles.holds_trainable(known[i])):
            yield i


class Groups:
    """The groups of one outermost graph."""

    def __init__(self, tracer: Tracer, modes: Modes) -> None:
        self._tracer = tracer
        self._modes = modes
        self._backward_names = BackwardNames(tracer)
        self._groups: dict[_Key, Group] = {}
        self._lists: dict[str, Handles] = {}
        # Groups whose functions are being traced, innermost last.
        self._open: list[Group] = []
        # For each group, the functions of other groups that its own call.
        self._referred: dict[Group, list[TracedFunction]] = {}
        # The functions that were put into graphs last, by their names.
        self._put_last: dict[str, TracedFunction] = {}
        # The functions of pairs that can be differentiated, by their names.
        self._pair_functions: dict[str, PairFunction] = {}

    @property
    def innermost(self) -> Group | None:
        """The group whose functions are being traced; None outside of all of them."""
        return self._open[-1] if self._open else None

    def of(self, name: str, arguments: Sequence[tf.Tensor], purpose: Purpose = Purpose.REVERSE) -> Group:
        """The group for outermost calls of the function `name` with arguments of these static shapes."""
        variables = tuple(handles.variable_key(tensor) for tensor in arguments)
        definition = self._tracer.registry.definitions.get(name)
        stated = None if definition is None else definition.arg_shapes
        shapes = stated or tuple(tensor.shape for tensor in arguments)
        key: _Key = (name, tuple(map(str, shapes)), variables, purpose)
        alike = [known for known in self._groups if (known[0], known[-1]) == (name, purpose)]
        if key not in self._groups and len(alike) >= _MAX_SHAPED_GROUPS:
            key = (name, None, variables, purpose)
        if key not in self._groups:
            number = len(self._groups) + 1
            if definition is not None and came_along(definition):
                number = names.new_number()  # functions of other groups may have come along, which are called by theirs
            self._groups[key] = Group(
                self._tracer,
                self._modes,
                self._backward_names,
                self._lists,
                number,
                is_shaped=key[1] is not None,
                purpose=purpose,
            )
        return self._groups[key]

    def pair_function(self, name: str) -> PairFunction | None:
        """The function of a pair that can be differentiated, if `name` is the name of one."""
        return self._pair_functions.get(name)

    def pair_functions(
        self, definition: Definition, inputs: Sequence[tf.Tensor]
    ) -> tuple[Pair, ForwardFunction, BackwardFunction]:
        """The pair for a call of `definition`, and its two functions, which can be differentiated.

        Raises:
          LookupError: if that pair is needed to make itself.
        """
        group = self.of(definition.user_name, inputs[: len(definition.inputs)], Purpose.TEMPLATES)
        if group in self._open:
            raise LookupError(
                f"Function '{names.shown(original_of(definition).user_name)}': a gradient of its own calls, taken in "
                "its body or in one that it calls, cannot be differentiated, as every order of derivatives would need "
                "the next one; put tf.stop_gradient around that gradient"
            )
        pair = group.require(definition, inputs)
        self.settle(group, tf1.get_default_graph())
        for made in group.pairs():
            if made.forward not in self._pair_functions:
                for kind in (ForwardFunction, BackwardFunction):
                    function = kind(made, self._tracer.graph)
                    self._tracer.adopt_made(function, function.user_name)
                    self._pair_functions[function.user_name] = function
        forward, backward = self._pair_functions[pair.forward], self._pair_functions[pair.backward]
        assert isinstance(forward, ForwardFunction), pair.forward
        assert isinstance(backward, BackwardFunction), pair.backward
        return pair, forward, backward

    def settle(self, group: Group, calling: tf.Graph) -> None:
        """Trace what is missing or stale in a group, and add its functions to the graphs that call them.

        These are the graphs around `calling` and around the default graph.
        """
        self._open.append(group)
        try:
            made = group.settle()
        finally:
            self._open.pop()
        made += self._referred.get(group, [])
        if self._open:
            self._referred.setdefault(self._open[-1], []).extend(made)
        for function in made:
            functions.add_to_eager_context(function)
        for graph in self._graphs_to_tell(calling):
            for function in made:
                self._put(graph, function)
        self._put_last.update((function.name, function) for function in made)

    def _put(self, graph: tf.Graph, function: TracedFunction) -> None:
        """Add a function to a graph, in place of the one that was made before more was known of what it returns."""
        known = functions.function_in(graph, function.name)
        if known is not None and known is not function and known is self._put_last.get(function.name):
            functions.remove_function(graph, known)
            known = None
        if known is None:
            functions.add_function(graph, function)

    def _graphs_to_tell(self, calling: tf.Graph) -> list[tf.Graph]:
        """The outermost graph, and the function graphs around a call and around what is being built, each once."""
        around = [*graphs.enclosing_graphs(calling), *graphs.enclosing_graphs(tf.compat.v1.get_default_graph())]
        outermost = self._tracer.graph
        nested = [graph for graph in around if graph is not outermost and graphs.is_func_graph(graph)]
        return [outermost, *dict.fromkeys(nested)]
