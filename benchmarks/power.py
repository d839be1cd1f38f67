"""Gradient descent on x ** n, where the derivative goes through n recursive calls: ours against what needs no graph.

One item is 100 steps from x = 1.0 at a rate of 1e-10, in float64. Ours feeds n to one graph and makes one
`Session.run` a step, on the thread that calls, as is best for small steps (docs/speed.md); `static-on-pool` makes it
as sessions do by default, on a thread of TensorFlow's pool. Eager execution and `tf.function` unroll the recursion in
Python; they need eager execution, which this process has switched off, so they run in a child process
(`python -m benchmarks.power child`) that waits for a line and then makes an item: variants take turns like those of
every other suite. In a process of its own runs, too, what measures deep recursion
(`python -m benchmarks.power probe N REPEATS`).
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.figures import Figure
from benchmarks.harness import (
    Case,
    CaseResult,
    NotStatic,
    Progress,
    SessionRunner,
    Variant,
    WrongResult,
    session_config,
)
from benchmarks.sum_probe import forget_peak, resident_bytes
from benchmarks.workloads import with_deep_stack

tf1 = tf.compat.v1

SIZES = (10, 50, 100, 200, 1000, 100_000)
DEMO_SIZES = (10, 50, 100, 200)
STEPS = 100
RATE = 1e-10
START = 1.0

# The largest n that each variant is measured with, and why larger ones are left out.
LARGEST = {
    "eager": (1000, "its 100 steps would take some ten minutes"),
    "function": (1000, "to trace the unrolled graph would take many minutes"),
}

FIGURE_SIZE = 200
STEPS_SECONDS = 0.035
FIRST_STEP_SECONDS = 0.05
OVER_FUNCTION = 1.0
DEEP_SIZE = 1_000_000
DEEP_SECONDS = 1.5
DEEP_MEGABYTES = 700.0
FORWARD_SIZE = 10_000
FORWARD_RATIO = 1.5

_RETAINED_SIZE = 200_000
_ROOT = Path(__file__).resolve().parent.parent
_PROBE_TIMEOUT_SECONDS = 600


def define_power() -> Callable[..., Any]:
    """Defines x ** n by n recursive multiplications in the default graph."""
    power = tfr.Declare("Power", [("x", tf.float64), ("n", tf.int32)], [("y", tf.float64)])

    @tfr.Defun(tf.float64, tf.int32, func_name="Power", out_names=["y"], create_grad_func=True)
    def power_impl(x: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        return tf.cond(n < 1, lambda: tf.ones([], tf.float64), lambda: x * power(x, n - 1))

    return power_impl


def expected_end(n: int) -> float:
    """Returns x after the steps, by the derivative n * x ** (n - 1)."""
    x = START
    for _ in range(STEPS):
        x -= RATE * n * x ** (n - 1)
    return x


# --- The variants -------------------------------------------------------------------------------------------------


class _SessionSteps(SessionRunner):
    """Ours: n is fed, x a variable that GradientDescentOptimizer updates, a step one `Session.run`."""

    def __init__(
        self, graph: tf.Graph, train: tf.Operation, n: tf.Tensor, x: tf.Variable, on_calling_thread: bool
    ) -> None:
        super().__init__(graph, [train], [n], tfr.session_config(session_config(on_calling_thread)))
        self._train, self._n, self._x, self._reset = train, n, x, x.initializer
        self.first_step: float | None = None

    def __call__(self, *values: Any) -> Any:
        run, feeds = self._session.run, {self._n: values[0]}
        run(self._reset)
        if self.first_step is None:
            start = time.perf_counter()
            run(self._train, feeds)
            self.first_step = time.perf_counter() - start
            run(self._reset)
        for _ in range(STEPS):
            run(self._train, feeds)
        return float(run(self._x))


def _session_steps(on_calling_thread: bool) -> _SessionSteps:
    with tf.Graph().as_default() as graph:
        x = tf1.get_variable("x", initializer=np.float64(START), use_resource=True)
        n = tf1.placeholder(tf.int32, [])
        train = tf1.train.GradientDescentOptimizer(RATE).minimize(define_power()(x, n))
        return _SessionSteps(graph, train, n, x, on_calling_thread)


class Child:
    """The process that executes eagerly. `run(variant, n)` makes an item there; ends with the context."""

    def __enter__(self) -> Child:
        command = [sys.executable, "-m", "benchmarks.power", "child"]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.communicate()  # the end of its input ends it

    def run(self, variant: str, n: int) -> tuple[float, float]:
        """Makes 100 steps; returns where they end, and what the first step ever of this variant and n took."""
        question, answers = self._process.stdin, self._process.stdout
        assert question is not None and answers is not None  # both are pipes
        question.write(f"{variant} {n}\n")
        question.flush()
        answer = answers.readline()
        if not answer:
            raise RuntimeError(f"{variant} of x ** {n} ended its process: {self._process.communicate()[1][-2000:]}")
        end, first_step = json.loads(answer)
        return end, first_step


class _ChildSteps:
    """A variant in the child process, as a runner."""

    def __init__(self, child: Child, variant: str, n: int) -> None:
        self._child, self._variant, self._n = child, variant, n
        self.first_step: float | None = None

    def __call__(self, *_: Any) -> float:
        end, self.first_step = self._child.run(self._variant, self._n)
        return end

    def close(self) -> None:
        pass


def _serve() -> None:
    """What the child does: for every line `variant n`, 100 steps, and a line of where they end."""
    steps: dict[tuple[str, int], Callable[[], None]] = {}
    first_steps: dict[tuple[str, int], float] = {}
    x = tf.Variable(START, dtype=tf.float64)
    for line in sys.stdin:
        variant, size = line.split()
        key = variant, int(size)
        x.assign(START)
        if key not in steps:
            steps[key] = _eager_step(x, int(size))
            if variant == "function":
                steps[key] = tf.function(steps[key], autograph=False)
            start = time.perf_counter()
            steps[key]()
            first_steps[key] = time.perf_counter() - start
            x.assign(START)
        for _ in range(STEPS):
            steps[key]()
        print(json.dumps([float(x), first_steps[key]]), flush=True)


def _eager_step(x: tf.Variable, n: int) -> Callable[[], None]:
    def power(value: tf.Tensor, n: int) -> tf.Tensor:
        return value * power(value, n - 1) if n > 0 else tf.ones([], tf.float64)

    def step() -> None:
        with tf.GradientTape() as tape:
            y = power(tf.convert_to_tensor(x), n)
        x.assign_sub(RATE * tape.gradient(y, x))

    return step


# --- The cases ----------------------------------------------------------------------------------------------------


def make_cases(sizes: Sequence[int] = SIZES) -> Iterator[Case]:
    """Makes the case of every size, and the one of what differentiating costs the forward pass.

    While one is measured its child process lives; it ends with the iterator.
    """
    with Child() as child:
        for n in sizes:
            yield _steps_case(child, n)
    yield forward_case(min(FORWARD_SIZE, max(sizes)))


def _steps_case(child: Child, n: int) -> Case:
    expected = expected_end(n)
    runners: dict[str, Any] = {}
    details: dict[str, Any] = {"n": n, "session_call": "Session.run", "first_step_seconds": {}, "left_out": []}

    def check(_: int, got: float) -> None:
        details["first_step_seconds"] = {name: runner.first_step for name, runner in runners.items()}
        # One step moves x by n * 1e-10: the steps have to be right to six digits.
        if abs(got - expected) > 1e-6 * abs(START - expected):
            raise WrongResult(f"expected {expected!r}, got {got!r}")

    def variant(name: str, build: Callable[[], Any]) -> Variant:
        def built() -> Any:
            runners[name] = build()
            return runners[name]

        return Variant(name, built, static=name.startswith("static"))

    variants = [
        variant("static", functools.partial(_session_steps, True)),
        variant("static-on-pool", functools.partial(_session_steps, False)),
    ]
    for name, (largest, reason) in LARGEST.items():
        if n <= largest:
            variants.append(variant(name, functools.partial(_ChildSteps, child, name, n)))
        else:
            details["left_out"].append(f"LEFT OUT {name} of power({n}): {reason}")
    return Case(
        suite="power",
        name=f"power({n})",
        variants=variants,
        inputs=[(np.int32(n),)],
        check=check,
        ratios=[(v.name, "static") for v in variants[1:]],
        item=f"{STEPS} steps",
        details=details,
    )


def forward_case(n: int) -> Case:
    """Makes the case of x ** n: a plain call, one that keeps what its gradient would need, one with its gradient.

    "retained": the gradient stands in the branch of a cond that is not taken. So the call keeps the records of all its
    invocations and drops them; its time over "plain" is what differentiation costs the forward pass.
    """

    def build(which: str) -> SessionRunner:
        with tf.Graph().as_default() as graph:
            x, wanted = tf1.placeholder(tf.float64, []), tf1.placeholder_with_default(False, [])
            y = define_power()(x, n)
            fetches = [y]
            if which == "retained":
                fetches.append(tf.cond(wanted, lambda: tf.gradients(y, x)[0], lambda: tf.zeros([], tf.float64)))
            elif which == "gradient":
                fetches += tf.gradients(y, x)
        return SessionRunner(graph, fetches, [x], tfr.session_config())

    def check(_: int, got: Sequence[Any]) -> None:
        if got[0] != 1 or (len(got) > 1 and got[1] not in (0, n)):
            raise WrongResult(f"expected 1 and 0 or {n}, got {got}")

    return Case(
        suite="power-forward",
        name=f"power-forward({n})",
        variants=[
            Variant(name, functools.partial(build, name), static=True) for name in ("plain", "retained", "gradient")
        ],
        inputs=[(np.float64(1.0),)],
        check=check,
        ratios=[("retained", "plain"), ("gradient", "plain")],
        item="run",
        details={"n": n},
    )


# --- Deep recursion, in a process of its own ----------------------------------------------------------------------


def probe(n: int, repeats: int) -> dict[str, Any]:
    """Runs value and gradient of x ** n in this process; returns times and memory."""
    tf1.disable_eager_execution()
    with tf.Graph().as_default() as graph:
        x, size = tf1.placeholder(tf.float64, []), tf1.placeholder(tf.int32, [])
        y = define_power()(x, size)
        runner = SessionRunner(graph, [y, *tf.gradients(y, x)], [x, size], tfr.session_config())
    one = np.float64(1.0)
    runner(one, np.int32(10))
    forget_peak()
    before = resident_bytes("VmRSS")
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        value, gradient = runner(one, np.int32(n))
        samples.append(time.perf_counter() - start)
    return {
        "n": n,
        "static": runner.runs_statically(one, np.int32(10)),
        "value": float(value),
        "gradient": float(gradient),
        "median_seconds": statistics.median(samples),
        "max_seconds": max(samples),
        "resident_before": before,
        "resident_peak": resident_bytes("VmHWM"),
        "bytes_per_frame": (resident_bytes("VmHWM") - before) / n,
    }


def probe_retained(n: int) -> dict[str, float]:
    """Returns the bytes an invocation keeps between its forward and its backward run.

    Three calls one after the other, then their gradients, against one call: frames are used again, so what the peak
    grows by is what two calls keep.
    """
    tf1.disable_eager_execution()
    peaks = []
    with tf.Graph().as_default() as graph:
        x, size = tf1.placeholder(tf.float64, []), tf1.placeholder(tf.int32, [])
        power = define_power()
        calls = [x]
        for _ in range(3):
            calls.append(power(calls[-1], size))
        fetches = [tf.gradients(calls[count], x)[0] for count in (1, 3)]
    with tf1.Session(graph=graph, config=tfr.session_config()) as session:
        for depth in (10, n):
            forget_peak()
            for fetch in fetches:
                session.run(fetch, {x: 1.0, size: depth})
                peaks.append(resident_bytes("VmHWM"))
    return {"retained_n": n, "retained_bytes_per_frame": (peaks[3] - peaks[2]) / (2 * n)}


def _in_own_process(*arguments: Any) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.power", *map(str, arguments)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[2:])} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


# --- Figures and plot ---------------------------------------------------------------------------------------------


def _figures_of_steps(result: CaseResult) -> list[Figure]:
    n, variants = result.case.details["n"], result.variants
    judged = []
    if n == FIGURE_SIZE:
        name, first = f"x^{n}, {STEPS} steps of gradient descent", result.case.details["first_step_seconds"]["static"]
        judged += [
            Figure(name, variants["static"].median, STEPS_SECONDS, " s"),
            Figure(f"{name}, on the pool", variants["static-on-pool"].median, None, " s"),
            Figure(f"x^{n}, the first step", first, FIRST_STEP_SECONDS, " s"),
        ]
    if "function" in variants:
        for static, where, limit in (("static", "", OVER_FUNCTION), ("static-on-pool", ", on the pool", None)):
            name = f"x^{n}, {STEPS} steps over tf.function, its tracing left out{where}"
            judged.append(Figure(name, result.ratio("function", static), limit, " times", at_least=True))
    return judged


def figures(
    results: Sequence[CaseResult], repeats: int, progress: Progress, deep_size: int = DEEP_SIZE
) -> tuple[list[Figure], dict[str, Any]]:
    """Judges the cases among `results` and measures deep recursion; returns figures, and what its process reported."""
    judged = []
    for result in results:
        if result.case.suite == "power":
            judged += _figures_of_steps(result)
        elif result.case.suite == "power-forward":
            name = f"forward cost of a differentiated call over a plain one, x^{result.case.details['n']}"
            judged.append(Figure(name, result.ratio("retained", "plain"), FORWARD_RATIO, " times"))
    progress(f"power({deep_size}) in its own process")
    report = _in_own_process("probe", deep_size, repeats)
    if (report["value"], report["gradient"]) != (1.0, deep_size):
        raise WrongResult(f"power({deep_size}): expected 1 and {deep_size}, got {report}")
    if not report["static"]:
        raise NotStatic(f"power({deep_size}): the session ran the calls dynamically")
    report |= _in_own_process("retained", min(deep_size, _RETAINED_SIZE))
    name = f"x^{deep_size} forward and gradient"
    judged.append(Figure(f"{name}, time", report["median_seconds"], DEEP_SECONDS, " s"))
    judged.append(Figure(f"{name}, resident", report["resident_peak"] / 2**20, DEEP_MEGABYTES, " MiB"))
    return judged, report


_LINES = {
    "static": ("#1b6ca8", "recursion, static"),
    "static-on-pool": ("#7fb2d9", "recursion, static, on a thread of the pool"),
    "eager": ("#e07b39", "TF2 eager"),
    "function": ("#5b8c5a", "tf.function, traced before"),
}


def plot(results: Sequence[CaseResult], path: Path) -> None:
    """Draws the time of 100 steps by n, on logarithmic axes; that of tf.function with and without its tracing."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for name, (colour, label) in _LINES.items():
        found = [result for result in results if name in result.variants]
        if not found:
            continue
        sizes = [result.case.details["n"] for result in found]
        steady = [result.variants[name].median for result in found]
        axes.plot(sizes, steady, "o-", color=colour, label=label)
        if name == "function":
            first = [result.case.details["first_step_seconds"][name] for result in found]
            total = [a + b for a, b in zip(first, steady, strict=True)]
            axes.plot(sizes, total, "o--", color=colour, label="tf.function, tracing included")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("n")
    axes.set_ylabel(f"median time of {STEPS} steps [s]")
    axes.set_title(f"Gradient descent on $x^n$, {STEPS} steps", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TENSORFLOW_RECURSION_SILENCE_DYNAMIC", "1")  # dynamic execution is what is compared with
    if sys.argv[1] == "child":
        with_deep_stack(_serve)
    elif sys.argv[1] == "probe":
        print(json.dumps(probe(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(probe_retained(int(sys.argv[2]))))
