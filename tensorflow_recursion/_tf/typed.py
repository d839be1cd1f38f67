"""Decorators of TensorFlow, which is not typed, that keep the types of what they decorate."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable
from typing import Any, TypeVar, cast

import tensorflow as tf

Function = TypeVar("Function", bound=Callable[..., Any])


def not_converted(func: Function) -> Function:
    """Let AutoGraph call a function as it is: it builds graphs itself."""
    return cast(Function, tf.autograph.experimental.do_not_convert(func))


def registered_gradient(op_type: str) -> Callable[[Function], Function]:
    """Register a function as the gradient of the operator `op_type`.

    Source: `tf.RegisterGradient`.
    """

    def register(func: Function) -> Function:
        return cast(Function, tf.RegisterGradient(op_type)(func))

    return register
