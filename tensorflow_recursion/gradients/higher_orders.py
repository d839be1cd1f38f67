"""The gradient of a function as a function, which can be differentiated in turn."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion import shapes as static_shapes
from tensorflow_recursion._tf import handles, patches
from tensorflow_recursion.definitions import Definition, TraceOptions
from tensorflow_recursion.gradients.bodies import gradients_of
from tensorflow_recursion.gradients.modes import Modes
from tensorflow_recursion.gradients.pairs import Pair
from tensorflow_recursion.gradients.tracer import Tracer
from tensorflow_recursion.signatures import Named, Signature

tf1 = tf.compat.v1


class GradientDefinition:
    """E(x.., dy..) -> dx..: a function's gradient as a function, so that it can be differentiated.

    Attributes:
      base: the function; it may be a gradient itself.
    """

    python_grad_func = None
    grad_func = None
    gradient_name = None
    create_grad_func = None
    output_shapes = None
    promise = None
    wants_shapes = False
    max_depth = None
    orders_effects = False
    has_effects = False

    def __init__(self, pair: Pair, tracer: Tracer, modes: Modes) -> None:
        """Defines the gradient of the function of which `pair` is one forward and backward function."""
        base = pair.definition
        suffix = names.GRADIENT_SUFFIX
        while f"{base.user_name}{suffix}" in tracer.registry.definitions:
            suffix = f"_{suffix}"
        self.base: Definition = base
        self.user_name = f"{base.user_name}{suffix}"
        types = tracer.output_types(base.user_name)
        self._of_results = [i for i, dtype in enumerate(types) if pair.is_trainable_result(i, dtype)]
        self.inputs: tuple[Named, ...] = (*base.inputs, *((f"grad_{i}", types[i]) for i in self._of_results))
        self._tracer = tracer
        self._modes = modes
        self._trainable = pair.trainable
        self._handles = pair.handles

    def check_against(self, declared: Signature) -> None:
        """Nothing declares a gradient."""

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """The body: the base function's, and its gradient."""
        with patches.control_flow_for_gradients():  # stock TensorFlow cannot differentiate the gradient of a v1 loop
            return self._build(args)

    def _build(self, args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        count = len(self.base.inputs)
        args, dys = args[:count], args[count:]
        handles.set_handle_data(args, self._handles)
        results = self.base.build(args, self._tracer.registry.declarations.get(self.base.user_name))
        ys = [results[i] for i in self._of_results]
        handles.set_handle_data(dys, [static_shapes.elements_of(y) for y in ys])
        graph = tf1.get_default_graph()
        inputs = [*args, *(graph.capture(tensor) for tensor in self._tracer.captures(self.base.user_name))]
        with self._modes.gradient(differentiable=True):
            sources = [inputs[i] for i in self._trainable]
            return gradients_of(self.base, ys, dys, sources, [False] * len(sources))

    def trace_options(self) -> TraceOptions:
        """As those of the base function."""
        return {**self.base.trace_options(), "out_names": None}
