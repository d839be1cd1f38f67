"""The programs on numbers: static against dynamic, and plain CPython beside them."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.harness import Case, PlainRunner, SessionRunner, Variant, WrongResult
from benchmarks.workloads import Workload, with_deep_stack

tf1 = tf.compat.v1


def make_case(workload: Workload, size: tuple[int, ...]) -> Case:
    """Makes the case `workload(size)`, whose arguments are fed.

    Raises:
        ValueError: `size` has not as many numbers as the program has arguments.
    """
    if len(size) != workload.arity:
        raise ValueError(f"Size of '{workload.name}': expected {workload.arity} numbers, got {len(size)}")
    expected = workload.expected(size)

    def check(_: int, got: Any) -> None:
        value = got if isinstance(got, (int, float)) else got[0]
        if not math.isclose(value, expected, rel_tol=1e-12):  # what TensorFlow's optimizers may round otherwise
            raise WrongResult(f"expected {expected}, got {value}")

    details: dict[str, Any] = {"result": expected}
    if workload.calls is not None:
        details["calls"] = workload.calls(*size)
    dynamic = [Variant("dynamic", lambda: session_runner(workload, tf1.ConfigProto()))]
    return Case(
        suite="recursion",
        name=workload.label(size),
        variants=[
            Variant("static", lambda: session_runner(workload, tfr.session_config()), static=True),
            *(dynamic if workload.runs_dynamically else []),
            Variant("cpython", lambda: PlainRunner(lambda *_: with_deep_stack(lambda: workload.oracle(*size)))),
        ],
        inputs=[tuple(workload.dtype.as_numpy_dtype(value) for value in size)],
        check=check,
        ratios=[*([("dynamic", "static")] if workload.runs_dynamically else []), ("cpython", "static")],
        details=details,
    )


def session_runner(workload: Workload, config: tf.compat.v1.ConfigProto) -> SessionRunner:
    """Returns a runner of `workload` whose arguments are fed, in a graph and session of its own."""
    with tf.Graph().as_default() as graph:
        arguments = [tf1.placeholder(workload.dtype, [], f"argument_{number}") for number in range(workload.arity)]
        result = workload.define()(*arguments)
    return SessionRunner(graph, [result], arguments, config)
