"""Whether one trace serves calls that pass tensors of several shapes, or Python needs to know these shapes.

A recursion over slices, `total(x[1:])`, or over ranks, `first(x[0])`, may end in two ways:

- By TensorFlow: `if tf.size(x) == 0:`, `if tf.rank(x) == 0:`. Both paths are built, and one trace that leaves the size
  or the rank open serves all calls. A trace for rank 0 would have `x[0]` of a scalar in it, which is an error.
- By Python: `if x.shape[0] == 1:`, `if x.shape.rank == 0:`. Each size or rank needs a trace of its own, as each Python
  value does. In a trace that leaves it open, it is None, and the condition False.

Which one it is comes out when `inference` looks at a body:

1. Traces share what nobody has read. A trace that leaves open what Python then reads is given up. So is one that fails,
   for example in an operator that has to know the rank: what it leaves open counts as read from then on.
2. What is read is kept: there is a trace for each size or rank, also of calls from outside of the recursion.
3. If a trace for one size fails, or there are many, all that is read is shared in spite of that, from then on and
   wherever the function is called, and the user is told what is read.
4. If that fails, too, as it does where Python ends the recursion, very many traces are made.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

from tensorflow_recursion import notices
from tensorflow_recursion._tf import bodies, function_types
from tensorflow_recursion._tf.function_types import CallType, Kept, OpenPart, TypeTable
from tensorflow_recursion._tf.read_shapes import Part

# How many traces a recursion may have that differ only in what Python reads of shapes: where one could serve in their
# place, and where it could not.
_MANY = 8
_VERY_MANY = 50
# How many there may be for calls from outside.
_MANY_OUTSIDE = 16


class _Choice(enum.Enum):
    """What was done for a call from outside of the recursion."""

    KEEP = enum.auto()
    SHARE = enum.auto()


class Reads:
    """What the body of one function reads of the static shapes of its arguments.

    Attributes:
      are_kept: whether there is a trace for each rank and size that is read.
      cannot_be_shared: whether a trace that shares what is read was seen to fail.
      opened_outside: what is read and yet left open to serve calls from outside.
    """

    def __init__(self) -> None:
        self.are_kept = True
        self.cannot_be_shared = False
        self.opened_outside: set[OpenPart] = set()
        self._read: set[OpenPart] = set()
        self._last_choice: _Choice | None = None  # for a call from outside, since such a call began
        self._is_told = False

    @property
    def kept(self) -> Collection[OpenPart]:
        """What traces do not leave open."""
        return tuple(self._read) if self.are_kept else ()

    @property
    def limit(self) -> int:
        """How many traces a recursion may have that differ in what is kept."""
        return _VERY_MANY if self.cannot_be_shared else _MANY

    def note(self, parts: Collection[OpenPart]) -> None:
        """Keep these from now on."""
        self._read.update(parts)

    def share(self) -> None:
        """Keep nothing from now on."""
        self.are_kept = False

    def keep(self) -> None:
        """Keep what is read from now on, as traces that share it fail."""
        self.are_kept = self.cannot_be_shared = True
        self.opened_outside.clear()

    def generalized_outside(self, table: TypeTable, call_type: CallType) -> CallType:
        """The type of a call from outside of the recursion, or one that serves others of the table, too."""
        shared = table.generalized(call_type, Kept(ranks=True))
        kept = table.generalized(call_type, Kept(ranks=True, parts=self.kept))
        if kept == shared:
            return shared
        if len(table) < _MANY_OUTSIDE or self.cannot_be_shared:
            self._last_choice = _Choice.KEEP
            return kept
        self._last_choice = _Choice.SHARE
        self.share()
        self.opened_outside.update(self._read.intersection(function_types.opened(call_type, shared)))
        return shared

    def or_otherwise(self, call: Callable[[], Any]) -> Any:
        """What a call from outside returns. If it cannot be traced, it is called again, and what was kept is shared.

        Or, if that was shared, it is kept.
        """
        self._last_choice = None
        try:
            return call()
        except (TypeError, ValueError) as error:
            choice = self._last_choice
            if choice is None:
                raise
            self.share() if choice is _Choice.KEEP else self.keep()
            try:
                return call()
            except Exception:
                self.keep()
                raise error from error.__cause__

    @contextlib.contextmanager
    def decided(self) -> Iterator[None]:
        """Inside, it is found out what to keep. If there is an error, sharing was no help."""
        try:
            yield
        except Exception:
            if not self.are_kept:
                self.keep()
            raise

    def warn(self, function: str, tensor: str, part: Part, file: str, line: int) -> None:
        """Tell the user, once, that a line of `function` reads a part of the shape of a tensor, and gets None."""
        if self._is_told:
            return
        self._is_told = True
        file, line = bodies.users_line(file, line)
        what, code, instead = ("the rank", "x.shape.rank", "tf.rank(x)")
        if part is not None:
            what, code, instead = (f"size {part}", f"x.shape[{part}]", f"tf.shape(x)[{part}]")
        notices.show(
            "open shape",
            f"Function '{function}' ({os.path.basename(file)}, line {line}): {what} of {tensor} is read, as "
            f"{code}, and is None. Calls pass tensors of many shapes, which one trace serves, so that a test such as "
            f"`{code} == 2` is False in all of them. Write {instead}, which each call computes; or let all calls pass "
            "one shape, and state it: input_signature=[tf.TensorSpec([None, 3], dtype), ...]",
        )


class Sharing:
    """What the traces of one function leave open in one outermost graph."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self._table = TypeTable()
        self._num_kept = 0  # traces for calls from the recursion that are other ones because something is kept
        self._has_kept = False  # whether there are such traces
        self._error: Exception | None = None  # of a trace for one shape

    def find(self, call_type: CallType) -> CallType | None:
        """The closest type that serves such a call, or None."""
        return self._table.find(call_type)

    def remove(self, call_type: CallType) -> None:
        """Forget a type."""
        self._table.remove(call_type)

    def add(self, call_type: CallType, *, is_inner: bool) -> CallType:
        """Enter the type of a call, or one that serves others, too. `is_inner` says whether it is from the recursion.

        Calls from outside keep ranks: much of TensorFlow has to know them.
        """
        shared = self._table.generalized(call_type, Kept(ranks=not is_inner))
        if not is_inner:
            found = self.reads.generalized_outside(self._table, call_type)
        elif (found := self._table.generalized(call_type, Kept(parts=self.reads.kept))) != shared:
            self._num_kept += 1
            if self._num_kept > self.reads.limit:
                self.reads.share()
                found = shared
        self._has_kept |= found != shared
        return self.add_exactly(found)

    def add_exactly(self, call_type: CallType) -> CallType:
        """Enter a type."""
        self._table.add(call_type)
        return call_type

    def may_change(self, opened: Collection[OpenPart]) -> bool:
        """Whether a look at a trace that leaves this open may show that traces have to be made otherwise."""
        if self.reads.are_kept:
            return bool(opened) or self._has_kept
        return bool(opened) and not self.reads.cannot_be_shared

    def reject(self, opened: Collection[OpenPart], *, is_read: bool, error: Exception | None) -> bool:
        """Whether traces have to be made otherwise, after a look at one.

        Args:
          opened: what it leaves open that calls know.
          is_read: whether it, or a function that it calls, has read a part of that.
          error: what that has raised, None if nothing.

        Raises:
          Exception: what a trace for one shape had raised, if traces that share shapes fail, too.
        """
        if opened and error and not self.reads.cannot_be_shared:
            self.reads.keep()
        elif not self.reads.are_kept:
            if error and self._error:
                raise self._error
            return False
        if opened and (is_read or error):
            if not set(opened).intersection(self.reads.kept):  # then it was not read by the function itself
                self.reads.note([one for one in opened if one[1] is None] or opened)
            return True
        if error is None or not self._has_kept:
            return False
        self.reads.share()
        self._error = error
        return True


class Shared(Protocol):
    """A trace that may be given up, as `give_up_one` sees it."""

    opens: Collection[OpenPart]

    def give_up(self, error: Exception | None) -> bool: ...


def give_up_one(functions: Sequence[Shared], error: Exception | None) -> bool:
    """Give up one of these traces, if one of them was made in a way that turned out to be wrong; returns whether so.

    Those that leave something open come first: it is tried to keep that before nothing is kept.
    """
    return any(function.give_up(error) for function in sorted(functions, key=lambda function: not function.opens))
