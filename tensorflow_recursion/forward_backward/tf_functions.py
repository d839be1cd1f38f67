"""The `tf.function`s that bodies call, as functions that are differentiated along with the bodies."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import copies, function_calls, inlining
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion.traces.definitions import CopiedDefinition
from tensorflow_recursion.traces.signatures import Signature

_IS_GIVEN_WEIGHTS: Attribute[bool] = Attribute(names.IS_GIVEN_WEIGHTS)


def is_differentiated(op: tf.Operation) -> bool:
    """Whether a call of a `tf.function` in a body is differentiated as calls of our functions are.

    It is where it makes such calls, and where it is given weights: TensorFlow's own gradient of it would compute the
    gradient for a matrix of weights anew at each call, and callers would add up these matrices. It is, too, where
    nothing but a definition is known of what is called, as in the body of a loaded SavedModel.
    """
    if not function_calls.was_made_by_python(op):
        return not _has_own_gradient(op)
    return _can_be(op) and (_IS_GIVEN_WEIGHTS.is_set(op) or function_calls.reaches(op, names.INVOKE))


def note_weights(op: tf.Operation) -> bool:
    """Learn that a call is given a weight; returns whether it is differentiated as calls of our functions are."""
    _IS_GIVEN_WEIGHTS.set(op, True)
    return _can_be(op)


def _can_be(op: tf.Operation) -> bool:
    return not _has_own_gradient(op) and not function_calls.must_be_compiled(op)


def _has_own_gradient(op: tf.Operation) -> bool:
    return names.GRADIENT_TYPE in op.node_def.attr


class TfFunction(CopiedDefinition):
    """A `tf.function` of which calls in bodies run a trace."""

    def __init__(self, function: TracedFunction, graph: tf.Graph) -> None:
        """`function` is the trace; `graph` is the outermost graph, whose library has the functions of SavedModels."""
        name = names.of_tf_function(function.cached_definition.signature.name)
        super().__init__(names.of_trace(name), function, graph)

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """Build a copy of the trace in the default graph; returns its outputs."""
        is_traced_here = copies.source_of_branch(self._function) is not None
        return inlining.inline(self._function, args, self._graph, has_its_shapes=is_traced_here)
