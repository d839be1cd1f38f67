"""Reverse-mode differentiation of function calls.

A differentiated function f: x.. -> y.. becomes two functions, made from one trace of its Python body followed by
`tf.gradients`:

- `f__forward`: x.. -> y.., record. What the gradient needs of an invocation is packed into its record by
  `Recursion>Retain`; the records of calls in the body are among it.
- `f__backward`: record, dy.., captures.. -> dx.. begins with `Recursion>Recall`. Captured tensors are passed again,
  not retained, because they are the same at every depth.

A call node runs `f__forward` in place of `f` wherever something reads its record, which is decided when a session
knows what it fetches. Both are plain functions of the graph: whatever runs calls runs gradients.

Gradients of gradients: a call of `f__backward` is, as a function, E(x.., dy..) -> dx.. . To differentiate it, E is
defined as a function of its own, which runs f's body and its gradient, and called anew.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tensorflow_recursion import _contributions, _tf, _user_gradients, ops
from tensorflow_recursion._groups import Group, Trace
from tensorflow_recursion._higher_orders import GradientDefinition, order_of
from tensorflow_recursion._shapes import Shapes

if TYPE_CHECKING:
    from tensorflow_recursion._library import Definition, Library

tf1 = tf.compat.v1

# Call sites of one function with so many different static shapes get traces of their own; later ones share one.
_MAX_SHAPED_GROUPS = 4

Gradients = list[tf.Tensor | tf.IndexedSlices | None]


class Differentiation:
    """Answers `tf.gradients` when it meets calls of a library's functions."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._groups: dict[tuple[str, Any, Any], Group] = {}
        self._gradient_definitions: dict[str, GradientDefinition] = {}
        self._by_forward: dict[str, Definition] = {}
        self._by_backward: dict[str, Trace] = {}
        self._group_of: dict[str, Group] = {}
        # Groups whose functions are being traced, innermost last.
        self._active: list[Group] = []
        self._differentiable = [True]
        self._in_gradient = [False]

    @contextlib.contextmanager
    def mode(self, differentiable: bool, in_gradient: bool = True) -> Iterator[None]:
        """What is built inside.

        Args:
          differentiable: whether gradient calls carry what differentiating them again takes.
          in_gradient: whether it is a gradient of a body, or a body.
        """
        self._differentiable.append(differentiable)
        self._in_gradient.append(in_gradient)
        try:
            yield
        finally:
            self._differentiable.pop()
            self._in_gradient.pop()

    def forward_name(self, name: str, graph_name: str, arguments: Sequence[tf.Tensor]) -> str:
        """What a call of the function `name` with these arguments runs should it be differentiated."""
        return self._group(name, arguments).forward_name(graph_name)

    def result_shapes(self, name: str) -> Shapes | None:
        """What the group in progress knows of the results of a call of `name`."""
        return self._active[-1].result_shapes(name) if self._active else None

    def bring_in(self, capture: tf.Tensor, chain: Sequence[tf.Graph]) -> tf.Tensor:
        """A captured tensor for a call that a gradient makes: the gradients of branches only capture step by step.

        Args:
          capture: a tensor of the outermost graph.
          chain: the graphs around the call, from inside out.
        """
        if self._in_gradient[-1]:
            for graph in reversed(chain[:-1]):
                capture = _tf.capture_in(graph, capture)
        return capture

    def of_call(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        """Gradients for the inputs of the call `op`, one per input, from those for its results."""
        callee = ops.callee_of(op)
        if (trace := self._by_backward.get(callee)) is not None:
            return self._of_backward(op, trace, grads)
        definition = self._by_forward.get(callee) or self._library.definition_in_graph(callee)
        if definition is None:
            raise LookupError(
                f"Call {op.name!r} of '{callee.removesuffix('__fn')}' cannot be differentiated: the function has no "
                "definition by Defun in this graph"
            )
        if definition.create_grad_func is False:
            raise LookupError(
                f"Call {op.name!r} of '{definition.user_name}' cannot be differentiated: the function is defined with "
                "create_grad_func=False"
            )
        if definition.python_grad_func is not None or definition.grad_func is not None:
            return _user_gradients.of_call(op, definition, grads)
        return self._built(op, definition, grads)

    def _built(self, op: tf.Operation, definition: Definition, grads: Sequence[Any]) -> Gradients:
        """By a call of the backward function, with the record of the forward call."""
        inputs = list(op.inputs)[: ops.num_arguments(op)]
        count = len(definition.inputs)
        group = self._active[-1] if self._active else self._group(definition.user_name, inputs[:count])
        trace = group.require(definition, op)
        if not self._active:
            self._settle(group)
        self._by_backward[trace.backward] = trace
        self._group_of[trace.backward] = group
        self._by_forward[trace.forward] = definition
        results, record = list(op.outputs)[:-1], op.outputs[-1]
        if op.graph.building_function:
            record = ops.run_forward(op, trace.forward)
        else:
            ops.set_forward(op, trace.forward)
        dys = []
        for i, (result, grad) in enumerate(zip(results, grads, strict=False)):
            if _tf.is_trainable_type(result.dtype):
                dys.append(tf.zeros_like(result) if grad is None else tf.convert_to_tensor(grad, name=f"grad_{i}"))
        chain = _tf.enclosing_graphs(tf1.get_default_graph())
        if any(_tf.is_dataset_or_tf_function(graph) for graph in chain):
            _tf.hide_from_dataset_optimizer(self._library.graph)
        types, shapes, kinds = [], [], []
        for i in trace.trainable:
            kinds.append(group.kind_of(group.weight_of(definition, i)))
            dtype, shape = _tf.gradient_type(inputs[i])
            types.append(dtype if kinds[-1] is None else tf.variant)
            shapes.append(shape if kinds[-1] is None else tf.TensorShape(None))
        backward = ops.invoke(
            trace.backward,
            [record, *dys, *inputs[count:]],
            types,
            shapes,
            name=f"{definition.user_name}_grad",
            record_of=trace.forward,
            ignored=inputs[:count] if self._differentiable[-1] else (),
        )
        by_input = dict(zip(trace.trainable, backward.outputs, strict=False))
        for i, kind in zip(trace.trainable, kinds, strict=True):
            if kind is not None and not (self._in_body_of_gradient() and _tf.has_zeros(inputs[i])):
                is_dense = op.graph.building_function
                by_input[i] = _contributions.total(kind, by_input[i], inputs[i], is_dense)
        return [by_input.get(i) for i in range(len(op.inputs))]

    def built_callee(self, op: tf.Operation) -> Definition | None:
        """The callee of a call in a body, if its gradient is the one built here."""
        definition = self._library.definition_in_graph(ops.callee_of(op))
        if definition is None or definition.create_grad_func is False:
            return None
        return definition if definition.python_grad_func is None and definition.grad_func is None else None

    def _in_body_of_gradient(self) -> bool:
        """Whether what is being built is a backward function: its callers collect contributions."""
        return bool(self._active) and not self._differentiable[-1]

    def _of_backward(self, op: tf.Operation, trace: Trace, grads: Sequence[Any]) -> Gradients:
        """Of a call of a backward function: by a call of what it computes, as a function of x and dy."""
        base = trace.definition
        count = len(base.inputs)
        num_arguments = ops.num_arguments(op)
        ignored = list(op.inputs)[num_arguments:]
        library = self._library
        num_captures = len(library.captures(base.user_name))
        num_dys = num_arguments - 1 - num_captures
        dys = list(op.inputs)[1 : 1 + num_dys]
        if len(ignored) != count:
            raise LookupError(
                f"Gradient call {op.name!r} of '{base.user_name}' cannot be differentiated again: it was built inside "
                "a body's gradient"
            )
        definition = self._gradient_definition(trace)
        if library.is_in_trace(definition.user_name) or definition.order > self._highest_order():
            raise LookupError(
                f"Function '{definition.function}': a gradient of its own calls, taken in its body or in one that it "
                "calls, cannot be differentiated, as every order of derivatives would need the next one; put "
                "tf.stop_gradient around that gradient"
            )
        if not self._active:
            # All that will be needed, from outside: bodies are not traced in the midst of a gradient.
            for other in self._group_of[trace.backward].traces():
                library.require(self._gradient_definition(other).user_name)
        again = library.call_op(definition.user_name, definition.inputs, [*ignored, *dys], None)
        found = self.of_call(again, [*grads, None][: len(again.outputs)])
        of_args, of_dys = found[:count], found[count : count + num_dys]
        captures = library.captures(definition.user_name)
        by_capture = dict(zip((tensor.ref() for tensor in captures), found[count + num_dys :], strict=False))
        of_captures = [by_capture.get(tensor.ref()) for tensor in library.captures(base.user_name)]
        return [None, *of_dys, *of_captures, *of_args]

    def _highest_order(self) -> int:
        """The order of derivatives that a gradient may need: each function's body may take a gradient of the next's."""
        if not self._active:
            return sys.maxsize
        functions = sum(order_of(known) == 0 for known in self._library.names.definitions.values())
        return self._active[0].order + functions

    def _gradient_definition(self, trace: Trace) -> Definition:
        """E(x.., dy..) -> dx.. of a function, adopted by the library."""
        base = trace.definition
        definition = self._gradient_definitions.get(base.user_name)
        if definition is None:
            definition = GradientDefinition(base, trace, self._library, self._library.output_types(base.user_name))
            self._library.adopt(definition)
            self._gradient_definitions[base.user_name] = definition
        return definition

    def _settle(self, group: Group) -> None:
        self._active.append(group)
        try:
            functions = group.settle()
        finally:
            self._active.pop()
        for graph in [self._library.graph, *_tf.enclosing_graphs(tf1.get_default_graph())[:-1]]:
            if graph is self._library.graph or _tf.is_func_graph(graph):
                for function in functions:
                    if not _tf.has_function(graph, function.name):
                        _tf.add_function(graph, function)

    def _group(self, name: str, arguments: Sequence[tf.Tensor]) -> Group:
        """The group for outermost calls of the function `name` with arguments of these static shapes."""
        variables = tuple(_tf.variable_key(tensor) for tensor in arguments)
        key = (name, tuple(str(tensor.shape) for tensor in arguments), variables)
        if key not in self._groups and sum(known[0] == name for known in self._groups) >= _MAX_SHAPED_GROUPS:
            key = (name, None, variables)
        if key not in self._groups:
            order = order_of(self._library.names.definitions.get(name))
            self._groups[key] = Group(self._library, len(self._groups) + 1, key[1] is not None, order)
        return self._groups[key]
