"""Which parts of the static shapes of tensors the user's Python reads: ranks and sizes."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dis
import operator
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python import autograph
from tensorflow.python.autograph.impl import api
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensors

from tensorflow_recursion import notices
from tensorflow_recursion._tf.replacements import Replacements, replace_for_good

# A part of a shape: the size along an axis, or with None the rank.
Part: TypeAlias = int | None

# Called with a part, and the file and line of Python that read it.
Tell: TypeAlias = Callable[[Part, str, int], None]

_AUTOGRAPH = os.path.join(os.path.dirname(autograph.__file__), "")


class _WatchedShape(tf.TensorShape):  # type: ignore[misc]  # it has no types
    """A shape that tells which parts of it a user's line reads. An unknown size is None, and `None == 1` is False."""

    __slots__ = ("_tell",)
    __hash__ = tf.TensorShape.__hash__

    def __init__(self, shape: tf.TensorShape, tell: Tell) -> None:
        super().__init__(shape)
        self._tell: Tell | None = tell

    def end(self) -> None:
        """Tell no more."""
        self._tell = None

    def tell(self, parts: Iterable[Part] | None = None) -> None:
        """Tell that these parts are read, by default all of them, if it is a user's line that does."""
        if self._tell is None:
            return
        reader = _reader()
        if not notices.is_of_library(reader.f_code.co_filename):
            for part in self._all() if parts is None else parts:
                self._tell(part, reader.f_code.co_filename, reader.f_lineno)

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
        self.tell()
        return super().dims

    def __len__(self) -> int:
        self.tell([None])
        return super().__len__()  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        axes: range = range(len(self._dims or ()))
        if isinstance(key, slice):
            self.tell([None, *axes[key]])
        else:
            axis = operator.index(key)
            self.tell([axes[axis]] if -len(axes) <= axis < len(axes) else [None])
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        unused = _unused_of_unpacked(_reader())
        self.tell([part for part in self._all() if part not in unused])
        return super().__iter__()  # type: ignore[no-any-return]

    def as_list(self) -> Any:
        self.tell()
        return super().as_list()

    def num_elements(self) -> Any:
        self.tell()
        return super().num_elements()

    def is_fully_defined(self) -> Any:
        self.tell()
        return super().is_fully_defined()

    def is_compatible_with(self, other: Any) -> Any:
        self.tell()
        return super().is_compatible_with(other)

    def __eq__(self, other: object) -> bool:
        self.tell()
        return super().__eq__(other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        self.tell()
        return super().__ne__(other)  # type: ignore[no-any-return]


def _reader() -> types.FrameType:
    """Who reads a shape. AutoGraph calls builtins in place of the user, compares for him, and goes over loops."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    if frame.f_code.co_filename == api.__file__ or frame.f_code.co_name.startswith("_py_"):
        while frame.f_code.co_filename.startswith(_AUTOGRAPH) and frame.f_back is not None:
            frame = frame.f_back
    return frame


def _unused_of_unpacked(frame: types.FrameType) -> set[int]:
    """Which of the values are not used that a line is unpacking: 0 for `rows, columns = x.shape` if `rows` is not."""
    instructions = list(dis.get_instructions(frame.f_code))
    now = next((i for i, one in enumerate(instructions) if one.offset == frame.f_lasti), None)
    if now is None or instructions[now].opname != "UNPACK_SEQUENCE":
        return set()
    count = instructions[now].argval
    used = {one.argval for one in instructions if one.opname.startswith("LOAD_")}
    targets = instructions[now + 1 : now + 1 + count]
    return {i for i, one in enumerate(targets) if one.opname == "STORE_FAST" and one.argval not in used}


class _Computed(Replacements):
    """Shapes of all tensors, not of arguments alone, tell whether a user's line reads what is unknown of them."""

    def __init__(self) -> None:
        super().__init__()
        self._tells: threading.local = threading.local()

    @contextlib.contextmanager
    def told_to(self, tell: Tell) -> Iterator[None]:
        """Inside, `tell` is called."""
        before = getattr(self._tells, "innermost", None)
        self._tells.innermost = tell
        try:
            with self.active():
                yield
        finally:
            self._tells.innermost = before

    def _install(self) -> None:
        stock = tensors.Tensor.shape.fget

        def shape(tensor: tf.Tensor) -> tf.TensorShape:
            found: tf.TensorShape = stock(tensor)
            is_known = found._dims is not None and None not in found._dims
            if is_known or isinstance(found, _WatchedShape) or not self.are_active:
                return found
            tell: Tell = self._tells.innermost

            def tell_of_unknown(part: Part, file: str, line: int) -> None:
                if found._dims is None or (part is not None and found._dims[part] is None):
                    tell(part, file, line)

            return _WatchedShape(found, tell_of_unknown)

        self.put(tensors.Tensor, "shape", property(shape))


_computed = _Computed()


@contextlib.contextmanager
def watched(arguments: Sequence[tf.Tensor], tells: Sequence[Tell], of_computed: Tell | None) -> Iterator[None]:
    """Inside, say whenever a user's line reads a part of the static shape of an argument, or what is unknown of others.

    That ends where the body sets the shape anew.

    Args:
      arguments: tensors.
      tells: for each of these, what is called if its shape is read.
      of_computed: what is called if an unknown part of the shape of another tensor is read, if anything.
    """
    shapes = [_WatchedShape(argument.shape, tell) for argument, tell in zip(arguments, tells, strict=True)]
    for argument, shape in zip(arguments, shapes, strict=True):
        argument._shape_val = shape
    try:
        with contextlib.nullcontext() if of_computed is None else _computed.told_to(of_computed):
            yield
    finally:
        for shape in shapes:
            shape.end()


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
