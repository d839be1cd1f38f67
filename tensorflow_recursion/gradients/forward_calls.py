"""Gradients of calls of functions, each by a call of the backward function."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import graphs
from tensorflow_recursion.forward_backward.groups import Group, Groups, Purpose
from tensorflow_recursion.forward_backward.pair_functions import ForwardFunction
from tensorflow_recursion.forward_backward.tracer import Tracer
from tensorflow_recursion.gradients import records, snapshots
from tensorflow_recursion.gradients.gradient_calls import GradientCalls, Gradients, gradients_for_results
from tensorflow_recursion.gradients.requested_pairs import RequestedPairs
from tensorflow_recursion.traces.definitions import Definition


class ForwardCalls:
    """Differentiates calls of one outermost graph's functions, which run forward functions from then on."""

    def __init__(
        self, tracer: Tracer, groups: Groups, requested: RequestedPairs, gradient_calls: GradientCalls
    ) -> None:
        self._tracer = tracer
        self._groups = groups
        self._requested = requested
        self._gradient_calls = gradient_calls
        # The graphs whose calls keep records, and the group in progress at that time.
        self._records_for: weakref.WeakKeyDictionary[tf.Graph, Group | None] = weakref.WeakKeyDictionary()

    def has_other_records(self, trace: tf.Graph) -> bool:
        """Whether calls in a graph keep records that are not those of the group whose functions are being traced."""
        return trace in self._records_for and self._records_for[trace] is not self._groups.innermost

    def gradients(self, op: tf.Operation, definition: Definition, grads: Sequence[Any]) -> Gradients:
        """Gradients for the inputs of the call `op` of `definition`, with its record, from those for its results."""
        inputs = list(op.inputs)[: ops.num_arguments(op)]
        pair, group = self._requested.request(definition, inputs, op.graph, self._group_to_stay_with(op, definition))
        if len(inputs) < len(definition.inputs) + len(self._tracer.captures(definition.user_name)):
            raise LookupError(  # then the body that the call is in is traced again
                f"Call {op.name!r} of '{names.shown(definition.user_name)}' cannot be differentiated: it was made "
                "before it was known what the function captures"
            )
        num_results = len(self._tracer.output_types(definition.user_name))
        inputs = self._gradient_calls.with_captured_tables(pair, group, inputs)
        record = records.keep(op, pair.forward, num_results)
        if self._groups.innermost is not None:
            records.check_kept(op, pair.forward)
        else:
            ops.run_other_forward(op, pair.forward)
        for graph in graphs.enclosing_graphs(op.graph):
            self._records_for[graph] = self._groups.innermost
        if isinstance(definition, ForwardFunction) and any(records.may_be_zeros(grads[i]) for i in definition.records):
            group.known.note_zero_records()
        dys = gradients_for_results(list(op.outputs)[:num_results], pair, grads)
        found = self._gradient_calls.make(pair, group, record, dys, inputs, snapshots.of_call(op))
        return [found.get(i) for i in range(len(op.inputs))]

    def _group_to_stay_with(self, op: tf.Operation, definition: Definition) -> Group | None:
        """The group whose forward function a call has to go on running; None if it may run that of any.

        A call runs one forward function, whoever asks for a gradient, and all gradients read its record. So where a
        gradient call in the same graph reads it, it stays the same. It does, too, where it was made for tangents and
        the gradient is asked for once more by a tape.
        """
        base, group = self._requested.of_forward(ops.forward_of(op))
        if group is None or base is not definition:  # of a pair, the forward function itself is differentiated
            return None
        if group.purpose is Purpose.FORWARD:
            return group
        record = op.outputs[len(self._tracer.output_types(definition.user_name))]
        return group if record.consumers() else None
