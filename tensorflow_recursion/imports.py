"""Functions that come with a SavedModel: how they are named, and how they are differentiated.

Of such a function nothing but its definition is known. To differentiate it, its nodes are built anew, as a Python body
would build them.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, notices
from tensorflow_recursion._tf import freezing, functions, hints, importing, inlining, loading, saving
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion.traces.definitions import CopiedDefinition, original_of
from tensorflow_recursion.traces.signatures import Signature
from tensorflow_recursion.traces.traced_bodies import body_around

# Operators of conditionals and loops of control flow v1.
_V1 = ("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter")
# What TensorFlow appends to a function whose variables become constants, in place of a number that may be there.
_FROZEN = re.compile(r"_frozen_\d+$")


class ImportedDefinition(CopiedDefinition):
    """A function of which a graph has the definition, and nobody the Python code."""

    is_imported = True

    def __init__(self, function: TracedFunction, graph: tf.Graph) -> None:
        """`graph` is the one whose library has the function and those that it calls."""
        super().__init__(str(function.cached_definition.signature.name), function, graph)

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """Build the nodes of the definition anew in the default graph, to differentiate them; returns the outputs.

        Raises:
          LookupError: if it has control flow v1, of which nothing tells any more what belongs to a branch or a loop.
        """
        v1 = next((node for node in self._function.cached_definition.node_def if node.op in _V1), None)
        if v1 is not None:
            raise LookupError(
                f"Function '{names.shown(self.user_name)}' cannot be differentiated: it came with a graph, and its "
                f"body has control flow v1 (node {v1.name!r}, {v1.op}); where the graph is written, call "
                "tf.compat.v1.enable_control_flow_v2() before it is built, or take the gradient there (it comes along)"
            )
        return inlining.inline(self._function, args, self._graph)


def register() -> None:
    """Let TensorFlow load SavedModels with calls, and turn variables that bodies read into constants."""
    loading.install(names.INVOKE, names.STATIC, names.renumbered, _rename)
    hints.install(names.INVOKE, names.IMPORT)
    saving.install(names.INVOKE, _user_name_of, _warn_of_unsaved)
    importing.install(names.INVOKE, names.STATIC)
    inlining.keep_graphs_around(names.INVOKE)
    types = (names.ARGUMENT_TYPES, names.IGNORED_TYPES)
    snapshots = (names.SNAPSHOT, names.VARIABLES_OF)
    freezing.install(
        names.INVOKE, names.CALLEE, types, _forward_if_read, _of_constants, _rename, names.shown, *snapshots
    )


def _user_name_of(function: Any, is_in_bodies: bool) -> str | None:
    """What the user calls a function of a library if it is one of ours, part of a body, or what bodies lead to.

    Functions that TensorFlow takes out of a graph may make calls, or be called, and are known by their names then.
    """
    name = tf.compat.as_str(function.name)
    if functions.is_traced(function):
        has_call = any(node.op == names.INVOKE for node in function.definition.node_def)
        return names.shown(name) if has_call or names.trace_in(name) is not None else None
    if (body := body_around(function.graph)) is not None:
        return names.shown(original_of(body.definition).user_name)
    return names.of_tf_function(name) if is_in_bodies else None


def _warn_of_unsaved(function: str, reason: str) -> None:
    """Warn that a SavedModel lacks the gradient of an operator."""
    notices.show(
        "unsaved",
        f"Function '{function}': the SavedModel has no gradient for a tf.custom_gradient in the body, "
        f"because {reason}. What is loaded computes values, and asking for that gradient is an error. To save it, let "
        "the gradient function read only trainable variables that the decorated function reads, and what plain "
        "operators compute of these and of that function's arguments, or differentiate in the tf.function that is "
        "saved",
    )


def _of_constants(name: str, numbers: dict[str, str]) -> str:
    """A new name for a function whose variables became constants; TensorFlow has put a number of its own at the end."""
    original = _FROZEN.sub("", name)
    return names.renumbered(original if names.is_of_trace(original) else name, numbers)


def _forward_if_read(call: Any, read: set[str], is_in_function: bool) -> str:
    """The function that a call runs because its record is read; "" if nobody reads it."""
    record = "record:0" if is_in_function else str(len(call.attr[names.RESULT_TYPES].list.type))
    return str(call.attr[names.FORWARD].s.decode()) if f"{call.name}:{record}" in read else ""


def _rename(node: Any, new_names: Mapping[str, str]) -> None:
    """Let a node call functions by their new names."""
    node.op = new_names.get(node.op, node.op)
    if node.op == names.INVOKE:  # the callee may have been replaced, and the shapes be those of the one before
        node.attr.pop("_output_shapes", None)
    for value in node.attr.values():
        for function in [value.func] if value.HasField("func") else value.list.func:
            function.name = new_names.get(function.name, function.name)
    for key in (names.FORWARD, names.FUNCTION):
        if key in node.attr and node.op.startswith(names.INVOKE.split(">")[0]):
            name = node.attr[key].s.decode()
            absent = name if key == names.FUNCTION else ""  # a forward function that is not there is made if need be
            node.attr[key].s = new_names.get(name, absent).encode()
