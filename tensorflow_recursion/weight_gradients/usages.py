"""What a body does with a weight: the operators that use it, and how their gradients hand out terms."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import nodes, patches
from tensorflow_recursion.weight_gradients import contributing, weight_views
from tensorflow_recursion.weight_gradients.contributions import Kind, Part
from tensorflow_recursion.weight_gradients.terms import Terms

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
    """An operator that reads a weight, or a view of it. There is an example in uses_in_body.py.

    Attributes:
      op: the operator, a MatMul for example.
      position: the input of the operator that is the weight.
      part: the part of the gradient that comes from here, of `Kind.OTHER` if an obstacle; None for a call, a choice.
      terms: how it makes the terms; None if it makes none.
      target: what the weight is in the callee; None for anything but a call that hands it on.
      movable: of an obstacle, the operator that the user can compute outside of the recursion, so that its result is a
        weight with terms: the Tanh of `x @ tf.tanh(w)`, for example; None if there is no such operator.
      choice: what a branch or `tf.where` returns the weight for; None if this is no such use.
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
