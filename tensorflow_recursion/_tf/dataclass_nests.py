"""Plain dataclasses as nests of their fields, which they are for tf.nest only with two methods that TensorFlow names.

For example, a body may take `@dataclass class State: position: tf.Tensor; speed: tf.Tensor`, and return one from each
branch of an `if`. TensorFlow remembers of each class whether it is a nest, from the first time that it meets an object
of it. So the methods have to be there before.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def open_in(value: Any) -> None:
    """Let the dataclasses in an argument be nests, apart from those with a hash, by which calls are told apart.

    So a frozen dataclass of numbers stays one Python object, and one that holds tensors, which have no hash, does not.
    """
    if isinstance(value, list | tuple):
        for part in value:
            open_in(part)
    elif isinstance(value, dict):
        open_in(list(value.values()))
    elif _is_opened(type(value)) or (_is_closed(type(value)) and not _has_hash(value)):
        _open(type(value))
        open_in([getattr(value, field.name) for field in dataclasses.fields(value)])


def open_named_by(function: Callable[..., Any]) -> None:
    """Let the dataclasses without a hash be nests that a function names: it may return one from a branch."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    around = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name in set(_names(code)):
        try:
            value = around[name].cell_contents if name in around else function.__globals__.get(name)
        except ValueError:  # a variable that has no value yet
            continue
        if isinstance(value, type) and _is_closed(value) and value.__hash__ is None:
            _open(value)


def _names(code: types.CodeType) -> Iterator[str]:
    """The variables around it that code reads, and that functions in it read."""
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_closed(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) and not hasattr(kind, "__tf_flatten__")


def _is_opened(kind: type) -> bool:
    return getattr(kind, "__tf_flatten__", None) is _flatten


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _open(kind: Any) -> None:
    if not _is_opened(kind):
        kind.__tf_flatten__, kind.__tf_unflatten__ = _flatten, classmethod(_unflatten)


def _flatten(instance: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    names = tuple(field.name for field in dataclasses.fields(instance))
    return names, tuple(getattr(instance, name) for name in names)


def _unflatten(cls: Any, names: Sequence[str], values: Sequence[Any]) -> Any:
    instance = object.__new__(cls)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(instance, name, value)  # also where the class is frozen
    return instance
