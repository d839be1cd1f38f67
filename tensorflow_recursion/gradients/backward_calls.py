"""Gradients of calls of backward functions: the derivatives of a second order, and of all higher ones.

Such a call computes dx from a record and dy. The user knows no records, but takes derivatives by x and dy. So a
function E(x.., dy..) -> dx.. is defined, which computes the same (higher_orders.py). E is called anew, and that call is
differentiated.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import graphs, handles, nodes
from tensorflow_recursion.forward_backward.groups import Group, Groups
from tensorflow_recursion.forward_backward.pairs import Pair
from tensorflow_recursion.forward_backward.tracer import Tracer
from tensorflow_recursion.gradients import records, repeats, snapshots
from tensorflow_recursion.gradients.dead_inputs import dead_together
from tensorflow_recursion.gradients.gradient_calls import GradientCalls, Gradients, gradients_for_results
from tensorflow_recursion.gradients.higher_orders import GradientDefinition, name_of_gradient
from tensorflow_recursion.gradients.requested_pairs import RequestedPairs
from tensorflow_recursion.traces.definitions import Definition, MadeDefinition
from tensorflow_recursion.weight_gradients import gradients_of_sums

tf1 = tf.compat.v1


class BackwardCalls:
    """Differentiates the gradient calls of one outermost graph."""

    def __init__(
        self, tracer: Tracer, groups: Groups, requested: RequestedPairs, gradient_calls: GradientCalls
    ) -> None:
        self._tracer = tracer
        self._groups = groups
        self._requested = requested
        self._gradient_calls = gradient_calls
        # Gradients as functions, by what they are of and what they depend on (`_gradient_definition`).
        self._gradient_definitions: dict[Hashable, GradientDefinition] = {}

    def gradients(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        """Gradients for the inputs of a call of a backward function that was made here."""
        requested = self._requested.of_backward(ops.callee_of(op))
        assert requested is not None, op.name
        return self._gradients(op, *requested, grads)

    def gradients_of_imported(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        """Gradients by a call of a backward function that came along with a graph, from a pair that is made here."""
        name = names.base_of_forward(ops.record_of(op))
        arguments, _ = ops.ignored_by(op)
        base = self._imported(name, arguments, op.graph)
        if not isinstance(base, MadeDefinition):
            raise LookupError(
                f"Gradient call {op.name!r} of '{names.shown(name)}' cannot be differentiated again: the function has "
                "not come along with the graph; build the graph by its Python code again and restore the variables"
            )
        passed = list(op.inputs)[: ops.num_arguments(op)]
        captures = passed[len(passed) + len(arguments) - len(base.inputs) :]
        pair, group = self._requested.request(base, [*arguments, *captures], op.graph)
        results = len(op.get_attr(names.RESULT_TYPES))
        if len(pair.trainable) != results:
            raise LookupError(
                f"Gradient call {op.name!r} of '{names.shown(base.user_name)}' cannot be differentiated again: it "
                f"returns {results} gradients, the function that came along with it has {len(pair.trainable)}; build "
                "the graph by its Python code again and restore the variables"
            )
        return self._gradients(op, pair, group, grads)

    def _imported(self, name: str, arguments: Sequence[tf.Tensor], graph: tf.Graph) -> Definition | None:
        """The function `name`, which a call in `graph` has called with these arguments, if it came along with a graph.

        If it is itself a gradient as a function, only its forward and its backward function came along. Then it is made
        anew, from the function that it is the gradient of.
        """
        found = self._tracer.registry.definitions.get(name) or self._tracer.find_imported(name)
        if found is not None or (name_of_base := names.base_of_gradient(name)) is None:
            return found
        base = self._imported(name_of_base, arguments, graph)
        if not isinstance(base, MadeDefinition):
            return None
        inputs = arguments[: len(base.inputs)]
        pair, _ = self._requested.request(base, inputs, graph)
        made = self._gradient_definition(pair, inputs)
        return made if len(made.inputs) == len(arguments) else None

    def _gradients(self, op: tf.Operation, pair: Pair, group: Group, grads: Sequence[Any]) -> Gradients:
        """Gradients by a call of the gradient as a function of x and dy, which is differentiated."""
        base = pair.definition
        args, snapshot = ops.ignored_by(op)
        if not ops.carries_arguments(op) and base.inputs:
            raise LookupError(
                f"Gradient call {op.name!r} of '{names.shown(base.user_name)}' cannot be differentiated again: it was "
                "built inside a body's gradient"
            )
        _, *others = list(op.inputs)[: ops.num_arguments(op)]
        # Of a function that came with a graph, what is captured is among the inputs.
        num_captures = len(base.inputs) + len(self._tracer.captures(base.user_name)) - len(args)
        num_dys = len(others) - num_captures
        dys, captures = others[:num_dys], others[num_dys:]
        inputs = self._gradient_calls.with_captured_tables(pair, group, [*args, *captures])
        grads = _for_sums(pair, group, grads, inputs)
        definition = self._gradient_definition(pair, inputs)
        found = self._of_gradient(definition, [*inputs, *dys], grads, snapshot)
        of_args, of_captures, of_dys = found[: len(args)], found[len(args) : len(inputs)], found[len(inputs) :]
        return [None, *of_dys, *of_captures, *of_args, *[None] * len(snapshot)]

    def _of_gradient(
        self,
        definition: GradientDefinition,
        inputs: Sequence[tf.Tensor],
        grads: Sequence[Any],
        snapshot: Sequence[tf.Tensor],
    ) -> Gradients:
        """Gradients for the `inputs` of a gradient as a function, which is called anew, from those for its results."""
        gated = dead_together([*inputs, *snapshot], [grad for grad in grads if not records.is_none(grad)])
        inputs, snapshot = gated[: len(inputs)], gated[len(inputs) :]
        pair, group = self._requested.request(definition, inputs, tf1.get_default_graph())
        again = ops.invoke(
            self._tracer.registry.graph_name(definition.user_name),
            snapshots.with_variables_of(snapshot, inputs),
            definition.signature.output_types,
            pair.result_shapes,
            name=definition.user_name,
        )
        record = records.keep(again, pair.forward, len(again.outputs) - 1)
        results = list(again.outputs)[:-1]
        # Zeros for terms that were not computed yet are not those of the sum.
        given = [
            None if records.is_none(grads[i]) and y.dtype != tf.variant else grads[i] for i, y in enumerate(results)
        ]
        dys = gradients_for_results(results, pair, given)
        found = self._gradient_calls.make(pair, group, record, dys, inputs, snapshot)
        return [found.get(i) for i in range(len(inputs))]

    def _gradient_definition(self, pair: Pair, inputs: Sequence[tf.Tensor]) -> GradientDefinition:
        """The gradient of a function as a function E(x.., captures.., dy..) -> dx.., for a call with these inputs.

        It is made at the first call of its kind, and the graph knows it from then on.
        """
        base = pair.definition
        known = tuple(handles.holds_trainable(known) for known in pair.result_handles)
        key = (base.user_name, pair.trainable, known, tuple(handles.variable_key(tensor) for tensor in inputs))
        definition = self._gradient_definitions.get(key)
        if definition is None:
            if not isinstance(base, GradientDefinition):  # else it was warned of before
                repeats.warn_of_changes(base.user_name, self._tracer)
            name, in_graph = name_of_gradient(base, self._tracer)
            definition = GradientDefinition(name, pair, inputs, self._tracer, self._groups)
            self._tracer.adopt_made(definition, in_graph)
            self._gradient_definitions[key] = definition
        return definition


def _for_sums(pair: Pair, group: Group, grads: Sequence[Any], inputs: Sequence[tf.Tensor]) -> Gradients:
    """The gradients for what a gradient call returns; where that is a sum that is not computed yet, for the sum.

    A function's sums are computed inside of it. So if a gradient for terms is an argument of a function, it stands for
    zeros, which TensorFlow has made outside like the terms. If it is an argument of a branch or a loop, it may be more.

    Args:
      pair: the functions of which the call runs one.
      group: that of the pair.
      grads: the gradients for what the call returns.
      inputs: those of the function that the call is the gradient of; their gradients are what it returns.
    """
    found = list(grads)
    for position, (i, grad) in enumerate(zip(pair.trainable, grads, strict=False)):
        is_collected = group.known.is_collected(pair.definition, i)
        if not is_collected or grad is None or grad.dtype != tf.variant:
            continue
        is_from_outside = nodes.is_argument(grad) and not graphs.is_control_flow(grad.graph)
        found[position] = (
            None if records.is_none(grad) or is_from_outside else gradients_of_sums.for_sum(grad, inputs[i])
        )
    return found
