"""How a test runs what it has built, in each mode; see the fixture `run`."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import functools
import threading

import distribution_helpers as distribution
import tensorflow as tf
from limits import HANG_SECONDS
from tensorflow.python.eager import cancellation, context, wrap_function
from tensorflow.python.framework import func_graph

tf1 = tf.compat.v1


class InSession:
    """Runs fetches in one session, after the variables are initialized."""

    def __init__(self, place, options):
        self._place, self._options = place, options
        self._stack = contextlib.ExitStack()

    @functools.cached_property
    def session(self):
        options = self._options
        session = self._stack.enter_context(self._place.session(static=options is not None, **(options or {})))
        session.run(tf1.global_variables_initializer())
        return session

    def __call__(self, fetches, feeds=None):
        return self.session.run(fetches, feeds, options=distribution.TIMEOUT)

    def function(self, call, types):
        """Takes and returns values; `call` takes and returns tensors of these dtypes and of any shape."""
        arguments = [tf1.placeholder(dtype) for dtype in types]
        results = call(*arguments)
        return lambda *values: self(results, dict(zip(arguments, values, strict=True)))

    def close(self):
        self._stack.close()


def graph_of_functions():
    return func_graph.FuncGraph("test", collections={})


class InFunction:
    """Runs fetches in functions that are cut out of the graph of the test, which is a function's."""

    def __init__(self, graph):
        self._whole = wrap_function.WrappedFunction(graph, wrap_function.VariableHolder())

    def __call__(self, fetches, feeds=None):
        feeds = feeds or {}
        part = self._whole.prune(list(feeds), tf.nest.map_structure(_read, fetches))
        cancellation_manager = cancellation.CancellationManager()
        limit = threading.Timer(HANG_SECONDS, cancellation_manager.start_cancel)
        limit.start()
        try:
            with context.eager_mode():  # in every thread
                run = cancellation_manager.get_cancelable_function(part)
                return _values(run(*[tf.constant(value, tensor.dtype) for tensor, value in feeds.items()]))
        finally:
            limit.cancel()

    def function(self, call, types):
        traced = tf.function(call, input_signature=[tf.TensorSpec(None, dtype) for dtype in types])
        return _taking_values(traced, types)


class Eagerly:
    """Takes what has run already."""

    def __call__(self, fetches):
        return _values(fetches)

    def function(self, call, types):
        return _taking_values(call, types)


def _taking_values(call, types):
    def run(*values):
        with context.eager_mode():
            return _values(call(*[tf.constant(value, dtype) for value, dtype in zip(values, types, strict=True)]))

    return run


def _read(fetch):
    """What a session fetches of a variable is its value."""
    return fetch.read_value() if isinstance(fetch, tf.Variable) else fetch


def _values(results):
    return tf.nest.map_structure(lambda result: None if result is None else result.numpy(), results)
