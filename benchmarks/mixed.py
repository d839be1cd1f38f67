"""Main graphs that are real, with and without a small recursive call beside them: the call may not slow them down.

`convolutional` is a training step of a small convolutional net, `chains` 16 independent chains of 120 x 120 products,
`small` a dozen cheap operators. Each runs in stock TensorFlow without a call, and by this library with one, whose value
is fetched beside the main graph's; with 2 and 4 inter-op threads of the session's own. Beside them are reported the
same call run dynamically, and the switch on without a call.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.figures import Figure
from benchmarks.harness import Case, CaseResult, SessionRunner, Variant, WrongResult
from benchmarks.workloads import FIB

tf1 = tf.compat.v1

THREADS = (2, 4)
CALL_OVER_STOCK = 1.03
JUDGED = ("convolutional", "chains")

CALL_ARGUMENT = 6  # fib(6): 25 calls
# TensorFlow's executor takes every operator for expensive until it has run some 90 times, and spreads them all so long.
_WARM_UP_STEPS = 120
# A machine is slower or faster for a while by more than what is judged: rounds of some 5 ms a variant.
_PARTS = 10
_BATCH, _IMAGE, _CHANNELS, _CLASSES = 16, 24, 16, 10
_CHAINS, _LENGTH, _SIZE = 16, 8, 120


@dataclasses.dataclass(frozen=True)
class MainGraph:
    """A graph to fetch `fetch` of, with `feeds` for its placeholders. `trains`: its value changes from step to step."""

    fetch: tf.Tensor
    feeds: Sequence[tf.Tensor]
    values: Sequence[np.ndarray]
    trains: bool = False


def convolutional() -> MainGraph:
    """Adds a training step of two convolutions and two dense layers; fetches its loss."""
    generator = np.random.default_rng(1)
    images = tf1.placeholder(tf.float32, [_BATCH, _IMAGE, _IMAGE, 3])
    labels = tf1.placeholder(tf.int32, [_BATCH])

    def weight(name: str, *shape: int) -> tf.Variable:
        start = generator.normal(0, np.prod(shape[:-1]) ** -0.5, shape).astype(np.float32)
        return tf1.get_variable(name, initializer=start, use_resource=True)

    layer = tf.nn.relu(tf.nn.conv2d(images, weight("first", 3, 3, 3, _CHANNELS), 1, "SAME"))
    layer = tf.nn.max_pool2d(layer, 2, 2, "SAME")
    layer = tf.nn.relu(tf.nn.conv2d(layer, weight("second", 3, 3, _CHANNELS, 2 * _CHANNELS), 1, "SAME"))
    layer = tf.reshape(tf.nn.max_pool2d(layer, 2, 2, "SAME"), [_BATCH, -1])
    layer = tf.nn.relu(tf.matmul(layer, weight("dense", int(layer.shape[1]), 64)))
    logits = tf.matmul(layer, weight("classes", 64, _CLASSES))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    with tf.control_dependencies([tf1.train.AdagradOptimizer(0.01).minimize(loss)]):
        fetch = tf.identity(loss)
    values = (
        generator.normal(0, 1, images.shape).astype(np.float32),
        generator.integers(0, _CLASSES, _BATCH).astype(np.int32),
    )
    return MainGraph(fetch, [images, labels], values, trains=True)


def chains() -> MainGraph:
    """Adds independent chains of products; fetches the sum of their ends."""
    generator = np.random.default_rng(2)
    x = tf1.placeholder(tf.float32, [_SIZE, _SIZE])
    ends = []
    for _ in range(_CHAINS):
        end: tf.Tensor = x
        for _ in range(_LENGTH):
            end = tf.matmul(end, generator.normal(0, _SIZE**-0.5, (_SIZE, _SIZE)).astype(np.float32))
        ends.append(tf.reduce_sum(end))
    return MainGraph(tf.add_n(ends), [x], [generator.normal(0, 1, (_SIZE, _SIZE)).astype(np.float32)])


def small() -> MainGraph:
    """Adds a dozen operators on a few numbers each."""
    x = tf1.placeholder(tf.float32, [8])
    y: tf.Tensor = x
    for number in range(4):
        y = tf.tanh(y * (1.0 + number)) + tf.reverse(y, [0])
    return MainGraph(tf.reduce_sum(y), [x], [np.linspace(-1, 1, 8).astype(np.float32)])


MAIN_GRAPHS: dict[str, Callable[[], MainGraph]] = {
    "convolutional": convolutional,
    "chains": chains,
    "small": small,
}


def make_cases(names: Sequence[str] = tuple(MAIN_GRAPHS), threads: Sequence[int] = THREADS) -> Iterator[Case]:
    """Makes a case for every main graph and number of inter-op threads."""
    for name in names:
        for count in threads:
            yield _case(name, count)


def _runner(build: Callable[[], MainGraph], threads: int, is_static: bool, has_call: bool) -> SessionRunner:
    with tf.Graph().as_default() as graph:
        main = build()
        feeds, fetches = list(main.feeds), [main.fetch]
        if has_call:
            feeds.append(tf1.placeholder(tf.int32, []))
            fetches.append(FIB.define()(feeds[-1]))
        initializer = tf1.global_variables_initializer()
    config = tf1.ConfigProto(inter_op_parallelism_threads=threads, use_per_session_threads=True)
    return SessionRunner(
        graph,
        fetches,
        feeds,
        tfr.session_config(config) if is_static else config,
        lambda session: session.run(initializer),
    )


class _MixedRunner:
    """Feeds the main graph, and the call if there is one."""

    def __init__(self, name: str, threads: int, is_static: bool, has_call: bool) -> None:
        self._runner = _runner(MAIN_GRAPHS[name], threads, is_static, has_call)
        with tf.Graph().as_default():
            self._values = list(MAIN_GRAPHS[name]().values)
        if has_call:
            self._values.append(np.int32(CALL_ARGUMENT))

    def __call__(self) -> list[Any]:
        return self._runner(*self._values)

    def runs_statically(self) -> bool:
        return self._runner.runs_statically(*self._values)

    def close(self) -> None:
        self._runner.close()


def _case(name: str, threads: int) -> Case:
    first: list[np.ndarray] = []
    with tf.Graph().as_default():
        trains = MAIN_GRAPHS[name]().trains

    def check(_: int, got: Sequence[np.ndarray]) -> None:
        first.append(got[0])
        if not np.isclose(first[0], got[0], rtol=1e-4):
            raise WrongResult(f"expected {first[0]}, got {got[0]}")
        if len(got) > 1 and got[1] != FIB.expected((CALL_ARGUMENT,)):
            raise WrongResult(f"fib({CALL_ARGUMENT}): got {got[1]}")

    def variant(label: str, is_static: bool, has_call: bool) -> Variant:
        build = functools.partial(_MixedRunner, name, threads, is_static, has_call)
        return Variant(label, build, static=is_static and has_call)

    return Case(
        suite="mixed",
        name=f"{name}-{threads}-threads",
        variants=[
            variant("stock", is_static=False, has_call=False),
            variant("stock-again", is_static=False, has_call=False),
            variant("with-call", is_static=True, has_call=True),
            variant("switch-on", is_static=True, has_call=False),
            variant("dynamic-call", is_static=False, has_call=True),
        ],
        inputs=[()],
        check=check,
        ratios=[(other, "stock") for other in ("stock-again", "with-call", "switch-on", "dynamic-call")],
        item="step",
        warm_up_passes=_WARM_UP_STEPS,
        parts=_PARTS,
        details={"main_graph": name, "threads": threads, "trains": trains},
    )


def figures(results: Sequence[CaseResult]) -> list[Figure]:
    """Judges what a call beside a large main graph costs; reports the small one, and what two equal runs differ by."""
    judged = []
    for result in results:
        if result.case.suite != "mixed":
            continue
        limit = CALL_OVER_STOCK if result.case.details["main_graph"] in JUDGED else None
        noise = abs(result.ratio("stock-again", "stock") - 1)
        name = f"{result.case.name} with a call over stock without one (noise {noise:.1%})"
        judged.append(Figure(name, result.ratio("with-call", "stock"), limit, " times"))
    return judged
