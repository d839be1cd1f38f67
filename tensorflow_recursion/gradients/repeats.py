"""Warns of functions that a derivative of the second order runs once more, though they may do something else then."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator

from tensorflow_recursion import names, notices
from tensorflow_recursion._tf import functions, side_effects
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion.forward_backward.tracer import Tracer


def warn_of_changes(name: str, tracer: Tracer) -> None:
    """Warn if the function `name`, or one that it reaches, has an operator that may give another value when run again.

    Variables do not count: outside of sessions a second run gets them as they were (snapshots.py).
    """
    for function in _reached(name, tracer):
        if (found := side_effects.first_that_changes(function)) is not None:
            node, op_type, remedy = found
            notices.show(
                "repeat",
                f"Derivatives of gradients of '{names.shown(name)}', which are being built, run the function once more "
                f"if they are computed (by a tape around another one, say). Node '{node}' ({op_type}) may give another "
                f"value then, and the derivative would be one at other values; {remedy}",
            )
            return


def _reached(name: str, tracer: Tracer) -> Iterator[TracedFunction]:
    """The traces of a function and of those that it calls."""
    pending, seen = [name], {name}
    while pending:
        traced = tracer.final_trace(pending.pop())
        if traced is None:
            continue
        yield traced
        for callee in functions.called_by(traced, names.INVOKE, names.CALLEE):
            definition = tracer.registry.by_graph_name(callee)
            if definition is not None and definition.user_name not in seen:
                seen.add(definition.user_name)
                pending.append(definition.user_name)
