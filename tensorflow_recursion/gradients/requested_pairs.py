"""Remembers which pairs the gradients of an outermost graph have asked for, and what their functions are made of."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion._tf import tapes
from tensorflow_recursion.forward_backward.groups import Group, Groups, Purpose
from tensorflow_recursion.forward_backward.pairs import Pair
from tensorflow_recursion.traces.definitions import Definition


class RequestedPairs:
    """The pairs that calls were differentiated by, by the names of their functions."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._by_forward: dict[str, tuple[Definition, Group]] = {}
        self._by_backward: dict[str, tuple[Pair, Group]] = {}

    def request(
        self, definition: Definition, inputs: Sequence[tf.Tensor], graph: tf.Graph, known: Group | None = None
    ) -> tuple[Pair, Group]:
        """The pair by which a call is differentiated, and its group. It is traced now unless a group is in progress.

        Args:
          definition: the function that is called.
          inputs: those of the call, captured ones last.
          graph: the graph that the call is in.
          known: the group that the pair has to be of; if None is given, it is the one for such inputs.
        """
        group = self._groups.innermost
        if group is not None:
            pair = group.require(definition, inputs)
        else:
            group = known
            if group is None:
                purpose = Purpose.FORWARD if tapes.have_tangents(inputs) else Purpose.REVERSE
                group = self._groups.of(definition.user_name, inputs[: len(definition.inputs)], purpose)
            pair = group.require(definition, inputs)
            self._groups.settle(group, graph)
        self._by_backward[pair.backward] = (pair, group)
        self._by_forward[pair.forward] = (definition, group)
        return pair, group

    def of_forward(self, forward: str) -> tuple[Definition | None, Group | None]:
        """The function whose forward function is called `forward`, and its group; None if no gradient asked for it."""
        return self._by_forward.get(forward, (None, None))

    def differentiated_by(self, forward: str) -> Definition | None:
        """The function whose forward function is called `forward`; None if no gradient has asked for that one."""
        definition, _ = self.of_forward(forward)
        return definition

    def of_backward(self, backward: str) -> tuple[Pair, Group] | None:
        """The pair whose backward function is called `backward`; None if no gradient has asked for that one."""
        return self._by_backward.get(backward)
