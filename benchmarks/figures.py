"""The figures the project promises, each measured and judged against its limit: printed, never asserted."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.harness import Case, CaseResult, NotStatic, Progress, SessionRunner, Variant, WrongResult, run_case
from benchmarks.nets.suite import BY_DEPTH, WORKERS_LABEL
from benchmarks.nets.weights import NETS, TREERNNS
from benchmarks.recursion_suite import SUITE as RECURSION_SUITE
from benchmarks.recursion_suite import WORKERS_SUITE
from benchmarks.workloads import SUM

tf1 = tf.compat.v1

STATIC_OVER_DYNAMIC = 200.0
STATIC_OVER_CPYTHON = {"fib": 5.0, "ack": 5.0, "tak": 5.0, "primes": 5.0, "simpson": 1.0, "tictactoe": 1.0}
FIB_NANOSECONDS_A_CALL = 10.0
FORWARD_OVER_ITERATION = 3.0  # d = 50, a tree at a time, five classes, against the loop with everything inside
TRAINING_OVER_ITERATION = {50: 4.0, 300: 2.5}  # by d, a tree at a time
BATCHES_OVER_ITERATION = 3.0  # d = 50
# How many times as fast the TreeRNN is to be, by mode, d and batch size.
TREERNN_OVER = {
    "pytorch": {
        ("training", 50, 1): 4.0,
        ("training", 50, 25): 4.5,
        ("training", 300, 1): 2.5,
        ("training", 300, 25): 3.5,
        ("inference", 50, 1): 1.25,
        ("inference", 50, 25): 3.0,
        ("inference", 300, 1): 1.5,
        ("inference", 300, 25): 3.0,
    },
    "levels": {
        ("training", 50, 1): 3.0,
        ("training", 50, 25): 1.1,
        ("training", 300, 1): 1.8,
        ("training", 300, 25): 0.9,
        ("inference", 50, 1): 3.0,
        ("inference", 50, 25): 1.3,
        ("inference", 300, 1): 2.3,
        ("inference", 300, 25): 1.2,
    },
}
LSTM_TRAINING_OVER_PYTORCH = 3.0  # d = 50, both TreeLSTMs
# Limits by suite: the TreeRNN in training in batches of 25, and programs on numbers.
TWO_WORKERS_OVER_ONE = {"treernn": 1.5, WORKERS_SUITE: 1.6}
SUM_SECONDS = 0.02
SUM_BYTES_PER_FRAME = 64.0
CALL_OVER_ADD = 2.0
# Rounds are short here, and the question is about percents.
SWITCH_ROUNDS_FACTOR = 3
# Two measurements of the very same thing differ by a few percent, so the figure allows at least this much. The variant
# "off", which is measured twice, says by how much they differ today.
SWITCH_NOISE_FLOOR = 0.03

_PROBE_TIMEOUT_SECONDS = 600
_OFF = ("off", "off-again")


@dataclasses.dataclass(frozen=True)
class Figure:
    """One promise: what was measured, its value, and the limit it has to keep; without a limit it is only reported."""

    name: str
    value: float
    limit: float | None
    unit: str
    at_least: bool = False  # else: at most

    @property
    def kept(self) -> bool | None:
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def margin(self) -> float:
        """By which factor the limit is kept: 1 or more if it is kept, less if it is missed; 1 without a limit."""
        if self.limit is None:
            return 1.0
        return self.value / self.limit if self.at_least else self.limit / self.value

    def wanted(self) -> str:
        if self.limit is None:
            return "-"
        return f"{'at least' if self.at_least else 'at most'} {self.limit:.4g}{self.unit}"

    def line(self) -> str:
        """Returns the figure's one greppable line."""
        if self.limit is None:
            return f"FIGURE report {self.name}: {self.value:.4g}{self.unit}"
        verdict = "pass" if self.kept else "FAIL"
        return f"FIGURE {verdict} {self.name}: {self.value:.4g}{self.unit}, wanted {self.wanted()}"

    def as_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "kept": self.kept}


def from_cases(results: Sequence[CaseResult]) -> list[Figure]:
    """Judges the cases of the other suites that a promise is about."""
    figures = []
    for result in results:
        if result.case.suite == RECURSION_SUITE:
            figures += _recursion_figures(result)
        elif result.case.suite == WORKERS_SUITE:
            figures.append(_workers_figure(result, result.case.name))
        elif result.case.suite in NETS and result.case.details["label"] in ("", WORKERS_LABEL):
            figures += _net_figures(result)
    return figures


def _recursion_figures(result: CaseResult) -> list[Figure]:
    name = result.case.name
    limits = {"cpython": STATIC_OVER_CPYTHON[name.partition("(")[0]], "dynamic": STATIC_OVER_DYNAMIC}
    figures = [
        Figure(f"{name} static over {other}", result.ratio(other, "static"), limit, " times faster", at_least=True)
        for other, limit in limits.items()
        if other in result.variants
    ]
    if "calls" in result.case.details:
        nanoseconds = 1e9 * result.variants["static"].median / result.case.details["calls"]
        figures.append(Figure(f"{name} static, time a call", nanoseconds, FIB_NANOSECONDS_A_CALL, " ns"))
    return figures


def _net_figures(result: CaseResult) -> list[Figure]:
    limits = _treernn_limits(result) if result.case.suite in TREERNNS else _lstm_limits(result)
    figures = [
        Figure(f"{result.case.name} trees/s over {name}", result.ratio(name, "static"), limit, " times", at_least=True)
        for name, limit in limits.items()
        if name in result.variants
    ]
    if "static-one-worker" in result.variants:
        figures.append(_workers_figure(result, f"{result.case.name} trees/s"))
    return figures


def _workers_figure(result: CaseResult, what: str) -> Figure:
    ratio = result.ratio("static-one-worker", "static-two-workers")
    limit = TWO_WORKERS_OVER_ONE[result.case.suite]
    return Figure(f"{what} of two workers over one", ratio, limit, " times", at_least=True)


def _treernn_limits(result: CaseResult) -> dict[str, float | None]:
    """The limits by method; a figure without one is only reported."""
    details = result.case.details
    key = details["mode"], details["dim"], details["batch"]
    names = (BY_DEPTH, "iteration", "iteration-in-loop", "levels", "pytorch", "pytorch-levels")
    limits: dict[str, float | None] = dict.fromkeys(names)
    for name, by_case in TREERNN_OVER.items():
        limits[name] = by_case.get(key) if result.case.suite == "treernn" else None
    if key == ("inference", 50, 1):
        limits["iteration-all-in-loop"] = FORWARD_OVER_ITERATION
    elif details["mode"] == "training" and details["batch"] == 1:
        limits["iteration-in-loop"] = TRAINING_OVER_ITERATION.get(details["dim"])
    elif details["mode"] == "training" and details["dim"] == 50:
        limits["iteration"] = BATCHES_OVER_ITERATION
    return limits


def _lstm_limits(result: CaseResult) -> dict[str, float | None]:
    details = result.case.details
    limit = LSTM_TRAINING_OVER_PYTORCH if (details["mode"], details["dim"]) == ("training", 50) else None
    return {"pytorch": limit, "pytorch-levels": None}


# --- Deep recursion: time and memory of frames, in a process of its own ------------------------------------------


def measure_sum(n: int, repeats: int) -> tuple[list[Figure], dict[str, Any]]:
    """Runs sum(n) in a fresh process; returns its figures and what the process reported."""
    command = [sys.executable, "-m", "benchmarks.sum_probe", str(n), str(repeats)]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"sum({n}) in its own process ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    report = json.loads(done.stdout.strip().splitlines()[-1])
    if report["value"] != SUM.expected((n,)):
        raise WrongResult(f"sum({n}): expected {SUM.expected((n,))}, got {report['value']}")
    if not report["static"]:
        raise NotStatic(f"sum({n}): the session ran the calls dynamically")
    name = SUM.label((n,))
    return [
        Figure(f"{name} non-tail, time", report["median_seconds"], SUM_SECONDS, " s"),
        Figure(f"{name} non-tail, resident memory", report["bytes_per_frame"], SUM_BYTES_PER_FRAME, " bytes/frame"),
    ], report


# --- A call that returns at once ----------------------------------------------------------------------------------


class _SessionRunRunner(SessionRunner):
    """A `SessionRunner` that goes through `Session.run`: what the figure about its latency is about."""

    def __init__(self, graph: tf.Graph, fetch: tf.Tensor, feed: tf.Tensor, config: tf.compat.v1.ConfigProto) -> None:
        super().__init__(graph, [fetch], [feed], config)
        self._fetch, self._feed = fetch, feed

    def __call__(self, *values: Any) -> list[Any]:
        return [self._session.run(self._fetch, {self._feed: values[0]})]


def latency_case() -> Case:
    """Makes the case: `sess.run` of sum(0) against `sess.run` of x + 1, and of a static call against a dynamic one."""

    def call(config: tf.compat.v1.ConfigProto) -> SessionRunner:
        with tf.Graph().as_default() as graph:
            x = tf1.placeholder(tf.int64, [])
            return _SessionRunRunner(graph, SUM.define()(x), x, config)

    def add() -> SessionRunner:
        with tf.Graph().as_default() as graph:
            x = tf1.placeholder(tf.int64, [])
            return _SessionRunRunner(graph, x + 1, x, tf1.ConfigProto())

    def check(_: int, got: Any) -> None:
        if got[0] not in (0, 1):
            raise WrongResult(f"expected 0 or 1, got {got[0]}")

    return Case(
        suite="figures",
        name="latency",
        variants=[
            Variant("call", lambda: call(tfr.session_config()), static=True),
            Variant("dynamic-call", lambda: call(tf1.ConfigProto())),
            Variant("x+1", add),
        ],
        inputs=[(np.int64(0),)],
        check=check,
        ratios=[("call", "x+1"), ("dynamic-call", "x+1")],
        item="sess.run",
    )


# --- Main graphs without a call: the switch must cost nothing -----------------------------------------------------


def _mlp_graph() -> tuple[tf.Tensor, tf.Tensor]:
    generator = np.random.default_rng(0)
    x = tf1.placeholder(tf.float32, [32, 256])
    layer: tf.Tensor = x
    for _ in range(4):
        weights = tf.constant(generator.normal(0, 0.06, (256, 256)).astype(np.float32))
        layer = tf.nn.relu(tf.matmul(layer, weights) + 0.1)
    return x, tf.reduce_sum(layer, 1)


def _loop_graph() -> tuple[tf.Tensor, tf.Tensor]:
    x = tf1.placeholder(tf.float32, [])
    start = (tf.constant(0), x)
    return x, tf.while_loop(lambda i, _: i < 1000, lambda i, value: (i + 1, value * 0.99 + 1.0), start)[1]


def switch_cases() -> list[Case]:
    """Makes the cases of an MLP and of a while loop, switch on and off; "off-again" shows the noise."""
    generator = np.random.default_rng(1)
    batch = generator.normal(0, 1, (32, 256)).astype(np.float32)
    return [_switch_case("mlp", _mlp_graph, batch), _switch_case("while-loop", _loop_graph, np.float32(3))]


def _switch_case(name: str, build: Callable[[], tuple[tf.Tensor, tf.Tensor]], value: Any) -> Case:
    def runner(config: tf.compat.v1.ConfigProto) -> SessionRunner:
        with tf.Graph().as_default() as graph:
            x, y = build()
        return SessionRunner(graph, [y], [x], config)

    first: list[np.ndarray] = []

    def check(_: int, got: Sequence[np.ndarray]) -> None:
        first.append(got[0])
        if not np.array_equal(first[0], got[0]):
            raise WrongResult("differs from the result with the switch off")

    return Case(
        suite="figures",
        name=f"no-call-{name}",
        variants=[
            Variant("off", lambda: runner(tf1.ConfigProto())),
            Variant("on", lambda: runner(tfr.session_config())),
            Variant("off-again", lambda: runner(tf1.ConfigProto())),
        ],
        inputs=[(value,)],
        check=check,
        ratios=[("on", "off"), ("off-again", "off")],
        item="run",
    )


def _switch_figure(result: CaseResult) -> Figure:
    # About twice the standard error of a median, from the quartiles; and what the second "off" differs by.
    errors = [2 * result.variants[name].spread / len(result.variants[name].samples) ** 0.5 for name in _OFF]
    noise = max(SWITCH_NOISE_FLOOR, abs(result.ratio("off-again", "off") - 1), *errors)
    name = f"{result.case.name} switch on over off (noise {noise:.1%})"
    return Figure(name, result.ratio("on", "off"), 1 + noise, " times")


# --- All of them --------------------------------------------------------------------------------------------------


def run_own(sum_size: int, repeats: int, progress: Progress) -> tuple[list[CaseResult], list[Figure], dict[str, Any]]:
    """Measures what no other suite does; returns the cases, the figures and the report of sum's process."""
    progress(f"sum({sum_size}) in its own process")
    figures, report = measure_sum(sum_size, repeats)
    latency = run_case(latency_case(), repeats, progress)
    figures.append(
        Figure(
            "sess.run of a call that returns at once over x + 1", latency.ratio("call", "x+1"), CALL_OVER_ADD, " times"
        )
    )
    results = [latency]
    for case in switch_cases():
        results.append(run_case(case, SWITCH_ROUNDS_FACTOR * repeats, progress))
        figures.append(_switch_figure(results[-1]))
    return results, figures, report
