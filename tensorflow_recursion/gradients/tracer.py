"""What differentiating functions needs of the functions of a graph."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any, Protocol

import tensorflow as tf

from tensorflow_recursion.definitions import Definition, Registry, Tensors
from tensorflow_recursion.signatures import Named
from tensorflow_recursion.tracing import Body


class Tracer(Protocol):
    """The functions of one outermost graph, as those who differentiate them see it."""

    @property
    def graph(self) -> tf.Graph:
        """The outermost graph."""

    @property
    def registry(self) -> Registry:
        """Who is called what."""

    def adopt(self, definition: Definition) -> None:
        """Let `definition` be the one of its name in this graph."""

    def require(self, name: str) -> Body | None:
        """The trace of `name`, made if need be; None if the function is not defined."""

    def find_imported(self, name: str) -> Definition | None:
        """The function that the graph calls `name`, if it came with a SavedModel."""

    def new_body(self, definition: Definition) -> Body:
        """A body for one more trace of a function, whose captures are known."""

    def is_tracing(self, name: str) -> bool:
        """Whether the body of `name` is being traced."""

    def captures(self, name: str) -> Tensors:
        """What calls of `name` append to the declared arguments."""

    def output_types(self, name: str) -> Sequence[tf.DType]:
        """Dtypes of what a traced function returns."""

    def call_op(self, name: str, inputs: Sequence[Named], args: Sequence[Any]) -> tf.Operation:
        """Call a function that is defined with all it calls in the default graph; returns the Invoke node."""


def has_built_gradient(definition: Definition) -> bool:
    """Whether a function is differentiated by what is built here: nothing forbids it, nothing of the user's does it."""
    return (
        definition.create_grad_func is not False
        and definition.python_grad_func is None
        and definition.grad_func is None
    )
