"""Errors that are of the kind of the mistake, and also of the kind that stock TensorFlow's Defun raises for it.

So a script that catches the stock error goes on working.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf.attributes import Attribute

_IS_OF_RESULTS: Attribute[bool] = Attribute(names.IS_OF_RESULTS)  # of errors


class CallError(TypeError, ValueError):
    """A call passes what the function does not take: the wrong number of arguments, or unknown keywords."""

    __init__ = Exception.__init__  # so AutoGraph, which makes errors anew with the lines of the user, keeps the kind


class EndlessError(CallError):
    """Calls lead to one another, each with another kind of arguments, and there is no end of them."""


class DefinitionError(ValueError, tf.errors.InvalidArgumentError):  # type: ignore[misc]  # it has no types
    """A graph cannot have a definition: the name has one already, or too many outputs are named."""

    def __init__(self, message: str) -> None:
        tf.errors.InvalidArgumentError.__init__(self, None, None, message)


@contextlib.contextmanager
def of_results() -> Iterator[None]:
    """Inside, errors are about what a function returns (`note_of_results`)."""
    try:
        yield
    except (TypeError, ValueError) as error:
        note_of_results(error)
        raise


def note_of_results(error: BaseException) -> None:
    """Note that an error says all there is to say of what a function returns. `Contradictions` looks no further."""
    _IS_OF_RESULTS.set(error, True)


def is_of_results(error: BaseException) -> bool:
    """Whether that was noted."""
    return _IS_OF_RESULTS.is_set(error)


def with_causes(error: BaseException) -> Iterator[BaseException]:
    """The error, the one that it was raised for, and so on: AutoGraph raises other errors in place of those it gets.

    Each comes once: an error that is raised again, `from` another, may be its own cause's cause.
    """
    found: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in found:
        found.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def with_message(error: Exception, message: str) -> Exception:
    """An error of the same kind that says `message`.

    Some kinds of error take more than a message, as json.JSONDecodeError does. Then the new error is of the nearest
    base class that takes a message alone, here ValueError.
    """
    for kind in type(error).__mro__:
        try:
            made = kind(message)
        except TypeError:
            continue
        if isinstance(made, Exception) and message in str(made):
            return made
    return RuntimeError(message)
