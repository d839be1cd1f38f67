"""Warnings of what users should know, such as what the operator library has to tell: that calls run dynamically."""
# SPDX-License-Identifier: Apache-2.0

import os
import sysconfig
import traceback
import warnings

import tensorflow as tf

from tensorflow_recursion.converted import is_converted

# Set to anything but nothing or 0, it silences the warning that a session was made without tfr.session_config().
SILENCE_VARIABLE = "TENSORFLOW_RECURSION_SILENCE_DYNAMIC"

_FOLDERS = {os.path.dirname(os.path.abspath(file)) for file in (__file__, tf.__file__)}
_FOLDERS |= {sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")}
_LIBRARIES = ("<", *(os.path.join(folder, "") for folder in sorted(_FOLDERS)))


def show(kind: str, text: str) -> None:
    """Warn of `text` at the user's line that runs just now. The native module calls this, too, in the main thread.

    Args:
      kind: "fallback" if calls run dynamically although the switch is on, "no switch" if nobody has turned it on,
        "repeat" if a function that runs once more may do something else, "dense" if each call computes the gradient for
        a whole weight, "effect" if a gradient has a side effect that is in no order with others, "open shape" if a
        body reads a rank or size that no trace knows, "number" if Python numbers are passed as tensors, "unsaved" if
        a SavedModel lacks a gradient or a function.
      text: what happens, why, and what to do.
    """
    if kind == "no switch" and os.environ.get(SILENCE_VARIABLE, "0") not in ("", "0"):
        return
    warnings.warn(text, RuntimeWarning, stacklevel=_levels_to_user())


def is_of_library(file: str) -> bool:
    """Whether a file of Python is a library's; one that AutoGraph has made is not."""
    return file.startswith(_LIBRARIES) and not is_converted(file)


def _levels_to_user() -> int:
    """How many frames above `show` the first one is that is of no library: Python may run `show` anywhere in them."""
    files = [info.filename for info in traceback.extract_stack()[-3::-1]]  # from the caller of `show` outwards
    users = [level for level, file in enumerate(files, start=2) if not is_of_library(file) and not is_converted(file)]
    return users[0] if users else 2
