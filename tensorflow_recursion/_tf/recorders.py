"""The gradient tapes and forward accumulators that are active, so that they can be told to look away for a while.

What records in a thread is known to TensorFlow's C++ alone. So the functions by which tapes and accumulators come and
go are followed from here on; they do what they did.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import forwardprop, record, tape
from tensorflow.python.framework import ops

from tensorflow_recursion._tf.replacements import replace_for_good

# What records, what stops it, and what makes it go on.
_Recorder: TypeAlias = tuple[Any, Callable[[Any], None], Callable[[Any], None]]


class _Recorders(threading.local):
    """What records in this thread, in the order in which it began."""

    def __init__(self) -> None:
        self.active: list[_Recorder] = []
        self.watchers = 0  # of variables, as TensorFlow has one around each custom gradient
        # The graphs that were the default ones when accumulators first began.
        self.began_in: weakref.WeakKeyDictionary[Any, weakref.ref[tf.Graph]] = weakref.WeakKeyDictionary()


_recorders = _Recorders()


class _Probe:
    """What one accumulator follows, and nothing else does. It is no tensor, but TensorFlow's C++ asks for no more."""

    dtype = tf.float32

    def __init__(self, accumulator: tf.autodiff.ForwardAccumulator) -> None:
        self._id = ops.uid()
        pywrap_tfe.TFE_Py_ForwardAccumulatorWatch(accumulator._accumulator, self, self)


_probes: weakref.WeakKeyDictionary[tf.autodiff.ForwardAccumulator, _Probe] = weakref.WeakKeyDictionary()


def accumulators() -> list[tf.autodiff.ForwardAccumulator]:
    """The accumulators that are active, in the order in which they began."""
    return [recorder for recorder, _, _ in _recorders.active if isinstance(recorder, tf.autodiff.ForwardAccumulator)]


def busy_accumulator() -> tf.autodiff.ForwardAccumulator | None:
    """The active accumulator that computes a tangent now, if any; the first of several.

    TensorFlow lets neither it nor what began after it follow what it computes: with `outer` around `inner`, `outer`
    follows how `inner` computes the tangent of `y`, and `inner` does not follow how `outer` computes it.
    """
    return next((one for one in accumulators() if _is_busy(one)), None)


def following() -> list[tf.autodiff.ForwardAccumulator]:
    """The accumulators that follow what is computed now, in the order in which they began."""
    return list(itertools.takewhile(lambda one: not _is_busy(one), accumulators()))


def _is_busy(accumulator: tf.autodiff.ForwardAccumulator) -> bool:
    probe = _probes.get(accumulator)
    if probe is None:
        probe = _probes[accumulator] = _Probe(accumulator)
    return bool(pywrap_tfe.TFE_Py_TapeSetPossibleGradientTypes((probe,)) == 0)


def is_tape_active() -> bool:
    """Whether a tape records in this thread."""
    return len(accumulators()) < len(_recorders.active)


def num_watching() -> int:
    """How many tapes, accumulators and watchers of variables learn in this thread which variables are read."""
    return len(_recorders.active) + _recorders.watchers


def accumulators_in_tapes() -> list[tf.autodiff.ForwardAccumulator]:
    """The accumulators that follow what is computed now and began after all active tapes, in that order."""
    inner = itertools.takewhile(
        lambda recorder: isinstance(recorder, tf.autodiff.ForwardAccumulator),
        (recorder for recorder, _, _ in reversed(_recorders.active)),
    )
    known = following()
    return [one for one in reversed(list(inner)) if one in known]


def began_here(accumulator: tf.autodiff.ForwardAccumulator) -> bool:
    """Whether an accumulator began in the default graph, not in a graph around it."""
    began_in = _recorders.began_in.get(accumulator)
    return began_in is not None and began_in() is tf.compat.v1.get_default_graph()


def last_accumulator(of: Iterable[tf.Tensor]) -> tf.autodiff.ForwardAccumulator | None:
    """The accumulator that has begun last of those that follow what is computed, and know a tangent of a tensor."""
    tensors = list(of)
    known = (one for one in reversed(following()) if any(one.jvp(tensor) is not None for tensor in tensors))
    return next(known, None)


def record_same(tensor: tf.Tensor, source: tf.Tensor) -> None:
    """Let active tapes and accumulators know that `tensor` stands for `source`, of another graph, in its own graph."""
    if tensor is not source and record.could_possibly_record():
        record.record_operation("captured_value", [tensor], [source], lambda grad: [grad], lambda tangent: [tangent])


@contextlib.contextmanager
def suspended_from(accumulator: tf.autodiff.ForwardAccumulator) -> Iterator[None]:
    """Inside, `accumulator` and those that began after it record nothing; recorders that begin inside do."""
    inner = accumulators()[accumulators().index(accumulator) :]
    with _only([known for known in _recorders.active if known[0] not in inner]):
        yield


@contextlib.contextmanager
def suspended_since(accumulator: tf.autodiff.ForwardAccumulator) -> Iterator[None]:
    """Inside, only what began before `accumulator` records, and recorders that begin inside do."""
    with _only(list(itertools.takewhile(lambda known: known[0] is not accumulator, _recorders.active))):
        yield


@contextlib.contextmanager
def _only(recorders: Sequence[_Recorder]) -> Iterator[None]:
    """Inside, of the recorders that are active only these record, and those that begin inside."""
    active = list(_recorders.active)
    _stop(active)
    _resume(recorders)
    try:
        yield
    finally:
        _stop(recorders)
        _resume(active)


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Inside, only tapes and accumulators record that begin inside."""
    is_stopped = pywrap_tfe.TFE_Py_TapeSetIsStopped()
    with _only([]):
        if is_stopped:
            pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
        try:
            yield
        finally:
            if is_stopped:
                pywrap_tfe.TFE_Py_TapeSetStopOnThread()


def _stop(active: Sequence[_Recorder]) -> None:
    for recorder, stop, _ in reversed(active):
        stop(recorder)


def _resume(stopped: Sequence[_Recorder]) -> None:
    for recorder, _, resume in stopped:
        resume(recorder)


def _follow(owner: Any, begin: str, resume: str, end: str) -> None:
    """Note what the functions `begin` and `resume` of `owner` make record, until the function `end` stops it."""
    begins, resumes, ends = (getattr(owner, name) for name in (begin, resume, end))

    def noted(starts: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(starts)
        def start(*args: Any, **kwargs: Any) -> Any:
            made = starts(*args, **kwargs)
            recorder = args[0] if made is None else made
            _recorders.active.append((recorder, getattr(owner, end), getattr(owner, resume)))
            if isinstance(recorder, tf.autodiff.ForwardAccumulator):
                _recorders.began_in.setdefault(recorder, weakref.ref(tf.compat.v1.get_default_graph()))
            return made

        return start

    @functools.wraps(ends)
    def stop(recorder: Any) -> None:
        ends(recorder)
        _recorders.active = [known for known in _recorders.active if known[0] is not recorder]

    replace_for_good(owner, begin, noted(begins))
    if resume != begin:
        replace_for_good(owner, resume, noted(resumes))
    replace_for_good(owner, end, stop)


def _count_watchers() -> None:
    begin, end = record.VariableWatcher.__enter__, record.VariableWatcher.__exit__

    @functools.wraps(begin)
    def enter(watcher: Any) -> Any:
        _recorders.watchers += 1
        return begin(watcher)

    @functools.wraps(end)
    def leave(watcher: Any, *error: Any) -> None:
        _recorders.watchers -= 1
        end(watcher, *error)

    replace_for_good(record.VariableWatcher, "__enter__", enter)
    replace_for_good(record.VariableWatcher, "__exit__", leave)


_count_watchers()
_follow(tape, "push_new_tape", "push_tape", "pop_tape")
_follow(forwardprop.ForwardAccumulator, "_push_accumulator", "_push_accumulator", "_pop_accumulator")
