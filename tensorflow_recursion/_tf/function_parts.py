"""What a Python function refers to: variables around it, global variables, defaults, and functions in these."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import collections
import dis
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

# What AutoGraph writes on the functions that it has converted, and functools.wraps on those that it makes.
_ATTRIBUTES = {"autograph_info__", "__wrapped__"}

# What makes a function for each object of a class, and what such a function is as an attribute of the object.
# `tfr.recursive` adds its own.
_METHODS: list[type] = []
_BOUND: list[type] = []


def register_methods(kind: type, bound: type) -> None:
    """Learn of functions like those of `tfr.recursive`.

    Args:
      kind: the type of such a function, which as an attribute of a class has another function for each object.
      bound: the type of what an object of the class has as that attribute.
    """
    _METHODS.append(kind)
    _BOUND.append(bound)


def makes_methods(value: object) -> bool:
    """Whether `value`, as an attribute of a class, has a function for each object, as what `tf.function` makes has."""
    return isinstance(value, (tf.types.experimental.PolymorphicFunction, *_METHODS))


def is_plain_function(value: object) -> bool:
    """Whether `value` is a function whose code and whose parts, what it refers to, say all of it.

    That is true of functions, lambdas and methods, and of a `functools.partial`. Two of them count as the same if code
    and parts are the same, because each trace of a body makes its lambdas anew. It is false of functions with
    attributes, and of other objects that can be called: each of these is the same as itself alone.
    """
    if is_bound(value):
        return True
    if isinstance(value, functools.partial):
        return type(value) is functools.partial and not value.__dict__
    return isinstance(value, types.FunctionType) and value.__dict__.keys() <= _ATTRIBUTES


def is_tuple(value: Any) -> bool:
    """Whether `value` is a tuple or a named tuple. Two of them are the same if what is in them is."""
    return type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_fields"))


def is_bound(value: Any) -> bool:
    """Whether `value` is a method of an object, one of Python's or one that `tfr.recursive` has made."""
    return isinstance(value, (types.MethodType, *_BOUND))


def bound(function: Any, owner: Any) -> Callable[..., Any]:
    """What Python makes of `function`, an attribute of the class of `owner`: a method, if its kind has methods."""
    binds = getattr(type(function), "__get__", None)
    made: Callable[..., Any] = function if binds is None else binds(function, owner, type(owner))
    return made


_EMPTY = object()


def content(cell: Any) -> Any:
    """What is in a variable around a function; `_EMPTY` if nothing is yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def is_empty(cell: Any) -> bool:
    """Whether a variable around a function has no value yet."""
    return content(cell) is _EMPTY


def cells(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The variables around a function that it refers to."""
    return list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def unbound(function: Any) -> Any:
    """The function behind methods and partial calls: `f` of `functools.partial(f, 1)`."""
    while isinstance(function, functools.partial) or is_bound(function):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    return function


def module_of(function: Any) -> Mapping[str, Any] | None:
    """The global variables of the module that a function is from."""
    return getattr(unbound(function), "__globals__", None)


def globals_of(function: types.FunctionType) -> dict[str, Any]:
    """The global variables that a function reads, itself or in functions in it."""
    known = function.__globals__
    return {name: known[name] for name in _names(function.__code__).read if name in known}


class _Names(NamedTuple):
    """Which global variables code reads, and whether it assigns to any."""

    read: tuple[str, ...]
    assigns: bool


# The second and the third are of the bodies of classes, which may mean variables of the class, too.
_READS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> _Names:
    instructions = list(dis.get_instructions(code))
    read = dict.fromkeys(one.argval for one in instructions if one.opname in _READS_GLOBAL)
    assigns = any(one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") for one in instructions)
    for inner in (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)):
        read.update(dict.fromkeys(inner.read))
        assigns = assigns or inner.assigns
    return _Names(tuple(read), assigns)


@functools.lru_cache(maxsize=4096)
def names_in_annotations(code: types.CodeType) -> frozenset[str]:
    """The names in the annotations of a function's parameters and result.

    Its code does not read them. AutoGraph, which makes a function of its source, does.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError):  # AutoGraph cannot convert it either
        return frozenset()
    definitions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == code.co_name]
    found: list[ast.expr | None] = []
    for definition in definitions:
        arguments = (one for one in ast.walk(definition.args) if isinstance(one, ast.arg))
        found += [definition.returns, *(one.annotation for one in arguments)]
    names = (name for one in found if one is not None for name in ast.walk(one))
    return frozenset(name.id for name in names if isinstance(name, ast.Name))


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


def shared_variables(function: Any) -> set[int]:
    """The variables that copies of `function` share with it, by the identity of their cells.

    These are the variables that `function`, or a function that it refers to, assigns. Where one of these functions
    assigns a global variable, or is from another module than `function`, all variables of its module are shared; the
    module is among the results by its identity.
    """
    functions, own = _all_of(function), module_of(function)
    assigned = {id(cell) for one in functions for name, cell in cells(one) if name in _assigned(one.__code__)}
    modules = [one.__globals__ for one in functions if one.__globals__ is not own or _names(one.__code__).assigns]
    return assigned | set(map(id, modules))


def _all_of(function: Any) -> list[types.FunctionType]:
    """The function and all that it refers to, as far as they are functions of Python."""
    return [one for one in reached(function) if isinstance(one, types.FunctionType)]


def reached(function: Any) -> list[Any]:
    """The function and all that it refers to, as far as that refers to other things in turn."""
    found: dict[int, Any] = {}
    pending, module = [function], module_of(function)
    while pending:
        one = pending.pop()
        if id(one) in found or not (is_tuple(one) or is_plain_function(one)):
            continue
        found[id(one)] = one
        pending += referred_to(one, module)
    return list(found.values())


def referred_to(function: Any, module: Mapping[str, Any] | None) -> list[Any]:
    """What a function refers to, or what is in a tuple; global variables are those of one module."""
    if is_tuple(function):
        return list(function)
    if isinstance(function, functools.partial):
        return [function.func, *function.args, *function.keywords.values()]
    if is_bound(function):
        return [function.__func__, function.__self__]
    around = [content(cell) for _, cell in cells(function)]
    if function.__globals__ is module:
        around += globals_of(function).values()
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [*around, *defaults, *function.__dict__.values()]


# How many values `path_to` looks at.
_MAX_VISITED = 10_000


def path_to(function: Any, is_meant: Callable[[Any], bool]) -> str | None:
    """How a function gets at a value that is meant, `self.best` or `table['x']` for example; None if that is not found.

    This looks at the variables around the function, at global variables, at the object whose method it is, and at what
    is in lists, dictionaries and objects there.
    """
    pending = collections.deque(_named_parts(function))
    visited: dict[int, Any] = {}  # by identity; the values are kept, so that no other one gets their identity
    while pending and len(visited) < _MAX_VISITED:
        path, value = pending.popleft()
        if is_meant(value):
            return path
        if id(value) not in visited:
            visited[id(value)] = value
            pending += [(path + suffix, inner) for suffix, inner in _inside(value)]
    return None


def _named_parts(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function refers to, by the names that its code has for it."""
    while isinstance(function, functools.partial):
        function = function.func
    inner = unbound(function)
    if not isinstance(inner, types.FunctionType):
        return
    if is_bound(function) and inner.__code__.co_varnames:
        yield inner.__code__.co_varnames[0], function.__self__
    yield from ((name, content(cell)) for name, cell in cells(inner))
    yield from globals_of(inner).items()


def _inside(value: Any) -> list[tuple[str, Any]]:
    """What is in a list, a tuple, a dictionary or an object, by what Python code appends to get at it."""
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", inner) for i, inner in enumerate(value)]
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", inner) for key, inner in value.items()]
    if isinstance(value, (types.ModuleType, type, types.FunctionType, tf.Tensor, tf.Graph)):
        return []
    return [(f".{name}", inner) for name, inner in getattr(value, "__dict__", {}).items()]
