"""What calls pass to a function of `tfr.recursive`: by parameter, and with errors that name it."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import tensorflow as tf

from tensorflow_recursion._tf import function_types
from tensorflow_recursion._tf.function_types import Arguments, AsTensors
from tensorflow_recursion.errors import CallError
from tensorflow_recursion.traces import signatures


class CallArguments:
    """Binds the arguments of calls to the parameters of one function."""

    def __init__(
        self, name: str, func: Callable[..., Any], bound: Callable[..., Any], input_signature: Sequence[Any] | None
    ) -> None:
        """Reads the parameters of a function.

        Args:
          name: what messages call it.
          func: the Python function.
          bound: the same; of a method, without the object.
          input_signature: what is stated of the arguments, None if nothing is.

        Raises:
          TypeError, ValueError: if the `input_signature` does not fit the parameters.
        """
        self._name = name
        self._func = func
        self._parameters = function_types.Parameters(bound, input_signature)
        self._is_method = bound is not func

    @property
    def shown(self) -> str:
        """The parameters as they are written."""
        return self._parameters.names

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any], as_tensors: AsTensors) -> Arguments:
        """The arguments of a call, with tensors for Python numbers of parameters that are in `as_tensors`.

        Raises:
          CallError: if they do not fit the parameters, or are not what the `input_signature` says.
          TypeError: as `check` does.
        """
        self.check(args, kwargs)
        with self._naming_parameters():
            return self._parameters.bind(args, kwargs, as_tensors)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Look for what TensorFlow would change without a word.

        Raises:
          CallError: if a call passes a keyword that begins with an underscore.
          TypeError: if it passes an eager tensor to a graph, or a number that its stated dtype cannot hold.
        """
        with self._naming_parameters():
            self._parameters.check_keywords(kwargs)
        if not tf.executing_eagerly():
            for parameter, value in self._parameters.named(args, kwargs).items():
                for leaf in tf.nest.flatten(value):
                    signatures.check_belongs_here(self._subject(parameter), leaf)
        for parameter, dtype, value in self._parameters.stated_for_values(args, kwargs):
            signatures.check_fits(self._subject(parameter), value, dtype)

    def explain(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any], as_tensors: AsTensors) -> None:
        """Raises an error that names the function if `error` came of what a call passed to the `tf.function` around it.

        In any other case it does nothing, and the caller goes on with `error`.
        """
        if isinstance(error, (TypeError, ValueError)) and function_types.is_binding_error(error):
            self.bind(args, kwargs, as_tensors)
        if str(error).startswith("A KerasTensor "):
            self._refuse_keras_tensors(error)

    @contextlib.contextmanager
    def _naming_parameters(self) -> Iterator[None]:
        """Let TypeErrors of what is done inside be CallErrors that say what the function takes."""
        try:
            yield
        except TypeError as error:
            raise CallError(f"Call of '{self._name}': {error}; the function takes {self._takes()}") from None

    def _subject(self, parameter: str) -> str:
        """What a message about an argument begins with."""
        return f"Call of '{self._name}': argument '{parameter}'"

    def _takes(self) -> str:
        """The parameters for messages; for a method, which of them is the object, as `self` may have been forgotten."""
        if not self._is_method:
            return self.shown
        first = next(iter(inspect.signature(self._func).parameters), None)
        return f"{self.shown} besides the object itself ({first!r})"

    def _refuse_keras_tensors(self, error: Exception) -> NoReturn:
        raise CallError(
            f"Call of '{self._name}': it is given a KerasTensor, which has no value before a functional model of Keras "
            "is made; call the function in the `call` of a keras.layers.Layer of your own, or in a keras.layers.Lambda"
        ) from error
