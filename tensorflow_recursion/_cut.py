"""One trace of a body with its gradient, cut into a forward and a backward function."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tensorflow_recursion import _contributions, _shapes, _tf, ops
from tensorflow_recursion._shapes import Shapes

if TYPE_CHECKING:
    from tensorflow_recursion._groups import Group, Trace
    from tensorflow_recursion._library import Body, Definition, Library

tf1 = tf.compat.v1


class Split:
    """Traces a body with its gradient, and makes the forward and the backward function of it."""

    def __init__(self, trace: Trace, body: Body, group: Group, library: Library) -> None:
        self._trace = trace
        self._group = group
        self._library = library
        self._definition = trace.definition
        declared = library.names.declarations.get(self._definition.user_name)
        graph = library.graph

        def build(*args: tf.Tensor) -> list[tf.Tensor]:
            self.args = list(args)
            _tf.set_handle_data(args, trace.handles)
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
            shape = result.shape if result_shapes is None else _shapes.join(result.shape, result_shapes[i])
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
            retain = ops.retain(saved, self._trace.forward)
            recalled = ops.recall(record, saved, self._trace.forward)
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


def _names(prefix: str, tensors: Sequence[tf.Tensor]) -> list[str]:
    return [f"{prefix}_{i}" for i in range(len(tensors))]
