"""Recursive functions as methods: a function for each object, which the class makes when the object is first asked."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from tensorflow_recursion._tf import function_parts
from tensorflow_recursion._tf.typed import not_converted
from tensorflow_recursion.keras_functions import KerasFunction


class MethodFunction(Protocol):
    """The function of a method, as `Method` sees it: a `RecursiveFunction`.

    Attributes:
      of_class: the attribute of the class.
    """

    of_class: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any: ...


class Owner:
    """The object whose method a function is, if it is one. It does not keep the object alive."""

    def __init__(self, name: str, owner: Any) -> None:
        """Refers to the object `owner`, None if there is none; `name` is what messages call the function."""
        self._name = name
        self._reference = None if owner is None else weakref.ref(owner)

    def bound(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """`func` as a method of the object, if there is one.

        Raises:
          ReferenceError: if the object is gone.
        """
        if self._reference is None:
            return func
        owner = self._reference()
        if owner is None:
            raise ReferenceError(
                f"Function '{self._name}' is a method of an object that is gone; keep the object, and do not make it "
                "in the body of a recursive function, which is built more than once"
            )
        return function_parts.bound(func, owner)


class Methods:
    """The functions that a method of a class has, one for each object. It does not keep the objects alive."""

    def __init__(self, name: str, make: Callable[[Any], MethodFunction]) -> None:
        """Makes a table without functions.

        Args:
          name: what messages call the method.
          make: makes the function of an object.
        """
        self._name = name
        self._make = make
        self._making = threading.RLock()  # two threads make one function for an object
        # By the object's identity, because it need not have a hash.
        self._functions: dict[int, tuple[weakref.ref[Any], MethodFunction]] = {}

    def function_of(self, instance: Any) -> MethodFunction:
        """The function of an object, made when it is first asked for.

        Raises:
          TypeError: if weak references cannot point to the object.
        """
        key, functions = id(instance), self._functions
        with self._making:
            if key not in functions:
                reference = _watched(self._name, instance, lambda _: functions.pop(key, None))
                functions[key] = (reference, self._make(instance))
            return functions[key][1]


class Method(KerasFunction):
    """A recursive function as a method of an instance: what `instance.method` returns, anew each time."""

    def __init__(self, function: MethodFunction, instance: Any) -> None:
        self._function = self.__func__ = function
        self.__self__ = instance
        self.__doc__ = function.__doc__
        self.__annotations__ = function.__annotations__

    @not_converted
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        """Whether `other` is the same method of the same object, as of Python's methods; each use makes another one."""
        return isinstance(other, Method) and self.__func__ is other.__func__

    def __hash__(self) -> int:
        return hash(self.__func__)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What `copy` and `pickle` make of it: the method of the instance that they make, as of Python's methods."""
        return type(self.__func__).__get__, (self.__func__.of_class, self.__self__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return repr(self._function)


def _watched(name: str, instance: Any, forget: Callable[[Any], object]) -> weakref.ref[Any]:
    try:
        return weakref.ref(instance, forget)
    except TypeError as error:
        raise TypeError(
            f"Function '{name}' is a method of a {type(instance).__name__}, which weak references cannot "
            "point to, so it cannot have a function of its own; where the class has __slots__, add '__weakref__' "
            "to them"
        ) from error
