"""What messages say of kinds of arguments, and of how the arguments of two calls differ."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.core.function.polymorphism import function_type
from tensorflow.core.function.trace_type import custom_nest_trace_type, default_types

from tensorflow_recursion._tf import function_kinds


def difference(before: function_type.FunctionType, after: function_type.FunctionType) -> str:
    """How the arguments of two calls of a function differ, to be appended to a message: " ('n' is 8, and was 4)"."""
    text = ", ".join(_changed_text(name, new, old) for name, (old, new) in _changed(before, after).items())
    counts = len(after.parameters), len(before.parameters)
    if not text and counts[0] != counts[1]:
        text = f"with {counts[0]} arguments, and with {counts[1]} before"
    return f" ({text})" if text else ""


def only_functions_differ(before: function_type.FunctionType, after: function_type.FunctionType) -> bool:
    """Whether two calls of a function pass different functions, and otherwise the same kinds of arguments."""
    found = _changed(before, after).values()
    return bool(found) and all(isinstance(kind, function_kinds.FunctionKind) for pair in found for kind in pair)


def differing_object(before: function_type.FunctionType, after: function_type.FunctionType) -> str | None:
    """The class of the first object in which the arguments of two calls differ, itself or in a nest, if one does.

    It is a Python object that is equal to itself alone, or one that is compared by values which differ.
    """
    for name, (old, new) in _changed(before, after).items():
        _, inner, _ = _innermost(name, new, old)
        if isinstance(inner, default_types.Weakref) and (value := inner._ref()) is not None and not callable(value):
            return type(value).__name__
    return None


def shapes_differ(before: function_type.FunctionType, after: function_type.FunctionType) -> bool:
    """Whether two calls of a function pass a tensor of another shape or dtype, itself or in a nest."""
    found = [_innermost(name, new, old)[1] for name, (old, new) in _changed(before, after).items()]
    return any(isinstance(kind, tf.TensorSpec) for kind in found)


def _changed(before: function_type.FunctionType, after: function_type.FunctionType) -> dict[str, tuple[Any, Any]]:
    """The kinds of those parameters, by name, that differ between two calls of a function."""
    old, new = ({name: one.type_constraint for name, one in kind.parameters.items()} for kind in (before, after))
    return {name: (old[name], new[name]) for name in new if name in old and old[name] != new[name]}


def _changed_text(name: str, new: Any, old: Any) -> str:
    """How a parameter differs between two calls, or the part of it that does; by its size if it is too long to show."""
    name, new, old = _innermost(name, new, old)
    now, then = text(new), text(old)
    if now == then:
        now, then = _size_text(new), _size_text(old)
    if now == then:
        return f"'{name}' is {now}, and was another one"
    return f"'{name}' is {now}, and was {then}"


def _innermost(path: str, new: Any, old: Any) -> tuple[str, Any, Any]:
    """The first part in which two kinds of nests differ, and how code gets at it: `x['a'][0]`."""
    parts, before = list(_parts(new)), list(_parts(old))
    if [suffix for suffix, _ in parts] == [suffix for suffix, _ in before]:
        for (suffix, one), (_, other) in zip(parts, before, strict=True):
            if one != other:
                return _innermost(path + suffix, one, other)
    return path, new, old


def _parts(kind: Any) -> Iterator[tuple[str, Any]]:
    """What is in a kind of nest, by what code appends to get at it."""
    if isinstance(kind, default_types.List):
        kind = kind.components_tuple
    if isinstance(kind, default_types.Tuple):
        yield from ((f"[{i}]", part) for i, part in enumerate(kind.components))
    elif isinstance(kind, default_types.Dict):
        yield from ((f"[{key!r}]", part) for key, part in kind.mapping.items())
    elif isinstance(kind, default_types.NamedTuple | default_types.Attrs):
        parts = zip(kind.attribute_names, kind.attributes.components, strict=True)
        yield from ((f".{name}", part) for name, part in parts)
    elif isinstance(kind, custom_nest_trace_type.CustomNestTraceType):
        fields = getattr(kind.value_type, "__dataclass_fields__", ())
        names = [f".{name}" for name in fields] if len(fields) == len(kind.components) else range(len(kind.components))
        yield from ((str(name), part) for name, part in zip(names, kind.components, strict=True))


def text(kind: Any) -> str:
    """A kind of argument: a Python value as Python writes it, a tensor by dtype and shape."""
    if isinstance(kind, tf.TensorSpec):
        return f"a tensor {kind.dtype.name}{kind.shape}"
    if isinstance(kind, function_kinds.FunctionKind):
        return repr(kind)
    if isinstance(kind, default_types.Weakref):
        return reprlib.repr(kind._ref())
    return reprlib.repr(kind.value) if hasattr(kind, "value") else reprlib.repr(kind)


def _size_text(kind: Any) -> str:
    """A kind of argument that is too long to be written out: a list by its length, for example."""
    if isinstance(kind, default_types.List | default_types.Tuple):
        parts = kind.components_tuple if isinstance(kind, default_types.List) else kind
        return f"a {type(kind).__name__.lower()} of {len(parts.components)}"
    value = getattr(kind, "value", None)
    return f"a string of {len(value)} characters" if isinstance(value, str | bytes) else text(kind)


def text_of(value: Any) -> str:
    """An argument: a tensor by dtype and shape, what is made of several tensors by its class."""
    if tf.is_tensor(value) and isinstance(value, tf.Tensor | tf.Variable):
        return text(tf.TensorSpec(value.shape, value.dtype))
    if isinstance(value, tf.TypeSpec):
        return text(value)
    return f"a {type(value).__name__}" if tf.is_tensor(value) else reprlib.repr(value)
