"""The two functions of a pair as functions that can be differentiated in turn.

A record is a value like any other then: a result of the forward function, and an argument of the backward one. The
gradient for a record is a record as well: it holds the gradients for what the record holds, those for the records of
the calls among them. So it is made and read frame by frame, as records are.

- `x.. -> y.., record` packs what the forward template returns.
- `record, dy.., captures.. -> dx..` unpacks what the backward template takes.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import handles, inlining
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion.forward_backward.pairs import Handles, Pair
from tensorflow_recursion.traces.definitions import Definition, MadeDefinition, TraceOptions
from tensorflow_recursion.traces.signatures import Signature


class PairFunction(MadeDefinition):
    """One of the two functions of a pair.

    Attributes:
      base: the function that was differentiated.
      signature: what it takes, captured tensors included, and returns.
      argument_handles: what is known of the lists, records and variables among its arguments.
      result_handles: the same for its results.
    """

    argument_handles: Handles
    result_handles: Handles

    def __init__(self, name: str, pair: Pair, template: TracedFunction, library: tf.Graph) -> None:
        """`template` is the function without its record; the graph `library` has the functions that it calls."""
        assert pair.templates is not None, pair.forward
        self.base: Definition = pair.definition
        self.user_name = name
        self._owner = pair.forward
        self._templates = pair.templates
        self._template = template
        self._library = library
        self._options = pair.definition.trace_options()
        takes, returns = template.cached_definition.signature.input_arg, template.cached_definition.signature.output_arg
        self._takes = [tf.as_dtype(arg.type) for arg in takes]
        self._returns = [tf.as_dtype(arg.type) for arg in returns]

    def check_against(self, declared: Signature) -> None:
        """The declaration has to be the signature, as it was made from that."""
        assert declared == self.signature, self.user_name

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """Build the body in the default graph; returns its outputs."""
        return self._build(args)

    def _from_template(self, args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The body of the template; returns its results."""
        return inlining.inline(self._template, args, self._library)

    @abc.abstractmethod
    def _build(self, args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The body from the template, and what packs or unpacks the record."""

    def trace_options(self) -> TraceOptions:
        """The options of the function that was differentiated."""
        return {**self._options, "out_names": None, "doc": None}


class ForwardFunction(PairFunction):
    """The forward function: it takes arguments and captures, and returns results and a record."""

    def __init__(self, pair: Pair, library: tf.Graph) -> None:
        assert pair.templates is not None, pair.forward
        super().__init__(pair.forward, pair, pair.templates.forward, library)
        self._num_results = len(self._returns) - len(self._templates.retained)
        self.signature = _signature(self.user_name, self._takes, [*self._returns[: self._num_results], tf.variant])
        self.argument_handles = (*pair.handles, *self._templates.capture_handles)
        known = pair.result_handles or (None,) * self._num_results
        # A tf.function that TensorFlow has made for a tape returns records of calls in it.
        self.result_handles = (*map(handles.with_gradient, known), handles.OF_RECORD)

    @property
    def records(self) -> list[int]:
        """The positions of the records among its results."""
        return [i for i, known in enumerate(self.result_handles) if known == handles.OF_RECORD]

    def _build(self, args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The body of the template, whose last results become the record."""
        returned = self._from_template(args)
        retained = returned[self._num_results :]
        handles.set_handle_data(retained, self._templates.handles)
        with tf.control_dependencies(self._templates.awaited):  # the graph takes their copies for them
            return [*returned[: self._num_results], ops.retain(retained, self._owner).outputs[0]]


class BackwardFunction(PairFunction):
    """The backward function: it takes a record, gradients for results and captures; returns those for arguments."""

    def __init__(self, pair: Pair, library: tf.Graph) -> None:
        assert pair.templates is not None, pair.forward
        super().__init__(pair.backward, pair, pair.templates.backward, library)
        self._num_retained = len(self._templates.retained)
        self.signature = _signature(self.user_name, [tf.variant, *self._takes[self._num_retained :]], self._returns)
        self.argument_handles = (handles.OF_RECORD, *self._templates.dy_handles, *self._templates.capture_handles)
        # A list's gradient may come out of a branch or a call, which do not tell what it holds.
        self.result_handles = self._templates.dx_handles

    def _build(self, args: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The body of the template, whose first arguments come from the record."""
        record, *others = args
        retained = ops.recall(record, self._templates.retained, self._owner) if self._num_retained else []
        handles.set_handle_data(retained, self._templates.handles)
        return self._from_template([*retained, *others])


def _signature(name: str, takes: Sequence[tf.DType], returns: Sequence[tf.DType]) -> Signature:
    inputs = tuple((f"input_{i}", dtype) for i, dtype in enumerate(takes))
    return Signature(name, inputs, tuple((f"output_{i}", dtype) for i, dtype in enumerate(returns)))
