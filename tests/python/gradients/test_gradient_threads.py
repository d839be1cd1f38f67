"""Several threads build graphs with gradients at once, each its own, beside threads that use stock control flow."""
# SPDX-License-Identifier: Apache-2.0

import concurrent.futures
import sys
import threading

import pytest
import tensorflow as tf
from building import recursive
from tensorflow.python.ops import cond_v2, control_flow_util, gradients_util

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

THREADS = 8


@pytest.fixture
def interleaved():
    """Threads change every few operations instead of every few milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def power(n):
    """x ** n at 2 and its derivative, with a loop and a branch in the body."""
    call, define = recursive("Power", [tf.float32, tf.int32], [tf.float32], [[]])

    @define
    def Power(x, n):
        once = lambda: tf.while_loop(lambda i, _: i < 1, lambda i, y: (i + 1, y * call(x, n - 1)), [0, x])[1]
        return tf.cond(n < 1, lambda: tf.ones([]), once)

    x = tf.constant(2.0)
    y = Power(x, n)
    return [y, *tf.gradients(y, x)]


def squared(n):
    """Stock TensorFlow alone: a branch and its gradient."""
    x = tf.constant(2.0)
    y = tf.cond(tf.constant(n) > 0, lambda: x * x, lambda: x)
    return [y, *tf.gradients(y, x)]


def build_and_run(build, n, barrier):
    with tf.Graph().as_default() as graph:
        barrier.wait()
        fetches = build(n)
        with tf1.Session(config=tfr.session_config()) as session:
            return session.run(fetches), {op.type for op in graph.get_operations()}


@pytest.mark.thorough
def test_graphs_with_gradients_are_built_in_threads(interleaved, control_flow):
    is_v2 = control_flow_util.EnableControlFlowV2
    barrier = threading.Barrier(THREADS)
    builds = [(power if i % 4 else squared, i % 3 + 1) for i in range(THREADS)]
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        done = [pool.submit(build_and_run, build, n, barrier) for build, n in builds]
        for (build, n), result in zip(builds, done, strict=True):
            values, ops = result.result(timeout=240)
            assert values == ([2**n, n * 2 ** (n - 1)] if build is power else [4, 4])
            # What the main graph has is what the process's switch says, whatever bodies are made of.
            if build is squared:
                assert bool({"If", "StatelessIf"} & ops) == (control_flow == "v2")
    assert cond_v2.control_flow_util is control_flow_util
    assert control_flow_util.EnableControlFlowV2 is is_v2
    assert gradients_util._maybe_colocate_with.__module__ == gradients_util.__name__
