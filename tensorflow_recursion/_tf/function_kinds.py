"""Python functions as arguments: which of them count as the same, and copies that do later what they do now.

A body may be traced again when a variable around such a function has another value. The trace has to come out the same,
so it calls the copy (`frozen`). A tf.function takes a function for its `FunctionKind`.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import itertools
import os
import weakref
from collections.abc import Hashable, Iterator, Sequence, Set
from typing import Any

import tensorflow as tf
from tensorflow.core.function.trace_type import default_types
from tensorflow.python.autograph.core import function_wrappers

from tensorflow_recursion._tf import function_copies, function_parts, graphs
from tensorflow_recursion.converted import is_converted

# Values that are the same where they are equal. (0.0 and -0.0 are equal, but not the same; they are told by `repr`.)
_VALUES = (int, bool, str, bytes, type(None), tf.DType)


class _Key:
    """Equal for functions that count as the same. It is as large as all that the function refers to: it is hashed once.

    Attributes:
      depth: 1 for a function that refers to no other, 2 for one that refers to such functions, and so on.
    """

    def __init__(self, *parts: Hashable) -> None:
        self._parts = parts
        self._hash = hash(parts)
        self.depth: int = 1 + max((part.depth for part in _flat(parts) if isinstance(part, _Key)), default=0)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Key) and self._hash == other._hash and self._parts == other._parts)

    def __hash__(self) -> int:
        return self._hash


def _flat(parts: Any) -> Iterator[Any]:
    """What is in nested tuples."""
    for part in parts:
        yield from _flat(part) if isinstance(part, tuple) else (part,)


class _Identity:
    """Equal for one and the same object, which it does not keep alive. Some it only knows by their addresses.

    These are objects to which weak references cannot point.
    """

    def __init__(self, value: Any) -> None:
        self._address = id(value)
        try:
            self._ref: weakref.ref[Any] | None = weakref.ref(value)
        except TypeError:
            self._ref = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity) or self._address != other._address:
            return False
        if self._ref is None or other._ref is None:
            return self._ref is other._ref
        return self._ref() is not None and self._ref() is other._ref()

    def __hash__(self) -> int:
        return self._address


# The keys of frozen functions. The function keeps the objects that its key knows only by their addresses.
_keys: weakref.WeakKeyDictionary[Any, Hashable] = weakref.WeakKeyDictionary()


def _key(value: Any, around: list[Any], shared: Set[int]) -> Hashable:
    """What is equal for values that count as the same.

    Args:
      value: the value.
      around: the functions that refer to it, the outermost first.
      shared: what `function_parts.shared_variables` returns for the outermost one.
    """
    if type(value) in _VALUES:
        return type(value), value
    if type(value) in (float, complex):
        return type(value), repr(value)
    if function_parts.is_tuple(value):
        return type(value), tuple(_key(part, around, shared) for part in value)
    if function_copies.is_of_graph(value):
        return "tensor", value._type_spec if graphs.is_composite(value) else (value.dtype, str(value.shape))
    if any(value is one for one in around):
        return "around", next(i for i, one in enumerate(around) if one is value)
    if isinstance(value, function_wrappers.FunctionScope):  # made by each call of a function that AutoGraph converted
        return "scope"
    if not function_parts.is_plain_function(value):
        return _Identity(value)
    return _keys[value] if value in _keys else _key_of_function(value, [*around, value], shared)


def _key_of_function(function: Any, around: list[Any], shared: Set[int]) -> _Key:
    def key(value: Any) -> Hashable:
        return _key(value, around, shared)

    if isinstance(function, functools.partial):
        return _Key("partial", key(function.func), key(function.args), key(tuple(function.keywords.items())))
    if function_parts.is_bound(function):
        return _Key("method", key(function.__func__), key(function.__self__))
    cells = [
        ("shared", id(cell)) if id(cell) in shared else key(function_parts.content(cell))
        for _, cell in function_parts.cells(function)
    ]
    defaults = key(function.__defaults__ or ()), key(tuple((function.__kwdefaults__ or {}).items()))
    wrapped = key(function.__dict__.get("__wrapped__"))
    if id(function.__globals__) in shared:
        return _Key(function.__code__, *cells, *defaults, wrapped, id(function.__globals__))
    of_module = tuple((name, key(value)) for name, value in function_parts.globals_of(function).items())
    return _Key(function.__code__, *cells, *defaults, wrapped, function.__module__, of_module)


def frozen(function: Any) -> Any:
    """A copy of `function` that does later what `function` does now, whatever the variables around it are by then.

    For example, `lambda x: x * k` in a loop over `k` multiplies by the last `k` once the loop is over. Its copy goes on
    multiplying by the `k` of now. Functions that `function` refers to are copied, too. The copies share two things with
    the originals: variables that one of these functions assigns (`nonlocal` and `global` ones), and objects. So a list
    holds what it holds when a body is traced.
    """
    if not function_parts.is_plain_function(function) or _is_frozen(function):
        return function
    shared = function_parts.shared_variables(function)
    copy = function_copies.copied(function, shared, lambda value: value if _is_frozen(value) else None)
    if copy is not function:  # else somebody may still give it defaults
        _keys[copy] = _key(copy, [], shared)
    return copy


def _is_frozen(value: Any) -> bool:
    return function_parts.is_plain_function(value) and value in _keys


def kind_of(function: Any) -> tuple[FunctionKind, Any]:
    """The kind of a function that is an argument, and what has to be kept as long as the kind is used."""
    copy = frozen(function)
    tensors = function_copies.ReferredTensors(copy)
    to_keep = function_copies.without_owners(copy, tensors)
    key = _keys[copy] if copy in _keys else _key(copy, [], function_parts.shared_variables(copy))
    return FunctionKind(to_keep, key, tensors, _described(function)), to_keep


class ObjectKind(default_types.Weakref):  # type: ignore[misc]  # it has no types
    """The kind of an argument that only counts as the same if it is the same object."""

    def __init__(self, value: Any) -> None:
        super().__init__(weakref.ref(value))

    def __tf_tracing_type__(self, context: Any) -> ObjectKind:
        return self

    def cast(self, value: Any, casting_context: Any) -> Any:
        return value


def wraps_another(value: Any) -> bool:
    """Whether `value` calls another function, as an object of a class with `functools.update_wrapper` in it does.

    TensorFlow would take it for that function. It may do so with what `tf.function` makes, which does the same as the
    function. What `tfr.recursive` makes has an `ObjectKind` already.
    """
    is_itself = function_parts.is_plain_function(value) or function_parts.makes_methods(value)
    return callable(value) and hasattr(value, "__wrapped__") and not is_itself


class FunctionKind(ObjectKind):
    """The kind of a Python function that is an argument: its code, and all that it refers to.

    A body that makes a function makes another one each time it is traced, `lambda x: g(x) * 2` for example. These are
    of one kind, so that a call that is given one of them is a call of the same recursive function. The tensors that
    they refer to are passed to the call.
    """

    def __init__(self, kept: Any, key: Hashable, tensors: function_copies.ReferredTensors, text: str) -> None:
        super().__init__(kept)
        self._function_key = key
        self._specs = tensors.specs()
        self._key = (key, *tensors.pattern) if tensors.values else key
        self._text = text

    @property
    def depth(self) -> int:
        """How many functions refer to one another in a row, this one included."""
        return self._function_key.depth if isinstance(self._function_key, _Key) else 1

    def placeholder_value(self, placeholder_context: Any) -> Any:
        return self.from_tensors(iter(()))

    def flatten(self) -> list[tf.TensorSpec]:
        return self._specs

    def to_tensors(self, value: Any) -> list[tf.Tensor]:
        return function_copies.ReferredTensors(frozen(value)).values

    def from_tensors(self, tensors: Iterator[Any]) -> Any:
        function = function_copies.with_owners(self._ref(), list(itertools.islice(tensors, len(self._specs))))
        _keys[function] = self._function_key
        return function

    def is_subtype_of(self, other: Any) -> bool:
        return bool(self == other)

    def most_specific_common_supertype(self, types: Sequence[Any]) -> FunctionKind | None:
        return self if all(self == other for other in types) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionKind) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self._text


def _described(function: Any) -> str:
    """What messages call a function: its name, and where it is written."""
    function = function_parts.unbound(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(function)
    name = f"the function {function.__name__}"
    if not os.path.exists(code.co_filename) or is_converted(code.co_filename):
        return name
    return f"{name} ({os.path.basename(code.co_filename)}, line {code.co_firstlineno})"
