"""Where in Python the operations of functions were made, and TensorFlow's errors, which can say so."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import error_interpolation, ops

from tensorflow_recursion import names
from tensorflow_recursion._tf import copies, graphs
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import replace_for_good

# How messages of which TensorFlow says more begin.
_HEAD = "Graph execution error:"


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where an operation was made.

    Attributes:
      frames: of Python's stack at that time, outermost first, those of TensorFlow left out.
      forward: if the operation computes a gradient: the same for the operation whose gradient it is.
      name: of the operation, where another one is asked for, which the runtime has put in its place.
    """

    frames: Any
    forward: Any = None
    name: str | None = None

    def lines(self, skip: Callable[[str], bool]) -> list[str]:
        """The frames as Python prints them; those in files that `skip` names are left out."""
        return _lines(self.frames, skip)

    def forward_lines(self, skip: Callable[[str], bool]) -> list[str]:
        """The frames of the operation whose gradient this one computes; nothing if it computes none."""
        return [] if self.forward is None else _lines(self.forward, skip)


Origins: TypeAlias = Mapping[str, Origin]


def origins_of(operations: Iterable[tf.Operation]) -> Origins:
    """The origins of operations, by their names. TensorFlow's own tracebacks end with the graph; these do not.

    A copy of an operation has the origin of the one that Python has made.
    """
    frames: dict[tf.Operation, Any] = {}

    def frames_of(copy: tf.Operation) -> Any:
        op = copies.original_of(copy)
        if op not in frames:
            stack = op.traceback
            frames[op] = () if stack is None else stack.get_user_frames()
        return frames[op]

    found = {}
    for op in operations:
        forward = op._original_op
        found[op.name] = Origin(frames_of(op), None if forward is None else frames_of(forward))
    return found


def line_of(op: tf.Operation, skip: Callable[[str], bool]) -> str:
    """The file and line that made an operation, in none of the files that `skip` names; nothing if it is not known."""
    frames = origins_of([op])[op.name].frames
    return next((f"{frame.filename}:{frame.lineno}" for frame in reversed(frames) if not skip(frame.filename)), "")


_ORIGINS: Attribute[Origins] = Attribute(names.ORIGINS)  # of traced functions


def set_origins(function: Any, origins: Origins) -> None:
    """Let a traced function know where its operations were made."""
    _ORIGINS.set(function, origins)


def origin_in(function: Any, node: str) -> Origin | None:
    """Where a node of a function was made: of a traced one, or of a branch or loop that TensorFlow has traced.

    A node may be called like its operation and a number: functions rename what is called like an argument or output.
    """
    origins = _ORIGINS.of(function)
    if origins is None:
        graph = getattr(function, "_cached_graph", None)
        if graph is None:
            return None
        known = [name for name in _names(node) if graphs.has_operation(graph, name)]
        origins = origins_of([graph.get_operation_by_name(name) for name in known])
    return next((origins[name] for name in _names(node) if name in origins), None)


def _names(node: str) -> list[str]:
    base, _, number = node.rpartition("_")
    return [node, base] if base and number.isdigit() else [node]


def _lines(frames: Sequence[Any], skip: Callable[[str], bool]) -> list[str]:
    wanted = [frame for frame in frames if not skip(frame.filename)]
    shown = [traceback.FrameSummary(frame.filename, frame.lineno, frame.name) for frame in wanted]
    return [line for text in traceback.format_list(shown) for line in text.rstrip().split("\n")]


def extend_errors(
    described: Callable[[str, tf.Graph], tuple[str, Sequence[str]]], described_eagerly: Callable[[str], str]
) -> None:
    """Let errors of sessions, of tf.functions and of eager operators say more.

    Args:
      described: what to say of a message and the main graph. It returns a text, and the names of nodes that are not the
        main graph's although they are called like nodes of it.
      described_eagerly: what to say of the message of an eager operator, which may be nothing.
    """
    _extend_errors_of_sessions(described)
    _extend_errors_of_functions(described)
    _extend_errors_of_operators(described_eagerly)


def _extend_errors_of_operators(described: Callable[[str], str]) -> None:
    stock = ops.raise_from_not_ok_status

    def raise_from_not_ok_status(error: Any, name: str | None) -> Any:
        if text := described(error.message):
            error.message = f"{_HEAD}\n\n{text}{error.message}"
        stock(error, name)

    replace_for_good(ops, "raise_from_not_ok_status", raise_from_not_ok_status)


def _extend_errors_of_sessions(described: Callable[[str, tf.Graph], tuple[str, Sequence[str]]]) -> None:
    stock = error_interpolation.interpolate_graph

    def interpolate_graph(message: str, graph: tf.Graph) -> str:
        text, others = described(message, graph)
        return _with(text, stock(message, _Without(graph, others)))

    replace_for_good(error_interpolation, "interpolate_graph", interpolate_graph)


def _extend_errors_of_functions(described: Callable[[str, tf.Graph], tuple[str, Sequence[str]]]) -> None:
    stock = getattr(atomic_function, "InterpolateRuntimeError", None)
    if stock is None:  # older ones say it in another way, of main graphs alone
        return

    class Interpolated(stock):  # type: ignore[misc, valid-type]
        others: Sequence[str] = ()

        def interpolate(self, message: str, node_names: Sequence[str], graph_debug_info: Any) -> Any:
            known = [name for name in node_names if name not in self.others]
            return super().interpolate(message, known, graph_debug_info)

        def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
            graph = getattr(self._func, "_cached_graph", None)
            if not isinstance(error, tf.errors.OpError) or graph is None:
                return super().__exit__(kind, error, trace)
            message = str(error.message)
            text, self.others = described(message, graph)
            is_handled = super().__exit__(kind, error, trace)
            if text:
                is_as_it_was = str(error.message) == message  # TensorFlow does not read all names of functions
                plain = error_interpolation.parse_message(message)[0].strip()
                error._message = _with(text, f"{_HEAD}\n\n{plain}" if is_as_it_was else str(error.message))
            return is_handled

    replace_for_good(atomic_function, "InterpolateRuntimeError", Interpolated)


def _with(text: str, message: str) -> str:
    """A message of TensorFlow's with a text after its first line."""
    head, separator, tail = message.partition("\n\n")
    return f"{head}{separator}{text}{tail}"


class _Without:
    """A graph in which nodes of some names are not found."""

    def __init__(self, graph: tf.Graph, names: Sequence[str]) -> None:
        self._graph = graph
        self._names = names

    def get_operation_by_name(self, name: str) -> tf.Operation:
        if name in self._names:
            raise KeyError(name)
        return self._graph.get_operation_by_name(name)
