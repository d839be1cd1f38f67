"""Finds out what shapes functions return where nobody states it: each trace tells more than the one before."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import tensorflow as tf

from tensorflow_recursion._tf import inferring
from tensorflow_recursion.traces import shapes as static_shapes
from tensorflow_recursion.traces.definitions import Definition, Registry
from tensorflow_recursion.traces.looks import Look
from tensorflow_recursion.traces.shapes import Shapes
from tensorflow_recursion.traces.signatures import Signature


class ResultShapes:
    """The static shapes of what the functions of one outermost graph return, by the user's names.

    The first trace of a function takes what its own calls return for tensors of unknown shape; who calls it later knows
    what the trace has found. Only where shapes are *wanted* is the function traced again, until its own calls know it
    as well. They begin with a guess: what the function's other paths return. Each trace that finds the guess to say too
    much takes some of it back. For example, a function returns a vector of 3 numbers if n is 0, else what its own call
    returns and 3 more: the guess is `[3]`, the next trace finds `[6]`, and what is true of both is `[None]`.
    """

    def __init__(self, graph: tf.Graph, registry: Registry) -> None:
        """Starts without knowledge of the functions of `registry`, which are traced in `graph`."""
        self._registry = registry
        self._known: dict[str, Shapes] = {}
        self._all_are_wanted = False
        self.look = Look(graph)  # at functions whose results are being inferred

    def get(self, name: str) -> Shapes | None:
        """The static shapes of what a function returns, as far as traces tell; None if they say nothing."""
        return self._known.get(name)

    def learn(
        self, definition: Definition, declared: Signature | None, outputs: Sequence[tf.Tensor], guess: Shapes
    ) -> None:
        """Learn from a trace of a function.

        Args:
          definition: the function.
          declared: its declaration, if there is one.
          outputs: what the body returned.
          guess: the shapes of the outputs if the function's own calls return what its other paths return.
        """
        name = definition.user_name
        if not self._are_open(definition, declared):
            return
        known = self._known.get(name)
        found = tuple(tensor.shape for tensor in outputs)
        if known is None:
            self._known[name] = guess if self._are_wanted(name) else found
        else:
            self._known[name] = tuple(map(static_shapes.join, known, found))

    def infer(self, definition: Definition, declared: Signature | None, building: AbstractContextManager[None]) -> bool:
        """Learn what a function returns from the paths through it that do not call it; returns whether that tells.

        The body is built inside `building`, and thrown away.
        """
        name = definition.user_name
        if not self._are_open(definition, declared) or self.look.is_in_progress or name in self._known:
            return False
        try:
            with self.look.at(name, lambda callee: callee == name, building):
                args = inferring.placeholders([tf.TensorSpec(None, dtype) for _, dtype in definition.inputs])
                self._known[name] = tuple(tensor.shape for tensor in definition.build(args, declared))
        except (inferring.Unknown, ValueError):
            return False
        return True

    def want_all(self, guesses: Mapping[str, Shapes]) -> bool:
        """From now on, find the shapes of all functions, beginning with `guesses`; returns whether that is new."""
        if self._all_are_wanted:
            return False
        self._all_are_wanted = True
        self._known.update((name, guess) for name, guess in guesses.items() if name in self._known)
        return True

    def is_stale(self, name: str, taken: Shapes | None) -> bool:
        """Whether a body that took the results of `name` for tensors of the shapes `taken` has to be traced again.

        It has to if they are wrong. Where shapes are wanted, it also has to if more is known by now.
        """
        known = self.get(name)
        if self._are_wanted(name):
            return not static_shapes.are_same(taken or (), known or ())
        return taken is not None and not all(map(tf.TensorShape.is_subtype_of, known or (), taken))

    def _are_open(self, definition: Definition, declared: Signature | None) -> bool:
        """Whether nobody states what shapes a function of the user's returns."""
        is_stated = declared is not None and declared.output_shapes is not None
        return definition.output_shapes is None and definition.base is None and not is_stated

    def _are_wanted(self, name: str) -> bool:
        """Whether a function is traced again so that the shapes of its results are known."""
        definition = self._registry.definitions.get(name)
        return self._all_are_wanted or (definition is not None and definition.wants_shapes)
