"""Nests of tensors, as tf.function takes them: of tuples, dictionaries, ragged and sparse tensors, and the like."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import composite_tensor, type_spec
from tensorflow.python.util import nest


def to_tensors(value: Any, spec: Any = None, fits: Callable[[Any, tf.DType], bool] = lambda leaf, dtype: True) -> Any:
    """`value` with tensors in place of variables and Python values; None stays.

    Python values get the dtypes in `spec` if they are of the same nest, and `fits` says of each that it stays the same.
    """

    def of_known_dtype(leaf: Any, known: Any) -> Any:
        is_stated = isinstance(known, tf.TensorSpec) and leaf is not None and not tf.is_tensor(leaf)
        return _to_tensor(leaf, None if is_stated and not fits(leaf, known.dtype) else known)

    if spec is not None and nest.is_nested(spec) == nest.is_nested(value):
        try:
            return nest.map_structure(of_known_dtype, value, spec)
        except (TypeError, ValueError):
            pass  # another structure, or what does not convert: the caller says so
    return nest.map_structure(_to_tensor, value)


def spec_of(value: Any) -> Any:
    """The same nest with a spec in place of each tensor."""
    return nest.map_structure(lambda leaf: None if leaf is None else type_spec.type_spec_from_value(leaf), value)


def checked_spec(signature: Any) -> Any:
    """A nest of specs that a user wrote: a dtype in it is a tensor of any shape.

    Raises:
      TypeError: if it holds something else.
    """
    return nest.map_structure(_checked_leaf, signature)


def tensor_specs(spec: Any) -> list[tf.TensorSpec]:
    """The specs of the tensors that a nest is made of."""
    return [component for leaf in nest.flatten(spec) if leaf is not None for component in leaf.flatten()]


def tensors_of(value: Any) -> list[tf.Tensor]:
    """The tensors that a nest is made of, in the order of `tensor_specs`."""
    leaves = nest.flatten(value, expand_composites=True)
    return [leaf.flow if isinstance(leaf, tf.TensorArray) else leaf for leaf in leaves if leaf is not None]


def pack(spec: Any, tensors: Sequence[tf.Tensor]) -> Any:
    """A nest as `spec` says, of these tensors."""
    given = iter(tensors)

    def packed(leaf: Any) -> Any:
        return None if leaf is None else leaf.from_tensors(given)

    return nest.map_structure(packed, spec)


def join(a: Any, b: Any) -> Any:
    """The spec of what may be one or the other.

    Raises:
      ValueError: if they are nests of different kinds, or of different dtypes; says which.
    """
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        raise ValueError(f"{a} and {b}") from None
    return nest.map_structure(_join, a, b)


def copied(value: Any) -> Any:
    """The same nest of the same leaves, in lists and dictionaries of its own."""
    return nest.map_structure(lambda leaf: leaf, value)


def is_same(a: Any, b: Any) -> bool:
    """Whether two nests are of the same kind, and have the same leaves."""
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return False
    return all(one is other for one, other in zip(nest.flatten(a), nest.flatten(b), strict=True))


def with_open_sizes(spec: Any) -> Any:
    """A spec of tensors of the same ranks, of whose sizes nothing is known."""
    return nest.map_structure(_with_open_sizes, spec)


def _with_open_sizes(leaf: Any) -> Any:
    if not isinstance(leaf, tf.TensorSpec) or leaf.shape.rank is None:
        return leaf
    return tf.TensorSpec([None] * leaf.shape.rank, leaf.dtype)


def _to_tensor(leaf: Any, spec: Any = None) -> Any:
    if leaf is None or isinstance(leaf, (tf.TensorArray, composite_tensor.CompositeTensor)):
        return tf.convert_to_tensor(leaf) if isinstance(leaf, tf.Variable) else leaf
    if tf.is_tensor(leaf) or not isinstance(spec, tf.TensorSpec):
        return tf.convert_to_tensor(leaf)
    return tf.convert_to_tensor(leaf, spec.dtype)


def _checked_leaf(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, tf.TypeSpec):
        return leaf
    try:
        if not isinstance(leaf, int):  # TensorFlow numbers its dtypes
            return tf.TensorSpec(None, leaf)
    except TypeError:
        pass
    raise TypeError(f"{leaf!r} is no tf.TensorSpec or other spec of a tensor")


def _join(a: Any, b: Any) -> Any:
    joined = None if a is None or b is None else a.most_specific_common_supertype([b])
    if joined is None and not (a is None and b is None):
        raise ValueError(f"{_short(a)} and {_short(b)}")
    return joined


def _short(spec: Any) -> str:
    return f"{spec.dtype.name}{spec.shape}" if isinstance(spec, tf.TensorSpec) else repr(spec)
