"""Whether one trace serves the calls of a recursion that pass tensors of other ranks, or each rank has a trace.

A recursion over ranks, `first(x[0])`, may end in two ways:

- By TensorFlow: `if tf.rank(x) == 0: return x`. Both paths are built, and one trace that leaves the rank open serves
  all calls. A trace for rank 0 would have `x[0]` of a scalar in it, which is an error.
- By Python: `if x.shape.rank == 0: return x`. Each rank needs a trace of its own, as each Python value does. In a trace
  that leaves the rank open, `x.shape.rank` is None, and the condition False.

Which one it is comes out when `inference` looks at the body. The traces SHARE ranks first. If such a trace reads a
rank that it leaves open, or fails, it is given up, and each rank KEEPs a trace. Where that fails, too, the ranks that
have no trace yet SHARE_AT_LAST, and the user is told if a rank is read.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import os
from collections.abc import Sequence

from tensorflow_recursion import notices
from tensorflow_recursion._tf import bodies


class _State(enum.Enum):
    """What traces do; the module's docstring says more."""

    SHARE = enum.auto()
    KEEP = enum.auto()
    SHARE_AT_LAST = enum.auto()


class Ranks:
    """What the traces do that a function makes for calls from its own recursion."""

    def __init__(self) -> None:
        self._state = _State.SHARE
        self._error: Exception | None = None  # of a trace in the state before

    @property
    def are_shared(self) -> bool:
        """Whether one trace serves calls of several ranks."""
        return self._state is not _State.KEEP

    @property
    def may_be_kept(self) -> bool:
        """Whether a trace that leaves a rank open is given up if it reads that."""
        return self._state is _State.SHARE

    def need_looks(self, opened_ranks: Sequence[int]) -> bool:
        """Whether a look shows more at a trace that leaves these ranks open, even if it is known what it returns."""
        return bool(opened_ranks) if self._state is _State.SHARE else self._state is _State.KEEP and self._error is None

    def reject(self, *, leaves_open: bool, reads: bool, error: Exception | None) -> bool:
        """Whether traces have to be made otherwise, after a look at one.

        Args:
          leaves_open: whether it leaves ranks open that calls know.
          reads: whether it, or a function that it calls, has read one of these.
          error: what that has raised, None if nothing.

        Raises:
          Exception: what a trace of one rank had raised, if traces that share ranks fail, too.
        """
        if self._state is _State.SHARE and leaves_open and (reads or error):
            self._state, self._error = _State.KEEP, error
            return True
        if self._state is _State.KEEP and error and self._error is None:
            self._state, self._error = _State.SHARE_AT_LAST, error
            return True
        if self._state is _State.SHARE_AT_LAST and error and self._error:
            raise self._error
        return False


def warn(function: str, parameter: str, file: str, line: int) -> None:
    """Tell the user that a line of the body of `function` reads the rank of an argument, and gets None."""
    file, line = bodies.users_line(file, line)
    notices.show(
        "open rank",
        f"Function '{function}' ({os.path.basename(file)}, line {line}): the rank of '{parameter}' is read, as "
        "x.shape.rank, and is None. Calls in the recursion pass tensors of several ranks, which one "
        "trace serves, so that a test such as `x.shape.rank == 2` is False in all of them. Write tf.rank(x), which "
        "each call computes, or let all calls pass one rank, and state it: "
        "input_signature=[tf.TensorSpec([None, None], dtype), ...]",
    )
