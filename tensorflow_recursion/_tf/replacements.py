"""Functions of TensorFlow that are replaced for a while, in one thread.

They are replaced for the whole process, as long as any thread needs that; but what replaces them does what TensorFlow
does in every thread that does not.
"""
# SPDX-License-Identifier: Apache-2.0

import abc
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Replacements(abc.ABC):
    """Functions of TensorFlow that are replaced while any thread is inside of `active`, and what replaces them."""

    def __init__(self) -> None:
        self._depth = threading.local()  # how many `active` of this thread are open
        self._lock = threading.Lock()  # guards what follows: threads enter and leave on their own
        self._users = 0
        self._originals: list[tuple[Any, str, Any]] = []

    @property
    def are_active(self) -> bool:
        """Whether this thread is inside of `active`."""
        return getattr(self._depth, "value", 0) > 0

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Inside, the replacements do their work in this thread."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._install()
        self._depth.value = getattr(self._depth, "value", 0) + 1
        try:
            yield
        finally:
            self._depth.value -= 1
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._uninstall()

    @abc.abstractmethod
    def _install(self) -> None:
        """Replace what is to be replaced."""

    def _uninstall(self) -> None:
        while self._originals:
            setattr(*self._originals.pop())

    def replace(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        """Let `replacement` be called in place of a function, in threads where replacements are active."""
        original = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return (replacement if self.are_active else original)(*args, **kwargs)

        self.put(owner, name, call)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Let `owner` have `value` as its attribute `name` in all threads, until no replacement is active."""
        self._originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
