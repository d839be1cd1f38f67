"""Answers `tf.gradients` when it meets calls of functions."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion.forward_backward.groups import Groups
from tensorflow_recursion.forward_backward.modes import Modes
from tensorflow_recursion.forward_backward.pairs import Handles
from tensorflow_recursion.forward_backward.tracer import Tracer, has_built_gradient
from tensorflow_recursion.gradients import records, user_functions
from tensorflow_recursion.gradients.backward_calls import BackwardCalls
from tensorflow_recursion.gradients.call_kinds import CallKind, classify
from tensorflow_recursion.gradients.forward_calls import ForwardCalls
from tensorflow_recursion.gradients.gradient_calls import GradientCalls, Gradients
from tensorflow_recursion.gradients.requested_pairs import RequestedPairs
from tensorflow_recursion.traces.definitions import Definition
from tensorflow_recursion.traces.shapes import Shapes

_UNDEFINED_REMEDY = (
    "define it, or, if the graph was imported, take the gradient before the graph is exported (it comes along), or "
    "build the graph by its Python code again and restore the variables"
)


class Differentiation:
    """The gradients of one outermost graph's functions.

    Attributes:
      modes: what is being built in that graph.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.modes = Modes()
        self._tracer = tracer
        self._groups = Groups(tracer, self.modes)
        self._requested = RequestedPairs(self._groups)
        self._gradient_calls = GradientCalls(self._groups, self.modes)
        self._forward_calls = ForwardCalls(tracer, self._groups, self._requested, self._gradient_calls)
        self._backward_calls = BackwardCalls(tracer, self._groups, self._requested, self._gradient_calls)
        # Gradients are built one after the other. In eager mode, threads may ask for those of one tf.function at once.
        self._lock = threading.RLock()

    def forward_name(self, name: str, graph_name: str, arguments: Sequence[tf.Tensor]) -> str:
        """What a call of the function `name` with these arguments runs should it be differentiated."""
        return self._groups.of(name, arguments).forward_name(graph_name)

    def result_shapes(self, name: str, otherwise: Shapes | None) -> Shapes | None:
        """What the group in progress knows of the results of a call of `name`; `otherwise` if it knows nothing."""
        group = self._groups.innermost
        return otherwise if group is None else group.result_shapes(name, otherwise)

    def result_handles(self, name: str, otherwise: Handles) -> Handles:
        """What that group knows of the lists that a call of `name` returns; `otherwise` if it knows nothing."""
        group = self._groups.innermost
        return otherwise if group is None else group.result_handles(name, otherwise)

    def bring_in(self, capture: tf.Tensor, chain: Sequence[tf.Graph]) -> tf.Tensor:
        """A captured tensor for a call in the innermost graph of `chain`, which a gradient may make."""
        return self._gradient_calls.bring_in(capture, chain)

    def has_other_records(self, trace: tf.Graph) -> bool:
        """Whether calls in a graph keep records that are not those of the group whose functions are being traced."""
        return self._forward_calls.has_other_records(trace)

    def of_call(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        """Gradients for the inputs of the call `op`, one per input, from those for its results."""
        with self._lock:
            return self._of_call(op, grads)

    def of_recall(self, op: tf.Operation, grads: Sequence[Any]) -> tf.Tensor | None:
        """The gradient for a record that is read, from those for what it holds."""
        return records.of_recall(op, grads, self._groups.innermost)

    def of_retain(self, op: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
        """The gradients for what a record holds, from that for the record."""
        return records.of_retain(op, grad, self._groups.innermost)

    def _of_call(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        kind = classify(op, self._requested, self._groups, self._tracer.registry)
        if kind is CallKind.BACKWARD:
            return self._backward_calls.gradients(op, grads)
        if kind is CallKind.IMPORTED_BACKWARD:
            return self._backward_calls.gradients_of_imported(op, grads)
        definition = self._definition(op, kind)
        if definition is None:
            raise LookupError(
                f"Call {op.name!r} of '{names.of_user(ops.callee_of(op))}' cannot be "
                f"differentiated: the function has no definition by Defun in this graph; {_UNDEFINED_REMEDY}"
            )
        if definition.create_grad_func is False:
            raise LookupError(
                f"Call {op.name!r} of '{names.shown(definition.user_name)}' cannot be differentiated: the function is "
                "defined with create_grad_func=False"
            )
        _check_types(op, definition, grads)
        if not has_built_gradient(definition):
            return user_functions.of_call(op, definition, grads)
        return self._forward_calls.gradients(op, definition, grads)

    def _definition(self, op: tf.Operation, kind: CallKind) -> Definition | None:
        """The function that a call of this kind is differentiated as a call of; None if it is not defined here."""
        callee = ops.callee_of(op)
        if kind is CallKind.OF_PAIR:
            return self._groups.pair_function(callee)
        if kind is CallKind.FORWARD:
            return self._requested.differentiated_by(callee)
        if kind is CallKind.DEFINED:
            return self._tracer.registry.by_graph_name(callee)
        return self._tracer.find_imported(callee) if kind is CallKind.IMPORTED else self._tracer.tf_function(op)


def _check_types(op: tf.Operation, definition: Definition, grads: Sequence[Any]) -> None:
    """Raises TypeError if a gradient for a result of a call has another dtype; no run could take that."""
    for i, (y, grad) in enumerate(zip(op.outputs, grads, strict=False)):
        if not isinstance(grad, (tf.Tensor, tf.IndexedSlices)) or not (y.dtype.is_floating or y.dtype.is_complex):
            continue
        if grad.dtype.base_dtype != y.dtype:
            raise TypeError(
                f"Function '{names.shown(definition.user_name)}': the gradient for result {i} of call {op.name!r} is "
                f"{grad.dtype.name}, expected {y.dtype.name}; tf.cast it where it is given: as grad_ys, or by the "
                "gradient function of a tf.custom_gradient that the result goes through"
            )
