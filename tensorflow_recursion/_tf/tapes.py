"""What `tf.GradientTape` learns of a call: its gradient, and the variables that it reads."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.eager import forwardprop_util
from tensorflow.python.eager import record as stock
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops

from tensorflow_recursion._tf import followed, graphs, recorders, tangents

# Trainable variables that somebody else keeps alive.
Variables: TypeAlias = list["weakref.ref[tf.Variable]"]


def record(op: tf.Operation, outputs: Sequence[tf.Tensor], function: str | None) -> None:
    """Let active tapes and accumulators know of an operation that no generated code of TensorFlow has made.

    Args:
      op: the operation.
      outputs: its first outputs, which may have gradients.
      function: what messages call the function that the operation calls; None if it calls none.
    """
    if not stock.could_possibly_record():
        return
    inputs = list(op.inputs)

    def backward(*grads: Any) -> list[Any]:
        return _gradients(op, grads)

    recorded = backward if function is None else followed.refusing_late_tangents(backward, function, inputs)
    stock.record_operation(op.type, list(outputs), inputs, recorded)


def make_followed(inputs: Sequence[tf.Tensor], make: Callable[[], tf.Operation], num_results: int) -> tf.Operation:
    """The operation that `make` makes of `inputs`, with the tangents of its first `num_results` outputs.

    They are made here for accumulators in one another, which began in the default graph. Any other one that `record`
    tells of an operation makes its tangents by itself.
    """
    began_here = [one for one in recorders.accumulators_in_tapes() if recorders.began_here(one)]
    if len(began_here) < 2:
        return make()
    taken = graphs.here(inputs)  # of a variable, accumulators follow what stands for it in the function
    accumulators = tangents.that_follow(began_here, taken)
    if len(accumulators) < 2:
        return make()
    op: tf.Operation = tangents.with_tangents(accumulators, taken, make, lambda op: list(op.outputs)[:num_results])
    return op


def have_tangents(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether TensorFlow follows one of the tensors by a `tf.autodiff.ForwardAccumulator`.

    It does so in functions that it traces for tangents, too: of the placeholders there, `recorders.last_accumulator`
    finds nothing, because it asks the accumulators themselves.
    """
    return bool(forwardprop_util.pack_tangents(list(tensors)).indices)


def _gradients(op: tf.Operation, grads: Sequence[Any]) -> list[Any]:
    """What the registered gradient function returns for an operation, one gradient or None per input."""
    without = [None] * (len(op.outputs) - len(grads))
    found = ops.get_gradient_function(op)(op, *grads, *without)
    return list(found) if isinstance(found, (list, tuple)) else [found]


@contextlib.contextmanager
def watching(into: Variables) -> Iterator[None]:
    """Append the trainable variables that are read inside, in the default graph, to `into`."""
    graph: Any = tf.compat.v1.get_default_graph()
    if not hasattr(graph, "watch_variable"):  # a call of a tf.function tells what it reads only to graphs that have it
        graph.watch_variable = lambda variable: None
    with stock.VariableWatcher() as watcher:
        yield
    into.extend(weakref.ref(variable) for variable in watcher.watched_variables())


def note_reads(variables: Variables) -> None:
    """Tell active tapes, and the function graph that is the default graph, that variables are read here."""
    for reference in variables:
        if (variable := reference()) is not None:
            resource_variable_ops.variable_accessed(variable)
