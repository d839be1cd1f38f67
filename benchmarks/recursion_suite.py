"""The programs on numbers: static against dynamic, and plain CPython beside them."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.harness import Case, PlainRunner, SessionRunner, Variant, WrongResult
from benchmarks.workloads import Workload, with_deep_stack

tf1 = tf.compat.v1

SUITE = "recursion"
WORKERS_SUITE = "workers"
# What two workers are compared with one on, by program: calls enough to share.
WORKERS_SIZES = {"fib": (32,), "tak": (27, 18, 9)}


def make_case(workload: Workload, size: tuple[int, ...]) -> Case:
    """Makes the case `workload(size)`, whose arguments are fed.

    Raises:
        ValueError: `size` has not as many numbers as the program has arguments.
    """
    expected = _expected(workload, size)
    details: dict[str, Any] = {"result": expected}
    if workload.calls is not None:
        details["calls"] = workload.calls(*size)
    dynamic = [Variant("dynamic", lambda: session_runner(workload, tf1.ConfigProto()))]
    return Case(
        suite=SUITE,
        name=workload.label(size),
        variants=[
            Variant("static", lambda: session_runner(workload, tfr.session_config()), static=True),
            *(dynamic if workload.runs_dynamically else []),
            Variant("cpython", lambda: PlainRunner(lambda *_: with_deep_stack(lambda: workload.oracle(*size)))),
        ],
        inputs=[_input(workload, size)],
        check=_check(expected),
        ratios=[*([("dynamic", "static")] if workload.runs_dynamically else []), ("cpython", "static")],
        details=details,
    )


def make_workers_case(workload: Workload, size: tuple[int, ...]) -> Case:
    """Makes the case of `workload(size)` by two workers against one.

    Raises:
        ValueError: `size` has not as many numbers as the program has arguments.
    """
    return Case(
        suite=WORKERS_SUITE,
        name=workload.label(size),
        variants=[
            Variant("static-one-worker", lambda: session_runner(workload, tfr.session_config(workers=1)), static=True),
            Variant("static-two-workers", lambda: session_runner(workload, tfr.session_config(workers=2)), static=True),
        ],
        inputs=[_input(workload, size)],
        check=_check(_expected(workload, size)),
        ratios=[("static-one-worker", "static-two-workers")],
    )


def _input(workload: Workload, size: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(workload.dtype.as_numpy_dtype(value) for value in size)


def _expected(workload: Workload, size: tuple[int, ...]) -> float:
    if len(size) != workload.arity:
        raise ValueError(f"Size of '{workload.name}': expected {workload.arity} numbers, got {len(size)}")
    return workload.expected(size)


def _check(expected: float) -> Callable[[int, Any], None]:
    def check(_: int, got: Any) -> None:
        value = got if isinstance(got, (int, float)) else got[0]
        if not math.isclose(value, expected, rel_tol=1e-12):  # what TensorFlow's optimizers may round otherwise
            raise WrongResult(f"expected {expected}, got {value}")

    return check


def session_runner(workload: Workload, config: tf.compat.v1.ConfigProto) -> SessionRunner:
    """Returns a runner of `workload` whose arguments are fed, in a graph and session of its own."""
    with tf.Graph().as_default() as graph:
        arguments = [tf1.placeholder(workload.dtype, [], f"argument_{number}") for number in range(workload.arity)]
        result = workload.define()(*arguments)
    return SessionRunner(graph, [result], arguments, config)
