"""The tf.functions in which eager calls of a recursive function run."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from tensorflow_recursion._tf import keras_scopes


class EagerFunctions:
    """The tf.functions of one recursive function: one for each state of the Keras layers around a call.

    For example, a call in a layer that trains runs in another one than a call in a layer that predicts, because a body
    with a `Dropout` is another one then.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        """Makes a table without tf.functions; `make` makes one."""
        self._make = make
        self._making = threading.RLock()  # two threads make one tf.function for a state
        self._by_kind: dict[Hashable, Any] = {}

    @property
    def here(self) -> Any:
        """The tf.function for a call that is made here."""
        if keras_scopes.is_stateless():  # it reads values that nobody else gives to variables
            return self._make()
        kind = keras_scopes.kind()
        if kind not in self._by_kind:
            with self._making:
                if kind not in self._by_kind:
                    self._by_kind[kind] = self._make()
        return self._by_kind[kind]
