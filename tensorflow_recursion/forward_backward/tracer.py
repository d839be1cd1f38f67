"""What differentiating functions needs of the functions of a graph."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion.traces.definitions import Definition, MadeDefinition, Registry, Tensors
from tensorflow_recursion.traces.traced_bodies import Body


class Tracer(Protocol):
    """The functions of one outermost graph, as those who differentiate them see it."""

    @property
    def graph(self) -> tf.Graph:
        """The outermost graph."""

    @property
    def registry(self) -> Registry:
        """The declarations and definitions of the graph's functions, by name."""

    def adopt_made(self, definition: MadeDefinition, in_graph: str) -> None:
        """Let `definition`, which needs no trace, be the one of its name; the graph calls it `in_graph`."""

    def find_imported(self, name: str) -> Definition | None:
        """The function that the graph calls `name`, if it came with a SavedModel."""

    def tf_function(self, op: tf.Operation) -> Definition:
        """The `tf.function` that a call in a body runs, as a function that is differentiated along with the body."""

    def new_body(self, definition: Definition) -> Body:
        """A body for one more trace of a function, whose captures are known."""

    def final_trace(self, name: str) -> TracedFunction | None:
        """What calls of a function run; None if that may change, because bodies are being traced."""

    def captures(self, name: str) -> Tensors:
        """What calls of `name` append to the declared arguments."""

    def note_missing(self, name: str, captures: Tensors) -> None:
        """Learn what a function captures whose trace is in progress, and did not know it."""

    def output_types(self, name: str) -> Sequence[tf.DType]:
        """Dtypes of what a traced function returns."""


def has_built_gradient(definition: Definition) -> bool:
    """Whether a function is differentiated by what is built here: nothing forbids it, nothing of the user's does it."""
    return (
        definition.create_grad_func is not False
        and definition.python_grad_func is None
        and definition.grad_func is None
    )
