"""Errors of loops in the main graph that carry on a call's result of unknown shape say so, and what to write."""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import loops, nodes
from tensorflow_recursion.traces.traced_bodies import body_around


def explain_loops() -> None:
    """From now on, let the errors of loops say where a shape got lost. Those in bodies are explained with the body."""
    loops.extend_shape_errors(_reason)


def _reason(made: tf.Tensor) -> str:
    """Why the shape of what an iteration makes of a loop variable is unknown; nothing if no call is to blame."""
    if body_around(made.graph) is not None:
        return ""
    calls = (op for op in nodes.sources_of(made) if op.type == names.INVOKE)
    callee = next((ops.callee_of(op) for op in calls if not _has_shapes(op)), None)
    if callee is None:
        return ""
    shown = names.of_user(callee)
    if names.is_of_trace(callee):  # of a function of `tfr.recursive`
        found = "one trace of which serves calls with several shapes, or whose results have several"
        remedy = f"write @tfr.recursive(reduce_retracing=False) for '{shown}', state its output_signature"
    else:
        found = "whose results have none that is known"
        remedy = f"state `output_shapes` in the Declare or Defun of '{shown}'"
    return f"Here the shape is lost in a call of '{shown}', {found}: {remedy}, or give the loop shape_invariants."


def _has_shapes(call: tf.Operation) -> bool:
    return all(output.shape.is_fully_defined() for output in call.outputs[:-1])  # the last one is the record
