"""How a `tf.TensorArray` of eager mode gets into functions, and how one that a function returns gets out of it."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.ops.tensor_array_ops import TensorArrayTraceType, _EagerTensorArray
from tensorflow.python.util import nest

from tensorflow_recursion import names
from tensorflow_recursion._tf import graphs
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import replace_for_good

_RETURNS_ARRAYS: Attribute[bool] = Attribute(names.RETURNS_ARRAYS)


def in_graph(value: Any) -> Any:
    """The same nest, with arrays of the default graph in place of those of eager mode; in eager mode, as it is.

    TensorFlow stacks an array of eager mode where a graph needs it. That is an error if an element was never written,
    and has no shape, as none has in `tf.TensorArray(tf.int32, 4)`.
    """
    if tf.executing_eagerly() or not any(map(is_eager, nest.flatten(value))):
        return value
    return nest.map_structure(lambda leaf: _array_in_graph(leaf) if is_eager(leaf) else leaf, value)


def is_eager(value: Any) -> bool:
    """Whether `value` is an array that holds its elements in a list of Python."""
    return isinstance(value, tf.TensorArray) and isinstance(value._implementation, _EagerTensorArray)


def holds_spec(signature: Any) -> bool:
    """Whether a nest of specs has one of an array. A `tf.function` takes none for it when it is called eagerly."""
    return any(isinstance(spec, tf.TensorArraySpec) for spec in nest.flatten(signature))


def return_arrays(graph: tf.Graph) -> None:
    """Let the `tf.function` of a graph return arrays. By itself it returns the list that an array is made of."""
    _RETURNS_ARRAYS.set(graph, True)


def let_functions_return_arrays() -> None:
    """Make TensorFlow look at what `return_arrays` says."""
    list_of = TensorArrayTraceType.from_tensors

    def from_tensors(self: Any, tensors: Iterator[tf.Tensor]) -> Any:
        array = self._value
        is_ours = not is_eager(array) and _RETURNS_ARRAYS.of(getattr(array.flow, "graph", None))
        made = list_of(self, tensors)
        return tf.TensorArraySpec.from_value(array)._from_components([made]) if is_ours else made

    replace_for_good(TensorArrayTraceType, "from_tensors", from_tensors)


def _array_in_graph(array: tf.TensorArray) -> tf.TensorArray:
    """An array of the default graph with the elements of one of eager mode, as far as they have been written."""
    implementation = array._implementation
    made = tf.TensorArray(
        array.dtype,
        size=len(implementation._tensor_array),
        dynamic_size=array.dynamic_size,
        infer_shape=implementation._infer_shape,
        element_shape=array.element_shape,
    )
    takes_eager_tensors = graphs.takes_eager_tensors(tf.compat.v1.get_default_graph())
    for i, element in enumerate(implementation._tensor_array):
        if element is not None:
            made = made.write(i, element if takes_eager_tensors else element.numpy())
    return made
