"""Where TensorFlow errs about max pooling: a kernel for second derivatives that overwrites what it is to read."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops

# The operators of first derivatives, and what makes those of second ones.
_SECOND = {
    "MaxPoolGrad": tf.raw_ops.MaxPoolGradGrad,
    "MaxPoolGradV2": tf.raw_ops.MaxPoolGradGradV2,
    "MaxPool3DGrad": tf.raw_ops.MaxPool3DGradGrad,
}


def mend_second_derivatives() -> None:
    """Let the second derivatives of max pooling be right in graphs where it keeps the size, as with a stride of 1.

    The kernel of TensorFlow 2.21 for CPUs puts its result where what it is given is, if nobody else needs that, and
    fills it with zeros before it reads it. In eager mode somebody always does.
    """
    for name, second in _SECOND.items():
        registered = ops.gradient_registry._registry[name]
        registered["type"] = _mended(registered["type"], second)


def _mended(stock: Callable[..., Any], second: Callable[..., tf.Tensor]) -> Callable[..., Any]:
    def gradient(op: tf.Operation, grad: tf.Tensor) -> list[Any]:
        if tf.executing_eagerly():
            return list(stock(op, grad))
        x, y, _, *sizes = op.inputs
        ksize, strides = sizes or (op.get_attr("ksize"), op.get_attr("strides"))
        known = tf.get_static_value(ksize) if sizes else ksize
        if known is not None and max(known) == 1:  # windows of one element
            by_grad = tf.strided_slice(grad, [0] * len(known), tf.shape(x), strides)
        elif op.get_attr("padding") == b"SAME":
            # The same pooling with its border made before is of another size, so the kernel has to keep them apart.
            total = tf.maximum((tf.shape(y) - 1) * strides + ksize - tf.shape(x), 0)
            border = tf.stack([total // 2, total - total // 2], 1)
            by_grad = second(
                orig_input=tf.pad(x, border, constant_values=x.dtype.min),
                orig_output=y,
                grad=tf.pad(grad, border),
                ksize=ksize,
                strides=strides,
                padding="VALID",
                data_format=op.get_attr("data_format").decode(),
            )
        else:
            return list(stock(op, grad))
        return [tf.zeros_like(x), tf.zeros_like(y), by_grad, *[None] * len(sizes)]

    return gradient
