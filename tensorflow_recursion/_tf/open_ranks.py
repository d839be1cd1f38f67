"""Arguments whose rank a trace leaves open because calls differ in it, and the user's lines that read that rank."""
# SPDX-License-Identifier: Apache-2.0

import sys
from collections.abc import Callable

import tensorflow as tf
from tensorflow.python.framework import ops

from tensorflow_recursion._tf.replacements import replace_for_good


class _OpenShape(tf.TensorShape):  # type: ignore[misc]  # it has no types
    """A shape of unknown rank that tells who reads the rank: None, of which `rank == 1` makes False."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[str, int], None]) -> None:
        super().__init__(None)
        self._tell = tell

    def tell(self) -> None:
        """Tell the line that has called the function which calls this."""
        reader = sys._getframe(2)
        self._tell(reader.f_code.co_filename, reader.f_lineno)

    @property
    def rank(self) -> None:
        self.tell()

    @property
    def ndims(self) -> None:
        self.tell()

    @property
    def dims(self) -> None:
        self.tell()


def watch(argument: tf.Tensor, tell: Callable[[str, int], None]) -> None:
    """Call `tell` with a file and a line of Python whenever that line reads the rank of a tensor of open rank.

    TensorFlow itself reads it often. Once the shape is set, nothing is told any more.
    """
    argument._shape_val = _OpenShape(tell)


def watch_ndim() -> None:
    """Let `x.ndim` be told of, too, which is -1 where the rank is open."""
    stock = ops.SymbolicTensor.ndim.fget

    def ndim(tensor: tf.Tensor) -> int:
        shape = tensor.shape
        if isinstance(shape, _OpenShape):
            shape.tell()
        found: int = stock(tensor)
        return found

    replace_for_good(ops.SymbolicTensor, "ndim", property(ndim))
