"""tfr.recursive: recursive functions in eager mode, in tf.functions and in TF1 graphs."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, overload

import tensorflow as tf

from tensorflow_recursion import keras_functions, notices
from tensorflow_recursion._tf import function_parts, saved_attributes
from tensorflow_recursion.methods import Method
from tensorflow_recursion.recursive_functions import Options, RecursiveFunction
from tensorflow_recursion.traces import signatures

__all__ = ["recursive"]


@overload
def recursive(
    func: Callable[..., Any],
    /,
    output_signature: Any = None,
    *,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> RecursiveFunction: ...


@overload
def recursive(
    input_signature: Sequence[Any] | None,
    /,
    output_signature: Any = None,
    *,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> Callable[[Callable[..., Any]], RecursiveFunction]: ...


@overload
def recursive(
    *,
    input_signature: Sequence[Any] | None = None,
    output_signature: Any = None,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> Callable[[Callable[..., Any]], RecursiveFunction]: ...


def recursive(
    func: Any = None,
    output_signature: Any = None,
    *,
    input_signature: Any = None,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> Any:
    """Decorator that makes a Python function a recursive function of TensorFlow.

    In its body its own name is the function itself, and functions made so call each other, whichever is defined first.
    It can be called eagerly, in a `tf.function`, in Keras, `tf.data` functions and TF1 graphs, and can be a method.
    AutoGraph converts the body: `if`, `while`, `for`, `and`, `or`, `not` may go by tensors. Side effects are in order.

    Args:
      func: the Python function, or the `input_signature`, which needs no name where it comes first.
      input_signature: a `tf.TensorSpec` (or a nest of such) for each argument. Left out, the function is traced for
        each kind of arguments: dtypes and shapes of tensors, and values of all others, as with `tf.function`.
      output_signature: a `tf.TensorSpec`, a dtype, or a nest of such, for what is returned. Left out, it is inferred.
      autograph: whether AutoGraph converts the body.
      reduce_retracing: whether a function that is called with several shapes is traced for dimensions that are open,
        but for those that the body reads in Python, as `x.shape[0]`; if False, it is traced for each shape.
      name: what messages and graphs call the function; by default the Python function's name.
      max_depth: how deep calls may nest before the run ends in `ResourceExhaustedError`.

    Returns:
      The function; without `func`, what makes it of one. As a `tf.function` it has `get_concrete_function`,
      `input_signature`, `pretty_printed_signature` and `experimental_get_tracing_count`.

    Raises:
      TypeError: if what is decorated is no function, a signature holds what is no spec, or a flag is not True or False.
      ValueError: if `max_depth` is no integer >= 1, or `name` is not legal.

    Source: `tf.function`.

    Examples:
      >>> @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
      ... def fib(n):
      ...     if n < 2:
      ...         return n
      ...     return fib(n - 1) + fib(n - 2)
      >>> @tf.function
      ... def twice(n):
      ...     return 2 * fib(n)
      >>> with tf1.Session(config=tfr.session_config()) as session:  # in eager mode print(twice(20)) does
      ...     print(session.run(twice(20)))
      13530
    """
    options = Options(
        input_signature=_given_signature(func, input_signature),
        output_signature=output_signature,
        autograph=autograph,
        reduce_retracing=reduce_retracing,
        name=name,
        max_depth=max_depth,
    )
    _check_options(options)
    return _decorated(options, func) if callable(func) else functools.partial(_decorated, options)


def _given_signature(func: Any, input_signature: Any) -> Any:
    """The signature, which may be in the place of the function."""
    if callable(func) or func is None:
        return input_signature
    if input_signature is not None:
        raise TypeError(f"recursive decorates a Python function, got {func!r}")
    return func


def _decorated(options: Options, func: Callable[..., Any]) -> RecursiveFunction:
    if not callable(func) or isinstance(func, type):
        raise TypeError(f"recursive decorates a Python function, got {func!r}")
    if isinstance(func, tf.types.experimental.PolymorphicFunction):  # else all of the body would be in another function
        signature = options["input_signature"]
        options = {**options, "input_signature": func.input_signature if signature is None else signature}
        func = func.python_function
    signatures.check_returns_values("recursive", func)
    return RecursiveFunction(func, options)


def _check_options(options: Options) -> None:
    max_depth, signature = options["max_depth"], options["input_signature"]
    if signature is not None and not isinstance(signature, (list, tuple)):
        raise TypeError(f"recursive: got {signature!r}, expected a function, or a list as input_signature")
    for flag, value in (("autograph", options["autograph"]), ("reduce_retracing", options["reduce_retracing"])):
        if not isinstance(value, bool):
            raise TypeError(f"recursive: {flag} is {value!r}, expected True or False")
    if options["name"] is not None:
        signatures.checked_name(options["name"])
    if max_depth is not None and (isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1):
        raise ValueError(f"recursive: max_depth is {max_depth!r}, expected an integer >= 1")


def _warn_of_unsaved(attributes: Sequence[str], error: Exception) -> None:
    notices.show(
        "unsaved",
        f"The SavedModel lacks {', '.join(attributes)}: a recursive function is saved with the variables that it "
        f"reads, for its input_signature or for what calls have passed, and that failed. {error}",
    )


function_parts.register_methods(RecursiveFunction, Method)
keras_functions.register(RecursiveFunction, Method)
saved_attributes.install((RecursiveFunction, Method), operator.methodcaller("as_saved"), _warn_of_unsaved)
