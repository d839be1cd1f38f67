"""The weights of a group of functions: which of them have a gradient that can be collected from terms.

A weight is a captured tensor, or an argument that is handed on. Weights that calls hand to each other are one.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorflow_recursion.weight_gradients.contributions import Kind, Part
from tensorflow_recursion.weight_gradients.usages import Use, Weight


class Weights:
    """The parts of the gradients for the weights of a group, as far as bodies have been traced."""

    def __init__(self, *, all_dense: bool) -> None:
        """`all_dense` says that every gradient is computed where it arises, whatever it is made of."""
        self._all_dense = all_dense
        self._parts: dict[Weight, set[Part]] = {}
        self._numbers: dict[Part, int] = {}
        # Weights that are the same -> the first of them, or one nearer to it.
        self._same: dict[Weight, Weight] = {}
        # Those that several frames have: captured tensors, and arguments that a call hands on.
        self._shared: set[Weight] = set()
        # Arguments that not all calls have the same.
        self._changed: set[Weight] = set()

    def parts_of(self, weight: Weight) -> Mapping[Part, int]:
        """The parts that the gradient for a weight is collected from, with their numbers; none if it is dense.

        It is dense of what one frame has alone. There is nothing to be summed, and terms are more work.
        """
        first = self.first(weight)
        parts = self._parts.get(first, ())
        if self._all_dense or not self.is_shared(weight) or any(part.kind is Kind.OTHER for part in parts):
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
            self._shared.add(self.first(weight))
        for use in uses:
            if use.part is not None:
                self.number_of(use.part)
                self._parts.setdefault(self.first(weight), set()).add(use.part)
        for use in uses:
            if use.target is not None and (first := self.first(use.target)) != self.first(weight):
                self._parts.setdefault(self.first(weight), set()).update(self._parts.get(first, ()))
                self._same[first] = self.first(weight)

    def is_shared(self, weight: Weight) -> bool:
        """Whether several frames have the weight."""
        return self.first(weight) in self._shared

    def note_change(self, weight: Weight) -> None:
        """Learn that a call in the group gives an argument anything else than that argument itself."""
        self._changed.add(weight)

    def is_changed(self, weight: Weight) -> bool:
        """Whether not all calls in the group have the same for an argument."""
        return weight in self._changed

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
        self._numbers.clear()
        self._same.clear()
        self._shared.clear()
        self._changed.clear()

    def first(self, weight: Weight) -> Weight:
        """The one that stands for all weights that are the same as `weight`."""
        while weight in self._same:
            weight = self._same[weight]
        return weight
