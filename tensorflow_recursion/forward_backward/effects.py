"""Side effects of gradients: those that a user's own gradient function has, as `tf.print(dy)` does.

They are run for whoever reads what that function returns, so that the gradients that are asked for run the same effects
as in a program without functions.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import tensorflow as tf

from tensorflow_recursion import names, notices
from tensorflow_recursion._tf import assignments, side_effects
from tensorflow_recursion.traces.definitions import Definition, MadeDefinition, original_of


def of_gradient(definition: Definition) -> contextlib.AbstractContextManager[None]:
    """Inside, the gradient of a body of `definition` is built.

    Where the side effects of the body are in order, what a gradient function returns comes after its own side effects.
    In a Defun they are not, because it is for the graphs of sessions, which only run what is fetched.
    """
    return side_effects.effects_in_gradients() if _are_ordered(definition) else contextlib.nullcontext()


def assignment_among(definition: Definition, operations: Iterable[tf.Operation]) -> str | None:
    """What a message calls the first of the `operations` of a gradient that assigns to a variable, if there is one."""
    found = assignments.first_among(operations, names.INVOKE) if _are_ordered(definition) else None
    return None if found is None else f"'{found.name}' ({found.type})"


def warn_of_assignment(definition: Definition, assignment: str) -> None:
    """Warn of an assignment in a gradient: no other operator waits for a gradient call."""
    notices.show(
        "effect",
        f"The gradient of '{names.shown(original_of(definition).user_name)}' assigns to a variable, in node "
        f"{assignment}. It does so in no order with what other calls, and other operators of the same tf.function, do "
        "with that variable, and derivatives of the gradient may do it again; let the function take one more argument, "
        "return as its gradient what is to be assigned, and assign it outside of the function",
    )


def _are_ordered(definition: Definition) -> bool:
    original = original_of(definition)
    return original.orders_effects or isinstance(original, MadeDefinition)
