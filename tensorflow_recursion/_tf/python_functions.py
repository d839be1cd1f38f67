"""Python functions as they are now: what they refer to may be another thing when a body is traced again."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import dis
import functools
import inspect
import itertools
import os
import textwrap
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.function.trace_type import default_types
from tensorflow.python.autograph.core import function_wrappers

from tensorflow_recursion._tf import graphs
from tensorflow_recursion.converted import is_converted

# Values that are the same where they are equal. (0.0 and -0.0 are equal, but not the same; they are told by `repr`.)
_VALUES = (int, bool, str, bytes, type(None), tf.DType)
# What AutoGraph writes on the functions that it has converted, and functools.wraps on those that it makes.
_ATTRIBUTES = {"autograph_info__", "__wrapped__"}


def is_followed(value: object) -> bool:
    """Whether `value` is told by what it does: a function or method of Python, or one with some of its arguments."""
    if _is_bound(value):
        return True
    if isinstance(value, functools.partial):
        return type(value) is functools.partial and not value.__dict__
    return isinstance(value, types.FunctionType) and value.__dict__.keys() <= _ATTRIBUTES


def _is_tuple(value: Any) -> bool:
    """Whether `value` is a tuple or a named tuple, which is told by what is in it."""
    return type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_fields"))


def _with_parts(value: Any, parts: Iterable[Any]) -> Any:
    """A tuple like `value`, of other parts."""
    return tuple(parts) if type(value) is tuple else value._make(parts)


def _is_bound(value: Any) -> bool:
    """Whether `value` is a method of an object, one of Python's or one that `tfr.recursive` has made."""
    return isinstance(value, (types.MethodType, *_BOUND))


def frozen(function: Any) -> Any:
    """A copy of `function` that does later what `function` does now, whatever the variables around it are by then.

    For example, `lambda x: x * k` in a loop over `k` multiplies by the last `k` once the loop is over. Its copy goes on
    multiplying by the `k` of now. Functions that `function` refers to are copied, too. Not copied are variables that
    one of these functions assigns, `nonlocal` and `global` ones, nor objects: a list holds what it holds when a body
    is traced.
    """
    if not is_followed(function) or function in _keys:
        return function
    live = _live(function)
    copy = _copy(function, live, {}, lambda value: value if is_followed(value) and value in _keys else None)
    if copy is not function:  # else somebody may still give it defaults
        _keys[copy] = _key(copy, [], live)
    return copy


def _live(function: Any) -> set[int]:
    """The variables that `function` assigns, or a function that it refers to, by the identity of their cells.

    Of a function that assigns a global variable, the module counts, with all its variables. So do other modules.
    """
    functions, own = _all_of(function), _module_of(function)
    cells = {id(cell) for one in functions for name, cell in _cells(one) if name in _assigned(one.__code__)}
    modules = [one.__globals__ for one in functions if one.__globals__ is not own or _names(one.__code__).assigns]
    return cells | set(map(id, modules))


def _copy(value: Any, live: Set[int], copies: dict[int, Any], replaced: Callable[[Any], Any]) -> Any:
    """A copy of a function with variables of its own, but for those that are `live`.

    What is neither a function nor a (named) tuple stays, unless `replaced` says what is to be in its place; it does so
    for functions, too.
    """
    if (other := replaced(value)) is not None:
        return other
    if _is_tuple(value):
        return _with_parts(value, (_copy(one, live, copies, replaced) for one in value))
    if not is_followed(value):
        return value
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, functools.partial):
        args = [_copy(one, live, copies, replaced) for one in value.args]
        keywords = {name: _copy(one, live, copies, replaced) for name, one in value.keywords.items()}
        return functools.partial(_copy(value.func, live, copies, replaced), *args, **keywords)
    if _is_bound(value):
        return type(value)(_copy(value.__func__, live, copies, replaced), _copy(value.__self__, live, copies, replaced))
    return _copy_of_function(value, live, copies, replaced)


def _copy_of_function(
    value: types.FunctionType, live: Set[int], copies: dict[int, Any], replaced: Callable[[Any], Any]
) -> types.FunctionType:
    """A copy of a function. Arguments are as those of `_copy`, but `replaced` is not asked for the function itself.

    So `with_itself` may copy a function, and let the copy refer to something else wherever it refers to the function.
    """
    of_module = {} if id(value.__globals__) in live else _globals(value)
    if not (value.__closure__ or value.__defaults__ or value.__kwdefaults__ or of_module):
        return value
    around = value.__closure__ or ()
    is_live = [id(cell) in live or _content(cell) is _EMPTY for cell in around]
    cells = tuple(cell if stays else types.CellType() for cell, stays in zip(around, is_live, strict=True))
    around_module = value.__globals__
    if of_module:  # not all, which may be large, and would be kept; but one for all copies of functions of the module
        annotating = _names_in_annotations(value.__code__) if value.__annotations__ else ()
        kept = {name: one for name, one in around_module.items() if name.startswith("__") or name in annotating}
        around_module = copies.setdefault(id(around_module), {})
        around_module.update({name: one for name, one in kept.items() if name not in around_module})
    copy = types.FunctionType(value.__code__, around_module, value.__name__, None, cells)
    copies[id(value)] = copy
    for name, old in of_module.items():
        around_module[name] = _copy(old, live, copies, replaced)
    for cell, old, stays in zip(cells, around, is_live, strict=True):
        if not stays:
            cell.cell_contents = _copy(old.cell_contents, live, copies, replaced)
    if value.__defaults__:
        copy.__defaults__ = tuple(_copy(one, live, copies, replaced) for one in value.__defaults__)
    if value.__kwdefaults__:
        copy.__kwdefaults__ = {name: _copy(one, live, copies, replaced) for name, one in value.__kwdefaults__.items()}
    copy.__dict__.update({name: _copy(one, live, copies, replaced) for name, one in value.__dict__.items()})
    copy.__module__, copy.__qualname__, copy.__doc__ = value.__module__, value.__qualname__, value.__doc__
    return copy


def bound(function: Any, owner: Any) -> Callable[..., Any]:
    """What Python makes of `function` in the class of `owner`: a method, if it is of a kind that becomes one."""
    binds = getattr(type(function), "__get__", None)
    made: Callable[..., Any] = function if binds is None else binds(function, owner, type(owner))
    return made


def with_itself(function: Any, itself: Any) -> Any:
    """A copy of `function` that means `itself` by its own name; `function` where it does not refer to itself.

    A function that refers to `function`, and that this one refers to, is copied, too. What `_live` names is not.
    """
    if not isinstance(function, types.FunctionType) or not is_followed(function):
        return function
    module = _module_of(function)
    if not any(other is function for one in _reached(function) for other in _referred_to(one, module)):
        return function
    return _copy_of_function(function, _live(function), {}, lambda value: itself if value is function else None)


class _Owner:
    """In place of an object that functions must not keep; see `without_owners`."""

    def __init__(self, owner: Any) -> None:
        self.owner = weakref.ref(owner)
        self._text = f"a {type(owner).__name__}"

    def get(self) -> Any:
        owner = self.owner()
        if owner is None:
            raise ReferenceError(
                f"A function that is an argument uses {self._text} that is gone; keep that object as long as the "
                "gradient is not computed: a body is built once more for it"
            )
        return owner


def is_owner(value: Any) -> bool:
    """Whether the class of `value` has functions for each of its objects, as `tf.function` makes of methods.

    They are found by the object as a weak key. If a graph of one of them kept the object, it would be there for ever.
    """
    if value is None or isinstance(value, (type, types.ModuleType)) or graphs.is_composite(value):
        return False
    attributes = (one for kind in type(value).__mro__ for one in vars(kind).values())
    return any(isinstance(one, (tf.types.experimental.PolymorphicFunction, *_METHODS)) for one in attributes)


# What makes a function for each object of a class, and what such a function is as an attribute of the object.
# `tfr.recursive` adds its own.
_METHODS: list[type] = []
_BOUND: list[type] = []


def register_methods(kind: type, bound: type) -> None:
    """Let functions of this kind, as attributes of a class, make its objects owners, and be `bound` to one of them."""
    _METHODS.append(kind)
    _BOUND.append(bound)


class _Place:
    """In place of a tensor of a graph, or what is made of such, which a function is given anew for each call.

    See `_Tensors`.
    """

    def __init__(self, value: Any, positions: Sequence[int]) -> None:
        self._spec = tf.type_spec_from_value(value)
        self._positions = positions

    def filled(self, tensors: Sequence[tf.Tensor]) -> Any:
        """What stands there if these are the tensors."""
        return self._spec.from_tensors(iter([tensors[position] for position in self._positions]))


class _Tensors:
    """The tensors of graphs that a function refers to, as do those that it refers to.

    For example, a body may pass `lambda y: y * k` to a call, where `k` is a tensor that it has computed. Such tensors
    are further arguments of the call.

    Attributes:
      values: the tensors, each of them once, in the order in which they are found.
      pattern: which place refers to which of them. It is the same for functions of one kind.
    """

    def __init__(self, function: Any) -> None:
        self.values: list[tf.Tensor] = []
        self.pattern: list[tuple[str, int]] = []
        numbers: dict[int, int] = {}
        pending, module = [function], _module_of(function)
        while pending:
            one = pending.pop()
            if _is_of_graph(one):
                new = [part for part in _components(one) if self._position(part) is None]
                self.values += {id(part): part for part in new}.values()
                self.pattern += [("tensor", position) for position in self.positions(one)]
            elif _is_tuple(one) or is_followed(one):
                if id(one) in numbers:
                    self.pattern.append(("function", numbers[id(one)]))
                    continue
                numbers[id(one)] = len(numbers)
                pending += _referred_to(one, module)[::-1]

    def positions(self, value: Any) -> list[int]:
        """Where the tensors of a value are among the values, if they are some of them."""
        found = [self._position(part) for part in _components(value)] if _is_of_graph(value) else []
        return [position for position in found if position is not None]

    def _position(self, tensor: tf.Tensor) -> int | None:
        return next((i for i, known in enumerate(self.values) if known is tensor), None)

    def specs(self) -> list[tf.TensorSpec]:
        """Dtypes and static shapes of the values."""
        return [tf.TensorSpec.from_tensor(tensor) for tensor in self.values]


def _components(value: Any) -> list[Any]:
    """A tensor, or the tensors that a ragged tensor, an ExtensionType or the like is made of."""
    return tf.nest.flatten(value, expand_composites=True)  # type: ignore[no-any-return]


def _is_of_graph(value: Any) -> bool:
    """Whether `value` is a tensor of a graph that may be an argument of a call, wherever it is computed.

    Or it is made of such tensors, as a ragged tensor is.
    """
    parts = _components(value) if graphs.is_composite(value) else [value]
    return bool(parts) and all(
        tf.is_symbolic_tensor(part) and part.dtype not in (tf.resource, tf.variant) for part in parts
    )


def _referred_to(function: Any, module: Mapping[str, Any] | None) -> list[Any]:
    """What a function refers to, or what is in a tuple; global variables are those of one module."""
    if _is_tuple(function):
        return list(function)
    if isinstance(function, functools.partial):
        return [function.func, *function.args, *function.keywords.values()]
    if _is_bound(function):
        return [function.__func__, function.__self__]
    around = [_content(cell) for _, cell in _cells(function)]
    if function.__globals__ is module:
        around += _globals(function).values()
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [*around, *defaults, *function.__dict__.values()]


def without_owners(function: Any, tensors: _Tensors) -> Any:
    """A copy of a frozen function that keeps neither owners nor `tensors`.

    So it can be kept, but not be called; see `with_owners`.
    """

    def replaced(value: Any) -> Any:
        if is_owner(value):
            return _Owner(value)
        return _Place(value, positions) if (positions := tensors.positions(value)) else None

    return _copy(function, _live(function), {}, replaced)


def with_owners(function: Any, tensors: Sequence[tf.Tensor]) -> Any:
    """A copy of what `without_owners` has made that can be called, with other tensors.

    Raises:
      ReferenceError: if an owner is gone.
    """

    def replaced(value: Any) -> Any:
        if isinstance(value, _Owner):
            return value.get()
        return value.filled(tensors) if isinstance(value, _Place) else None

    return _copy(function, _live(function), {}, replaced)


def _all_of(function: Any) -> list[types.FunctionType]:
    """The function and all that it refers to, as far as they are functions of Python."""
    return [one for one in _reached(function) if isinstance(one, types.FunctionType)]


def _reached(function: Any) -> list[Any]:
    """The function and all that it refers to, as far as that refers to other things in turn."""
    found: dict[int, Any] = {}
    pending, module = [function], _module_of(function)
    while pending:
        one = pending.pop()
        if id(one) in found or not (_is_tuple(one) or is_followed(one)):
            continue
        found[id(one)] = one
        pending += _referred_to(one, module)
    return list(found.values())


def _cells(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The variables around a function that it refers to."""
    return list(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _module_of(function: Any) -> Mapping[str, Any] | None:
    """The global variables of the module that a function is from."""
    while isinstance(function, functools.partial) or _is_bound(function):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    return getattr(function, "__globals__", None)


def _globals(function: types.FunctionType) -> dict[str, Any]:
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
def _names_in_annotations(code: types.CodeType) -> frozenset[str]:
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


def kind_of(function: Any) -> tuple[FunctionKind, Any]:
    """The kind of a function that is an argument, and what has to be kept as long as the kind is used."""
    copy = frozen(function)
    tensors = _Tensors(copy)
    to_keep = without_owners(copy, tensors)
    key = _keys[copy] if copy in _keys else _key(copy, [], _live(copy))
    return FunctionKind(to_keep, key, tensors, _described(function)), to_keep


class ObjectKind(default_types.Weakref):  # type: ignore[misc]  # it has no types
    """The kind of an argument that is told by which object it is."""

    def __init__(self, value: Any) -> None:
        super().__init__(weakref.ref(value))

    def __tf_tracing_type__(self, context: Any) -> ObjectKind:
        return self

    def cast(self, value: Any, casting_context: Any) -> Any:
        return value


def wraps_another(value: Any) -> bool:
    """Whether `value` calls another function, as an object of a class with `functools.update_wrapper` in it does.

    TensorFlow takes it for that function. (What `tf.function` makes does the same as the function, so it may. What
    `tfr.recursive` makes is told by which object it is.)
    """
    is_same = isinstance(value, (tf.types.experimental.PolymorphicFunction, *_METHODS))
    return callable(value) and hasattr(value, "__wrapped__") and not is_same and not is_followed(value)


class FunctionKind(ObjectKind):
    """The kind of a Python function that is an argument: its code, and all that it refers to.

    A body that makes a function makes another one each time it is traced, `lambda x: g(x) * 2` for example. These are
    of one kind, so that a call that is given one of them is a call of the same recursive function. The tensors that
    they refer to are passed to the call.
    """

    def __init__(self, kept: Any, key: Hashable, tensors: _Tensors, text: str) -> None:
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
        return _Tensors(frozen(value)).values

    def from_tensors(self, tensors: Iterator[Any]) -> Any:
        function = with_owners(self._ref(), list(itertools.islice(tensors, len(self._specs))))
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
    while isinstance(function, functools.partial) or _is_bound(function):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(function)
    name = f"the function {function.__name__}"
    if not os.path.exists(code.co_filename) or is_converted(code.co_filename):
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
    """What tells a function from others. It is as large as all that the function refers to, so it is hashed once.

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
    """What tells an object from others, without keeping it; of what weak references cannot point to, its address."""

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


# Those of functions that are frozen. What a key refers to by its address is kept by the function.
_keys: weakref.WeakKeyDictionary[Any, Hashable] = weakref.WeakKeyDictionary()


def _key(value: Any, around: list[Any], live: Set[int]) -> Hashable:
    """What tells a value from others; `around` are the functions that refer to it, the outermost first."""
    if type(value) in _VALUES:
        return type(value), value
    if type(value) in (float, complex):
        return type(value), repr(value)
    if _is_tuple(value):
        return type(value), tuple(_key(part, around, live) for part in value)
    if _is_of_graph(value):
        return "tensor", value._type_spec if graphs.is_composite(value) else (value.dtype, str(value.shape))
    if any(value is one for one in around):
        return "around", next(i for i, one in enumerate(around) if one is value)
    if isinstance(value, function_wrappers.FunctionScope):  # made by each call of a function that AutoGraph converted
        return "scope"
    if not is_followed(value):
        return _Identity(value)
    return _keys[value] if value in _keys else _key_of_function(value, [*around, value], live)


def _key_of_function(function: Any, around: list[Any], live: Set[int]) -> _Key:
    def key(value: Any) -> Hashable:
        return _key(value, around, live)

    if isinstance(function, functools.partial):
        return _Key("partial", key(function.func), key(function.args), key(tuple(function.keywords.items())))
    if _is_bound(function):
        return _Key("method", key(function.__func__), key(function.__self__))
    cells = [("live", id(cell)) if id(cell) in live else key(_content(cell)) for _, cell in _cells(function)]
    defaults = key(function.__defaults__ or ()), key(tuple((function.__kwdefaults__ or {}).items()))
    wrapped = key(function.__dict__.get("__wrapped__"))
    if id(function.__globals__) in live:
        return _Key(function.__code__, *cells, *defaults, wrapped, id(function.__globals__))
    of_module = tuple((name, key(value)) for name, value in _globals(function).items())
    return _Key(function.__code__, *cells, *defaults, wrapped, function.__module__, of_module)
