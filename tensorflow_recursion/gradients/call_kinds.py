"""Tells apart the calls that `tf.gradients` may meet."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion.forward_backward.groups import Groups
from tensorflow_recursion.gradients.requested_pairs import RequestedPairs
from tensorflow_recursion.traces.definitions import Registry


class CallKind(enum.Enum):
    """What a call calls, for those who differentiate it; `classify` has a table."""

    BACKWARD = enum.auto()
    IMPORTED_BACKWARD = enum.auto()
    OF_PAIR = enum.auto()
    FORWARD = enum.auto()
    DEFINED = enum.auto()
    IMPORTED = enum.auto()
    TF_FUNCTION = enum.auto()


def classify(op: tf.Operation, requested: RequestedPairs, groups: Groups, registry: Registry) -> CallKind:
    """What the call `op` calls. The first row that fits a call holds.

    | kind              | what is called                                  | where such a call is, for example          |
    | ----------------- | ----------------------------------------------- | ------------------------------------------ |
    | BACKWARD          | `f__backward1` of a gradient in this graph      | what `tf.gradients(f(x), x)` has made      |
    | IMPORTED_BACKWARD | one that came along with a graph                | the same, in a SavedModel that was loaded  |
    | OF_PAIR           | a function of a pair that has gradients in turn | the body of `f__grad` (higher_orders.py)   |
    | FORWARD           | `f__forward1`, as a gradient reads its record   | a `tf.function` with two gradients of f(x) |
    | DEFINED           | `f`, which is defined in this graph             | f(x)                                       |
    | IMPORTED          | one that may have come along with a graph       | f(x), in a SavedModel that was loaded      |
    | TF_FUNCTION       | a `tf.function`                                 | a body that calls one, which calls f       |

    A call of a backward function carries the arguments of the call whose gradient it is, if it may be differentiated
    by them. One that a gradient of a body makes does not, and is BACKWARD only if it is of no pair that can be
    differentiated: then it has no gradient, and the user is told so.
    """
    callee = ops.callee_of(op)
    is_of_pair = groups.pair_function(callee) is not None
    if requested.of_backward(callee) is not None and (ops.carries_arguments(op) or not is_of_pair):
        return CallKind.BACKWARD
    if groups.innermost is None and ops.is_gradient(op) and not is_of_pair:
        return CallKind.IMPORTED_BACKWARD
    if is_of_pair:
        return CallKind.OF_PAIR
    if requested.differentiated_by(callee) is not None:
        return CallKind.FORWARD
    if registry.by_graph_name(callee) is not None:
        return CallKind.DEFINED
    return CallKind.IMPORTED if op.type == names.INVOKE else CallKind.TF_FUNCTION
