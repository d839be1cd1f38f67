"""Copies of Python functions, which refer to other things than these: to themselves, or to what a call passes."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import tensorflow as tf

from tensorflow_recursion._tf import function_parts, graphs


def _with_parts(value: Any, parts: Iterable[Any]) -> Any:
    """A tuple like `value`, of other parts."""
    return tuple(parts) if type(value) is tuple else value._make(parts)


def copied(function: Any, shared: Set[int], replaced: Callable[[Any], Any]) -> Any:
    """A copy of a function with variables of its own, but for those that are `shared`; functions in it are copied, too.

    Args:
      function: the function, or a (named) tuple with functions in it.
      shared: the variables of both, as `function_parts.shared_variables` returns them.
      replaced: what takes the place of a value in the copy, None if nothing does. It is asked for each value that the
        function refers to, and for the function. What it does not replace is copied if it is a function or a tuple, and
        stays if it is anything else.
    """
    return _Copier(shared, replaced).copy(function)


class _Copier:
    """Copies a function, and what it refers to, each once."""

    def __init__(self, shared: Set[int], replaced: Callable[[Any], Any]) -> None:
        self._shared = shared
        self._replaced = replaced
        self._copies: dict[int, Any] = {}  # of functions and modules, by identity

    def copy(self, value: Any) -> Any:
        """A copy of what is a function or a tuple; another value, or what is in its place."""
        if (other := self._replaced(value)) is not None:
            return other
        if function_parts.is_tuple(value):
            return _with_parts(value, map(self.copy, value))
        if not function_parts.is_plain_function(value):
            return value
        if id(value) in self._copies:
            return self._copies[id(value)]
        if isinstance(value, functools.partial):
            return functools.partial(self.copy(value.func), *map(self.copy, value.args), **self._values(value.keywords))
        if function_parts.is_bound(value):
            return type(value)(self.copy(value.__func__), self.copy(value.__self__))
        return self.copy_function(value)

    def copy_function(self, value: types.FunctionType) -> types.FunctionType:
        """A copy of a function, for which `replaced` is not asked.

        So `with_itself` may copy a function, and let the copy refer to something else wherever it refers to itself.
        """
        of_module = {} if id(value.__globals__) in self._shared else function_parts.globals_of(value)
        if not (value.__closure__ or value.__defaults__ or value.__kwdefaults__ or of_module):
            return value
        around = value.__closure__ or ()
        stays_shared = [id(cell) in self._shared or function_parts.is_empty(cell) for cell in around]
        cells = tuple(cell if stays else types.CellType() for cell, stays in zip(around, stays_shared, strict=True))
        around_module = self._module_for(value) if of_module else value.__globals__
        copy = types.FunctionType(value.__code__, around_module, value.__name__, None, cells)
        self._copies[id(value)] = copy
        for name, old in of_module.items():
            around_module[name] = self.copy(old)
        for cell, old, stays in zip(cells, around, stays_shared, strict=True):
            if not stays:
                cell.cell_contents = self.copy(old.cell_contents)
        if value.__defaults__:
            copy.__defaults__ = tuple(map(self.copy, value.__defaults__))
        if value.__kwdefaults__:
            copy.__kwdefaults__ = self._values(value.__kwdefaults__)
        copy.__dict__.update(self._values(value.__dict__))
        copy.__module__, copy.__qualname__, copy.__doc__ = value.__module__, value.__qualname__, value.__doc__
        return copy

    def _module_for(self, value: types.FunctionType) -> dict[str, Any]:
        """The global variables for the copy of a function: one dictionary for all functions of its module.

        Not all variables of the module are in it. They may be large, and would be kept.
        """
        module = value.__globals__
        annotating = function_parts.names_in_annotations(value.__code__) if value.__annotations__ else ()
        kept = {name: one for name, one in module.items() if name.startswith("__") or name in annotating}
        found: dict[str, Any] = self._copies.setdefault(id(module), {})
        found.update({name: one for name, one in kept.items() if name not in found})
        return found

    def _values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.copy(value) for name, value in values.items()}


def with_itself(function: Any, itself: Any) -> Any:
    """A copy of `function` that means `itself` by its own name; `function` where it does not refer to itself.

    A function that refers to `function`, and that this one refers to, is copied, too. Copies share what
    `function_parts.shared_variables` returns.
    """
    if not isinstance(function, types.FunctionType) or not function_parts.is_plain_function(function):
        return function
    module = function_parts.module_of(function)
    referred = (one for other in function_parts.reached(function) for one in function_parts.referred_to(other, module))
    if not any(one is function for one in referred):
        return function
    copier = _Copier(function_parts.shared_variables(function), lambda value: itself if value is function else None)
    return copier.copy_function(function)


class _OwnerPlaceholder:
    """Stands for an owner (`is_owner`) in a function that must not keep it; see `without_owners`."""

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
    """Whether `value` owns functions: its class has a function for each object, as `tf.function` makes of a method.

    Python finds such a function in a table by its object, without keeping the object alive. But if a graph of the
    function refers to the object, that one is never freed. So what is kept with graphs must not refer to owners.
    """
    if value is None or isinstance(value, (type, types.ModuleType)) or graphs.is_composite(value):
        return False
    attributes = (one for kind in type(value).__mro__ for one in vars(kind).values())
    return any(function_parts.makes_methods(one) for one in attributes)


class _TensorPlaceholder:
    """Stands for a tensor of a graph, or what is made of such, in a function that must not keep it.

    Each call passes other tensors; see `ReferredTensors`.
    """

    def __init__(self, value: Any, positions: Sequence[int]) -> None:
        self._spec = tf.type_spec_from_value(value)
        self._positions = positions

    def filled(self, tensors: Sequence[tf.Tensor]) -> Any:
        """What the placeholder stands for, made of the `tensors` of a call."""
        return self._spec.from_tensors(iter([tensors[position] for position in self._positions]))


class ReferredTensors:
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
        pending, module = [function], function_parts.module_of(function)
        while pending:
            one = pending.pop()
            if is_of_graph(one):
                new = [part for part in _components(one) if self._position(part) is None]
                self.values += {id(part): part for part in new}.values()
                self.pattern += [("tensor", position) for position in self.positions(one)]
            elif function_parts.is_tuple(one) or function_parts.is_plain_function(one):
                if id(one) in numbers:
                    self.pattern.append(("function", numbers[id(one)]))
                    continue
                numbers[id(one)] = len(numbers)
                pending += function_parts.referred_to(one, module)[::-1]

    def positions(self, value: Any) -> list[int]:
        """Where the tensors of a value are among the values, if they are some of them."""
        found = [self._position(part) for part in _components(value)] if is_of_graph(value) else []
        return [position for position in found if position is not None]

    def _position(self, tensor: tf.Tensor) -> int | None:
        return next((i for i, known in enumerate(self.values) if known is tensor), None)

    def specs(self) -> list[tf.TensorSpec]:
        """Dtypes and static shapes of the values."""
        return [tf.TensorSpec.from_tensor(tensor) for tensor in self.values]


def _components(value: Any) -> list[Any]:
    """A tensor, or the tensors that a ragged tensor, an ExtensionType or the like is made of."""
    return tf.nest.flatten(value, expand_composites=True)  # type: ignore[no-any-return]


def is_of_graph(value: Any) -> bool:
    """Whether `value` is a tensor of a graph that may be an argument of a call, wherever it is computed.

    Or it is made of such tensors, as a ragged tensor is.
    """
    parts = _components(value) if graphs.is_composite(value) else [value]
    return bool(parts) and all(
        tf.is_symbolic_tensor(part) and part.dtype not in (tf.resource, tf.variant) for part in parts
    )


def without_owners(function: Any, tensors: ReferredTensors) -> Any:
    """A copy of a frozen function with placeholders for owners and `tensors`.

    It may be kept as long as there are graphs, but it cannot be called; see `with_owners`.
    """

    def replaced(value: Any) -> Any:
        if is_owner(value):
            return _OwnerPlaceholder(value)
        return _TensorPlaceholder(value, positions) if (positions := tensors.positions(value)) else None

    return copied(function, function_parts.shared_variables(function), replaced)


def with_owners(function: Any, tensors: Sequence[tf.Tensor]) -> Any:
    """A copy of what `without_owners` has made that can be called: it has the owners again, and other tensors.

    Raises:
      ReferenceError: if an owner is gone.
    """

    def replaced(value: Any) -> Any:
        if isinstance(value, _OwnerPlaceholder):
            return value.get()
        return value.filled(tensors) if isinstance(value, _TensorPlaceholder) else None

    return copied(function, function_parts.shared_variables(function), replaced)
