"""The main graph beside calls: its operators spread over threads as they do without."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks import workloads

tf1 = tf.compat.v1


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_chains_beside_a_call_give_the_same_on_any_number_of_threads(threads):
    generator = np.random.default_rng(1)
    weights = generator.normal(0, 0.2, [6, 4, 60, 60]).astype(np.float32)
    start = generator.normal(0, 1, [60, 60]).astype(np.float32)
    with tf.Graph().as_default() as graph:
        x, n = tf1.placeholder(tf.float32, [60, 60]), tf1.placeholder(tf.int32, [])
        ends, total = [], tf1.get_variable("total", initializer=0.0, use_resource=True)
        for chain in weights:
            end = x
            for weight in chain:
                end = tf.matmul(end, weight)
            ends.append(end)
        with tf.control_dependencies([total.assign_add(1.0)]):
            count = total.read_value()
        fetches = [*ends, count, workloads.FIB.define()(n)]
        initializer = tf1.global_variables_initializer()
    config = tf1.ConfigProto(inter_op_parallelism_threads=threads, use_per_session_threads=True)
    with tf1.Session(graph=graph, config=tfr.session_config(config)) as session:
        session.run(initializer)
        for step in range(1, 31):
            *values, count, fib = session.run(fetches, {x: start, n: step % 9})
            assert count == step
            assert fib == workloads.FIB.expected((step % 9,))
            for value, chain in zip(values, weights, strict=True):
                np.testing.assert_allclose(value, start @ chain[0] @ chain[1] @ chain[2] @ chain[3], rtol=0, atol=1e-3)


@pytest.mark.parametrize("threads", [2, 4])
def test_chains_in_a_loop_read_what_they_wait_for(threads):
    # In a loop's frame the slot of a chain's operand is one in which a number was before.
    size, weights = 160, np.random.default_rng(1).normal(0, 160**-0.5, [5, 160, 160]).astype(np.float32)

    def body(i, a, b, c, d, x, y):
        number = (a * b) * (c * d)
        in_chain = tf.matmul(tf.matmul(tf.matmul(tf.fill([size, size], number), weights[0]), x), weights[1])
        beside = tf.matmul(tf.matmul(tf.matmul(y, weights[2]), weights[3]), weights[4])
        return i + 1, a * 0.5 + 0.5, b * 0.25 + 0.75, c, d, tf.tanh(in_chain), tf.tanh(beside)

    def results(with_call):
        with tf.Graph().as_default() as graph:
            x = tf1.placeholder(tf.float32, [size, size])
            numbers = [x[0, 0] * 0.0 + number for number in (0.5, 0.7, 0.9, 0.3)]
            loop = tf1.while_loop(lambda i, *_: i < 6, body, [tf.constant(0), *numbers, x, x])
            fetches = [*loop[-2:], workloads.FIB.define()(tf1.placeholder_with_default(6, []))][: 3 if with_call else 2]
        config = tf1.ConfigProto(inter_op_parallelism_threads=threads, use_per_session_threads=True)
        with tf1.Session(graph=graph, config=tfr.session_config(config) if with_call else config) as session:
            return [session.run(fetches, {x: weights[0]})[:2] for _ in range(5 if with_call else 1)]

    [expected] = results(with_call=False)
    for got in results(with_call=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)


def test_an_operator_that_fails_beside_a_call_names_itself():
    with tf.Graph().as_default() as graph:
        x, n = tf1.placeholder(tf.float32, [None, None]), tf1.placeholder(tf.int32, [])
        others = [tf.matmul(tf.random.uniform([50, 50]), tf.random.uniform([50, 50])) for _ in range(8)]
        inverse = tf.linalg.inv(x, name="inverse")
        fetches = [tf.add_n(others), inverse, workloads.FIB.define()(n)]
    with tf1.Session(graph=graph, config=tfr.session_config()) as session:
        for _ in range(20):
            with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible[^$]*inverse"):
                session.run(fetches, {x: np.zeros([3, 3]), n: 8})
            session.run(fetches, {x: np.eye(3), n: 8})
