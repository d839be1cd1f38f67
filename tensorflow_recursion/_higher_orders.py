"""The gradient of a function as a function, which can be differentiated in turn."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tensorflow_recursion import _cut, _tf

if TYPE_CHECKING:
    from tensorflow_recursion._groups import Trace
    from tensorflow_recursion._library import Definition, Library
    from tensorflow_recursion._signature import Signature

tf1 = tf.compat.v1


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
        self.order = order_of(base) + 1
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
        _tf.set_handle_data(args, self._handles)
        results = self.base.build(args, self._library.names.declarations.get(self.base.user_name))
        ys = [result for result in results if _tf.is_trainable_type(result.dtype)]
        graph = tf1.get_default_graph()
        inputs = [*args, *(graph.capture(tensor) for tensor in self._library.captures(self.base.user_name))]
        with self._library.differentiation.mode(differentiable=True):
            sources = [inputs[i] for i in self._trainable]
            return _cut.gradients_of(self.base, ys, dys, sources, [False] * len(sources))

    def trace_options(self) -> dict[str, Any]:
        """As those of the base function."""
        return {**self.base.trace_options(), "out_names": None}


def order_of(definition: Any) -> int:
    """The order of the derivatives that a function returns: 0 for one of the user's."""
    return getattr(definition, "order", 0)
