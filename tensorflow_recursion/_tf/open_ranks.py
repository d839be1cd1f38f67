"""Arguments whose rank a trace leaves open because calls differ in it, and the user's lines that read that rank."""
# SPDX-License-Identifier: Apache-2.0

import sys
from collections.abc import Callable

import tensorflow as tf


class _OpenShape(tf.TensorShape):  # type: ignore[misc]  # it has no types
    """A shape of unknown rank that tells who reads the rank: None, of which `rank == 1` makes False."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[str, int], None]) -> None:
        super().__init__(None)
        self._tell = tell

    @property
    def rank(self) -> None:
        reader = sys._getframe(1)
        self._tell(reader.f_code.co_filename, reader.f_lineno)

    @property
    def ndims(self) -> None:
        reader = sys._getframe(1)
        self._tell(reader.f_code.co_filename, reader.f_lineno)


def watch(argument: tf.Tensor, tell: Callable[[str, int], None]) -> None:
    """Call `tell` with a file and a line of Python whenever that line reads the rank of a tensor of open rank.

    TensorFlow itself reads it often. Once the shape is set, nothing is told any more. `x.ndim` is -1, and not told of.
    """
    argument._shape_val = _OpenShape(tell)
