"""What Keras keeps for the thread in which a layer is called: whether it trains, the dtype that weights are cast to.

A body that a layer calls may be traced again after the layer has returned, for a gradient for example. It has to be
traced inside of the same again; otherwise `Dropout` would leave all as it is, and float16 products would take float32
weights.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import copy
import dataclasses
import sys
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.util import nest

_MODULE = "keras.src.backend.common.global_state"  # of Keras 3; loaded where a program uses it
_VARIABLES = "keras.src.backend.common.variables"
_SYMBOLIC = "keras.src.backend.common.symbolic_scope"  # of Keras 3.4
_CALL, _AUTOCAST, _STATELESS = "current_call_ctx", "autocast_scope", "stateless_scope"


@dataclasses.dataclass(frozen=True)
class Scopes:
    """What Keras keeps at one moment.

    Attributes:
      call: what a layer passes on to layers that it calls, above all whether it trains.
      autocast: the dtype that weights are cast to.
      stateless: the `keras.StatelessScope`, in which variables have other values and keep their own.
      values: these, by the identity of the variable.
    """

    call: Any
    autocast: Any
    stateless: Any
    values: Mapping[int, tf.Tensor]


class _Tracing(threading.local):
    """The values of a `keras.StatelessScope` that the body being traced in this thread was called with."""

    def __init__(self) -> None:
        self.values: Mapping[int, tf.Tensor] | None = None


_tracing = _Tracing()


def read_variables(args: Any) -> Any:
    """Arguments with tensors in place of Keras' variables, whose type TensorFlow finds in eager mode alone."""
    module = sys.modules.get(_VARIABLES)
    kind = None if module is None else getattr(module, "Variable", None) or getattr(module, "KerasVariable", None)
    if kind is None or not any(isinstance(leaf, kind) for leaf in nest.flatten(args)):
        return args
    return nest.map_structure(lambda leaf: tf.convert_to_tensor(leaf) if isinstance(leaf, kind) else leaf, args)


def current() -> Scopes | None:
    """What Keras keeps now; None where it is not loaded."""
    if _MODULE not in sys.modules:
        return None
    call = copy.copy(_get(_CALL))  # what it knows changes as it goes on
    if call is not None:
        call.entry_layer = None  # which need not live as long as its functions
    return Scopes(call, _get(_AUTOCAST), _get(_STATELESS), _stateless_values())


@contextlib.contextmanager
def inside_of(scopes: Scopes | None, function: str) -> Iterator[None]:
    """Let Keras find what `current` has returned elsewhere, while the body of `function` is traced.

    Raises:
      NotImplementedError: the body has given a variable another value in a `keras.StatelessScope`: a tensor that only
        the body can read.
    """
    if scopes is None:  # Keras may have been loaded since
        yield
        return
    names = (_CALL, _AUTOCAST, _STATELESS)
    before = [_get(name) for name in names]
    _set(names, (copy.copy(scopes.call), scopes.autocast, scopes.stateless))
    try:
        with _with_values(scopes, function):
            yield
    finally:
        _set(names, before)


def kind() -> Hashable:
    """What tells apart the traces that a layer needs; None where Keras is not loaded.

    These are the arguments that layers pass on, such as `training`, the dtype that weights are cast to, and the values
    that a `keras.StatelessScope` gives to weights.
    """
    if _MODULE not in sys.modules:
        return None
    passed_on = vars(_get(_CALL)) if _get(_CALL) is not None else {}
    known = sorted((name, _key(value)) for name, value in passed_on.items() if name != "entry_layer")
    values = frozenset((variable, value.ref()) for variable, value in _stateless_values().items())
    return tuple(one for one in known if one[1] is not None), getattr(_get(_AUTOCAST), "dtype", None), values


def is_stateless() -> bool:
    """Whether a `keras.StatelessScope` gives variables values for a while."""
    return _MODULE in sys.modules and _get(_STATELESS) is not None


@contextlib.contextmanager
def _with_values(scopes: Scopes, function: str) -> Iterator[None]:
    """Give variables the values that the body was called with, and take back what it gives them."""
    if scopes.stateless is None:
        yield
        return
    scope, outer_values = scopes.stateless, _tracing.values
    before, scope.state_mapping = scope.state_mapping, dict(scopes.values)
    _tracing.values = scopes.values
    try:
        yield
        if not _is_symbolic() and any(
            value is not scopes.values.get(variable) for variable, value in scope.state_mapping.items()
        ):
            raise NotImplementedError(
                f"Function '{function}' assigns to Keras variables (the seed of a Dropout is one) in a "
                "keras.StatelessScope, as stateless_call has one, which cannot get their new values from the body of a "
                "function; call the layer itself, or assign outside of the function"
            )
    finally:
        scope.state_mapping, _tracing.values = before, outer_values


def _stateless_values() -> Mapping[int, tf.Tensor]:
    """The values of variables in a `keras.StatelessScope`: in a body, those that it was called with."""
    if _tracing.values is not None:
        return _tracing.values
    scope = _get(_STATELESS)
    return {} if scope is None else dict(scope.state_mapping)


def _is_symbolic() -> bool:
    """Whether Keras wants to know shapes alone, as far as it says so."""
    return _SYMBOLIC not in sys.modules or bool(sys.modules[_SYMBOLIC].in_symbolic_scope())


def _key(value: Any) -> Hashable:
    """What tells apart the values that layers pass on: True, 1 and an eager tensor of True are the same."""
    if isinstance(value, ops.EagerTensor):
        return value.numpy().tobytes() if value.shape.rank else value.numpy().item()  # type: ignore[no-any-return]
    if tf.is_tensor(value):
        return value.ref()  # type: ignore[no-any-return]
    return value if isinstance(value, Hashable) else id(value)


def _get(name: str) -> Any:
    return sys.modules[_MODULE].get_global_attribute(name)


def _set(names: Sequence[str], values: Sequence[Any]) -> None:
    for name, value in zip(names, values, strict=True):
        sys.modules[_MODULE].set_global_attribute(name, value)
