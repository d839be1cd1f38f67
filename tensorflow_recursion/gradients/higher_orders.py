"""The gradient of a function as a function, which can be differentiated in turn."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles
from tensorflow_recursion.forward_backward.groups import Groups
from tensorflow_recursion.forward_backward.pairs import Pair
from tensorflow_recursion.forward_backward.tracer import Tracer
from tensorflow_recursion.traces.definitions import Definition, MadeDefinition, TraceOptions
from tensorflow_recursion.traces.signatures import Named, Signature


class GradientDefinition(MadeDefinition):
    """E(x.., captures.., dy..) -> dx..: a function's gradient as a function, so that it can be differentiated.

    Its body calls the forward function and then, with the record, the backward function. Its own gradient is made of
    the gradients of these two, which are linked by the gradient for the record.

    Attributes:
      base: the function; it may be a gradient itself.
      signature: what it takes and returns.
      of_results: positions of the results of `base` that have a gradient.
    """

    def __init__(self, name: str, pair: Pair, inputs: Sequence[tf.Tensor], tracer: Tracer, groups: Groups) -> None:
        """Defines the gradient of the function of `pair`, called `name`, for calls with such `inputs`.

        It takes gradients for those results that have one by `pair`, and returns gradients for those inputs.
        """
        self.base: Definition = pair.definition
        self.user_name = name
        types = tracer.output_types(self.base.user_name)
        self.of_results = [i for i, dtype in enumerate(types) if pair.is_trainable_result(i, dtype)]
        given: list[Named] = [(f"input_{i}", tensor.dtype.base_dtype) for i, tensor in enumerate(inputs)]
        known = dict(enumerate(pair.result_handles))
        given += [(f"grad_{i}", handles.dtype_of_gradient(types[i], known.get(i))) for i in self.of_results]
        outputs = [(f"output_{i}", handles.gradient_type(inputs[i])[0]) for i in pair.trainable]
        self.signature = Signature(name, tuple(given), tuple(outputs))
        self._groups = groups
        self._num_inputs = len(inputs)
        self._trainable = pair.trainable
        self._handles = [handles.handle_data(tensor) for tensor in inputs]

    def check_against(self, declared: Signature) -> None:
        """Accepts any declaration: it is made from the signature."""

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """The body: a call of the base's forward function, and one of its backward function."""
        inputs, dys = args[: self._num_inputs], args[self._num_inputs :]
        handles.set_handle_data(inputs, self._handles)
        pair, forward, backward = self._groups.pair_functions(self.base, inputs)
        types = forward.signature.output_types
        shapes = [*(pair.result_shapes or ()), tf.TensorShape([])]
        *results, record, _ = ops.invoke(forward.user_name, inputs, types, shapes, name="forward").outputs
        handles.set_handle_data([*results, record], forward.result_handles)
        given = dict(zip(self.of_results, dys, strict=True))
        grads = [
            given[i] if i in given else handles.zeros_for(result)
            for i, result in enumerate(results)
            if pair.is_trainable_result(i, result.dtype)
        ]
        captures = inputs[len(self.base.inputs) :]
        of_dxs = [handles.gradient_type(inputs[i]) for i in pair.trainable]
        types, shapes = [dtype for dtype, _ in of_dxs], [shape for _, shape in of_dxs]
        call = ops.invoke(backward.user_name, [record, *grads, *captures], types, shapes, name="backward")
        found = dict(zip(pair.trainable, call.outputs, strict=False))
        lists = [i for i in found if inputs[i].dtype == tf.variant]
        handles.set_handle_data([found[i] for i in lists], [handles.handle_data(inputs[i]) for i in lists])
        return [found[i] if i in found else handles.zeros_for(inputs[i]) for i in self._trainable]

    def trace_options(self) -> TraceOptions:
        """The options of the base function, but for names of outputs."""
        return {**self.base.trace_options(), "out_names": None}


def name_of_gradient(base: Definition, tracer: Tracer) -> tuple[str, str]:
    """A name for the gradient of a function that no function of the graph has, and what the graph is to call it."""
    suffix = names.GRADIENT_SUFFIX
    while f"{base.user_name}{suffix}" in tracer.registry.definitions:
        suffix = f"_{suffix}"
    return f"{base.user_name}{suffix}", f"{tracer.registry.graph_name(base.user_name)}{suffix}"
