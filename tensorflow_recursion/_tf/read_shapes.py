"""Which parts of the static shapes of a body's arguments the user's Python reads: ranks and sizes."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.framework import ops

from tensorflow_recursion import notices
from tensorflow_recursion._tf.replacements import replace_for_good

# A part of a shape: the size along an axis, or with None the rank.
Part: TypeAlias = int | None

# Called with a part, and the file and line of Python that read it.
Tell: TypeAlias = Callable[[Part, str, int], None]


class _WatchedShape(tf.TensorShape):  # type: ignore[misc]  # it has no types
    """A shape that tells who reads its rank or sizes. What is unknown is None, of which `size == 1` makes False."""

    __slots__ = ("_tell",)
    __hash__ = tf.TensorShape.__hash__

    def __init__(self, shape: tf.TensorShape, tell: Tell) -> None:
        super().__init__(shape)
        self._tell = tell

    def tell(self, parts: Iterable[Part], level: int = 1) -> None:
        """Tell that the function so many `level`s above the one that calls this reads these parts; only a user's."""
        reader = sys._getframe(level + 1)
        file = reader.f_code.co_filename
        if not notices.is_of_library(file):
            for part in parts:
                self._tell(part, file, reader.f_lineno)

    def _all(self) -> list[Part]:
        return [None, *range(len(self._dims or ()))]

    @property
    def rank(self) -> int | None:
        self.tell([None])
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        self.tell([None])
        return None if self._dims is None else len(self._dims)

    @property
    def dims(self) -> Any:
        self.tell(self._all())
        return super().dims

    def __len__(self) -> int:
        self.tell([None])
        return super().__len__()  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        axes = range(len(self._dims or ()))
        is_axis = isinstance(key, int) and -len(axes) <= key < len(axes)
        self.tell([axes[key]] if is_axis else [None, *axes[key]] if isinstance(key, slice) else [None])
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        self.tell(self._all())
        return super().__iter__()  # type: ignore[no-any-return]

    def as_list(self) -> Any:
        self.tell(self._all())
        return super().as_list()

    def num_elements(self) -> Any:
        self.tell(self._all())
        return super().num_elements()

    def __eq__(self, other: object) -> bool:
        self.tell(self._all())
        return super().__eq__(other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        self.tell(self._all())
        return super().__ne__(other)  # type: ignore[no-any-return]


@contextlib.contextmanager
def watched(arguments: Sequence[tf.Tensor], tells: Sequence[Tell]) -> Iterator[None]:
    """Inside, call one of `tells` whenever a user's line reads a part of the static shape of that tensor.

    That ends where the body sets the shape anew.
    """
    for argument, tell in zip(arguments, tells, strict=True):
        argument._shape_val = _WatchedShape(argument.shape, tell)
    try:
        yield
    finally:
        for argument in arguments:
            if isinstance(argument._shape_val, _WatchedShape):
                argument._shape_val = tf.TensorShape(argument._shape_val)


def watch_ndim() -> None:
    """Let `x.ndim` be told of, too, which is -1 where the rank is open."""
    stock = ops.SymbolicTensor.ndim.fget

    def ndim(tensor: tf.Tensor) -> int:
        shape = tensor.shape
        if isinstance(shape, _WatchedShape):
            shape.tell([None])
        found: int = stock(tensor)
        return found

    replace_for_good(ops.SymbolicTensor, "ndim", property(ndim))
