"""Runs from outside: errors, limits, cancellation, threads, sessions' options, traces, memory."""
# SPDX-License-Identifier: Apache-2.0

import re
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from limits import HANG_SECONDS
from processes import resident_kib
from tensorflow.core.protobuf import rewriter_config_pb2

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


@pytest.fixture
def count():
    """count(n) = n by recursion."""
    f, define = recursive("Count", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    return f


@pytest.fixture
def endless():
    """A recursion that never ends, and stays shallow: the left call of each level ends first."""
    f, define = recursive("Endless", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: f(f(n - 1) + n - 1) + f(n - 1)))
    return f


class LongRun:
    """A run of `f(1000)` in a session and a thread of its own; made when the call is about to start."""

    def __init__(self, session_config, f):
        started = threading.Event()
        with tf.control_dependencies([tf1.py_func(started.set, [], [], stateful=True)]):
            y = f(1000)
        self.session = tf1.Session(config=session_config)
        self.error = None
        self._thread = threading.Thread(target=self._run, args=[y], daemon=True)
        self._thread.start()
        assert started.wait(HANG_SECONDS)
        time.sleep(0.2)  # less or more, what the tests ask for must hold

    def _run(self, y):
        try:
            self.session.run(y)
        except Exception as error:
            self.error = error

    def close(self):
        """Closes the session and waits for the run to end, not forever."""
        self.session.close()
        self._thread.join(HANG_SECONDS)

    def is_alive(self):
        return self._thread.is_alive()


def run_traced(session, fetches, feeds=None):
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    values = session.run(fetches, feeds, options=options, run_metadata=metadata)
    traced = {stat.node_name for device in metadata.step_stats.dev_stats for stat in device.node_stats}
    ops = {node.op for graph in metadata.partition_graphs for node in graph.node}
    return values, traced, ops


# --- Errors in bodies ---------------------------------------------------------------------------------------------


def failing():
    """Divides by its argument on the way down."""
    f, define = recursive("Divide", [tf.int32, tf.int32], [tf.int32])
    n, x = tf1.placeholder(tf.int32, [], "n"), tf1.placeholder(tf.int32, [], "x")
    # The error is at the bottom.
    define(lambda n, x: tf.cond(n < 1, lambda: tf.math.floordiv(100, x, name="quotient"), lambda: f(n - 1, x)))
    return f(n, x), n, x


def test_error_names_node_and_call_path_when_kernel_fails(session_config, control_flow):
    y, n, x = failing()
    with tf1.Session(config=session_config) as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            session.run(y, {n: 99, x: 0})
        assert "quotient" in error.value.message
        assert "Divide > Divide > Divide > (94 more) > Divide > Divide > Divide" in error.value.message
        # How Python made the operator comes first; that is as long as this test runner's own stack.
        assert len(error.value.message.partition("Divide >")[2]) < 1000
        assert session.run(y, {n: 99, x: 5}) == 20


def test_call_path_names_each_function_when_recursion_is_mutual(session_config):
    a, define_a = recursive("Ping", [tf.int32], [tf.int32])
    b, define_b = recursive("Pong", [tf.int32], [tf.int32])
    define_a(lambda n: b(n - 1))
    define_b(lambda n: tf.cond(n < 1, lambda: 1 // n, lambda: a(n - 1)))
    with tf1.Session(config=session_config) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Ping > Pong > Ping > Pong"):
            session.run(a(tf1.placeholder_with_default(3, [])))


def test_session_lives_on_when_many_runs_fail(session_config):
    y, n, x = failing()
    with tf1.Session(config=session_config) as session:
        for depth in range(30):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {n: depth, x: 0})
            assert session.run(y, {n: depth, x: 1}) == 100


def test_error_of_first_kernel_is_told_when_workers_fail_at_once():
    f, define = recursive("Fail", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 1 // n, lambda: f(n - 1) + f(n - 1)))
    n = tf1.placeholder(tf.int32, [])
    y = f(n)
    with tf1.Session(config=tfr.session_config(workers=4)) as session:
        for _ in range(20):
            with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
                session.run(y, {n: 12})


def test_error_is_told_when_shapes_do_not_fit(session_config):
    f, define = recursive("Shapes", [tf.int32, tf.float32], [tf.float32])
    define(lambda n, x: tf.cond(n < 1, lambda: tf.matmul(x, x), lambda: f(n - 1, x)))
    x = tf1.placeholder(tf.float32)
    y = f(3, x)
    with tf1.Session(config=session_config) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="MatMul"):
            session.run(y, {x: np.ones([2, 3])})
        assert session.run(y, {x: np.ones([2, 2])}).tolist() == [[2, 2], [2, 2]]


def test_error_is_told_when_predicate_is_no_scalar():
    f, define = recursive("Choose", [tf.bool], [tf.int32])
    define(lambda p: tf.cond(tf.ensure_shape(p, None), lambda: 1, lambda: f(tf.logical_not(p))))
    p = tf1.placeholder(tf.bool)
    y = f(p)
    with tf1.Session(config=tfr.session_config()) as session:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(y, {p: [True, False]})
        assert session.run(y, {p: False}) == 1


# --- Depth --------------------------------------------------------------------------------------------------------


def test_error_names_function_depth_limit_and_option_when_too_deep(count):
    n = tf1.placeholder(tf.int32, [])
    y = count(n)
    with tf1.Session(config=tfr.session_config(max_depth=100)) as session:
        assert session.run(y, {n: 99}) == 99
        with pytest.raises(tf.errors.ResourceExhaustedError) as error:
            session.run(y, {n: 100})
        for part in ("Count", "101", "100", "max_depth"):
            assert part in error.value.message
        assert session.run(y, {n: 99}) == 99


def test_runaway_recursion_ends_at_default_depth():
    f, define = recursive("Runaway", [tf.int32], [tf.int32])
    define(lambda n: 1 + f(n + 1))
    y = f(tf1.placeholder_with_default(0, []))
    with tf1.Session(config=tfr.session_config()) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"'Runaway'.*2000001.*2000000.*max_depth"):
            session.run(y)
        assert session.run(tf.constant(1) + 1) == 2


@pytest.mark.thorough
def test_runaway_ends_by_memory_when_frames_are_large():
    f = tfr.Declare("Wide", [("n", tf.int32)], [("r", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Wide", out_names=["r"])
    def wide(n):
        return tf.cond(n < 0, lambda: n, lambda: tf.add_n([f(n + k) for k in range(1, 31)]))

    y = wide(1)
    with tf1.Session(config=tfr.session_config()) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"'Wide' .*512 MiB.*max_depth"):
            session.run(y)


def test_dynamic_recursion_is_error_when_too_deep(monkeypatch, count):
    monkeypatch.setenv("TENSORFLOW_RECURSION_DYNAMIC_MAX_DEPTH", "50")
    n = tf1.placeholder(tf.int32, [])
    y = count(n)
    with tf1.Session() as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="Count.*51.*50.*DYNAMIC_MAX_DEPTH"):
            session.run(y, {n: 50})
        assert session.run(y, {n: 49}) == 49


# --- Cancellation -------------------------------------------------------------------------------------------------


def test_timeout_ends_endless_recursion(session_config, endless, count):
    with tf1.Session(config=session_config) as session:
        with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.CancelledError)):
            session.run(endless(1000), options=tf1.RunOptions(timeout_in_ms=300))
        assert session.run(count(5)) == 5


def test_timeout_ends_run_that_waits_in_body(session_config):
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    f, define = recursive("Wait", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, queue.dequeue, lambda: f(n - 1)))
    y = f(5)
    with tf1.Session(config=session_config) as session:
        with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.CancelledError)):
            session.run(y, options=tf1.RunOptions(timeout_in_ms=200))
        session.run(queue.enqueue(7))
        assert session.run(y) == 7


def test_close_from_another_thread_ends_endless_recursion(session_config, endless):
    long_run = LongRun(session_config, endless)
    long_run.close()
    assert not long_run.is_alive()
    assert isinstance(long_run.error, (tf.errors.CancelledError, RuntimeError))


# --- Threads and ways to run --------------------------------------------------------------------------------------


# Dynamic runs do not: every call is a closure that TensorFlow's thread pool takes before any from outside.
def test_long_static_run_leaves_threads_to_others(endless):
    x = tf1.placeholder(tf.int32, [])
    y = x + 1
    long_run = LongRun(tfr.session_config(), endless)
    values = []
    others = threading.Thread(
        target=lambda: values.extend(long_run.session.run(y, {x: i}) for i in range(50)), daemon=True
    )
    others.start()
    others.join(HANG_SECONDS)
    long_run.close()
    assert values == list(range(1, 51))
    assert not long_run.is_alive()


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_runs_of_many_threads_do_not_mix(fib, workers):
    n = tf1.placeholder(tf.int32, [])
    y = fib(n) + fib(n + 1)
    expected = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    wrong = []
    with tf1.Session(config=tfr.session_config(workers=workers)) as session:
        call = session.make_callable(y, [n])

        def work(seed):
            for i in range(40):
                k = (seed + i) % len(expected)
                value = call(k)
                if value != expected[k]:
                    wrong.append((k, value))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_errors_of_one_thread_leave_the_others_alone(fib):
    y, n, x = failing()
    good = fib(n)
    results = []
    with tf1.Session(config=tfr.session_config(workers=2)) as session:

        def fail():
            for _ in range(20):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run(y, {n: 5, x: 0})

        def succeed():
            results.extend(session.run(good, {n: 10}) for _ in range(20))

        threads = [threading.Thread(target=target) for target in (fail, succeed, fail, succeed)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [55] * 40


def test_callable_runs_with_and_without_feeds(session_config, fib):
    n = tf1.placeholder(tf.int32, [])
    with tf1.Session(config=session_config) as session:
        call = session.make_callable([fib(n), fib(4)], [n])
        assert [call(k) for k in (1, 10)] == [[1, 3], [55, 3]]
        assert session.make_callable(fib(7))() == 13


def test_sessions_of_one_graph_run_side_by_side(fib):
    y = fib(12)
    with tf1.Session() as dynamic, tf1.Session(config=tfr.session_config()) as static:
        assert [dynamic.run(y), static.run(y), dynamic.run(y)] == [144] * 3


def test_call_is_fetched_fed_and_targeted(session_config, fib):
    n = tf1.placeholder(tf.int32, [])
    y = fib(n, name="call")
    z = y * 2
    with tf1.Session(config=session_config) as session:
        assert session.run([y, z, y.op], {n: 8}) == [21, 42, None]
        assert session.run(z, {y: 5}) == 10
        assert session.run([y, z], {y: 5}) == [5, 10]
        assert session.run("call:0", {n: 8}) == 21


def test_function_is_run_whose_every_output_is_fetched_apart(session_config):
    f, define = recursive("Two", [tf.int32], [tf.int32, tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: (0, 100), lambda: tuple(r + 1 for r in f(n - 1))))
    a, b = f(tf1.placeholder_with_default(5, []))
    with tf1.Session(config=session_config) as session:
        assert [session.run(a), session.run(b), session.run([b, a])] == [5, 105, [105, 5]]
        assert session.run([a, b], {a: 1}) == [1, 105]


def test_partial_run_gives_results_or_refuses(session_config, fib):
    a, b = tf1.placeholder(tf.int32, [], "a"), tf1.placeholder(tf.int32, [], "b")
    x, y = fib(a), fib(b)
    z = x + y
    with tf1.Session(config=session_config) as session:
        try:
            handle = session.partial_run_setup([x, z], [a, b])
            assert session.partial_run(handle, x, {a: 10}) == 55
            assert session.partial_run(handle, z, {b: 5}) == 60
        except (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError) as error:
            assert "partial" in error.message.lower()
        assert session.run(z, {a: 5, b: 5}) == 10


def test_server_runs_function(session_config, fib):
    config = session_config
    server = tf1.train.Server.create_local_server(config=config)
    n = tf1.placeholder(tf.int32, [])
    y = fib(n)
    with tf1.Session(server.target, config=config) as session:
        assert [session.run(y, {n: k}) for k in (1, 10, 15)] == [1, 55, 610]


# --- The switch and stock options ---------------------------------------------------------------------------------


def raw_config(**rewrite_options):
    config = tf1.ConfigProto()
    rewrite = config.graph_options.rewrite_options
    rewrite.custom_optimizers.add().name = "function_transformation"
    rewrite.MergeFrom(rewriter_config_pb2.RewriterConfig(**rewrite_options))
    return config


@pytest.mark.parametrize("iterations", ["DEFAULT_NUM_ITERS", "ONE", "TWO"])
def test_three_line_switch_runs_tiny_graph_statically(iterations):
    f = tfr.Defun(tf.int32, func_name="Inc", out_names=["r"])(lambda n: n + 1)
    y = f(tf1.placeholder_with_default(1, []))
    with tf1.Session(config=raw_config(meta_optimizer_iterations=iterations)) as session:
        value, _, ops = run_traced(session, y)
    assert value == 2
    assert "Recursion>Run" in ops
    assert "Recursion>Invoke" not in ops


def test_run_is_static_when_only_a_constant_call_is_fetched(fib):
    with tf1.Session(config=raw_config()) as session:
        value, _, ops = run_traced(session, fib(5))
    assert value == 5
    assert "Recursion>Run" in ops


@pytest.mark.filterwarnings("ignore:Function 'Fib' runs dynamically")
@pytest.mark.parametrize(
    "config", [tf1.ConfigProto(), raw_config(disable_meta_optimizer=True)], ids=["off", "disabled"]
)
def test_run_is_dynamic_when_switch_or_optimizers_are_off(config, fib):
    with tf1.Session(config=config) as session:
        value, _, ops = run_traced(session, fib(10))
    assert value == 55
    assert "Recursion>Run" not in ops
    assert "Recursion>Invoke" in ops


@pytest.mark.parametrize("level", [tf1.OptimizerOptions.L0, tf1.OptimizerOptions.L1])
@pytest.mark.parametrize("static", [False, True])
def test_result_is_the_same_when_optimizer_level_is(level, static, fib, control_flow):
    config = tfr.session_config() if static else tf1.ConfigProto()
    config.graph_options.optimizer_options.opt_level = level
    x = tf1.placeholder(tf.int32, [])
    y = tf.cond(x > 3, lambda: fib(x), lambda: fib(x + 1) * 2)
    with tf1.Session(config=config) as session:
        assert [session.run(y, {x: k}) for k in (3, 10)] == [6, 55]


def test_main_graph_without_call_is_left_alone():
    x = tf1.placeholder(tf.float32, [2])
    y = tf.reduce_sum(x * 2)
    with tf1.Session(config=tfr.session_config()) as session:
        value, _, ops = run_traced(session, y, {x: [1, 2]})
    assert value == 6
    assert not [op for op in ops if op.startswith("Recursion>")]


def test_only_what_is_fetched_runs_when_graph_is_big(fib):
    x = tf1.placeholder(tf.int32, [])
    f, define = recursive("Other", [tf.int32], [tf.int32])
    define(lambda n: f(n + 1))  # endless
    outputs = [fib(x + i) for i in range(100)]
    endless = [f(x + i) for i in range(100)]
    with tf1.Session(config=tfr.session_config()) as session:
        value, traced, _ = run_traced(session, outputs[4] + 1, {x: 6})
    assert endless and value == 56
    assert not [name for name in traced if "Other" in name]


def test_trace_names_nodes_of_bodies(fib, control_flow):
    y = fib(tf1.placeholder_with_default(6, []))
    with tf1.Session(config=tfr.session_config()) as session:
        value, traced, _ = run_traced(session, y)
        assert value == 8
        assert session.run(y) == 8
    assert any(re.match(r"Fib/.*[Ll]ess", name) for name in traced), traced
    assert any(re.match(r"Fib/.*[Aa]dd", name) for name in traced), traced
    names = {node.name for node in tfr.transform_graph(tf1.get_default_graph(), y).node}
    assert any(name.startswith("Fib/") for name in names)


# --- Memory -------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_memory_stays_when_many_runs_succeed_and_fail():
    f, define = recursive("Leak", [tf.int32, tf.float32], [tf.float32])
    x = tf1.placeholder(tf.float32)
    n = tf1.placeholder(tf.int32, [])
    deeper = lambda n, x: tf.matmul(f(n - 1, x), x) + f(n - 2, x)
    define(lambda n, x: tf.cond(n < 1, lambda: tf.matmul(x, x), lambda: deeper(n, x)))
    y = f(n, x)
    good, bad = np.eye(40), np.ones([40, 41])
    with tf1.Session(config=tfr.session_config(workers=2)) as session:

        def runs(count):
            for i in range(count):
                if i % 2:
                    session.run(y, {n: 4, x: good})
                else:
                    with pytest.raises(tf.errors.InvalidArgumentError):
                        session.run(y, {n: 4, x: bad})

        runs(300)
        before = resident_kib()
        runs(2000)
        assert resident_kib() - before < 16 * 1024
