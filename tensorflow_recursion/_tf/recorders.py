"""The gradient tapes and forward accumulators that are active, so that they can be told to look away for a while.

What records in a thread is known to TensorFlow's C++ alone. So the functions by which tapes and accumulators come and
go are followed from here on; they do what they did.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import forwardprop, tape


class _Recorders(threading.local):
    """What records in this thread, in the order in which it began: each with what stops it and what makes it go on."""

    def __init__(self) -> None:
        self.active: list[tuple[Any, Callable[[Any], None], Callable[[Any], None]]] = []


_recorders = _Recorders()


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Inside, only tapes and accumulators record that begin inside."""
    active = list(_recorders.active)
    is_stopped = pywrap_tfe.TFE_Py_TapeSetIsStopped()
    for recorder, stop, _ in reversed(active):
        stop(recorder)
    if is_stopped:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if is_stopped:
            pywrap_tfe.TFE_Py_TapeSetStopOnThread()
        for recorder, _, resume in active:
            resume(recorder)


def _follow(owner: Any, begin: str, resume: str, end: str) -> None:
    """Note what the functions `begin` and `resume` of `owner` make record, until the function `end` stops it."""
    begins, resumes, ends = (getattr(owner, name) for name in (begin, resume, end))

    def noted(starts: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(starts)
        def start(*args: Any, **kwargs: Any) -> Any:
            made = starts(*args, **kwargs)
            _recorders.active.append((args[0] if made is None else made, getattr(owner, end), getattr(owner, resume)))
            return made

        return start

    @functools.wraps(ends)
    def stop(recorder: Any) -> None:
        ends(recorder)
        _recorders.active = [known for known in _recorders.active if known[0] is not recorder]

    setattr(owner, begin, noted(begins))
    if resume != begin:
        setattr(owner, resume, noted(resumes))
    setattr(owner, end, stop)


_follow(tape, "push_new_tape", "push_tape", "pop_tape")
_follow(forwardprop.ForwardAccumulator, "_push_accumulator", "_push_accumulator", "_pop_accumulator")
