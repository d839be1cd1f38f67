"""Calls in `tf.function`s that bodies call.

TensorFlow traces a `tf.function` once for arguments of one kind, and keeps the trace. Where that was made inside of a
body, the calls in it rely on what was known at that time, as those in the body itself do: what the functions capture,
for example. So it is of no use where the body is traced again because more is known, nor for other graphs.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import weakref

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import graphs, inferring
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion.traces.definitions import Tensors
from tensorflow_recursion.traces.traced_bodies import Body, Reliance, body_of
from tensorflow_recursion.traces.tracing import Traces


@dataclasses.dataclass(frozen=True, eq=False)
class _NestedCall:
    """A call of the function `name`, whose traces are gone when the graph is in which they were made."""

    traces: weakref.ref[Traces]
    name: str
    relied_on: Reliance

    def is_outdated(self) -> bool:
        traces = self.traces()
        return traces is None or traces.has_changed(self.name, self.relied_on)


# Of the graph of a `tf.function`: the calls in it, by the traces of the callee and its name.
_CALLS: Attribute[dict[tuple[int, str], _NestedCall]] = Attribute(names.NESTED_CALLS)


def note(graph: tf.Graph, traces: Traces, name: str, captures: Tensors) -> None:
    """Learn of a call of `name` in `graph`, if that is in a body or built to find out what one returns."""
    body, nested = _around(graph)
    if body is None and not nested:
        return
    relied_on = traces.note_call(body, name, captures)
    for inner in nested:
        calls = _CALLS.made(inner, dict)
        calls.setdefault((id(traces), name), _NestedCall(weakref.ref(traces), name, relied_on))


def has_any(trace: tf.Graph) -> bool:
    """Whether the trace of a `tf.function` was made in a body, and calls functions."""
    return _CALLS.is_set(trace)


def use(trace: tf.Graph, graph: tf.Graph, traces: Traces) -> bool:
    """Whether such a trace can be called in `graph`, whose functions are those of `traces`; then its calls are noted.

    It can be in bodies alone: outside of them, it would end with the graph that these bodies are in.
    """
    body, nested = _around(graph)
    calls = list((_CALLS.of(trace) or {}).values())
    if (body is None and not nested) or any(call.traces() is not traces or call.is_outdated() for call in calls):
        return False
    for call in calls:
        note(graph, traces, call.name, call.relied_on.captures)
    return True


def _around(graph: tf.Graph) -> tuple[Body | None, list[tf.Graph]]:
    """The body that `graph` is part of, and the graphs of `tf.function`s from `graph` outwards to that.

    Both are nothing outside of bodies. In what is built to find out what a function returns there is no body.
    """
    nested: list[tf.Graph] = []
    for enclosing in graphs.enclosing_graphs(graph):
        if (body := body_of(enclosing)) is not None or inferring.is_for_inference(enclosing):
            return body, nested
        if graphs.is_func_graph(enclosing) and not graphs.is_control_flow(enclosing):
            nested.append(enclosing)
    return None, []
