"""Computes gradients of calls by the function that the user gave to Defun: `python_grad_func` or `grad_func`."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles
from tensorflow_recursion.errors import with_message
from tensorflow_recursion.traces.definitions import Definition


def of_call(op: tf.Operation, definition: Definition, grads: Sequence[Any]) -> list[Any]:
    """Gradients for the inputs of the call `op` of `definition`, one per input, from those for its results.

    Raises:
      ValueError: if the user's function returns a wrong number of gradients.
      TypeError: if one of them has a wrong dtype.
    """
    what = "grad_func" if definition.python_grad_func is None else "python_grad_func"
    arguments = [op, *grads]
    if what == "grad_func":
        dys = [grad for grad, y in zip(grads, op.outputs, strict=False) if handles.is_trainable(y)]
        arguments = [*list(op.inputs)[: len(definition.inputs)], *dys]
    result = _call(op, definition, what, arguments)
    if what == "grad_func":
        result = _by_argument(op, definition, result)
    _check_count(op, definition, what, result)
    result = result + [None] * (len(op.inputs) - len(result))
    pairs = enumerate(zip(result, op.inputs, strict=True))
    return [_converted(op, definition, what, i, grad) if _may_have_gradient(x) else None for i, (grad, x) in pairs]


def _may_have_gradient(x: tf.Tensor) -> bool:
    return handles.is_trainable(x) or handles.is_of_unknown_kind(x)


def _call(op: tf.Operation, definition: Definition, what: str, arguments: Sequence[Any]) -> list[Any]:
    try:
        result = getattr(definition, what)(*arguments)
    except (TypeError, ValueError) as error:
        raise with_message(
            error,
            f"Function '{_shown(definition)}': its {what} fails for call {op.name!r} with {len(arguments)} "
            f"arguments: {error}",
        ) from error
    result = list(result) if isinstance(result, (list, tuple)) else [result]
    return [] if result and isinstance(result[0], tf.Operation) else result


def _by_argument(op: tf.Operation, definition: Definition, result: list[Any]) -> list[Any]:
    """A `grad_func` may return gradients of the differentiable arguments alone."""
    count = len(definition.inputs)
    trainable = [i for i in range(count) if handles.is_trainable(op.inputs[i])]
    if len(result) >= count or len(result) != len(trainable):
        return result
    by_input = dict(zip(trainable, result, strict=True))
    return [by_input.get(i) for i in range(count)]


def _check_count(op: tf.Operation, definition: Definition, what: str, result: Sequence[Any]) -> None:
    count = len(definition.inputs)
    if len(result) not in (count, ops.num_arguments(op)):
        raise ValueError(
            f"Function '{_shown(definition)}': its {what} returns {len(result)} gradients for call {op.name!r}, "
            f"expected {count}, one per argument"
        )


def _converted(op: tf.Operation, definition: Definition, what: str, i: int, grad: Any) -> Any:
    """A gradient for the trainable input `i`, as a tensor or IndexedSlices of its dtype, or None."""
    if grad is None:
        return None
    expected = handles.gradient_type(op.inputs[i])[0]
    if not isinstance(grad, (tf.Tensor, tf.IndexedSlices)):
        try:
            grad = tf.convert_to_tensor(grad)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Function '{_shown(definition)}': its {what} returns {grad!r} as the gradient for argument "
                f"{i} of call {op.name!r}, expected a tensor of {expected.name}"
            ) from error
    if grad.dtype.base_dtype != expected:
        raise TypeError(
            f"Function '{_shown(definition)}': its {what} returns a gradient of dtype {grad.dtype.name} for "
            f"argument {i} of call {op.name!r}, expected {expected.name}"
        )
    return grad


def _shown(definition: Definition) -> str:
    return names.shown(definition.user_name)
