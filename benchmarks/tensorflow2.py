"""TensorFlow 2 against a session: calls from tf.functions, gradients by tapes, datasets, second derivatives, Keras.

Run as `python -m benchmarks.tensorflow2 REPEATS [--quick]`, in a process of its own with eager mode on: the other
suites turn it off. It prints one JSON object; `run` is for them.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks import keras_fit, recursion_suite, workloads
from benchmarks.figures import Figure
from benchmarks.harness import Case, CaseResult, Progress, Variant, WrongResult, run_case
from benchmarks.nets import data, suite, weights
from benchmarks.nets.weights import Training

CALL_OVER_SESSION = 1.15
TRAINING_OVER_SESSION = 1.25
FIRST_CALL_OVER_SESSION = 2.0
DATASET_OVER_DYNAMIC = 12.0
SECOND_ORDER_GROWTH = 2.3

FIB = 20
DIM = 50
TREES = 20
BATCH = 25
BATCHES = 8
ELEMENTS = 1_000
DYNAMIC_ELEMENTS = 10  # each takes some hundred milliseconds
POWER = 1_000
SEED = 20260101
_TRAINING = Training("sgd", 0.01)
_TIMEOUT_SECONDS = 3600


class _EagerRunner:
    """A tf.function as a runner; called with the number of one of the values that it was made with."""

    def __init__(self, function: Callable[..., Any], values: Sequence[Sequence[Any]]) -> None:
        self._function = function
        self._values = [[tf.constant(value) for value in of_call] for of_call in values]

    def __call__(self, number: int) -> list[Any]:
        return [self._function(*self._values[number]).numpy()]

    def runs_statically(self, number: int) -> bool:
        """Runs once more, and returns whether its calls were static."""
        before = tfr.config.outermost_calls()
        self(number)
        after = tfr.config.outermost_calls()
        return after["static"] > before["static"] and after["dynamic"] == before["dynamic"]

    def close(self) -> None:
        pass


class _NumberedRunner:
    """A session's runner that is called with a number too."""

    def __init__(self, runner: Any, values: Sequence[Sequence[Any]]) -> None:
        self._runner, self._values = runner, values

    def __call__(self, number: int) -> Any:
        return self._runner(*self._values[number])

    def runs_statically(self, number: int) -> bool:
        return bool(self._runner.runs_statically(*self._values[number]))

    def close(self) -> None:
        self._runner.close()


# --- fib ----------------------------------------------------------------------------------------------------------


def _fib() -> Any:
    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
    def fib(n: Any) -> Any:
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)

    return fib


def _fib_case() -> Case:
    workload = workloads.RECURSION_WORKLOADS["fib"]
    value = [(np.int32(FIB),)]

    def in_session() -> _NumberedRunner:
        return _NumberedRunner(recursion_suite.session_runner(workload, tfr.session_config()), value)

    def in_function() -> _EagerRunner:
        fib = _fib()
        return _EagerRunner(tf.function(lambda n: fib(n)), value)

    def check(_: int, got: Any) -> None:
        if int(got[0]) != 6765:
            raise WrongResult(f"fib(20): expected 6765, got {got[0]}")

    return _against_session(f"tf2-fib({FIB})", in_session, in_function, 1, check)


def _against_session(
    name: str,
    in_session: Callable[[], Any],
    in_function: Callable[[], Any],
    count: int,
    check: Callable[[int, Any], None],
    checked_calls: int | None = None,
    **others: Callable[[], Any],
) -> Case:
    """`others` are more ways to do the same, by name."""
    runners = {"static": in_session, "tf.function": in_function, **others}
    return Case(
        suite="tensorflow2",
        name=name,
        variants=[Variant(way, runner, static=True) for way, runner in runners.items()],
        inputs=[(number,) for number in range(count)],
        check=check,
        ratios=[(way, "static") for way in runners if way != "static"],
        checked_calls=checked_calls,
    )


def _empty_case(arguments: Sequence[Any], num_weights: int = 0) -> Case:
    """The time that a tf.function takes which has as many arguments and captured weights, but does next to nothing.

    With weights it has a signature, as the function of trees in `_treernn_case` has: checking it takes Python 80 us a
    call.
    """

    def in_function() -> _EagerRunner:
        handles = [tf.Variable(0.0) for _ in range(num_weights)]

        def empty(*values: Any) -> Any:
            with tf.control_dependencies([tf.raw_ops.VarIsInitializedOp(resource=v.handle) for v in handles]):
                return values[-1] + 1

        signature = _any_length(arguments) if num_weights else None
        return _EagerRunner(tf.function(empty, input_signature=signature), [arguments])

    return Case(
        suite="tensorflow2",
        name=f"tf2-empty-{len(arguments)}-{num_weights}",
        variants=[Variant("tf.function", in_function)],
        inputs=[(0,)],
        check=lambda number, got: None,
        ratios=[],
    )


# --- TreeRNN ------------------------------------------------------------------------------------------------------


class _TreeRNN(tf.Module):  # type: ignore[misc]
    """The TreeRNN of `benchmarks.nets`, as one writes it in TensorFlow 2."""

    def __init__(self, start: weights.Weights, is_trained: bool) -> None:
        super().__init__()
        self.is_trained = is_trained
        self.weights = {name: tf.Variable(value) for name, value in start.items()}

    def dense(self, name: str, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.bias_add(tf.matmul(x, self.weights[name]), self.weights[f"{name}_bias"])

    @tfr.recursive
    def states(self, i: tf.Tensor, words: tf.Tensor, left: tf.Tensor, right: tf.Tensor, is_leaf: tf.Tensor) -> Any:
        """The state of node `i`, and the rows of all nodes from it on."""
        if tf.gather(is_leaf, i):
            h = tf.gather(self.weights["embeddings"], tf.gather(words, [i]))
            return h, self.row(h)
        h_left, rows_left = self.states(tf.gather(left, i), words, left, right, is_leaf)
        h_right, rows_right = self.states(tf.gather(right, i), words, left, right, is_leaf)
        h = tf.nn.relu(self.dense("inner", tf.concat([h_left, h_right], 1)))
        return h, tf.concat([rows_left, rows_right, self.row(h)], 0)

    def row(self, h: tf.Tensor) -> tf.Tensor:
        """What is returned of a node, the same as in the session: its state, or its probabilities."""
        return h if self.is_trained else tf.nn.softmax(self.dense("classes", h))

    @tfr.recursive
    def forest(self, roots: tf.Tensor, words: tf.Tensor, left: tf.Tensor, right: tf.Tensor, is_leaf: tf.Tensor) -> Any:
        """The rows of the nodes of several trees, which run side by side."""
        if tf.size(roots) < 2:
            return self.states(roots[0], words, left, right, is_leaf)[1]
        middle = tf.size(roots) // 2
        first = self.forest(roots[:middle], words, left, right, is_leaf)
        return tf.concat([first, self.forest(roots[middle:], words, left, right, is_leaf)], 0)

    def rows(self, words: Any, left: Any, right: Any, is_leaf: Any, roots: Any) -> tf.Tensor:
        """The rows of all nodes; `roots` of static length 1 mean that there is one tree."""
        if roots.shape[0] == 1:
            return self.states(roots[0], words, left, right, is_leaf)[1]
        return self.forest(roots, words, left, right, is_leaf)

    def train(self, words: Any, left: Any, right: Any, is_leaf: Any, labels: Any, roots: Any) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = self.dense("classes", self.rows(words, left, right, is_leaf, roots))
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
            loss /= tf.cast(tf.size(roots), tf.float32)
            matrices = [self.weights[name] for name in weights.regularized(self.weights)]
            loss += _TRAINING.l2 * tf.add_n([tf.nn.l2_loss(matrix) for matrix in matrices])
        variables = list(self.weights.values())
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(_TRAINING.rate * gradient.values, gradient.indices))
            else:
                variable.assign_sub(_TRAINING.rate * gradient)
        return loss


def _treernn_setting(training: Training | None, trees: int, batch: int = 1) -> suite.Setting:
    """Steps over batches of trees. The session, too, runs them on TensorFlow's pool of threads.

    A tf.function cannot run them elsewhere, as a session of `benchmarks.nets` does for a tree at a time.
    """
    source = suite.load_input()
    chosen = (source.test if training is None else source.train)[:trees]
    start = weights.make_weights(weights.TREERNN, len(source.words) + 1, DIM, SEED)
    return suite.Setting(weights.TREERNN, data.batches(chosen, batch, source.words), start, training, notes=[])


def _treernn_values(setting: suite.Setting) -> list[tuple[Any, ...]]:
    names = ["words", "left", "right", "is_leaf", *([] if setting.training is None else ["labels"]), "roots"]
    return [tuple(getattr(forest, name) for name in names) for forest in setting.batches]


def _any_length(values: Sequence[Any]) -> list[tf.TensorSpec]:
    """A signature for as many trees of all sizes: with open dimensions there is one trace for them."""
    *nodes, roots = (tf.constant(value) for value in values)
    return [*(tf.TensorSpec([None], value.dtype) for value in nodes), tf.TensorSpec(roots.shape, roots.dtype)]


def _treernn_case(setting: suite.Setting) -> Case:
    values = _treernn_values(setting)

    def compiled() -> Any:
        net = _TreeRNN(setting.start, setting.training is not None)
        step = net.rows if setting.training is None else net.train
        return tf.function(step, input_signature=_any_length(values[0]))

    mode = "infer" if setting.training is None else "train"
    trees = "" if setting.batch == 1 else f"-b{setting.batch}"
    check = suite.check_probabilities(setting) if setting.training is None else suite.check_losses(setting)
    return _against_session(
        f"tf2-treernn-{mode}-d{DIM}{trees}",
        lambda: suite.METHODS["static"](setting),
        lambda: _EagerRunner(compiled(), values),
        len(setting.batches),
        check,
        checked_calls=None if setting.training is None else suite.CHECKED_STEPS,
        concrete=lambda: _EagerRunner(compiled().get_concrete_function(), values),
    )


class _AllInTurn:
    """A session's runner of all batches as one call."""

    def __init__(self, runner: Any, count: int) -> None:
        self._runner, self._count = runner, count

    def __call__(self, _: int) -> list[Any]:
        return [[self._runner(number)[0] for number in range(self._count)]]

    def runs_statically(self, _: int) -> bool:
        return bool(self._runner.runs_statically(0))

    def close(self) -> None:
        self._runner.close()


def _epoch_case(setting: suite.Setting) -> Case:
    """Training steps over all trees: one call of a tf.function, in which a loop makes them."""
    count = len(setting.batches)

    def in_function() -> _EagerRunner:
        net = _TreeRNN(setting.start, is_trained=True)
        arrays = [tf.ragged.stack(list(rows)) for rows in zip(*_treernn_values(setting), strict=True)]

        def epoch() -> tf.Tensor:
            losses = tf.TensorArray(tf.float32, count, element_shape=[])
            for number in tf.range(count):
                losses = losses.write(number, net.train(*[array[number] for array in arrays]))
            return losses.stack()

        return _EagerRunner(tf.function(epoch), [()])

    check_loss = suite.check_losses(setting)

    def check(_: int, got: Any) -> None:
        for number, loss in enumerate(got[0]):
            check_loss(number, [loss])

    case = _against_session(
        f"tf2-treernn-train-d{DIM}-all-trees",
        lambda: _AllInTurn(suite.METHODS["static"](setting), count),
        in_function,
        1,
        check,
        checked_calls=1,
    )
    return dataclasses.replace(case, items_per_call=count)


# --- Datasets, second derivatives -----------------------------------------------------------------------------------


def _dataset_seconds(elements: int) -> float:
    """Returns the seconds an element of a dataset that maps fib over so many."""
    fib = _fib()
    dataset = tf.data.Dataset.range(elements).map(
        lambda i: fib(FIB + 0 * tf.cast(i, tf.int32)), num_parallel_calls=tf.data.AUTOTUNE
    )
    start = time.perf_counter()
    values = list(dataset.as_numpy_iterator())
    seconds = time.perf_counter() - start
    if values != [6765] * elements:
        raise WrongResult(f"dataset of fib({FIB}): expected 6765 {elements} times, got {set(values)}")
    return seconds / elements


def _dataset_figure(repeats: int) -> Figure:
    static, dynamic = [], []
    for _ in range(min(repeats, 3)):
        static.append(_dataset_seconds(ELEMENTS))
        with tfr.config.static_execution(False):
            dynamic.append(_dataset_seconds(DYNAMIC_ELEMENTS))
    ratio = statistics.median(dynamic) / statistics.median(static)
    return Figure(f"tf.data map of fib({FIB}) over dynamic", ratio, DATASET_OVER_DYNAMIC, " times", at_least=True)


def _second_order_figure(repeats: int, quick: bool) -> Figure:
    """How the time of a Hessian-vector product of x^n grows when n doubles."""

    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.float64), tf.TensorSpec([], tf.int32)])
    def power(x: Any, n: Any) -> Any:
        if n < 1:
            return tf.constant(1.0, tf.float64)
        return x * power(x, n - 1)

    def product(x: Any, n: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = power(x, n)
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x)

    compiled = tf.function(product)
    x = tf.constant(1.0001, tf.float64)
    sizes = [POWER // 10, POWER // 5] if quick else [POWER, 2 * POWER]
    samples: dict[int, list[float]] = {n: [] for n in sizes}
    for n in sizes:
        want, got = n * (n - 1) * 1.0001 ** (n - 2), float(compiled(x, tf.constant(n)))
        if not abs(got - want) <= 1e-9 * abs(want):
            raise WrongResult(f"second derivative of x^{n}: expected {want}, got {got}")
    for _ in range(repeats):
        for n in sizes:
            start = time.perf_counter()
            compiled(x, tf.constant(n))
            samples[n].append(time.perf_counter() - start)
    growth = statistics.median(samples[sizes[1]]) / statistics.median(samples[sizes[0]])
    name = f"Hessian-vector product of x^n, n = {sizes[0]:,} to {sizes[1]:,}"
    return Figure(name, growth, None if quick else SECOND_ORDER_GROWTH, " times")


# --- The suite ------------------------------------------------------------------------------------------------------


def _net_of_call(result: CaseResult, empty: CaseResult) -> float:
    """The time in a tf.function over the session's, the tf.function's own call left out."""
    own = empty.variants["tf.function"].median
    return (result.variants["tf.function"].median - own) / result.variants["static"].median


def _first_call(result: CaseResult) -> float:
    """Tracing, preparing and the first run, over the same in a session."""
    function, session = (result.variants[name] for name in ("tf.function", "static"))
    return (function.build + function.first_run) / (session.build + session.first_run)


def measure(repeats: int, quick: bool) -> tuple[list[CaseResult], list[Figure]]:
    """Measures all of it in this process, whose eager mode is on."""
    trees = TREES // 4 if quick else TREES
    forward, training = (_treernn_setting(mode, trees) for mode in (None, _TRAINING))
    fib = run_case(_fib_case(), repeats)
    infer, train = (run_case(_treernn_case(setting), repeats) for setting in (forward, training))
    batch = run_case(_treernn_case(_treernn_setting(_TRAINING, BATCH * (1 if quick else BATCHES), BATCH)), repeats)
    epoch = run_case(_epoch_case(training), repeats)
    own = ([np.int32(1)], 0), *((_treernn_values(setting)[0], len(setting.start)) for setting in (forward, training))
    empties = [run_case(_empty_case(values, num_weights), repeats) for values, num_weights in own]
    figures = [
        Figure(
            f"fib({FIB}) in a tf.function over the session's",
            _net_of_call(fib, empties[0]),
            CALL_OVER_SESSION,
            " times",
        ),
        Figure(
            "TreeRNN forward in a tf.function over the session's",
            _net_of_call(infer, empties[1]),
            CALL_OVER_SESSION,
            " times",
        ),
        Figure(
            "TreeRNN training in a tf.function with a tape over the session's",
            train.ratio("tf.function", "static"),
            TRAINING_OVER_SESSION,
            " times",
        ),
        Figure("the same, the tf.function's own call left out", _net_of_call(train, empties[2]), None, " times"),
        Figure("the same, its concrete function called", train.ratio("concrete", "static"), None, " times"),
        Figure(
            f"the same, {BATCH} trees a step",
            batch.ratio("tf.function", "static"),
            TRAINING_OVER_SESSION,
            " times",
        ),
        Figure(
            "the same, all trees in a loop of one tf.function",
            epoch.ratio("tf.function", "static"),
            TRAINING_OVER_SESSION,
            " times",
        ),
        Figure(
            "first call of TreeRNN training over the session's", _first_call(train), FIRST_CALL_OVER_SESSION, " times"
        ),
        _dataset_figure(repeats),
        _second_order_figure(repeats, quick),
        keras_fit.figure(repeats, quick),
    ]
    return [fib, infer, train, batch, epoch, *empties], figures


def run(repeats: int, quick: bool, progress: Progress) -> tuple[list[str], list[dict[str, Any]], list[Figure]]:
    """Runs this module as a process; returns its lines, its cases as JSON, and the figures.

    Raises:
      WrongResult: it failed; says what it printed.
    """
    progress("tensorflow2 in its own process")
    command = [sys.executable, "-m", "benchmarks.tensorflow2", str(repeats), *(["--quick"] if quick else [])]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise WrongResult(f"tensorflow2: {done.stderr[-2000:]}")
    report = json.loads(done.stdout.splitlines()[-1])
    return report["lines"], report["cases"], [Figure(**figure) for figure in report["figures"]]


def _main(arguments: Sequence[str]) -> None:
    results, figures = measure(int(arguments[0]), "--quick" in arguments)
    report = {
        "lines": [result.line() for result in results],
        "cases": [result.as_json() for result in results],
        "figures": [dataclasses.asdict(figure) for figure in figures],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TENSORFLOW_RECURSION_SILENCE_DYNAMIC", "1")
    _main(sys.argv[1:])
