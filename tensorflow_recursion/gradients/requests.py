"""Answers `tf.gradients` when it meets calls of functions."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import functions, graphs, handles, nodes, patches
from tensorflow_recursion.definitions import Definition, order_of, original_of
from tensorflow_recursion.gradients import contributions, user_functions
from tensorflow_recursion.gradients.contributions import Kind
from tensorflow_recursion.gradients.groups import Group, Groups
from tensorflow_recursion.gradients.higher_orders import GradientDefinition
from tensorflow_recursion.gradients.modes import Modes
from tensorflow_recursion.gradients.pairs import Handles, Pair
from tensorflow_recursion.gradients.tracer import Tracer
from tensorflow_recursion.shapes import Shapes

tf1 = tf.compat.v1

Gradients: TypeAlias = list[tf.Tensor | tf.IndexedSlices | None]


class Differentiation:
    """The gradients of one outermost graph's functions.

    Attributes:
      modes: what is being built in that graph.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.modes = Modes()
        self._tracer = tracer
        self._groups = Groups(tracer, self.modes)
        # By the name of the function, and what of it has gradients.
        self._gradient_definitions: dict[Hashable, GradientDefinition] = {}
        # By the names of the functions that calls name once they are differentiated.
        self._by_forward: dict[str, Definition] = {}
        self._by_backward: dict[str, tuple[Pair, Group]] = {}

    def forward_name(self, name: str, graph_name: str, arguments: Sequence[tf.Tensor]) -> str:
        """What a call of the function `name` with these arguments runs should it be differentiated."""
        return self._groups.of(name, arguments).forward_name(graph_name)

    def result_shapes(self, name: str) -> Shapes | None:
        """What the group in progress knows of the results of a call of `name`."""
        group = self._groups.innermost
        return None if group is None else group.result_shapes(name)

    def result_handles(self, name: str) -> Handles:
        """What the group in progress knows of the lists that a call of `name` returns."""
        group = self._groups.innermost
        return () if group is None else group.result_handles(name)

    def bring_in(self, capture: tf.Tensor, chain: Sequence[tf.Graph]) -> tf.Tensor:
        """A captured tensor for a call that a gradient makes: the gradients of branches only capture step by step.

        Args:
          capture: a tensor of the outermost graph, or an eager one, which the gradient of a branch cannot capture.
          chain: the graphs around the call, from inside out.
        """
        is_first = graphs.is_eager_tensor(capture) and graphs.is_gradient_of_branch(chain)
        if self.modes.current.in_gradient or is_first:
            for graph in reversed(chain if is_first else chain[:-1]):
                capture = graphs.capture_in(graph, capture)
        return capture

    def of_call(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        """Gradients for the inputs of the call `op`, one per input, from those for its results."""
        callee = ops.callee_of(op)
        if callee in self._by_backward:
            return self._of_backward(op, *self._by_backward[callee], grads)
        definition = (
            self._by_forward.get(callee)
            or self._tracer.registry.by_graph_name(callee)
            or self._tracer.find_imported(callee)
        )
        if definition is None:
            raise LookupError(
                f"Call {op.name!r} of '{callee.removesuffix(names.MANGLED_SUFFIX)}' cannot be differentiated: the "
                "function has no definition by Defun in this graph"
            )
        if definition.create_grad_func is False:
            raise LookupError(
                f"Call {op.name!r} of '{definition.user_name}' cannot be differentiated: the function is defined with "
                "create_grad_func=False"
            )
        if definition.python_grad_func is not None or definition.grad_func is not None:
            return user_functions.of_call(op, definition, grads)
        return self._of_built(op, definition, grads)

    # -- Of a call of a function ---------------------------------------------------------------------------------------

    def _of_built(self, op: tf.Operation, definition: Definition, grads: Sequence[Any]) -> Gradients:
        """By a call of the backward function, with the record of the forward call."""
        count = len(definition.inputs)
        inputs = list(op.inputs)[: ops.num_arguments(op)]
        pair, group = self._pair_for(op, definition, inputs[:count])
        record = _record_of(op, pair.forward)
        dys = _gradients_for_results(op, pair, grads)
        if self._groups.innermost is None:
            pair.check_asked()
        self._check_datasets()
        kinds = {i: group.weights.kind_of(group.weights.weight_of(definition, i)) for i in pair.trainable}
        types, shapes = _types_of_gradients(inputs, kinds)
        backward = ops.invoke(
            pair.backward,
            [record, *dys, *inputs[count:]],
            types,
            shapes,
            name=f"{definition.user_name}_grad",
            record_of=pair.forward,
            ignored=inputs[:count] if self.modes.current.differentiable else (),
        )
        found = dict(zip(pair.trainable, backward.outputs, strict=False))
        lists = [i for i in found if inputs[i].dtype == tf.variant]
        handles.set_handle_data([found[i] for i in lists], [handles.handle_data(inputs[i]) for i in lists])
        for i, kind in kinds.items():
            if kind is not None and not (self._in_body_of_gradient() and patches.has_zeros(inputs[i])):
                found[i] = contributions.total(kind, found[i], inputs[i], is_dense=op.graph.building_function)
        return [found.get(i) for i in range(len(op.inputs))]

    def _pair_for(self, op: tf.Operation, definition: Definition, arguments: Sequence[tf.Tensor]) -> tuple[Pair, Group]:
        """The functions that a call and its gradient call, made unless a group is in progress."""
        group = self._groups.innermost
        if group is not None:
            pair = group.require(definition, op)
        else:
            group = self._groups.of(definition.user_name, arguments)
            pair = group.require(definition, op)
            self._groups.settle(group, op)
        self._by_backward[pair.backward] = (pair, group)
        self._by_forward[pair.forward] = definition
        return pair, group

    def _check_datasets(self) -> None:
        chain = graphs.enclosing_graphs(tf1.get_default_graph())
        if any(graphs.is_dataset_or_tf_function(graph) for graph in chain):
            functions.hide_from_dataset_optimizer(self._tracer.graph)

    def _in_body_of_gradient(self) -> bool:
        """Whether what is being built is a backward function: its callers collect contributions."""
        return self._groups.innermost is not None and not self.modes.current.differentiable

    # -- Of a call of a backward function ------------------------------------------------------------------------------

    def _of_backward(self, op: tf.Operation, pair: Pair, group: Group, grads: Sequence[Any]) -> Gradients:
        """By a call of what the backward function computes, as a function of x and dy, which is differentiated."""
        base = pair.definition
        count = len(base.inputs)
        num_arguments = ops.num_arguments(op)
        args = list(op.inputs)[num_arguments:]
        num_dys = num_arguments - 1 - len(self._tracer.captures(base.user_name))
        dys = list(op.inputs)[1 : 1 + num_dys]
        if len(args) != count:
            raise LookupError(
                f"Gradient call {op.name!r} of '{base.user_name}' cannot be differentiated again: it was built inside "
                "a body's gradient"
            )
        self._check_terms(pair, group, grads)
        definition = self._gradient_definition(pair)
        self._check_order(definition)
        if self._groups.innermost is None:
            # All that will be needed, from outside: bodies are not traced in the midst of a gradient.
            for other in group.pairs():
                self._tracer.require(self._gradient_definition(other).user_name)
        again = self._tracer.call_op(definition.user_name, definition.inputs, [*args, *dys])
        found = self.of_call(again, [*grads, None][: len(again.outputs)])
        of_args, of_dys = found[:count], found[count : count + num_dys]
        captures = self._tracer.captures(definition.user_name)
        by_capture = dict(zip((tensor.ref() for tensor in captures), found[count + num_dys :], strict=False))
        of_captures = [by_capture.get(tensor.ref()) for tensor in self._tracer.captures(base.user_name)]
        return [None, *of_dys, *of_captures, *of_args]

    def _check_terms(self, pair: Pair, group: Group, grads: Sequence[Any]) -> None:
        """Raises LookupError if there is no sum as a gradient for a sum that is not computed yet.

        Forward accumulators ask in this way: with ones like the terms.
        """
        for i, grad in zip(pair.trainable, grads, strict=False):
            kind = group.weights.kind_of(group.weights.weight_of(pair.definition, i))
            if kind is not None and grad is not None and grad.dtype == tf.variant:
                raise LookupError(
                    f"The gradient of '{pair.definition.user_name}' for a weight cannot be differentiated in forward "
                    "mode (tf.autodiff.ForwardAccumulator) where the tape is: put the call into a tf.function and the "
                    "tape around that, or use a second tape"
                )

    def _check_order(self, definition: GradientDefinition) -> None:
        """Raises LookupError if a gradient is asked for whose definition would need itself."""
        is_needed_by_itself = self._tracer.is_tracing(definition.user_name)
        if is_needed_by_itself or order_of(definition) > self._highest_order():
            raise LookupError(
                f"Function '{original_of(definition).user_name}': a gradient of its own calls, taken in its body or in "
                "one that it calls, cannot be differentiated, as every order of derivatives would need the next one; "
                "put tf.stop_gradient around that gradient"
            )

    def _highest_order(self) -> int:
        """The order of derivatives that a gradient may need: each function's body may take a gradient of the next's."""
        if self._groups.outermost is None:
            return sys.maxsize
        number = sum(order_of(known) == 0 for known in self._tracer.registry.definitions.values())
        return self._groups.outermost.order + number

    def _gradient_definition(self, pair: Pair) -> GradientDefinition:
        """E(x.., dy..) -> dx.. of a function, known to the graph."""
        name = pair.definition.user_name
        key = (name, pair.trainable, tuple(handles.holds_trainable(known) for known in pair.result_handles))
        definition = self._gradient_definitions.get(key)
        if definition is None:
            definition = GradientDefinition(pair, self._tracer, self.modes)
            self._tracer.adopt(definition)
            self._gradient_definitions[key] = definition
        return definition


def _record_of(op: tf.Operation, forward: str) -> tf.Tensor:
    """Let a call run the forward function; returns the record."""
    if op.graph.building_function:
        return ops.run_forward(op, forward)
    ops.set_forward(op, forward)
    return op.outputs[-1]


def _gradients_for_results(op: tf.Operation, pair: Pair, grads: Sequence[Any]) -> list[tf.Tensor]:
    """A tensor for each differentiable result of a call; zeros where nothing depends on it."""
    dys = []
    for i, (result, grad) in enumerate(zip(list(op.outputs)[:-1], grads, strict=False)):
        if result.dtype == tf.variant and grad is not None and not nodes.is_zeros(grad):
            pair.asked.add(i)
        if pair.is_trainable_result(i, result.dtype):
            dys.append(tf.zeros_like(result) if grad is None else tf.convert_to_tensor(grad, name=f"grad_{i}"))
            if result.dtype == tf.variant:
                handles.set_handle_data(dys[-1:], [pair.result_handles[i]])
    return dys


def _types_of_gradients(
    inputs: Sequence[tf.Tensor], kinds: dict[int, Kind | None]
) -> tuple[list[tf.DType], list[tf.TensorShape]]:
    """Dtypes and static shapes of what the backward function returns for the inputs in `kinds`: gradients or terms."""
    types, shapes = [], []
    for i, kind in kinds.items():
        dtype, shape = handles.gradient_type(inputs[i])
        types.append(dtype if kind is None else tf.variant)
        shapes.append(shape if kind is None else tf.TensorShape(None))
    return types, shapes
