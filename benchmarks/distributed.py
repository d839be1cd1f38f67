"""What it costs, and what it brings, to spread a body over devices and processes.

`run` starts its own cluster on loopback, measures and ends it. Four cases: fib over two devices, fib over two
processes, a TreeRNN step whose embedding table is on another process, and a recursion with heavy leaves whose halves
are on two processes of one core each.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

import tensorflow_recursion as tfr
from benchmarks import treebank, workloads
from benchmarks.cluster import Cluster, TaskOptions
from benchmarks.figures import Figure
from benchmarks.harness import Case, CaseResult, Progress, SessionRunner, Variant, WrongResult, run_case

tf1 = tf.compat.v1

PAIRS_PER_CROSSING_EDGE = 2.0
STEP_OVER_ONE_PROCESS = 1.3
TWO_PROCESSES_OVER_ONE = 1.7

_CPUS = ("/device:CPU:0", "/device:CPU:1")
_DIM = 50
_RATE = 0.01
_LEAF_DIM = 256
_CALIBRATION_PRODUCTS = 200


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How large the four cases are: the arguments of fib, the numbers of trees and leaves, and the time of a leaf."""

    fib_on_devices: int = 16
    fib_on_processes: int = 12
    trees: int = 10
    leaves: int = 64
    leaf_seconds: float = 0.02


DEMO_SIZES = Sizes(fib_on_devices=12, fib_on_processes=8, trees=3, leaves=16)


def run(sizes: Sizes, repeats: int, progress: Progress) -> tuple[list[CaseResult], list[Figure], dict[str, Any]]:
    """Measures all cases; returns their results, the figures, and the counts of messages."""
    results: list[CaseResult] = []
    figures: list[Figure] = []
    report: dict[str, Any] = {}
    for result, judged, counted in _measured(sizes, repeats, progress):
        results.append(result)
        figures += judged
        report |= counted
    return results, figures, report


Measured = tuple[CaseResult, list[Figure], dict[str, Any]]


def _measured(sizes: Sizes, repeats: int, progress: Progress) -> Iterator[Measured]:
    yield _measure_devices(sizes.fib_on_devices, repeats, progress)
    with Cluster(worker=2) as cluster:
        yield _measure_processes(cluster, sizes.fib_on_processes, repeats, progress)
        yield _measure_treernn(cluster, sizes.trees, repeats, progress)
    cores = sorted(os.sched_getaffinity(0))
    pinned = {f"/job:worker/task:{i}": TaskOptions(cores=[core]) for i, core in enumerate((cores[0], cores[-1]))}
    with Cluster(pinned, worker=2) as cluster:
        yield _measure_halves(cluster, sizes.leaves, sizes.leaf_seconds, repeats, progress)


# --- fib, its two calls apart -------------------------------------------------------------------------------------


def _fib_runner(devices: Sequence[str], config: tf.compat.v1.ConfigProto, target: str = "") -> SessionRunner:
    with tf.Graph().as_default() as graph:
        call = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"])
        def fib(n: tf.Tensor) -> tf.Tensor:
            def calls() -> tf.Tensor:
                with tf.device(devices[0]):
                    left = call(n - 1)
                with tf.device(devices[-1]):
                    right = call(n - 2)
                return left + right

            return tf.cond(n < 2, lambda: n, calls)

        n = tf1.placeholder(tf.int32, [], "n")
        result = fib(n)
    return SessionRunner(graph, [result], [n], config, target=target)


def _fib_case(name: str, n: int, variants: Sequence[Variant], ratio: tuple[str, str]) -> Case:
    expected = workloads.fib(n)

    def check(_: int, got: Any) -> None:
        if got[0] != expected:
            raise WrongResult(f"expected {expected}, got {got[0]}")

    return Case("distributed", name, variants, [(np.int32(n),)], check, [ratio])


def _measure_devices(n: int, repeats: int, progress: Progress) -> Measured:
    config = tfr.session_config(tf1.ConfigProto(device_count={"CPU": 2}))
    variants = [
        Variant("one-device", lambda: _fib_runner(_CPUS[:1], config), static=True),
        Variant("two-devices", lambda: _fib_runner(_CPUS, config), static=True),
    ]
    case = _fib_case(f"fib({n})-devices", n, variants, ("two-devices", "one-device"))
    result = run_case(case, repeats, progress)
    runner = _fib_runner(_CPUS, config)
    try:
        pairs, edges = _pairs_of_bodies(runner.trace(np.int32(n)))
    finally:
        runner.close()
    name = f"fib({n}) over two devices"
    figures = [
        Figure(f"{name}, time over one device", result.ratio("two-devices", "one-device"), None, "x"),
        Figure(f"{name}, Send/Recv pairs a call", pairs, None, ""),
        Figure("Send/Recv pairs a crossing edge and call", pairs / max(edges, 1), PAIRS_PER_CROSSING_EDGE, ""),
    ]
    return (
        result,
        figures,
        {"devices": {"pairs_per_call": pairs, "crossing_edges": edges, "calls": workloads.fib_calls(n)}},
    )


def _pairs_of_bodies(metadata: config_pb2.RunMetadata) -> tuple[int, int]:
    """Returns how many tensors Fib's body sends, and how many of them are values of the program's own edges.

    The others tell which calls have been opened. Each is sent once a call, dead or alive.
    """
    nodes = list(_nodes(metadata))
    sends = [node for node in nodes if node.op in ("_Send", "_HostSend") and node.name.startswith("Fib/")]
    announcements = {node.name for node in nodes if node.op == "Recursion>AnnounceCall"}
    return len(sends), sum(node.input[0] not in announcements for node in sends)


def _nodes(metadata: config_pb2.RunMetadata) -> Iterator[tf.compat.v1.NodeDef]:
    """All nodes of a step's partitions, those that a `Recursion>Run` holds in its own graph included."""
    for graph in metadata.partition_graphs:
        for node in graph.node:
            yield node
            if node.op == "Recursion>Run":
                yield from tf1.GraphDef.FromString(node.attr["graph"].s).node


def _measure_processes(cluster: Cluster, n: int, repeats: int, progress: Progress) -> Measured:
    config, calls = tfr.session_config(), workloads.fib_calls(n)
    variants = [
        Variant("one-process", lambda: _fib_runner(cluster.devices[:1], config, cluster.target), static=True),
        Variant("two-processes", lambda: _fib_runner(cluster.devices, config, cluster.target), static=True),
    ]
    case = _fib_case(f"fib({n})-processes", n, variants, ("two-processes", "one-process"))
    result = run_case(case, repeats, progress)
    runner = _fib_runner(cluster.devices, config, cluster.target)
    try:
        messages = _messages(runner.trace(np.int32(n))) / calls
    finally:
        runner.close()
    microseconds = result.variants["two-processes"].median / calls * 1e6
    name = f"fib({n}) over two processes"
    figures = [
        Figure(f"{name}, time a call", microseconds, None, " us"),
        Figure(f"{name}, gRPC messages a call", messages, None, ""),
    ]
    return result, figures, {"processes": {"messages_per_call": messages, "calls": calls}}


def _messages(metadata: config_pb2.RunMetadata) -> int:
    """Returns how many tensors the tasks have asked each other for."""
    devices = metadata.step_stats.dev_stats
    return sum(node.node_name == "RecvTensor" for device in devices for node in device.node_stats)


# --- TreeRNN, its embedding table on another process --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Placement:
    """Where the recursion and where the table is, and whether leaves look their words up in the body."""

    worker: str
    table: str
    in_body: bool = False


def _measure_treernn(cluster: Cluster, trees: int, repeats: int, progress: Progress) -> Measured:
    texts = treebank.generate_split("train", trees)
    words = treebank.vocabulary(texts)
    forests = [treebank.to_forest([tree], words) for tree in texts]
    here, there = cluster.devices
    places = {
        "one-process": _Placement(here, here),
        "table-apart": _Placement(here, there),
        "table-apart-in-body": _Placement(here, there, in_body=True),
    }
    variants = [
        Variant(name, functools.partial(_treernn_runner, cluster.target, place, len(words) + 1), static=True)
        for name, place in places.items()
    ]
    for name, place in (("lookup-here", places["one-process"]), ("lookup-apart", places["table-apart"])):
        variants.append(Variant(name, functools.partial(_lookup_runner, cluster.target, place, len(words) + 1)))
    first: list[float] = []

    def check(number: int, got: Any) -> None:
        """All variants that train give the losses of the first one."""
        if len(got) == 1:  # a lookup has none
            return
        if number == len(first):
            first.append(got[0])
        if not np.isfinite(got[0]) or abs(got[0] - first[number]) > 1e-4 * abs(first[number]):
            raise WrongResult(f"expected the loss {first[number]}, got {got[0]}")

    inputs = [(forest.words, forest.left, forest.right, forest.is_leaf, forest.labels) for forest in forests]
    ratios = [("table-apart", "one-process"), ("table-apart-in-body", "one-process")]
    case = Case("distributed", "treernn-table", variants, inputs, check, ratios, item="step")
    result = run_case(case, repeats, progress)
    name = "TreeRNN step, table on another process"
    in_body = result.ratio("table-apart-in-body", "one-process")
    figures = [
        Figure(f"{name}, over one process and transfers", _over_allowed(result), STEP_OVER_ONE_PROCESS, "x"),
        Figure(f"{name}, lookups in the body, over one process", in_body, None, "x"),
    ]
    return result, figures, {}


def _over_allowed(result: CaseResult) -> float:
    """Returns the time of a step with the table apart over the time that it is allowed to take.

    It is allowed the time of a step in one process and that of the transfers: how much longer a lookup takes when the
    table is apart than when it is not.
    """
    names = ("table-apart", "one-process", "lookup-apart", "lookup-here")
    rounds = zip(*(result.variants[name].samples for name in names), strict=True)
    return float(statistics.median(apart / (one + max(0.0, far - near)) for apart, one, far, near in rounds))


def _tree_placeholders() -> list[tf.Tensor]:
    names = ("words", "left", "right", "is_leaf", "labels")
    return [tf1.placeholder(tf.bool if name == "is_leaf" else tf.int32, [None], name) for name in names]


def _table(place: _Placement, words: int) -> tf.Variable:
    with tf.device(place.table):
        value = np.random.default_rng(1).normal(size=[words, _DIM]).astype(np.float32)
        return tf1.get_variable("table", initializer=value, use_resource=True)


def _initialize(session: tf.compat.v1.Session) -> None:
    session.run(session.graph.get_operation_by_name("initialize"))


def _treernn_runner(target: str, place: _Placement, words: int) -> SessionRunner:
    with tf.Graph().as_default() as graph:
        table = _table(place, words)
        with tf.device(place.worker):
            feeds = _tree_placeholders()
            loss = _treernn_loss(place, table, *feeds)
            step = tf1.train.GradientDescentOptimizer(_RATE).minimize(loss)
            with tf.control_dependencies([step]):
                done = tf.constant(0)
        tf.group(tf1.global_variables_initializer(), name="initialize")
    return SessionRunner(graph, [loss, done], feeds, tfr.session_config(), _initialize, target)


def _treernn_loss(
    place: _Placement,
    table: tf.Variable,
    words: tf.Tensor,
    left: tf.Tensor,
    right: tf.Tensor,
    is_leaf: tf.Tensor,
    labels: tf.Tensor,
) -> tf.Tensor:
    w = tf1.get_variable("w", [2 * _DIM, _DIM], initializer=tf1.glorot_uniform_initializer(1), use_resource=True)
    classifier = tf1.get_variable("c", [_DIM, 2], initializer=tf1.glorot_uniform_initializer(2), use_resource=True)
    rows = None if place.in_body else _lookup(place, table, words)
    shapes = [[1, _DIM], [None, _DIM]]
    outputs = [("h", tf.float32), ("rows", tf.float32)]
    node = tfr.Declare("Node", [("i", tf.int32)], outputs, output_shapes=shapes)

    @tfr.Defun(tf.int32, func_name="Node", out_names=["h", "rows"], output_shapes=shapes, create_grad_func=True)
    def node_impl(i: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        def leaf() -> tuple[tf.Tensor, tf.Tensor]:
            h = _lookup(place, table, tf.gather(words, [i])) if rows is None else tf.gather(rows, [i])
            return h, h

        def inner() -> tuple[tf.Tensor, tf.Tensor]:
            h_left, rows_left = node(tf.gather(left, i))
            h_right, rows_right = node(tf.gather(right, i))
            h = tf.nn.relu(tf.matmul(tf.concat([h_left, h_right], 1), w))
            return h, tf.concat([rows_left, rows_right, h], 0)

        h, rows_below = tf.cond(tf.gather(is_leaf, i), leaf, inner)
        return h, rows_below

    _, vectors = node_impl(tf.size(words) - 1)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels // 3, logits=tf.matmul(vectors, classifier))
    return tf.reduce_sum(losses)


def _lookup(place: _Placement, table: tf.Variable, words: tf.Tensor) -> tf.Tensor:
    with tf.device(place.table):
        return tf.gather(table, words)


def _lookup_runner(target: str, place: _Placement, words: int) -> SessionRunner:
    """The transfers alone: the tree's rows to the worker, and as many back for the update."""
    with tf.Graph().as_default() as graph:
        table = _table(place, words)
        with tf.device(place.worker):
            feeds = _tree_placeholders()
            gradient = 1e-6 * _lookup(place, table, feeds[0])
            optimizer = tf1.train.GradientDescentOptimizer(_RATE)
            step = optimizer.apply_gradients([(tf.IndexedSlices(gradient, feeds[0], tf.shape(table)), table)])
            with tf.control_dependencies([step]):
                done = tf.constant(0)
        tf.group(tf1.global_variables_initializer(), name="initialize")
    return SessionRunner(graph, [done], feeds, tf1.ConfigProto(), _initialize, target)


# --- Heavy leaves, halves on two processes ------------------------------------------------------------------------


def _measure_halves(cluster: Cluster, leaves: int, leaf_seconds: float, repeats: int, progress: Progress) -> Measured:
    products = _calibrated(cluster, leaf_seconds)
    one, two = cluster.devices[:1] * 2, cluster.devices
    variants = [
        Variant("one-process", lambda: _halves_runner(cluster.target, one, leaves, products), static=True),
        Variant("two-processes", lambda: _halves_runner(cluster.target, two, leaves, products), static=True),
    ]
    expected = leaves * _LEAF_DIM

    def check(_: int, got: Any) -> None:
        if got[0] != expected:
            raise WrongResult(f"expected {expected}, got {got[0]}")

    ratios = [("one-process", "two-processes")]
    case = Case("distributed", f"{leaves}-leaves", variants, [(np.int32(leaves // 2),)], check, ratios)
    result = run_case(case, repeats, progress)
    name = f"{leaves} leaves of {leaf_seconds * 1e3:.0f} ms, two processes of one core over one"
    speed = result.ratio("one-process", "two-processes")
    figures = [Figure(name, speed, TWO_PROCESSES_OVER_ONE, " times", at_least=True)]
    return result, figures, {"halves": {"products_per_leaf": products}}


def _calibrated(cluster: Cluster, seconds: float) -> int:
    """Returns how many products of matrices take a leaf's time on one core."""
    runner = _halves_runner(cluster.target, cluster.devices[:1] * 2, 2, _CALIBRATION_PRODUCTS)
    variants = [Variant("leaves", lambda: runner)]
    case = Case("distributed", "calibration", variants, [(np.int32(1),)], lambda *_: None, [])
    leaf = run_case(case, 3).variants["leaves"].median / 2
    return max(1, round(_CALIBRATION_PRODUCTS * seconds / leaf))


def _halves_runner(target: str, devices: Sequence[str], leaves: int, products: int) -> SessionRunner:
    """A call for each half; a body stands in the graph once, on one device, so each half has its own."""
    with tf.Graph().as_default() as graph:
        count = tf1.placeholder(tf.int32, [], "count")
        halves = []
        for side, device in zip(("Left", "Right"), devices, strict=True):
            with tf.device(device):
                halves.append(_define_half(side, products)(count))
        with tf.device(devices[0]):
            total = tf.add_n(halves)
    return SessionRunner(graph, [total], [count], tfr.session_config(), target=target)


def _define_half(name: str, products: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function of a number of leaves, each of which multiplies by a permutation matrix again and again."""
    half = tfr.Declare(name, [("count", tf.int32)], [("sum", tf.float32)], output_shapes=[[]])
    permutation = np.roll(np.eye(_LEAF_DIM, dtype=np.float32), 1, axis=0)

    @tfr.Defun(tf.int32, func_name=name, out_names=["sum"], output_shapes=[[]])
    def half_impl(count: tf.Tensor) -> tf.Tensor:
        def leaf() -> tf.Tensor:
            x = tf.eye(_LEAF_DIM) * tf.cast(count, tf.float32)
            multiply = lambda i, x: (i + 1, tf.matmul(x, permutation))
            return tf.reduce_sum(tf.while_loop(lambda i, _: i < products, multiply, [0, x])[1])

        return tf.cond(count < 2, leaf, lambda: half(count // 2) + half(count - count // 2))

    return half_impl
