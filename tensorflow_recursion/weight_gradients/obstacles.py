"""Uses that keep the gradient of a weight from being collected; warns of those that users can do without."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import explanations, notices
from tensorflow_recursion._tf import origins
from tensorflow_recursion.weight_gradients.usages import Weight
from tensorflow_recursion.weight_gradients.uses_in_body import is_large
from tensorflow_recursion.weight_gradients.weights import Weights

# A warning names so many operators.
_MOST_SHOWN = 3

# The functions that each function calls.
CallGraph: TypeAlias = Mapping[str, Set[str]]


@dataclasses.dataclass(frozen=True)
class Obstacle:
    """A use of a weight that makes no terms.

    Attributes:
      weight: which one it is.
      shape: its static shape.
      function: whose body uses it, as users know it.
      movable: the operator whose result would make terms if it were computed outside of the recursion, as messages show
        it, because operators keep their graph; None if there is none.
      arguments: those that this operator depends on. It can only be moved if all calls have the same ones.
    """

    weight: Weight
    shape: tf.TensorShape
    function: str
    movable: str | None
    arguments: frozenset[Weight] = frozenset()


def described(op: tf.Operation) -> str:
    """How messages show an operator."""
    line = origins.line_of(op, explanations.is_ours)
    return f"{op.type} in {line}" if line else f"{op.type} ({op.name})"


def warn_of(obstacles: Iterable[Obstacle], often: Iterable[Weight], weights: Weights) -> None:
    """Warn of obstacles to collecting gradients for large weights, if something is known to help against all of them.

    `often` are the weights that many calls use. It is enough that another function keeps a gradient from being
    collected.
    """
    by_weight: dict[Weight, list[Obstacle]] = {}
    for obstacle in obstacles:
        by_weight.setdefault(weights.first(obstacle.weight), []).append(obstacle)
    for weight in dict.fromkeys(weights.first(weight) for weight in often if weights.is_shared(weight)):
        found = by_weight.get(weight, [])
        if found and is_large(found[0].shape) and all(_can_move(obstacle, weights) for obstacle in found):
            notices.show("dense", _text(found))


def _can_move(obstacle: Obstacle, weights: Weights) -> bool:
    return obstacle.movable is not None and not any(map(weights.is_changed, obstacle.arguments))


def _text(obstacles: Sequence[Obstacle]) -> str:
    """The warning of one weight."""
    functions = list(dict.fromkeys(f"'{obstacle.function}'" for obstacle in obstacles))
    uses = sorted({obstacle.movable for obstacle in obstacles if obstacle.movable is not None})
    shown = ", ".join(uses[:_MOST_SHOWN]) + (f" and {len(uses) - _MOST_SHOWN} more" if len(uses) > _MOST_SHOWN else "")
    return (
        f"Function {' and '.join(functions)}: each call computes the whole gradient for a weight of shape "
        f"{obstacles[0].shape}, which takes long, because of what is made of the weight: {shown}. Compute that once "
        "outside of the recursion, and pass it on as an argument"
    )


def repeated(calls: CallGraph) -> set[str]:
    """The functions that may run many times in a recursion: those on circles of calls, and what these call."""
    below = {name: _reached(name, calls) for name in calls}
    return {name for caller, reached in below.items() if caller in reached for name in reached}


def _reached(name: str, calls: CallGraph) -> set[str]:
    pending, found = [name], set[str]()
    while pending:
        new = calls.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found
