"""Python functions as they are now: what they refer to may be another thing when a body is traced again."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dis
import functools
import os
import types
import weakref
from collections.abc import Hashable, Sequence, Set
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
    So are functions that it refers to. A variable that one of them assigns, as `nonlocal` ones, stays what it is.
    """
    if not is_followed(function) or function in _keys:
        return function
    live = {id(cell) for one in _all_of(function) for name, cell in _cells(one) if name in _assigned(one.__code__)}
    copy = _copy(function, live, {})
    _keys[copy] = _key(copy, [], live)
    return copy


def _copy(value: Any, live: Set[int], copies: dict[int, Any]) -> Any:
    """A copy of a function with variables of its own, but for those that are `live`; what is no function stays."""
    if not is_followed(value) or value in _keys:
        return value
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, functools.partial):
        args = [_copy(one, live, copies) for one in value.args]
        keywords = {name: _copy(one, live, copies) for name, one in value.keywords.items()}
        return functools.partial(_copy(value.func, live, copies), *args, **keywords)
    if not value.__closure__:
        return value
    is_live = [id(cell) in live or _content(cell) is _EMPTY for cell in value.__closure__]
    cells = [cell if stays else types.CellType() for cell, stays in zip(value.__closure__, is_live, strict=True)]
    copy = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, tuple(cells))
    copies[id(value)] = copy
    for cell, old, stays in zip(cells, value.__closure__, is_live, strict=True):
        if not stays:
            cell.cell_contents = _copy(old.cell_contents, live, copies)
    copy.__kwdefaults__ = value.__kwdefaults__
    copy.__dict__.update(value.__dict__)
    copy.__module__, copy.__qualname__, copy.__doc__ = value.__module__, value.__qualname__, value.__doc__
    return copy


def _all_of(function: Any) -> list[types.FunctionType]:
    """The function and all that it refers to, as far as they are functions of Python that may change."""
    found: dict[int, Any] = {}
    pending = [function]
    while pending:
        one = pending.pop()
        if id(one) in found or not is_followed(one) or one in _keys:
            continue
        found[id(one)] = one
        if isinstance(one, functools.partial):
            pending += [one.func, *one.args, *one.keywords.values()]
        else:
            pending += [_content(cell) for _, cell in _cells(one)]
    return [one for one in found.values() if isinstance(one, types.FunctionType)]


def _cells(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The variables around a function that it refers to."""
    return list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


class FunctionKind(default_types.Weakref):
    """The kind of a Python function that is an argument: its code, and all that it refers to.

    A body that makes a function makes another one each time it is traced, `lambda x: g(x) * 2` for example. These are
    of one kind, so that a call that is given one of them is a call of the same recursive function.
    Who makes a kind keeps the function, which has to be `frozen`, as long as the kind is used.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(weakref.ref(function))
        self._key = _keys[function]
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


# Those of functions that are frozen. What a key refers to by its identity is kept by the function.
_keys: weakref.WeakKeyDictionary[Any, Hashable] = weakref.WeakKeyDictionary()


def _key(value: Any, around: list[Any], live: Set[int]) -> Hashable:
    """What tells a value from others; `around` are the functions that refer to it, the outermost first."""
    if type(value) in _VALUES:
        return type(value), value
    if type(value) in (float, complex):
        return type(value), repr(value)
    if type(value) is tuple:
        return tuple, tuple(_key(part, around, live) for part in value)
    if any(value is one for one in around):
        return "around", next(i for i, one in enumerate(around) if one is value)
    if isinstance(value, types.MethodType):
        return "method", id(value.__self__), _key(value.__func__, [*around, value], live)
    if isinstance(value, function_wrappers.FunctionScope):  # made by each call of a function that AutoGraph converted
        return "scope"
    if not is_followed(value):
        return "object", id(value)
    return _keys[value] if value in _keys else _key_of_function(value, [*around, value], live)


def _key_of_function(function: Any, around: list[Any], live: Set[int]) -> _Key:
    def key(value: Any) -> Hashable:
        return _key(value, around, live)

    if isinstance(function, functools.partial):
        return _Key("partial", key(function.func), key(function.args), key(tuple(function.keywords.items())))
    cells = [("live", id(cell)) if id(cell) in live else key(_content(cell)) for _, cell in _cells(function)]
    defaults = key(function.__defaults__ or ()), key(tuple((function.__kwdefaults__ or {}).items()))
    return _Key(function.__code__, id(function.__globals__), *cells, *defaults)
