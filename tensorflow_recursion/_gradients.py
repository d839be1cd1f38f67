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
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tensorflow_recursion import _contributions, _tf, ops

if TYPE_CHECKING:
    from tensorflow_recursion._library import Body, Definition, Library
    from tensorflow_recursion._signature import Signature

tf1 = tf.compat.v1

# Call sites of one function with so many different static shapes get traces of their own; later ones share one.
_MAX_SHAPED_GROUPS = 4
# Traces of one function after which its shapes are given up.
_MAX_ROUNDS = 8
_OTHERWISE = "otherwise"

Shapes = tuple[tf.TensorShape, ...]
Handles = tuple[_tf.HandleData | None, ...]
Gradients = list[tf.Tensor | tf.IndexedSlices | None]


@dataclasses.dataclass(eq=False)
class Trace:
    """The forward and the backward function of one function in one group.

    Attributes:
      definition: what is differentiated.
      forward, backward: names of the two functions.
      arg_shapes: static shapes of the declared arguments, as far as all calls of the group agree.
      handles: what all calls of the group agree on of the variables whose handles are declared arguments.
      trainable: positions of the arguments and captures that have a gradient.
      result_shapes: static shapes of the results, None before the first trace.
      rounds: number of traces.
      functions: the two functions, once traced.
    """

    definition: Definition
    forward: str
    backward: str
    arg_shapes: Shapes
    handles: Handles
    trainable: tuple[int, ...]
    result_shapes: Shapes | None = None
    rounds: int = 0
    functions: tuple[_tf.TracedFunction, ...] = ()


class Group:
    """A function and those it reaches, differentiated for outermost calls with the same static shapes."""

    def __init__(self, library: Library, number: int, is_shaped: bool, order: int) -> None:
        self.order = order  # of the derivatives that the outermost calls return
        self._library = library
        self._number = number
        self._is_shaped = is_shaped
        self._traces: dict[str, Trace] = {}
        self._pending: list[Trace] = []
        # How the bodies use a weight: a kind of contributions, _OTHERWISE, or None as long as none is known. Weights
        # are captured tensors and arguments; those that are handed to each other by calls are one, told by the first.
        self._uses: dict[Any, str | None] = {}
        self._same: dict[Any, Any] = {}

    def weight_of(self, definition: Definition, position: int) -> Any:
        """What an input of a function is as a weight: the captured tensor, or the argument."""
        count = len(definition.inputs)
        if position < count:
            return (definition.user_name, position)
        return (None, self._library.captures(definition.user_name)[position - count].ref())

    def kind_of(self, weight: Any) -> str | None:
        """The kind of contributions that the gradient for a weight is made of; None if it is dense."""
        kind = self._uses.get(self._first(weight))
        return None if kind == _OTHERWISE else kind

    def note_uses(self, weight: Any, tensor: tf.Tensor, uses: Sequence[_contributions.Use]) -> None:
        """Learn how one body uses a weight; if that changes the picture, all are traced again."""
        before = dict(self._uses), dict(self._same)
        kinds = {use.kind for use in uses} - {_contributions.CALL}
        for kind in kinds:
            can_be = kind is not None and _contributions.can_be(kind, tensor)
            self._restrict(weight, kind if can_be else _OTHERWISE)
        for use in uses:
            if use.target is not None and (first := self._first(use.target)) != self._first(weight):
                if (kind := self._uses.get(first)) is not None:
                    self._restrict(weight, kind)
                self._same[first] = self._first(weight)
        if (self._uses, self._same) != before:
            for other in self._traces.values():
                if other.rounds > 0:
                    self._postpone(other)

    def _first(self, weight: Any) -> Any:
        while weight in self._same:
            weight = self._same[weight]
        return weight

    def _restrict(self, weight: Any, kind: str) -> None:
        first = self._first(weight)
        known = self._uses.get(first)
        self._uses[first] = kind if known in (None, kind) else _OTHERWISE

    def forward_name(self, definition_name: str) -> str:
        """The forward function of the function that is called `definition_name` in the graph."""
        return f"{definition_name}__forward{self._number}"

    def require(self, definition: Definition, op: tf.Operation) -> Trace:
        """The trace for a call `op` of `definition`: as it is, not yet made if a trace of this group is in progress."""
        arguments = tuple(op.inputs)[: len(definition.inputs)]
        shapes = tuple(tensor.shape if self._is_shaped else tf.TensorShape(None) for tensor in arguments)
        handles = tuple(_tf.handle_data(tensor) for tensor in arguments)
        trace = self._traces.get(definition.user_name)
        if trace is None:
            forward = self.forward_name(definition.graph_name)
            backward = f"{definition.graph_name}__backward{self._number}"
            trainable = tuple(i for i, tensor in enumerate(op.inputs) if _tf.is_trainable(tensor))
            trace = Trace(definition, forward, backward, shapes, handles, trainable)
            self._traces[definition.user_name] = trace
            self._pending.append(trace)
            return trace
        shapes = tuple(map(_join, trace.arg_shapes, shapes))
        handles = tuple(map(_tf.join_handle_data, trace.handles, handles))
        if (shapes, handles) != (trace.arg_shapes, trace.handles):
            trace.arg_shapes, trace.handles = shapes, handles
            self._postpone(trace)
        return trace

    def result_shapes(self, name: str) -> Shapes | None:
        """What is known of the shapes that calls of `name` in bodies of this group return."""
        trace = self._traces.get(name)
        return None if trace is None else trace.result_shapes

    def traces(self) -> list[Trace]:
        """Of all functions that were differentiated in the group."""
        return list(self._traces.values())

    def settle(self) -> list[_tf.TracedFunction]:
        """Make what is pending; returns all functions of the group."""
        try:
            while self._pending:
                self._make(self._pending.pop())
        except Exception:
            for state in (self._traces, self._pending, self._uses, self._same):
                state.clear()
            raise
        return [function for trace in self._traces.values() for function in trace.functions]

    def _postpone(self, trace: Trace) -> None:
        if trace not in self._pending:
            self._pending.append(trace)

    def _make(self, trace: Trace) -> None:
        trace.rounds += 1
        if trace.rounds > _MAX_ROUNDS:
            trace.arg_shapes = tuple(tf.TensorShape(None) for _ in trace.arg_shapes)
        body = self._library.new_body(trace.definition)
        split = _Split(trace, body, self, self._library)
        trace.functions = split.functions
        # A guess that the trace confirms is true by induction over the depth of the recursion.
        guess = trace.result_shapes
        if trace.rounds > _MAX_ROUNDS:
            shapes = tuple(tf.TensorShape(None) for _ in split.results)
        elif guess is None:
            shapes = tuple(_guess_shape(result) for result in split.results)
            guess = tuple(tf.TensorShape(None) for _ in split.results)
        else:
            shapes = tuple(_join(known, result.shape) for known, result in zip(guess, split.results, strict=True))
        trace.result_shapes = shapes
        if not _same_shapes(shapes, guess):
            for other in self._traces.values():
                self._postpone(other)


class _Split:
    """Traces a body with its gradient, and makes the forward and the backward function of it."""

    def __init__(self, trace: Trace, body: Body, group: Group, library: Library) -> None:
        self._trace = trace
        self._outer = body.known
        self._group = group
        self._library = library
        self._definition = trace.definition
        declared = library.names.declarations.get(self._definition.user_name)
        graph = library.graph

        def build(*args: tf.Tensor) -> list[tf.Tensor]:
            self.args = list(args)
            for handle, arg in zip(trace.handles, args, strict=True):
                if handle is not None:
                    _tf.set_handle_data(arg, handle)
            with body.building(graph.seed):
                with library.differentiation.mode(differentiable=True, in_gradient=False):
                    results = self._definition.build(args, declared)
                self.captures = [tf1.get_default_graph().capture(tensor) for tensor in body.known]
                self.results = [tf.identity(result) for result in results]
                forward = set(tf1.get_default_graph().get_operations())
                self._mark_uses()
                with library.differentiation.mode(differentiable=False):
                    self._differentiate(trace.result_shapes)
                self._forward = forward | _tf.ancestors([result.op for result in self.results])
            return []

        options = self._definition.trace_options()
        self._graph = _tf.trace_graph(
            graph,
            build,
            self._definition.inputs,
            trace.arg_shapes,
            trace.forward,
            device=options["device"],
            options=options["options"],
        )
        if len(self._graph.extra_inputs) > len(body.known):
            new = ", ".join(repr(tensor.name) for tensor in self._graph.extra_inputs[len(body.known) :])
            raise ValueError(
                f"Function '{self._definition.user_name}': its gradient uses {new}, which its body does not; "
                "use it in the body, or pass it as an argument"
            )
        self.functions = self._make()

    def _differentiate(self, result_shapes: Shapes | None) -> None:
        self.dys, ys = [], []
        for i, result in enumerate(self.results):
            if not _tf.is_trainable_type(result.dtype):
                continue
            shape = result.shape if result_shapes is None else _join(result.shape, result_shapes[i])
            self.dys.append(tf1.placeholder(result.dtype, shape, name=f"grad_{i}"))
            ys.append(result)
        inputs = [*self.args, *self.captures]
        sources = [inputs[i] for i in self._trace.trainable]
        is_collected = [self._kind(i) is not None for i in self._trace.trainable]
        self.dxs = gradients_of(self._definition, ys, self.dys, sources, is_collected)

    def _mark_uses(self) -> None:
        """Let the gradients of weights be collected where that can be done."""
        inputs = [*self.args, *self.captures]
        uses = {}
        for i in self._trace.trainable:
            uses[i] = list(_contributions.uses(inputs[i], self.results, self._target_of))
            self._group.note_uses(self._group.weight_of(self._definition, i), inputs[i], uses[i])
        for i in self._trace.trainable:
            if self._kind(i) is None:
                continue
            for use in uses[i]:
                if use.kind != _contributions.CALL:
                    _contributions.use_contributions(use.op, use.kind)
            for tensor in _contributions.inner_tensors(inputs[i]):
                _tf.set_zeros(tensor, ops.contribute_none)

    def _kind(self, position: int) -> str | None:
        return self._group.kind_of(self._group.weight_of(self._definition, position))

    def _target_of(self, op: tf.Operation, position: int) -> Any:
        callee = self._library.differentiation.built_callee(op)
        if callee is None or position >= ops.num_arguments(op):
            return None
        return self._group.weight_of(callee, position)

    def _make(self) -> tuple[_tf.TracedFunction, ...]:
        graph = self._graph
        inputs = {tensor.op for tensor in [*self.args, *self.captures, *self.dys]}
        with graph.as_default():
            backward = [op for op in graph.get_operations() if op not in self._forward and op not in inputs]
            saved = self._cut(backward)
            record = tf1.placeholder(tf.variant, [], name="record")
            name = self._definition.graph_name
            retain = ops.retain(saved, name)
            recalled = ops.recall(record, saved, name)
            self._recall(backward, saved, recalled)
            outputs = [*self.results, retain.outputs[0]]
            forward = [op for op in graph.get_operations() if op in self._forward and op not in inputs]
            backward = [op for op in graph.get_operations() if op not in self._forward and op not in inputs]
            backward = [op for op in backward if op not in (retain, record.op)]
        return (
            _tf.make_function(
                graph,
                self._trace.forward,
                [*forward, retain],
                [*self.args, *self.captures],
                outputs,
                [*_names("y", self.results), "record"],
            ),
            _tf.make_function(
                graph,
                self._trace.backward,
                backward,
                [record, *self.dys, *self.captures],
                self.dxs,
                _names("dx", self.dxs),
            ),
        )

    def _cut(self, backward: Sequence[tf.Operation]) -> list[tf.Tensor]:
        """The tensors that backward operations read of the forward ones; constants are made again instead."""
        captures = {capture.ref() for capture in self.captures}
        saved: dict[Any, tf.Tensor] = {}
        constants: dict[Any, tf.Tensor] = {}
        for op in backward:
            for i, tensor in enumerate(op.inputs):
                key = tensor.ref()
                if key in captures or (tensor.op not in self._forward and tensor.op not in self._arg_ops()):
                    continue
                if tensor.op.type == "Const":
                    if key not in constants:
                        constants[key] = _tf.copy_of(tensor)
                    op._update_input(i, constants[key])
                else:
                    saved.setdefault(key, tensor)
            _tf.keep_control_inputs(op, lambda source: source not in self._forward)
        return list(saved.values())

    def _arg_ops(self) -> set[tf.Operation]:
        return {arg.op for arg in self.args}

    def _recall(
        self, backward: Sequence[tf.Operation], saved: Sequence[tf.Tensor], recalled: Sequence[tf.Tensor]
    ) -> None:
        new = {tensor.ref(): value for tensor, value in zip(saved, recalled, strict=True)}
        for op in backward:
            for i, tensor in enumerate(op.inputs):
                if (value := new.get(tensor.ref())) is not None:
                    op._update_input(i, value)


class GradientDefinition:
    """E(x.., dy..) -> dx..: a function's gradient as a function, so that it can be differentiated.

    Attributes:
      base: the function; it may be a gradient itself.
      order: of the derivatives that it returns.
      function: name of the user's function whose derivatives they are.
    """

    python_grad_func = None
    grad_func = None
    create_grad_func = None
    output_shapes = None

    def __init__(self, base: Definition, trace: Trace, library: Library, output_types: Sequence[tf.DType]) -> None:
        self.base = base
        suffix = "__gradient"
        while f"{base.user_name}{suffix}" in library.names.definitions:
            suffix = f"_{suffix}"
        self.user_name = f"{base.user_name}{suffix}"
        self.graph_name = f"{base.graph_name}{suffix}"
        self.order = _order(base) + 1
        self.function = getattr(base, "function", base.user_name)
        self._library = library
        self._trainable = trace.trainable
        self._handles = trace.handles
        dys = [(f"grad_{i}", dtype) for i, dtype in enumerate(output_types) if _tf.is_trainable_type(dtype)]
        self.inputs = (*base.inputs, *dys)

    def check_against(self, declared: Signature) -> None:
        """Nothing declares a gradient."""

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """The body: the base function's, and its gradient."""
        with _tf.control_flow_for_gradients():  # stock TensorFlow cannot differentiate the gradient of a loop of v1
            return self._build(args)

    def _build(self, args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        count = len(self.base.inputs)
        args, dys = args[:count], args[count:]
        for handle, arg in zip(self._handles, args, strict=True):
            if handle is not None and _tf.handle_data(arg) is None:
                _tf.set_handle_data(arg, handle)
        results = self.base.build(args, self._library.names.declarations.get(self.base.user_name))
        ys = [result for result in results if _tf.is_trainable_type(result.dtype)]
        graph = tf1.get_default_graph()
        inputs = [*args, *(graph.capture(tensor) for tensor in self._library.captures(self.base.user_name))]
        with self._library.differentiation.mode(differentiable=True):
            sources = [inputs[i] for i in self._trainable]
            return gradients_of(self.base, ys, dys, sources, [False] * len(sources))

    def trace_options(self) -> dict[str, Any]:
        """As those of the base function."""
        return {**self.base.trace_options(), "out_names": None}


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
            return self._users(op, definition, grads)
        return self._built(op, definition, grads)

    def _users(self, op: tf.Operation, definition: Definition, grads: Sequence[Any]) -> Gradients:
        """By the gradient function that the user gave to Defun."""
        count = len(definition.inputs)
        if definition.python_grad_func is not None:
            what = "python_grad_func"
            result = self._call_users(definition, what, definition.python_grad_func, op, [op, *grads])
        else:
            dys = [grad for grad, y in zip(grads, op.outputs, strict=False) if _tf.is_trainable_type(y.dtype)]
            what = "grad_func"
            result = self._call_users(definition, what, definition.grad_func, op, [*list(op.inputs)[:count], *dys])
        result = list(result) if isinstance(result, (list, tuple)) else [result]
        if result and isinstance(result[0], tf.Operation):
            result = []
        total = ops.num_arguments(op)
        if what == "grad_func" and len(result) < count:
            trainable = [i for i in range(count) if _tf.is_trainable(op.inputs[i])]
            if len(result) == len(trainable):
                by_input = dict(zip(trainable, result, strict=True))
                result = [by_input.get(i) for i in range(count)]
        if len(result) not in (count, total):
            raise ValueError(
                f"Function '{definition.user_name}': its {what} returns {len(result)} gradients for call {op.name!r}, "
                f"expected {count}, one per argument"
            )
        for i, (grad, tensor) in enumerate(zip(result, op.inputs, strict=False)):
            if grad is None or not _tf.is_trainable(tensor):
                continue
            expected = _tf.gradient_type(tensor)[0]
            if not isinstance(grad, (tf.Tensor, tf.IndexedSlices)):
                try:
                    result[i] = grad = tf.convert_to_tensor(grad)
                except (TypeError, ValueError) as error:
                    raise TypeError(
                        f"Function '{definition.user_name}': its {what} returns {grad!r} as the gradient for argument "
                        f"{i} of call {op.name!r}, expected a tensor of {expected.name}"
                    ) from error
            if grad.dtype.base_dtype != expected:
                raise TypeError(
                    f"Function '{definition.user_name}': its {what} returns a gradient of dtype {grad.dtype.name} for "
                    f"argument {i} of call {op.name!r}, expected {expected.name}"
                )
        result += [None] * (len(op.inputs) - len(result))
        return [grad if _tf.is_trainable(x) else None for grad, x in zip(result, op.inputs, strict=True)]

    @staticmethod
    def _call_users(
        definition: Definition, what: str, function: Any, op: tf.Operation, arguments: Sequence[Any]
    ) -> Any:
        try:
            return function(*arguments)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"Function '{definition.user_name}': its {what} fails for call {op.name!r} with {len(arguments)} "
                f"arguments: {error}"
            ) from error

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
        functions = sum(_order(known) == 0 for known in self._library.names.definitions.values())
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
            order = _order(self._library.names.definitions.get(name))
            self._groups[key] = Group(self._library, len(self._groups) + 1, key[1] is not None, order)
        return self._groups[key]


def _order(definition: Any) -> int:
    """The order of the derivatives that a function returns: 0 for one of the user's."""
    return getattr(definition, "order", 0)


def gradients_of(
    definition: Definition,
    ys: Sequence[tf.Tensor],
    dys: Sequence[tf.Tensor],
    xs: Sequence[tf.Tensor],
    is_collected: Sequence[bool],
) -> list[tf.Tensor]:
    """Dense gradients of `ys` for `xs`, or contributions where they are collected; zeros where there is no path.

    Raises:
      LookupError: if something on the path has no gradient; names the function.
    """
    try:
        dxs = tf1.gradients(list(ys), list(xs), list(dys)) if ys else [None] * len(xs)
    except LookupError as error:
        if f"'{definition.user_name}'" in str(error):
            raise
        raise LookupError(f"Function '{definition.user_name}' cannot be differentiated: {error}") from error
    return [_result(dx, x, collected) for dx, x, collected in zip(dxs, xs, is_collected, strict=True)]


def _result(dx: Any, x: tf.Tensor, is_collected: bool) -> tf.Tensor:
    if dx is None:
        return ops.contribute_none() if is_collected else _tf.zeros_for(x)
    return tf.identity(tf.convert_to_tensor(dx))


def _join(a: tf.TensorShape, b: tf.TensorShape) -> tf.TensorShape:
    """The most that is true of both shapes."""
    return a.most_specific_common_supertype([b]) or tf.TensorShape(None)


def _same_shapes(a: Shapes, b: Shapes) -> bool:
    return [str(shape) for shape in a] == [str(shape) for shape in b]


def _guess_shape(result: tf.Tensor) -> tf.TensorShape:
    """The static shape of a result, or, where a conditional leaves it open, that of the branch that says most."""
    while result.op.type == "Identity":
        result = result.op.inputs[0]
    shapes = [result.shape, *(_guess_shape(output) for output in _tf.branch_outputs(result))]

    def known(shape: tf.TensorShape) -> tuple[bool, int]:
        return (shape.rank is not None, 0 if shape.rank is None else sum(dim is not None for dim in shape.as_list()))

    return max(shapes, key=known)


def _names(prefix: str, tensors: Sequence[tf.Tensor]) -> list[str]:
    return [f"{prefix}_{i}" for i in range(len(tensors))]
