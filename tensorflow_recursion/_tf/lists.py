"""Where TensorFlow errs about lists of tensors, which a `tf.TensorArray` is in a graph: the gradient of a gather."""
# SPDX-License-Identifier: Apache-2.0

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import list_ops

_GATHER = "TensorListGather"


def mend_gathers() -> None:
    """Let an item of a list that is gathered several times have the sum of the gradients for all of them.

    TensorFlow 2.21 takes the last one: for `tf.TensorArray(..).unstack(x).gather([1, 0, 1])` a tf.function had the
    gradient [1, 1, 0] where eager mode has [1, 2, 0].
    """
    registered = ops.gradient_registry._registry[_GATHER]
    of_different_items = registered["type"]

    def gradient(op: tf.Operation, grad: Any) -> list[Any]:
        grad = tf.convert_to_tensor(grad)
        items, indices, _ = op.inputs
        if _are_different(indices) or grad.dtype in (tf.variant, tf.resource):
            return list(of_different_items(op, grad))
        places, number_of = tf.unique(indices)
        sums = tf.math.unsorted_segment_sum(grad, number_of, tf.size(places))
        shape = tf.raw_ops.TensorListElementShape(input_handle=items, shape_type=tf.int32)
        zeros = list_ops.tensor_list_reserve(shape, tf.raw_ops.TensorListLength(input_handle=items), grad.dtype)
        return [list_ops.tensor_list_scatter(sums, places, input_handle=zeros), None, None]

    registered["type"] = gradient


def _are_different(indices: tf.Tensor) -> bool:
    known = tf.get_static_value(indices)
    return known is not None and np.unique(known).size == np.size(known)
