"""Python functions as they are now: what they refer to may be another thing when a body is traced again."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dis
import functools
import os
import types
import weakref
from collections.abc import Hashable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.function.trace_type import default_types
from tensorflow.python.autograph.core import function_wrappers

# Values that are the same where they are equal. (0.0 and -0.0 are equal, but not the same; they are told by `repr`.)
_VALUES = (int, bool, str, bytes, type(None), tf.DType)
# What AutoGraph writes on the functions that it has converted.
_AUTOGRAPH = {"autograph_info__"}


def is_followed(value: object) -> bool:
    """Whether `value` is told by what it does: a function of Python, or one with some of its arguments."""
    if isinstance(value, functools.partial):
        return type(value) is functools.partial and not value.__dict__
    return isinstance(value, types.FunctionType) and value.__dict__.keys() <= _AUTOGRAPH


def frozen(function: Any) -> Any:
    """A function that does what `function` does now, also when the variables around that one have other values.

    For example, `lambda x: x * k` in a loop over `k` is for Python a function of the last `k` once the loop is over.
    A variable that the function assigns itself, as one that is `nonlocal`, stays what it is.
    """
    if not is_followed(function) or isinstance(function, functools.partial) or not function.__closure__:
        return function
    assigned = _assigned(function.__code__)
    cells = [
        cell if name in assigned or _content(cell) is _EMPTY else types.CellType(cell.cell_contents)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True)
    ]
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    if not assigned:
        _keys[copy] = _key(function, [])
    return copy


class FunctionKind(default_types.Weakref):
    """The kind of a Python function that is an argument: its code, and all that it refers to.

    A body that makes a function makes another one each time it is traced, `lambda x: g(x) * 2` for example. These are
    of one kind, so that a call that is given one of them is a call of the same recursive function.
    Who makes a kind keeps `function` as long as the kind is used.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(weakref.ref(function))
        self._key = _key(function, [])
        self._text = _described(function)

    def __tf_tracing_type__(self, context: Any) -> FunctionKind:
        return self

    def is_subtype_of(self, other: Any) -> bool:
        return bool(self == other)

    def most_specific_common_supertype(self, types: Sequence[Any]) -> FunctionKind | None:
        return self if all(self == other for other in types) else None

    def cast(self, value: Any, casting_context: Any) -> Any:
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionKind) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self._text


def _described(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(function)
    name = f"the function {function.__name__}"
    if not os.path.exists(code.co_filename) or "__autograph_generated_file" in code.co_filename:
        return name
    return f"{name} ({os.path.basename(code.co_filename)}, line {code.co_firstlineno})"


_EMPTY = object()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _assigned(code: types.CodeType) -> set[str]:
    """The variables around it that code assigns or deletes, or that functions in it do."""
    found = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in code.co_freevars
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _assigned(constant) & set(code.co_freevars)
    return found


class _Key:
    """What tells a function from others. It is as large as all that the function refers to, so it is hashed once."""

    def __init__(self, *parts: Hashable) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Key) and self._hash == other._hash and self._parts == other._parts)

    def __hash__(self) -> int:
        return self._hash


# Those of functions that do not change any more.
_keys: weakref.WeakKeyDictionary[Any, Hashable] = weakref.WeakKeyDictionary()


def _key(value: Any, around: list[Any]) -> Hashable:
    """What tells a value from others; `around` are the functions that refer to it, the outermost first."""
    if type(value) in _VALUES:
        return type(value), value
    if type(value) in (float, complex):
        return type(value), repr(value)
    if type(value) is tuple:
        return tuple, tuple(_key(part, around) for part in value)
    if any(value is one for one in around):
        return "around", next(i for i, one in enumerate(around) if one is value)
    if isinstance(value, types.MethodType):
        return "method", id(value.__self__), _key(value.__func__, [*around, value])
    if isinstance(value, function_wrappers.FunctionScope):  # made by each call of a function that AutoGraph converted
        return "scope"
    if not is_followed(value):
        return "object", id(value)
    if isinstance(value, types.FunctionType) and value in _keys:
        return _keys[value]
    return _key_of_function(value, [*around, value])


def _key_of_function(function: Any, around: list[Any]) -> _Key:
    if isinstance(function, functools.partial):
        keywords = tuple((name, _key(given, around)) for name, given in function.keywords.items())
        return _Key("partial", _key(function.func, around), _key(function.args, around), keywords)
    cells = tuple(_key(_content(cell), around) for cell in function.__closure__ or ())
    defaults = _key(function.__defaults__ or (), around), _key(tuple((function.__kwdefaults__ or {}).items()), around)
    return _Key(function.__code__, id(function.__globals__), cells, defaults)
