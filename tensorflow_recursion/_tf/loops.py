"""Where TensorFlow errs about loops: its messages for some faults, and gradients of variables that change places."""
# SPDX-License-Identifier: Apache-2.0

import functools
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_ops, while_v2

from tensorflow_recursion._tf.replacements import replace_for_good


def extend_shape_errors(reason: Callable[[tf.Tensor], str]) -> None:
    """Let the errors of loops whose variables change their shapes say why.

    `reason` is asked of what an iteration makes of each variable; it says what to add, nothing by default.
    """
    in_while_v2, in_while = while_v2._check_shapes_compat, control_flow_ops._EnforceShapeInvariant

    def check_all(made: Any, invariants: Any, entering: Any) -> None:
        _check_for_none(made)
        for one in zip(made, invariants, entering, strict=True):
            checked(one[0], functools.partial(in_while_v2, *([item] for item in one)))

    def check_one(entering: Any, made: Any) -> None:
        checked(made, functools.partial(in_while, entering, made))

    def checked(made: tf.Tensor, check: Callable[[], None]) -> None:
        try:
            check()
        except ValueError as error:
            if text := reason(made):
                raise ValueError(f"{error} {text}") from None
            raise

    replace_for_good(while_v2, "_check_shapes_compat", check_all)
    replace_for_good(control_flow_ops, "_EnforceShapeInvariant", check_one)


def mend_invariants() -> None:
    """Let the gradient of a loop take for the same in all iterations only what each iteration returns in its own place.

    TensorFlow 2.21 asks whether it is returned in any place. So the gradient of `lambda i, a, b: (i + 1, b, a * b)`
    read the last b in every iteration, wherever no Identity stands between what a loop is given and what it returns:
    not in a tf.function, but in graphs of sessions and in the bodies of recursive functions.
    """

    def is_invariant(tensor: tf.Tensor, inputs: Iterable[tf.Tensor], outputs: Iterable[tf.Tensor]) -> bool:
        pairs = zip(inputs, outputs, strict=False)
        return any(tensor is given and tensor is returned for given, returned in pairs)

    replace_for_good(while_v2, "_is_loop_invariant", is_invariant)


def _check_for_none(made: list[tf.Tensor]) -> None:
    """Raises ValueError if an iteration returns a None.

    TensorFlow leaves it out of the outputs, so that something that the graph captures would take its place.
    """
    for value in made:
        if any(item is None for item in tf.nest.flatten(getattr(value.graph, "structured_outputs", None) or [])):
            raise ValueError("None values not supported.")  # as a loop of control flow v1 says it
