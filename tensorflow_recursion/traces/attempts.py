"""Traces one body, in several attempts if too little was known for the first one, or too much was guessed.

An attempt builds the body as a function graph. It may fail with an error of the body, or of what the body calls. Then
there is another attempt if something can be learnt for it:

- In any attempt, a gradient in the body may need captures that were not known (`Body.missing`). They are known from now
  on, and the same attempt begins anew.
- The FIRST attempt may have failed because the body calls functions that wait to be traced, or because its calls of
  itself returned tensors without shapes. Those functions are traced, and what the body returns is inferred from the
  paths through it that do not call it. Then comes the INFORMED attempt.
- These two may have failed because a size of a result was guessed (`TraceAgain`). The last attempt is WITHOUT_GUESS. If
  it fails, too, the guess was not why, and the error that came before is raised.

Example: the body of f calls f, and takes `y.shape.as_list()` of the result y. In the FIRST attempt y has no shape, and
a ValueError comes. On its other path f returns `tf.zeros([3])`. So in the INFORMED attempt y has the shape `[3]`.

Who may change what: building a body sets those attributes of the `Body` that say what was traced. Between attempts,
`known` and `missing` of the body change here, and `ResultShapes` learns what is inferred. What was guessed belongs to
the definition, which drops it when `TraceAgain` is told to.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable
from typing import Protocol

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import assignments, functions, side_effects
from tensorflow_recursion._tf import tracing as tf_tracing
from tensorflow_recursion.traces import handed_on
from tensorflow_recursion.traces import shapes as static_shapes
from tensorflow_recursion.traces.contradictions import Contradictions, may_differ
from tensorflow_recursion.traces.definitions import Definition, Registry, TraceAgain
from tensorflow_recursion.traces.result_shapes import ResultShapes
from tensorflow_recursion.traces.signatures import Signature
from tensorflow_recursion.traces.traced_bodies import Body

tf1 = tf.compat.v1

# How often an attempt begins anew for captures that gradients in it need.
_MAX_NEW_CAPTURES = 8


class _Attempt(enum.Enum):
    """What an attempt begins with; the module's docstring says more."""

    FIRST = enum.auto()
    INFORMED = enum.auto()
    WITHOUT_GUESS = enum.auto()


class Callees(Protocol):
    """The functions that bodies call, as those who trace a body see them."""

    def has_effects(self, in_graph: str) -> bool:
        """Whether the function that the graph calls `in_graph` has side effects, as far as it is known."""

    def are_pending(self, body: Body) -> bool:
        """Whether a body calls functions that wait to be traced."""

    def trace_pending(self) -> None:
        """Trace the functions that wait for that."""

    def variables_of(self, definition: Definition) -> contextlib.AbstractContextManager[None]:
        """Inside, the body of `definition` is built for a while, with its variables."""


class BodyTracer:
    """Traces bodies of one outermost graph's functions."""

    def __init__(
        self,
        graph: tf.Graph,
        registry: Registry,
        result_shapes: ResultShapes,
        contradictions: Contradictions,
        callees: Callees,
        while_building: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        """Each body is built inside a `while_building()`."""
        self._graph = graph
        self._registry = registry
        self._result_shapes = result_shapes
        self._contradictions = contradictions
        self._callees = callees
        self._while_building = while_building

    def trace(self, body: Body) -> functions.TracedFunction:
        """Trace a body, in as many attempts as it takes.

        Its own calls have no shapes at first. Those that wait for the traces of other functions are not known to read
        variables: a tape in the body gives None for these. If a path through the body is not as its user states, that
        is what the error says.
        """
        definition = body.definition
        declared = self._registry.declarations.get(definition.user_name)
        try:
            traced = self._attempt(body, declared, _Attempt.FIRST)
        except Exception as error:
            found = self._contradictions.behind(error, definition, declared, self._callees.variables_of)
            if found is None:
                raise
            raise found from error
        if body.may_differ:
            found = self._contradictions.in_shapes(definition, declared, self._callees.variables_of)
            if found is not None:
                raise found
        return traced

    def _attempt(self, body: Body, declared: Signature | None, attempt: _Attempt) -> functions.TracedFunction:
        """This attempt, and if it fails the next one.

        The next one is made while the error is handled, which is the context of its own errors then. By that,
        `Specialization` sees that an error had come out of a body before, and drops no guess for it.
        """
        try:
            return self._build_with_new_captures(body, declared)
        except Exception as error:
            if attempt is _Attempt.FIRST and self._learns(body, declared, error):
                return self._attempt(body, declared, _Attempt.INFORMED)
            if attempt is _Attempt.WITHOUT_GUESS or not isinstance(error, TraceAgain):
                raise
            with error.without_guess():
                return self._attempt(body, declared, _Attempt.WITHOUT_GUESS)

    def _learns(self, body: Body, declared: Signature | None, error: Exception) -> bool:
        """Find out more of what a body calls, after it could not be built; returns whether there was more to know."""
        definition = body.definition
        is_waiting = self._callees.are_pending(body)
        infers = isinstance(error, ValueError) and self._result_shapes.infer(
            definition, declared, self._callees.variables_of(definition)
        )
        if is_waiting or infers:
            self._callees.trace_pending()
        return is_waiting or infers

    def _build_with_new_captures(self, body: Body, declared: Signature | None) -> functions.TracedFunction:
        """Build a body, from the start again where a gradient in it needs captures that were not known.

        A gradient of a call that leads back to the body takes what the body will have captured in the end.
        """
        for _ in range(_MAX_NEW_CAPTURES):
            try:
                return self._build(body, declared)
            except Exception:
                if not body.missing:
                    raise
            body.known, body.missing = (*body.known, *body.missing), ()
        return self._build(body, declared)

    def _build(self, body: Body, declared: Signature | None) -> functions.TracedFunction:
        """Build a body with what is known, and let it say what was traced."""
        definition = body.definition

        def func(*args: tf.Tensor) -> list[tf.Tensor]:
            with body.building(self._graph.seed), self._while_building():
                outputs = definition.build(args, declared)
            body.may_differ = any(map(may_differ, outputs))
            body.guess = tuple(static_shapes.guess(tensor) for tensor in outputs)
            self._result_shapes.learn(definition, declared, outputs, body.guess)
            body.has_effects |= side_effects.has_effects(
                tf1.get_default_graph(), names.INVOKE, self._callees.has_effects
            )
            if body.has_effects:
                body.assigned = assignments.kinds_assigned(tf1.get_default_graph(), names.INVOKE)
            if body.has_effects and definition.orders_effects:
                definition.has_effects = True
            body.output_types = [tensor.dtype.base_dtype for tensor in outputs]
            body.output_handles = [handed_on.known_of(tensor) for tensor in outputs]
            return outputs

        name = self._registry.graph_name(definition.user_name)
        options = definition.trace_options()
        if options["out_names"] is None and declared is not None:
            options["out_names"] = [name for name, _ in declared.outputs]
        suffix = names.trace_suffix(name)
        is_v2 = definition.is_built_once  # v1 control flow cannot be differentiated where it is a copy
        return tf_tracing.trace(
            self._graph, func, definition.inputs, name, branch_suffix=suffix, control_flow_v2=is_v2, **options
        )
