"""What Keras keeps for the thread in which a layer is called: whether it trains, the dtype that weights are cast to.

A body that a layer calls may be traced again after the layer has returned, for a gradient for example. It has to be
traced inside of the same again; otherwise `Dropout` would leave all as it is, and float16 products would take float32
weights.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import copy
import sys
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

_MODULE = "keras.src.backend.common.global_state"  # of Keras 3; loaded where a program uses it
_NAMES = ("current_call_ctx", "autocast_scope", "stateless_scope")


def current() -> Sequence[Any]:
    """What Keras keeps now; empty where it is not loaded."""
    keras = sys.modules.get(_MODULE)
    if keras is None:
        return ()
    call, *scopes = map(keras.get_global_attribute, _NAMES)
    return (copy.copy(call), *scopes)  # what a call knows changes as it goes on


@contextlib.contextmanager
def inside_of(kept: Sequence[Any]) -> Iterator[None]:
    """Let Keras find what `current` has returned elsewhere."""
    names = _NAMES if kept else ()  # Keras may have been loaded since
    before = [sys.modules[_MODULE].get_global_attribute(name) for name in names]
    _set(names, kept)
    try:
        yield
    finally:
        _set(names, before)


def kind() -> Hashable:
    """What tells traces of layers apart: whether they train, and the dtype that weights are cast to."""
    keras = sys.modules.get(_MODULE)
    if keras is None:
        return None, None
    call, autocast, _ = map(keras.get_global_attribute, _NAMES)
    training = getattr(call, "training", None)
    return training if isinstance(training, bool) else None, getattr(autocast, "dtype", None)


def _set(names: Sequence[str], values: Sequence[Any]) -> None:
    for name, value in zip(names, values, strict=True):
        sys.modules[_MODULE].set_global_attribute(name, value)
