"""Which parts of the static shapes of tensors the user's Python reads: ranks and sizes."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dis
import itertools
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
from tensorflow_recursion._tf.typed import not_converted

# A part of a shape: the size along an axis, or with None the rank.
Part: TypeAlias = int | None

# Called with a part, and the file and line of Python that read it.
Tell: TypeAlias = Callable[[Part, str, int], None]

_AUTOGRAPH = os.path.join(os.path.dirname(autograph.__file__), "")

# The libraries whose own code reads shapes.
_TENSORFLOW, _OURS = (os.path.dirname(os.path.abspath(file)) for file in (tf.__file__, notices.__file__))
_KERAS = [os.path.join(os.path.dirname(_TENSORFLOW), name) for name in ("keras", "tf_keras")]
_READERS = tuple(os.path.join(folder, "") for folder in (_TENSORFLOW, _OURS, *_KERAS))


class _WatchedShape(tf.TensorShape):  # type: ignore[misc]  # it has no types
    """A shape that tells which parts of it a user's line reads. An unknown size is None, and `None == 1` is False."""

    __slots__ = ("_tell",)

    def __init__(self, shape: tf.TensorShape, tell: Tell) -> None:
        super().__init__(shape)
        self._tell: Tell | None = tell

    def end(self) -> None:
        """Tell no more."""
        self._tell = None

    def tell(self, parts: Callable[[types.FrameType], Iterable[Part]] | None = None) -> None:
        """Tell which parts a user's line reads: all, or what `parts` says of it. Libraries' lines do not count."""
        if self._tell is None or notices.is_of_library((reader := _reader()).f_code.co_filename):
            return
        for part in self._all() if parts is None else parts(reader):
            self._tell(part, reader.f_code.co_filename, reader.f_lineno)

    def _all(self) -> list[Part]:
        return [None, *range(len(self._dims or ()))]

    @property
    def rank(self) -> int | None:
        self.tell(_rank)
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        self.tell(_rank)
        return None if self._dims is None else len(self._dims)

    @property
    def dims(self) -> Any:
        self.tell()
        return super().dims

    def __len__(self) -> int:
        self.tell(_rank)
        return super().__len__()  # type: ignore[no-any-return]

    def _part(self, axis: int) -> Part:
        """The size along an axis, which may be counted from the end; the rank if there is no such axis."""
        axes = range(len(self._dims or ()))
        return axes[axis] if -len(axes) <= axis < len(axes) else None

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            self.tell(lambda _: [None, *range(len(self._dims or ()))[key]])
        else:
            self.tell(lambda reader: [] if _is_unused(reader)(0) else [self._part(operator.index(key))])
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        self.tell(lambda reader: itertools.filterfalse(_is_unused(reader), self._all()))
        return super().__iter__()  # type: ignore[no-any-return]

    @not_converted
    def as_list(self) -> Any:
        self.tell(lambda reader: self._all() if (axis := _axis_taken(reader)) is None else [self._part(axis)])
        return super().as_list()

    @not_converted
    def num_elements(self) -> Any:
        self.tell()
        return super().num_elements()

    @not_converted
    def is_fully_defined(self) -> Any:
        self.tell()
        return super().is_fully_defined()

    @not_converted
    def is_compatible_with(self, other: Any) -> Any:
        self.tell()
        return super().is_compatible_with(other)

    @not_converted
    def merge_with(self, other: Any) -> Any:
        self.tell()
        return super().merge_with(other)

    @not_converted
    def concatenate(self, other: Any) -> Any:
        self.tell()
        return super().concatenate(other)

    def __add__(self, other: Any) -> Any:
        self.tell()
        return super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        self.tell()
        return super().__radd__(other)

    def __reduce__(self) -> Any:
        self.tell()
        return super().__reduce__()

    def __hash__(self) -> int:
        self.tell()
        return super().__hash__()  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        self.tell()
        return super().__eq__(other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        self.tell()
        return super().__ne__(other)  # type: ignore[no-any-return]


def _rank(_: types.FrameType) -> Iterable[Part]:
    return [None]


def _reader() -> types.FrameType:
    """Who reads a shape. AutoGraph calls builtins in place of the user, compares for him, and goes over loops.

    TensorFlow and Keras read for themselves; other libraries, such as NumPy, do what the user wants.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    if frame.f_code.co_filename == api.__file__ or frame.f_code.co_name.startswith("_py_"):
        while frame.f_code.co_filename.startswith(_AUTOGRAPH) and frame.f_back is not None:
            frame = frame.f_back
    while frame.f_back is not None and _reads_for_others(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _reads_for_others(file: str) -> bool:
    return notices.is_of_library(file) and not file.startswith(_READERS)


def _from_now(frame: types.FrameType) -> list[dis.Instruction]:
    """The instruction that a frame is in, and those behind it."""
    instructions = list(dis.get_instructions(frame.f_code))
    now = [i for i, one in enumerate(instructions) if one.offset <= frame.f_lasti]
    return instructions[now[-1] :] if now else []


def _is_unused(frame: types.FrameType) -> Callable[[Part], bool]:
    """Returns what tells for each value that a line is about to store whether the function never reads it.

    For example, if no line reads `rows`, that is value 0 of `rows, columns = x.shape`, and the one value of
    `rows = x.shape[0]`.
    """
    instructions = _from_now(frame)
    if not instructions or (now := instructions[0]).opname not in ("UNPACK_SEQUENCE", "BINARY_SUBSCR"):
        return lambda _: False
    count = now.argval if now.opname == "UNPACK_SEQUENCE" else 1
    targets = instructions[1 : 1 + count]
    others = [one.argval for one in dis.get_instructions(frame.f_code) if one.opname != "STORE_FAST"]
    # One instruction may load several names.
    used = {name for value in others for name in (value if isinstance(value, tuple) else (value,))}
    unused = {i for i, one in enumerate(targets) if one.opname == "STORE_FAST" and one.argval not in used}
    return unused.__contains__


def _axis_taken(frame: types.FrameType) -> int | None:
    """Which part of what a call returns is taken right away, -1 in `x.shape.as_list()[-1]`; None if all are."""
    taken = _from_now(frame)[1:3]
    if [one.opname for one in taken] != ["LOAD_CONST", "BINARY_SUBSCR"] or not isinstance(taken[0].argval, int):
        return None
    return taken[0].argval


class _Computed(Replacements):
    """Lets the shapes of all tensors, not of arguments alone, tell when a user's line reads an unknown part of them."""

    def __init__(self) -> None:
        super().__init__()
        self._tells: threading.local = threading.local()

    @contextlib.contextmanager
    def told_to(self, tell: Tell) -> Iterator[None]:
        """Inside, `tell` is called with each unknown part that a user's line reads."""
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
            shape.tell(_rank)
        found: int = stock(tensor)
        return found

    replace_for_good(ops.SymbolicTensor, "ndim", property(ndim))
