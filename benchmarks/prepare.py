"""How the time to prepare a graph grows with it: the first run of a session, by the processor, static and dynamic.

Each workload makes a graph of a given size, in whose run little is computed. Two sizes are measured, static and dynamic
by turns. The exponent says how the time grows from the smaller one to the larger: with the size if it is 1, with the
square of the size if it is 2. A machine that gets busier for a minute would change it much. So each round measures the
smaller size before and after the larger one, and the exponent is the median of the rounds' own.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import gc
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.figures import Figure
from benchmarks.harness import NotStatic, Progress, WrongResult

tf1 = tf.compat.v1

MOST_EXPONENT = 1.2
MOST_OVER_DYNAMIC = 2.0
QUICK_FACTOR = 10  # sizes are divided by this

Build = Callable[[int], tuple[tf.Tensor, float]]  # takes a size; returns what to fetch, and its expected value


def _recursive(name: str, body: Callable[[Any], Callable[..., Any]], arguments: int = 1, outputs: int = 1) -> Any:
    """A function of a counter and floats; `body` gets the function itself."""
    types = [tf.int32] + [tf.float32] * arguments
    declared = tfr.Declare(
        name,
        [(f"a{i}", dtype) for i, dtype in enumerate(types)],
        [(f"r{i}", tf.float32) for i in range(outputs)],
    )
    return tfr.Defun(*types, func_name=name, out_names=[f"r{i}" for i in range(outputs)])(body(declared))


def _input() -> tf.Tensor:
    return tf1.placeholder_with_default(1.0, [])


def _sum(values: list[tf.Tensor]) -> tf.Tensor:
    """The sum in groups of 100, because TensorFlow's optimizers take the square of the inputs of one operator.

    For each node that an operator reads, its dependency optimizer looks through that operator's inputs.
    """
    groups = [values[i : i + 100] for i in range(0, len(values), 100)]
    return tf.add_n([tf.add_n(group) for group in groups])


def calls(size: int) -> tuple[tf.Tensor, float]:
    """The main graph has `size` calls."""
    add = _recursive("Add", lambda add: lambda n, x: tf.cond(n < 1, lambda: x, lambda: add(n - 1, x + 1.0)))
    x = _input()
    return _sum([add(i % 2, x) for i in range(size)]), size + size // 2


def arguments(size: int) -> tuple[tf.Tensor, float]:
    """A function has `size` arguments and as many outputs."""

    def body(many: Any) -> Callable[..., Any]:
        return lambda n, *values: tuple(tf.cond(n < 1, lambda: list(values), lambda: list(many(n - 1, *values))))

    x = _input()
    return _sum(list(_recursive("Many", body, size, size)(1, *[x] * size))), size


def functions(size: int) -> tuple[tf.Tensor, float]:
    """`size` functions call one another in a chain; a run goes to the third."""

    def link(following: Any) -> Callable[..., Any]:
        return lambda n, x: tf.cond(n < 1, lambda: x, lambda: following(n - 1, x + 1.0))

    last = _recursive("F0", lambda _: lambda n, x: x)
    for i in range(1, size):
        chained = link(last)
        last = _recursive(f"F{i}", lambda _: chained)
    return last(2, _input()), 3.0


def nodes(size: int) -> tuple[tf.Tensor, float]:
    """A body has `size` operators, which no stock optimizer simplifies: negations of negations cost it the square."""

    def body(long: Any) -> Callable[..., Any]:
        def base(x: tf.Tensor) -> tf.Tensor:
            for _ in range(size):
                x = tf.sin(x)
            return x

        return lambda n, x: tf.cond(n < 1, lambda: base(x), lambda: long(n - 1, x))

    expected = 1.0
    for _ in range(size):
        expected = math.sin(expected)
    return _recursive("Long", body)(1, _input()), expected


def conditionals(size: int) -> tuple[tf.Tensor, float]:
    """A body has `size` conditionals, one after the other."""

    def body(many: Any) -> Callable[..., Any]:
        def build(n: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            for _ in range(size):
                x = tf.cond(x > 1.5, lambda x=x: x - 1.0, lambda x=x: x + 1.0)
            return tf.cond(n < 1, lambda: x, lambda: many(n - 1, x))

        return build

    return _recursive("Branches", body)(1, _input()), 1.0


def loops(size: int) -> tuple[tf.Tensor, float]:
    """A body has `size` loops, one after the other."""

    def body(many: Any) -> Callable[..., Any]:
        def build(n: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            for _ in range(size):
                (x,) = tf.while_loop(lambda value: value < 1.5, lambda value: [value + 1.0], [x])
            return tf.cond(n < 1, lambda: x, lambda: many(n - 1, x))

        return build

    return _recursive("Loops", body)(1, _input()), 2.0


@dataclasses.dataclass(frozen=True)
class Workload:
    """A way to make graphs of any size.

    Attributes:
      largest: the larger size that is measured; the smaller one is half of it.
      largest_dynamic: the same in dynamic mode, if that would not end with `largest`.
      rounds: how many rounds to measure for each that is asked for: more if they are short, and so differ more.
    """

    build: Build
    largest: int
    largest_dynamic: int | None = None
    rounds: int = 1

    def sizes(self, mode: str, quick: bool) -> tuple[int, int]:
        largest = self.largest
        if mode == "dynamic" and self.largest_dynamic is not None:
            largest = self.largest_dynamic
        elif quick:
            largest //= QUICK_FACTOR
        return largest // 2, largest


WORKLOADS: dict[str, Workload] = {
    "calls": Workload(calls, 10_000),
    "arguments and outputs": Workload(arguments, 500, rounds=5),
    # TensorFlow optimizes each function together with all that it reaches: the square of the chain, for each optimizer.
    "functions": Workload(functions, 2_000, largest_dynamic=150),
    "nodes of a body": Workload(nodes, 20_000, rounds=3),
    "conditionals in a body": Workload(conditionals, 1_600),
    "loops in a body": Workload(loops, 1_600),
}


@dataclasses.dataclass(frozen=True)
class Growth:
    """What one workload takes in one mode.

    Attributes:
      sizes: the smaller and the larger size.
      rounds: processor seconds of first runs, for each round: of the smaller size, the larger one, the smaller again.
    """

    workload: str
    mode: str
    sizes: tuple[int, int]
    rounds: list[list[float]]

    @property
    def seconds(self) -> tuple[float, float]:
        """The median times of the smaller and of the larger size."""
        smaller = [seconds for before, _, after in self.rounds for seconds in (before, after)]
        return statistics.median(smaller), statistics.median(larger for _, larger, _ in self.rounds)

    @property
    def exponent(self) -> float:
        doublings = math.log(self.sizes[1] / self.sizes[0])
        return statistics.median(
            math.log(2 * large / (before + after)) / doublings for before, large, after in self.rounds
        )

    def line(self) -> str:
        """Returns the one greppable line."""
        small, large = (f"{n:,}: {s:.2f} s" for n, s in zip(self.sizes, self.seconds, strict=True))
        return f"PREPARE {self.workload} {self.mode}: {small}, {large}, exponent {self.exponent:.2f}"


def measure(build: Build, size: int, mode: str) -> float:
    """Returns the processor seconds of the first run of a graph of a size.

    Raises:
      WrongResult, NotStatic: the run gave another value, or was not what `mode` says.
    """
    config = tfr.session_config(on_fallback="error") if mode == "static" else tf1.ConfigProto()
    with tf.Graph().as_default():
        fetch, expected = build(size)
        warm = tf.constant(1)
        with tf1.Session(config=config) as session:
            session.run(warm)
            gc.collect()
            gc.disable()  # what Python's collector does depends on what else is in the process
            try:
                start = time.process_time()
                value = _run(session, fetch)
                seconds = time.process_time() - start
            finally:
                gc.enable()
    if not math.isclose(value, expected, rel_tol=1e-3):
        raise WrongResult(f"prepare: expected {expected}, got {value}")
    return seconds


def _run(session: tf.compat.v1.Session, fetch: tf.Tensor) -> float:
    try:
        return float(session.run(fetch))
    except tf.errors.FailedPreconditionError as error:
        raise NotStatic(f"prepare: {error.message}") from None


def run(repeats: int, quick: bool, step: Progress) -> tuple[list[Growth], list[Figure]]:
    """Measures every workload in `repeats` rounds or more in both modes, and judges the medians."""
    measure(calls, 4, "static")
    measure(calls, 4, "dynamic")
    growths: list[Growth] = []
    figures: list[Figure] = []
    for name, workload in WORKLOADS.items():
        static, dynamic = _grow(name, workload, repeats, quick, step)
        growths += [static, dynamic]
        figures += _judge(static, dynamic, judged=not quick)
    return growths, figures


def _grow(name: str, workload: Workload, repeats: int, quick: bool, step: Progress) -> tuple[Growth, Growth]:
    """Measures one workload, static and dynamic by turns, so that a busy machine is slow for both."""
    modes = ("static", "dynamic")
    rounds: dict[str, list[list[float]]] = {mode: [] for mode in modes}
    for _ in range(repeats * workload.rounds):
        for mode in modes:
            rounds[mode].append([])
        for i in (0, 1, 0):
            for mode in modes:
                size = workload.sizes(mode, quick)[i]
                step(f"prepare {name}, {mode}, {size:,}")
                rounds[mode][-1].append(measure(workload.build, size, mode))
    static, dynamic = (Growth(name, mode, workload.sizes(mode, quick), rounds[mode]) for mode in modes)
    return static, dynamic


def _judge(static: Growth, dynamic: Growth, judged: bool) -> list[Figure]:
    """The figures of a workload; small graphs show no growth and are only reported.

    A smaller graph takes the dynamic mode less time, so that the ratio is too large rather than too small with it.
    """
    name = f"prepare {static.sizes[1]:,} {static.workload}"
    others = "dynamic" if dynamic.sizes == static.sizes else f"dynamic of {dynamic.sizes[1]:,}"
    ratio = static.seconds[1] / dynamic.seconds[1]
    return [
        Figure(f"{name}, exponent", static.exponent, MOST_EXPONENT if judged else None, ""),
        Figure(f"{name}, static over {others}", ratio, MOST_OVER_DYNAMIC if judged else None, " times"),
    ]
