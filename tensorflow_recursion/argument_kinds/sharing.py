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
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

from tensorflow_recursion import notices
from tensorflow_recursion._tf import autograph_errors, function_types
from tensorflow_recursion._tf.function_types import CallType, Kept, OpenPart, TypeTable
from tensorflow_recursion._tf.read_shapes import Part
from tensorflow_recursion.errors import CallError

# How many traces a recursion may have that differ only in what Python reads of shapes: where one could serve in their
# place, and where it could not.
_MANY = 8
_VERY_MANY = 100
# How many there may be for eager calls.
_MANY_OUTSIDE = 16


class _Retrace(Exception):
    """Raised by the trace of an eager call that leaves open what the body turns out to read."""


class _EagerCall:
    """An eager call while it is made.

    Attributes:
      opens: what the trace that is made for it leaves open to serve others.
      is_kept: whether that trace serves fewer calls because something is kept.
      reads_open_part: whether the body, or a function that it calls, has read what that trace leaves open.
      warnings: what to tell the user if the call succeeds; None if he is told at once.
    """

    def __init__(self) -> None:
        self.opens: Collection[OpenPart] = ()
        self.is_kept = False
        self.reads_open_part = False
        self.warnings: list[str] | None = None


class _EagerCalls(threading.local):
    """The eager call of a function that this thread makes, if any."""

    now: _EagerCall | None = None


class ShapeReads:
    """What the body of one function reads of the static shapes of its arguments.

    Attributes:
      are_kept: whether there is a trace for each rank and size that is read.
      cannot_be_shared: whether a trace that shares what is read was seen to fail.
      opened_outside: what traces for eager calls leave open, or have left.
    """

    def __init__(self) -> None:
        self.are_kept = True
        self.cannot_be_shared = False
        self.opened_outside: set[OpenPart] = set()
        self._read: set[OpenPart] = set()
        self._eager_calls = _EagerCalls()
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
        _decisions.note(self)
        self.are_kept = False

    def keep(self) -> None:
        """Keep what is read from now on, as traces that share it fail."""
        _decisions.note(self)
        self.are_kept = self.cannot_be_shared = True

    def generalized(self, table: TypeTable, call_type: CallType) -> CallType:
        """The type of an eager call, or one that serves others of the table, too."""
        shared = table.generalized(call_type, Kept(ranks=True))
        found = table.generalized(call_type, Kept(ranks=True, parts=self.kept))
        is_kept = found != shared
        if is_kept and not self.cannot_be_shared and table.num_joined(call_type) >= _MANY_OUTSIDE:
            self.share()
            found, is_kept = shared, False
        opens = function_types.opened(call_type, found)
        self.opened_outside.update(opens)
        if (now := self._eager_calls.now) is not None:
            now.opens, now.is_kept, now.reads_open_part = opens, is_kept, False
        return found

    def eager_call(self, call: Callable[[], Any]) -> Any:
        """What a call from outside returns.

        It is traced anew in two cases: if its trace leaves open what the body turns out to read, so that this is kept
        from then on; and if its trace fails, which may be because something is shared, or because it is kept.
        """
        before, self._eager_calls.now = self._eager_calls.now, (now := _EagerCall())
        try:
            return self._retraced(now, call)
        except (TypeError, ValueError) as error:
            if not (now.opens or (now.is_kept and not self.cannot_be_shared)):
                raise
            return self._otherwise(now, error, call)
        finally:
            self._eager_calls.now = before

    def _retraced(self, now: _EagerCall, call: Callable[[], Any]) -> Any:
        """What a call returns. It is traced until the trace leaves nothing open that the body reads."""
        while True:
            try:
                return call()
            except _Retrace:
                self.note(now.opens)

    def _otherwise(self, now: _EagerCall, error: Exception, call: Callable[[], Any]) -> Any:
        """What a call returns after its trace has failed with `error`: the other way is tried.

        If shapes were shared, they are kept now, and the other way round. If that fails, too, nothing has been decided,
        and the error is that of the trace that kept them.
        """
        before = set(self._read), self.are_kept, self.cannot_be_shared
        was_shared = bool(now.opens)
        if was_shared:
            self.note(now.opens)
            self.keep()
        else:
            self.share()
        now.warnings = []
        try:
            result = self._retraced(now, call)
        except Exception:
            self._read, self.are_kept, self.cannot_be_shared = before
            if was_shared:
                raise
            raise error from error.__cause__
        for text in now.warnings:
            self._show(text)
        return result

    def note_open_read(self) -> bool:
        """Note that a function reads what the trace of an eager call leaves open; returns whether it is made anew."""
        if (now := self._eager_calls.now) is None or not (now.opens and self.are_kept):
            return False
        now.reads_open_part = True
        return True

    def checked(self, result: Any) -> Any:
        """The result of the trace of an eager call; raises _Retrace if that has to be made anew."""
        if (now := self._eager_calls.now) is not None and now.reads_open_part and self.are_kept:
            raise _Retrace
        return result

    def warn(self, function: str, tensor: str, part: Part, file: str, line: int) -> None:
        """Tell the user, once, that a line of `function` reads a part of the shape of a tensor, and gets None."""
        what, code, instead = _written(part)
        text = (
            f"Function '{function}' ({_place(file, line)}): {what} of {tensor} is read, as "
            f"{code}, and is None. Calls pass tensors of many shapes, which one trace serves, so that a test such as "
            f"`{code} == 2` is False in all of them. Write {instead}, which each call computes; or let all calls pass "
            "one shape, and state it: input_signature=[tf.TensorSpec([None, 3], dtype), ...]"
        )
        if (now := self._eager_calls.now) is not None and now.warnings is not None:
            now.warnings.append(text)
        else:
            self._show(text)

    def _show(self, text: str) -> None:
        if not self._is_told:
            self._is_told = True
            notices.show("open shape", text)


def _written(part: Part) -> tuple[str, str, str]:
    """What a part of a shape is called, the code that reads it from the static shape, and that which computes it."""
    if part is None:
        return "the rank", "x.shape.rank", "tf.rank(x)"
    return f"size {part}", f"x.shape[{part}]", f"tf.shape(x)[{part}]"


def _place(file: str, line: int) -> str:
    file, line = autograph_errors.users_line(file, line)
    return f"{os.path.basename(file)}, line {line}"


def unknown_read(tensor: str, part: Part, file: str, line: int) -> str:
    """What to say of a line that reads a part of the shape of a tensor, which is not known where that is passed."""
    what, code, instead = _written(part)
    return (
        f"reads {what} of {tensor} ({_place(file, line)}), as {code}, which is None where the caller does not know "
        f"it, so that a test such as `{code} == 2` is False; write {instead}"
    )


class _Decisions(threading.local):
    """What to go back to if this thread leaves `deciding` by an error: the former decisions, for each function."""

    before: dict[ShapeReads, tuple[bool, bool]] | None = None

    def note(self, reads: ShapeReads) -> None:
        if self.before is not None:
            self.before.setdefault(reads, (reads.are_kept, reads.cannot_be_shared))


_decisions = _Decisions()


@contextlib.contextmanager
def deciding() -> Iterator[None]:
    """Inside, looks show what to keep and what to share. If there is an error, nothing is decided."""
    if _decisions.before is not None:
        yield
        return
    _decisions.before = {}
    try:
        yield
    except Exception:
        for reads, (are_kept, cannot_be_shared) in _decisions.before.items():
            reads.are_kept, reads.cannot_be_shared = are_kept, cannot_be_shared
        raise
    finally:
        _decisions.before = None


class Sharing:
    """What the traces of one function leave open in one outermost graph."""

    def __init__(self, function: str, reads: ShapeReads) -> None:
        self._function = function
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

        Raises:
          CallError: if there are very many shapes, and each needs a trace.
        """
        shared = self._table.generalized(call_type, Kept(ranks=not is_inner))
        found = self._table.generalized(call_type, Kept(ranks=not is_inner, parts=self.reads.kept))
        if is_inner and found != shared:
            self._num_kept += 1
            if self._num_kept > self.reads.limit:
                self._refuse_many()
                self.reads.share()
                found = shared
        self._has_kept |= found != shared
        return self.add_exactly(found)

    def _refuse_many(self) -> None:
        if self.reads.cannot_be_shared:
            raise CallError(
                f"Function '{self._function}': its calls pass more than {_VERY_MANY} shapes in one recursion, and each "
                "makes a trace, because the body reads sizes in Python, as x.shape[0], and cannot be traced without "
                "them. Write tf.shape(x)[0], which each call computes; let a condition on it end the recursion. Or "
                "state a shape with None for the dimensions that differ: input_signature=[tf.TensorSpec([None], dtype)]"
            )

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
        if error is None or not self._has_kept or self.reads.cannot_be_shared:
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
