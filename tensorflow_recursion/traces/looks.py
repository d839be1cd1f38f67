"""Looks at bodies without some of the calls in them, to see what the other paths through them return."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import tensorflow as tf

from tensorflow_recursion._tf import inferring


class Look:
    """Builds one body at a time in a graph that is thrown away, and leaves out calls of certain functions.

    A call that is left out gives up the branch in which it stands, as in `inference`.
    """

    def __init__(self, graph: tf.Graph) -> None:
        """Bodies are those of functions in `graph`."""
        self._graph = graph
        # Whether a call of a function is left out, by its name; None if no body is being looked at.
        self._leaves_out: Callable[[str], bool] | None = None

    @property
    def is_in_progress(self) -> bool:
        """Whether a body is being looked at."""
        return self._leaves_out is not None

    @contextlib.contextmanager
    def at(
        self, name: str, leaves_out: Callable[[str], bool], building: contextlib.AbstractContextManager[None]
    ) -> Iterator[None]:
        """The body of the function `name` is built inside, and inside of `building`.

        Raises:
          Unknown: if no path is without a call that `leaves_out` is true of.
        """
        self._leaves_out = leaves_out
        try:
            with inferring.inferring(self._graph, name), building:
                yield
        finally:
            self._leaves_out = None

    def check_not_left_out(self, name: str) -> None:
        """Raises Unknown if a call of the function `name` is left out now."""
        if self._leaves_out is not None and self._leaves_out(name):
            raise inferring.Unknown(name)
