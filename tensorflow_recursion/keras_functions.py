"""Recursive functions as activations, losses and the like of what Keras saves: by name, as Python functions are."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any


class KerasFunction:
    """A function that a Keras config has by its name.

    Keras takes only Python's own functions for functions. All others are objects to it, which have a config.
    """

    def get_config(self) -> dict[str, Any]:
        """What Keras saves of the function: the name under which it is registered, else its own."""
        return {"function": sys.modules["keras"].saving.get_registered_name(self)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The function that Keras knows by the name that was saved.

        Raises:
          ValueError: if it knows none.
        """
        name = config["function"]
        found = sys.modules["keras"].saving.get_registered_object(name)
        if found is None:
            raise ValueError(
                f"Keras knows no function '{name}', which what it loads has as an activation, a loss or the like. "
                "Either write @keras.saving.register_keras_serializable() above its @tfr.recursive, where the function "
                "is saved and where it is loaded, and import that module before loading, or load with "
                f"custom_objects={{'{name}': the function}}"
            )
        return found


def register(*kinds: type[KerasFunction]) -> None:
    """Let Keras load functions of these kinds, if it is there; TensorFlow has loaded it then."""
    if (keras := sys.modules.get("keras")) is not None:
        for kind in kinds:
            keras.saving.register_keras_serializable("tensorflow_recursion")(kind)
