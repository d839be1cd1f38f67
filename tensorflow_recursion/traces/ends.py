"""Finds recursions that never end because Python was to end them by a size or rank that it does not know.

For example, `if x.shape[0] == 0:` asks whether None is 0 where the size is open, and is False. So every call of the
function makes another one. Where it is to be found out what the function returns, that comes out. Where the user states
it, nothing else would say so before a run.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import nodes
from tensorflow_recursion.traces.traced_bodies import Body


def check(bodies: Sequence[Body], body_of: Callable[[str], Body | None]) -> None:
    """Raises TypeError if a call of one of these functions makes calls without end, and its body reads such a size.

    Args:
      bodies: the latest traces.
      body_of: the one that a graph calls by a name; None if there is none.
    """
    for body in bodies:
        if body.definition.unknown_read and (circle := _circle(body, body_of)):
            name = names.shown(body.definition.user_name)
            others = ", ".join(f"'{names.shown(one.definition.user_name)}'" for one in circle[:-1])
            raise TypeError(
                f"Function '{name}': every call of it makes another one{f' (through {others})' if others else ''}, so "
                f"that none ends; the body of '{name}' {body.definition.unknown_read}, and end the recursion by that"
            )


def _circle(body: Body, body_of: Callable[[str], Body | None]) -> list[Body]:
    """The functions by which each call of a function leads back to it, itself last; empty if some calls do not."""
    ways = {callee: [callee] for callee in _always_called(body, body_of)}
    pending = list(ways)
    while pending:
        one = pending.pop()
        if one.definition is body.definition:
            return ways[one]
        for callee in _always_called(one, body_of):
            if callee not in ways:
                ways[callee] = [*ways[one], callee]
                pending.append(callee)
    return []


def _always_called(body: Body, body_of: Callable[[str], Body | None]) -> list[Body]:
    """The functions that each call of one function calls, whichever paths it takes."""
    if body.graph is None:
        return []
    callees = nodes.in_every_run(body.graph, _callee)
    return [found for name in sorted(callees) if (found := body_of(name)) is not None]


def _callee(op: tf.Operation) -> str | None:
    return ops.callee_of(op) if op.type == names.INVOKE else None
