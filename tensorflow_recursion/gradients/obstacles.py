"""Uses of a weight because of which each call computes its whole gradient; warns of those that users can do without."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import explanations, notices
from tensorflow_recursion._tf import handles, nodes, origins
from tensorflow_recursion.gradients.uses import CALLS, Use, Weight, is_fixed, is_large
from tensorflow_recursion.gradients.weights import Weights

# The functions that each function calls.
CallGraph: TypeAlias = Mapping[str, Set[str]]


@dataclasses.dataclass(frozen=True)
class Obstacle:
    """A use of a weight that makes no terms.

    Attributes:
      weight: which one it is.
      shape: its static shape.
      function: whose body uses it, as users know it.
      use: the operator, as messages show it.
      remedy: what a user can do, as messages say it; None if nothing is known to help.
    """

    weight: Weight
    shape: tf.TensorShape
    function: str
    use: str
    remedy: str | None


def obstacles_in(
    function: str, uses: Sequence[tuple[Weight, tf.Tensor, Sequence[Use]]], captures: Sequence[tf.Tensor]
) -> Iterator[Obstacle]:
    """The uses in a body that make no terms.

    Args:
      function: whose body it is, as users know it.
      uses: of each weight; between them, the weight in the body.
      captures: what stands in the body for the captured tensors.
    """
    handed_on = [tensor for _, tensor, of_weight in uses if any(use.target is not None for use in of_weight)]
    same = {tensor.ref() for tensor in (*handed_on, *captures)}
    for weight, tensor, of_weight in uses:
        _, shape = handles.gradient_type(tensor)
        for use in of_weight:
            if use.is_obstacle:
                yield Obstacle(weight, shape, function, _described(use.op), _remedy(use, function, same))


def _described(op: tf.Operation) -> str:
    line = origins.line_of(op, explanations.is_ours)
    return f"node '{op.name}' ({op.type}, made in {line})" if line else f"node '{op.name}' ({op.type})"


def _remedy(use: Use, function: str, same: Set[Any]) -> str | None:
    """What a user can do about a use; `same` are references to the inputs of the body that all calls share."""
    if use.is_result:
        return None
    if use.op.type in CALLS:
        is_view = use.op.inputs[use.position].op.type not in ("Placeholder", "ReadVariableOp", "Identity")
        return "Pass the weight itself, and let the function that is called take the part of it." if is_view else None
    if use.may_move and _is_same_in_all_calls(use.op, same):
        return f"Compute that once outside of the recursion, and pass it to '{function}' as an argument."
    return None


def _is_same_in_all_calls(op: tf.Operation, same: Set[Any]) -> bool:
    """Whether `op` depends on nothing but constants and these inputs of the body."""
    pending, seen = [op], {op}
    while pending:
        op = pending.pop()
        if op.type == "Placeholder" or not is_fixed(op):
            return False
        for source in op.inputs:
            tensor: tf.Tensor | None = source
            while tensor is not None and tensor.ref() not in same:
                outer = nodes.captured_by(tensor)
                if outer is None and tensor.op not in seen:
                    seen.add(tensor.op)
                    pending.append(tensor.op)
                tensor = outer
    return True


def warn_of(obstacles: Iterable[Obstacle], often: Iterable[Weight], weights: Weights) -> None:
    """Warn of obstacles to collecting gradients for large weights, if something is known to help against them.

    `often` are the weights that many calls use. It is enough that one of the others keeps a gradient from being
    collected.
    """
    by_weight: dict[Weight, list[Obstacle]] = {}
    for obstacle in obstacles:
        by_weight.setdefault(weights.first(obstacle.weight), []).append(obstacle)
    for weight in {weights.first(weight) for weight in often if weights.is_shared(weight)}:
        found = by_weight.get(weight, [])
        if found and is_large(found[0].shape) and all(obstacle.remedy is not None for obstacle in found):
            uses: dict[str, list[str]] = {}
            for obstacle in dict.fromkeys(found):
                uses.setdefault(obstacle.remedy or "", []).append(f"by {obstacle.use}")
            advice = (f"It is used {' and '.join(by)}. {remedy}" for remedy, by in uses.items())
            notices.show(
                "dense",
                f"Function '{found[0].function}': each call computes the whole gradient for a weight of shape "
                f"{found[0].shape}, which takes long. {' '.join(advice)}",
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
