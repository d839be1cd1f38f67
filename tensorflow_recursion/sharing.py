"""Whether one trace serves calls that pass tensors of several shapes, or Python needs to know these shapes.

A recursion over slices, `total(x[1:])`, or over ranks, `first(x[0])`, may end in two ways:

- By TensorFlow: `if tf.size(x) == 0:`, `if tf.rank(x) == 0:`. Both paths are built, and one trace that leaves the size
  or the rank open serves all calls. A trace for rank 0 would have `x[0]` of a scalar in it, which is an error.
- By Python: `if x.shape[0] == 1:`, `if x.shape.rank == 0:`. Each size or rank needs a trace of its own, as each Python
  value does. In a trace that leaves it open, it is None, and the condition False.

So what the user's Python has read of a shape is never left open, in calls from outside either. What it reads comes out
when `inference` looks at a body. A trace that left a part open before that was known is given up. So is one that fails:

1. Traces SHARE what nobody has read.
2. They KEEP_RANKS if a trace that leaves a rank open fails, for example in an operator that must know it.
3. They KEEP_SIZES, too, if a trace that leaves a size open fails.
4. If a trace for one shape fails, too, the shapes that have no trace yet SHARE_AT_LAST, whatever has been read, and the
   user is told what is read.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import os
from collections.abc import Collection

from tensorflow_recursion import notices
from tensorflow_recursion._tf import bodies
from tensorflow_recursion._tf.function_types import CallType, Kept, OpenPart, TypeTable
from tensorflow_recursion._tf.read_shapes import Part


class _State(enum.Enum):
    """What traces do; the module's docstring says more."""

    SHARE = enum.auto()
    KEEP_RANKS = enum.auto()
    KEEP_SIZES = enum.auto()
    SHARE_AT_LAST = enum.auto()


class Sharing:
    """What the traces do that a function makes for calls from its own recursion."""

    def __init__(self, read: Collection[OpenPart]) -> None:
        """Starts with nothing kept but what the body has `read`, which grows."""
        self._read = read
        self._state = _State.SHARE
        self._error: Exception | None = None  # of a trace for one shape
        self._has_kept = False  # whether that has made traces others than they were without

    @property
    def is_final(self) -> bool:
        """Whether traces share shapes, whatever is read."""
        return self._state is _State.SHARE_AT_LAST

    def add_to(self, table: TypeTable, call_type: CallType) -> CallType:
        """Enter the type of a call from the recursion, or one that serves others, too."""
        kept = Kept(
            ranks=self._state in (_State.KEEP_RANKS, _State.KEEP_SIZES),
            shapes=self._state is _State.KEEP_SIZES,
            parts=() if self.is_final else self._read,
        )
        self._has_kept |= table.generalized(call_type, kept) != table.generalized(call_type, Kept())
        return table.add(call_type, kept)

    def share_at_last(self) -> bool:
        """Keep no more shapes, of which there are many; returns whether any were kept."""
        if self._has_kept:
            self._state = _State.SHARE_AT_LAST
        return self._has_kept

    def needs_looks(self, opened: Collection[OpenPart]) -> bool:
        """Whether a look shows more at a trace that leaves this open, even if it is known what it returns."""
        return not self.is_final and (bool(opened) or self._has_kept)

    def reject(self, *, opened: Collection[OpenPart], is_noted: bool, error: Exception | None) -> bool:
        """Whether traces have to be made otherwise, after a look at one that failed, or that read what it leaves open.

        Args:
          opened: what it leaves open that calls know.
          is_noted: whether it has itself read a part of that, which will not be left open again.
          error: what it has raised; None if it, or a function that it calls, has read what it leaves open.

        Raises:
          Exception: what a trace for one shape had raised, if traces that share shapes fail, too.
        """
        if self.is_final:
            if error and self._error:
                raise self._error
            return False
        if opened:
            opens_ranks = any(part is None for _, part in opened)
            if not is_noted:
                is_first = self._state is _State.SHARE
                self._state = _State.KEEP_RANKS if opens_ranks and is_first else _State.KEEP_SIZES
            return True
        if error is None or not self.share_at_last():
            return False
        self._error = error
        return True


def warn(function: str, told: set[str], parameter: str, part: Part, file: str, line: int) -> None:
    """Tell the user, unless that was `told`, that a line of `function` reads a part of a shape, and gets None."""
    if "open shape" in told:
        return
    told.add("open shape")
    file, line = bodies.users_line(file, line)
    what, code, operator = "a size", "x.shape[0]", "tf.shape(x)[0]"
    if part is None:
        what, code, operator = "the rank", "x.shape.rank", "tf.rank(x)"
    notices.show(
        "open shape",
        f"Function '{function}' ({os.path.basename(file)}, line {line}): {what} of '{parameter}' is read, as "
        f"{code}, and is None. Calls in the recursion pass tensors of several shapes, which one "
        f"trace serves, so that a test such as `{code} == 2` is False in all of them. Write {operator}, which "
        "each call computes, or let all calls pass one shape, and state it: "
        "input_signature=[tf.TensorSpec([None, 3], dtype), ...]",
    )
