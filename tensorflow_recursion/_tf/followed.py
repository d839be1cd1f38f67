"""Calls of `tf.function`s that hold recursive calls, where a tape and a forward accumulator both follow them.

TensorFlow's own way loses gradients there: it gives None, or a part of them, and says nothing.
"""
# SPDX-License-Identifier: Apache-2.0

import copy
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop
from tensorflow.python.eager.polymorphic_function import concrete_function
from tensorflow.python.ops import default_gradient

from tensorflow_recursion import names
from tensorflow_recursion._tf import assignments, functions, graphs, recorders, tangents
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import replace_for_good

_HOLDS: Attribute[dict[str, bool]] = Attribute(names.HOLDS)
_ASSIGNED: Attribute[Any] = Attribute(names.ASSIGNS)
_OPEN_VARIABLES: Attribute[bool] = Attribute(names.RETURNS_OPEN_VARIABLES)
_SUM_OF_ROWS = "UnsortedSegmentSum"  # makes IndexedSlices a tensor
_TANGENTS = "_jvp_"  # with which names of functions begin in which TensorFlow computes tangents of one operator


def refusing_late_tangents(backward: Callable[..., Any], function: str, inputs: Sequence[Any]) -> Callable[..., Any]:
    """What is to be recorded as the backward function of a call of `function` that takes `inputs`.

    It is `backward`, which makes gradients for the inputs from values that the call has left. An accumulator that does
    not record now knows no tangents of these values; if it follows an input later, `LookupError` is raised.
    """
    before = weakref.WeakSet(recorders.following())

    def checked(*grads: Any) -> Any:
        late = [accumulator for accumulator in recorders.following() if accumulator not in before]
        if any(accumulator.jvp(tensor) is not None for accumulator in late for tensor in inputs):
            raise LookupError(
                f"Call of '{function}': its gradient is taken under a tf.autodiff.ForwardAccumulator that follows what "
                "the call was given but did not follow the call, as it began later or has a tape around it; the "
                "gradient would have a part of its tangent only. Let the accumulator begin before the call and around "
                "all tapes, or take the gradient of the gradient by nested tapes"
            )
        return backward(*grads)

    return checked


def follow(call: str, recall: str) -> None:
    """From now on, let tapes and accumulators follow calls of `tf.function`s in which the operator `call` stands.

    The operator `recall` stands in functions that take gradients of such calls.
    """
    vspace = backprop._default_vspace._replace(zeros_like_fn=_zeros_or_datasets(), ones_fn=_ones_or_strings())
    pywrap_tfe.TFE_Py_RegisterVSpace(vspace)
    _refuse_late_tangents(call)
    _compute_tangents_after_calls(call, gradient_ops=(recall, _SUM_OF_ROWS))


def _zeros_or_datasets() -> Callable[..., Any]:
    """Let a dataset, or another variant of which there are no zeros, stand for zeros like it in eager mode.

    TensorFlow makes them where a call of a `tf.function` keeps a dataset for its gradient. Nobody reads them, because
    no gradient is taken through a dataset.
    """
    zeros_like = default_gradient.zeros_like

    @functools.wraps(zeros_like)
    def zeros_or_itself(tensor: tf.Tensor) -> tf.Tensor:
        try:
            return zeros_like(tensor)
        except tf.errors.InternalError:
            if tensor.dtype != tf.variant:
                raise
            return tensor

    replace_for_good(default_gradient, "zeros_like", zeros_or_itself)
    return zeros_or_itself


def _ones_or_strings() -> Callable[..., Any]:
    """Let empty strings stand for ones like strings, where an accumulator computes tangents.

    TensorFlow wants ones for each value that a call leaves, among them strings that the call keeps for its gradient,
    and finds None: "no attribute '_id'". Nobody reads these ones, because no gradient is taken for a string.
    """
    stock = backprop._ones

    @functools.wraps(stock)
    def ones(shape: Any, dtype: Any) -> tf.Tensor | None:
        if tf.as_dtype(dtype) == tf.string and recorders.accumulators():
            return tf.fill(shape, "")
        return stock(shape, dtype)

    return ones


def _refuse_late_tangents(call: str) -> None:
    """Let calls of functions with `call` be recorded so that they refuse late tangents.

    A call that returns no tensor is not recorded at all. TensorFlow means to do the same, but errs in a graph under an
    accumulator, where it looks for the operator that made the first result: "list index out of range".
    """
    record = concrete_function._ForwardBackwardCall.record

    def record_checked(self: Any, flat_outputs: Any) -> None:
        if isinstance(flat_outputs, Sequence) and not flat_outputs:
            return  # an operation, which stands for the results of a call in a graph, is no Sequence
        graph = getattr(self._functions, "_func_graph", None)
        if self._tape_watching and graph is not None and _holds(graph, call):
            self._functions = _refusing(self._functions, graph.name, self._inference_args)
        record(self, flat_outputs)

    replace_for_good(concrete_function._ForwardBackwardCall, "record", record_checked)


def _refusing(functions: Any, name: str, inputs: Sequence[tf.Tensor]) -> Any:
    """What makes the backward functions of one call, such that they refuse late tangents."""
    refusing = copy.copy(functions)
    has_forward = hasattr(functions, "_wrap_backward_function")  # else it is made when the gradient is taken
    method = "_wrap_backward_function" if has_forward else "_backward"
    make = getattr(functions, method)

    def make_refusing(*args: Any) -> Any:
        backward, outputs = make(*args)
        if has_forward:
            backward = _given_zeros(backward, args[0], outputs)
        return refusing_late_tangents(backward, name, inputs), outputs

    setattr(refusing, method, make_refusing)
    return refusing


def _given_zeros(backward: Callable[..., Any], forward: tf.Graph, outputs: Sequence[tf.Tensor]) -> Callable[..., Any]:
    """`backward`, given zeros for those variables of open shape among the outputs of a call that have no gradient.

    The function `forward` returns the variables that `backward` reads. TensorFlow makes zeros of their static shapes.
    """
    if not _OPEN_VARIABLES.made(forward, lambda: any(map(_is_variable_of_open_shape, forward.outputs))):
        return backward
    shapes = {
        i: tf.raw_ops.VariableShape(input=output)
        for i, output in enumerate(outputs)
        if _is_variable_of_open_shape(output)
    }

    def given_zeros(*grads: Any) -> Any:
        known = list(grads)
        for i, shape in shapes.items():
            if known[i] is None:
                known[i] = tf.zeros(shape, default_gradient.get_zeros_dtype(outputs[i]))
        return backward(*known)

    return given_zeros


def _is_variable_of_open_shape(tensor: tf.Tensor) -> bool:
    if tensor.dtype != tf.resource or not default_gradient.supports_default_grad(tensor):
        return False
    shape, dtype = default_gradient.shape_and_dtype(tensor)
    return bool(dtype.is_floating or dtype.is_complex) and not shape.is_fully_defined()


def _compute_tangents_after_calls(call: str, gradient_ops: Sequence[str]) -> None:
    """Let the tangents of a call be computed after it, by gradients of its gradients, where that is better.

    TensorFlow computes them in the call itself.
    """
    stock_call = concrete_function.ConcreteFunction._call_flat

    def call_flat(self: Any, tensor_inputs: Sequence[Any], captured_inputs: Sequence[Any]) -> Any:
        if not recorders.accumulators() or not _holds(self.graph, call):
            return stock_call(self, tensor_inputs, captured_inputs)
        busy = recorders.busy_accumulator()
        if busy is not None and self.graph.name.startswith(_TANGENTS):
            with recorders.suspended_since(busy):  # as TensorFlow does, but so that tapes which begin inside record
                return call_flat(self, tensor_inputs, captured_inputs)
        # Of a variable, accumulators follow what stands for it in the function around the call.
        captured_inputs = graphs.here(captured_inputs)
        inputs = [*tensor_inputs, *captured_inputs]
        if recorders.last_accumulator(of=inputs) is None:
            return stock_call(self, tensor_inputs, captured_inputs)
        _refuse_assignments(self.graph, call)
        # Between a tape and a call, gradients would have a part of their tangents.
        accumulators = tangents.that_follow(recorders.accumulators_in_tapes(), inputs)
        if not accumulators or not _is_better_after_call(self.graph, accumulators, gradient_ops):
            return stock_call(self, tensor_inputs, captured_inputs)
        return tangents.with_tangents(
            accumulators,
            inputs,
            lambda: call_flat(self, tensor_inputs, captured_inputs),
            lambda result: tf.nest.flatten(result, expand_composites=True),
        )

    replace_for_good(concrete_function.ConcreteFunction, "_call_flat", call_flat)


def _refuse_assignments(function: tf.Graph, call: str) -> None:
    """Raise `LookupError` where a function assigns to a variable that an operator `call` in it may read.

    Tangents are made of gradients of gradients, which run bodies again, maybe after the assignment.
    """
    variables = _ASSIGNED.made(function, lambda: assignments.assigned_and_passed(function, call))
    if variables:
        raise LookupError(
            f"Function '{function.name}': it is followed by a tf.autodiff.ForwardAccumulator, and assigns to variables "
            f"that calls in it read ({', '.join(variables)}), so that tangents could come from what was assigned; "
            "return the new values, and assign them after the call"
        )


def _is_better_after_call(function: tf.Graph, accumulators: Sequence[Any], gradient_ops: Sequence[str]) -> bool:
    """Whether TensorFlow's own way to the tangents of a call of `function` fails or takes long."""
    if recorders.busy_accumulator() is not None:  # it takes gradients through the call, and has to follow it itself
        return False
    if recorders.is_tape_active():  # it is around the accumulators, and would know only the gradients for the inputs
        return True
    # The tangent of a sum of rows would be IndexedSlices, and it wants a tensor: "no attribute '_id'". Where gradients
    # are taken in the function, or accumulators follow one another, it traces up to five orders of gradients.
    return len(accumulators) > 1 or any(_holds(function, op) for op in gradient_ops)


def _holds(graph: tf.Graph, op: str) -> bool:
    """Whether the operator `op` stands in a traced function, or in one that it refers to."""
    known = _HOLDS.made(graph, dict)
    if op not in known:
        known[op] = functions.holds(graph, op)
    return known[op]
