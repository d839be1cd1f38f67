"""What we keep with objects of TensorFlow: with a graph, an operation, a tensor, a traced function."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Attribute(Generic[_T]):
    """An attribute of TensorFlow's objects in which we keep something as long as they live.

    What is kept often leads back to the object: the captured tensors of a body lead to the graph that they are in. A
    dictionary with weak keys would keep such objects alive for ever, an attribute does not. Such dictionaries are
    attributes of our own objects, where each of these knows something else of an object: each graph's `Traces` has
    other variables for a definition, for example.

    Examples:
      >>> from tensorflow_recursion._tf.attributes import Attribute
      >>> is_copy: Attribute[bool] = Attribute("_recursion_is_a_copy")
      >>> graph = tf.Graph()
      >>> is_copy.of(graph) is None
      True
      >>> is_copy.set(graph, True)
      >>> is_copy.of(graph)
      True
    """

    def __init__(self, name: str) -> None:
        """Takes a name that no other attribute has; `names` has all of them."""
        self._name = name

    def of(self, owner: Any) -> _T | None:
        """What is kept with `owner`; None if nothing is."""
        found: _T | None = getattr(owner, self._name, None)
        return found

    def is_set(self, owner: Any) -> bool:
        """Whether anything is kept with `owner`."""
        return hasattr(owner, self._name)

    def set(self, owner: Any, value: _T) -> None:
        """Keep `value` with `owner`, in place of what was kept before."""
        setattr(owner, self._name, value)

    def made(self, owner: Any, make: Callable[[], _T]) -> _T:
        """What is kept with `owner`; made now if nothing is."""
        if (found := self.of(owner)) is None:
            found = make()
            self.set(owner, found)
        return found
