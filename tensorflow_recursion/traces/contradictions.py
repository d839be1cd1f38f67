"""Finds the path through a body that returns something else than what the user states of the function.

A call of the function returns what is stated. So where the base case returns something else, TensorFlow only sees
branches of a conditional that do not go together, and says so. Which of them is as stated, it does not know.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import tensorflow as tf

from tensorflow_recursion._tf import inferring, nodes
from tensorflow_recursion.errors import is_of_results, note_of_results, with_causes, with_message
from tensorflow_recursion.explanations import place
from tensorflow_recursion.traces import results
from tensorflow_recursion.traces.definitions import Definition, MadeDefinition
from tensorflow_recursion.traces.looks import Look
from tensorflow_recursion.traces.signatures import Signature

# What errors say that may come of two paths which return different things: an explanation of one, or TensorFlow's text.
_OF_BRANCHES = re.compile(r"^Function '|\b(?:branch|branches|loop)\b")
# How the text of an error begins.
_FUNCTION = re.compile(r"^Function '[^']*'")
_PLACE = re.compile(_FUNCTION.pattern + r"( \([^()]*, line \d+\))")


class Contradictions:
    """Builds bodies once more without calls, as inference does, to see what the paths return that make none."""

    def __init__(self, graph: tf.Graph) -> None:
        """Bodies are those of functions in `graph`."""
        self.look = Look(graph)

    def behind(
        self,
        error: Exception,
        definition: Definition,
        declared: Signature | None,
        building: Callable[[Definition], AbstractContextManager[None]],
    ) -> Exception | None:
        """The error to raise in place of `error`, which ended a trace, if a path contradicts what is stated.

        Each body is built inside a `building(definition)`.
        """
        if self.look.is_in_progress or isinstance(definition, MadeDefinition):
            return None
        if not _OF_BRANCHES.search(str(error)) or not _is_new(error):
            return None
        name = definition.user_name
        # At first all calls are left out, because a function that is called may return what it gets from a call of this
        # one, as is stated. But other callees make no such call, and a path with one of them may be the one that
        # contradicts. So then only calls of this function are left out. That holds for shapes, too, which differ from
        # path to path where each call has its own.
        found = self._found(definition, declared, building, lambda _: True)
        if not isinstance(found, TypeError):
            found = self._found(definition, declared, building, lambda callee: callee == name)
        return None if found is None else _at_place_of(error, found)

    def in_shapes(
        self,
        definition: Definition,
        declared: Signature | None,
        building: Callable[[Definition], AbstractContextManager[None]],
    ) -> Exception | None:
        """The error to raise if all paths that end a recursion return another shape than the user states.

        Only calls of the function itself are left out: by another one, it may come to a path that returns the right
        shape. Where some paths do, a run may take these alone.
        """
        if self.look.is_in_progress:
            return None
        return self._found(definition, declared, building, lambda callee: callee == definition.user_name)

    def _found(
        self,
        definition: Definition,
        declared: Signature | None,
        building: Callable[[Definition], AbstractContextManager[None]],
        leaves_out: Callable[[str], bool],
    ) -> Exception | None:
        shapes = definition.arg_shapes or [tf.TensorShape(None)] * len(definition.inputs)
        specs = [tf.TensorSpec(shape, dtype) for shape, (_, dtype) in zip(shapes, definition.inputs, strict=True)]
        try:
            with self.look.at(definition.user_name, leaves_out, building(definition)):
                return definition.contradiction(inferring.placeholders(specs), declared)
        except (inferring.Unknown, Exception):  # no path is without calls, or it is something else that is wrong
            return None


def may_differ(output: tf.Tensor) -> bool:
    """Whether a branch returns another shape than is stated, which `output` of a body is checked for in the run."""
    while output.op.type == "Identity":
        output = output.op.inputs[0]
    if not results.is_check(output.op):
        return False
    return any(not shape.is_compatible_with(output.shape) for shape in _shapes_in_branches(output.op.inputs[0]))


def _shapes_in_branches(result: tf.Tensor) -> Iterator[tf.TensorShape]:
    while result.op.type == "Identity":
        result = result.op.inputs[0]
    yield result.shape
    for output in nodes.branch_outputs(result):
        yield from _shapes_in_branches(output)


def _is_new(error: BaseException) -> bool:
    """Note that the body of an error is looked at; returns whether none was that the error came through before.

    An error of the results of a body needs no look either.
    """
    is_new = not any(map(is_of_results, with_causes(error)))
    note_of_results(error)
    return is_new


def _at_place_of(error: Exception, found: Exception) -> Exception:
    """The error `found` with file and line of another one behind the name of the function, with which it begins."""
    known = _PLACE.match(str(error))
    where = place(error) if known is None else known[1]
    return with_message(found, _FUNCTION.sub(lambda function: function[0] + where, str(found), count=1))
