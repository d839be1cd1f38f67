"""The tf.functions in which eager calls of a recursive function run."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion._tf import arrays, function_types, keras_scopes
from tensorflow_recursion.argument_kinds.sharing import ShapeReads


class EagerFunctions:
    """The tf.functions of one recursive function: one for each state of the Keras layers around a call.

    For example, a call in a layer that trains runs in another one than a call in a layer that predicts, because a body
    with a `Dropout` is another one then.
    """

    def __init__(
        self,
        function: Any,
        python_function: Callable[..., Any],
        call_in_graph: Callable[[Sequence[Any], Mapping[str, Any]], Any],
        reads: ShapeReads,
        *,
        reduce_retracing: bool,
    ) -> None:
        """Makes a table without tf.functions.

        Args:
          function: the recursive function, whose name, docstring and signature they have.
          python_function: what it is made of.
          call_in_graph: adds a call of it to the default graph.
          reads: what its body reads of shapes, which decides what calls share a trace.
          reduce_retracing: as given to `tfr.recursive`.
        """
        self._function = function
        self._python_function = python_function
        self._call_in_graph = call_in_graph
        self._reads = reads
        self._reduce_retracing = reduce_retracing
        self._making = threading.RLock()  # two threads make one tf.function for a state
        self._by_kind: dict[Hashable, Any] = {}

    @property
    def here(self) -> Any:
        """The tf.function for a call that is made here."""
        if keras_scopes.is_stateless():  # it reads values that nobody else gives to variables
            return self._made()
        kind = keras_scopes.kind()
        if kind not in self._by_kind:
            with self._making:
                if kind not in self._by_kind:
                    self._by_kind[kind] = self._made()
        return self._by_kind[kind]

    def _made(self) -> Any:
        """A tf.function whose graph has one call."""

        def call(*args: Any, **kwargs: Any) -> Any:
            arrays.return_arrays(tf.compat.v1.get_default_graph())
            return self._reads.checked(self._call_in_graph(args, kwargs))

        signature = self._function.input_signature
        call.__name__ = call.__qualname__ = self._function.__name__
        call.__wrapped__ = self._python_function  # type: ignore[attr-defined]  # what TensorFlow counts traces by
        call.__doc__ = self._function.__doc__
        call.__signature__ = self._function.__signature__  # type: ignore[attr-defined]
        made = tf.function(
            call,
            input_signature=None if arrays.holds_spec(signature) else signature,
            autograph=False,
            reduce_retracing=self._reduce_retracing,
        )
        function_types.generalize_by(made, self._reads.generalized)
        return made
