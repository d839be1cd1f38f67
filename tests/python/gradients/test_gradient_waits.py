"""Gradients whose operators wait for the gradient of a call, and for nothing else of their branch or iteration.

TensorFlow's own gradients are often written so: that of a sine makes all it needs under `tf.control_dependencies` of
the gradient that has come.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import differences

F64, I32 = tf.float64, tf.int32


def joined(dy):
    """Waits for the gradient through two more operations."""
    with tf.control_dependencies([tf.group(tf.group(dy))]):
        return tf.constant(5.0, F64)


def waiting(dy):
    with tf.control_dependencies([dy]):
        return tf.constant(5.0, F64)


def computed(dy):
    with tf.control_dependencies([dy]):
        return tf.reduce_sum(tf.fill([2], tf.constant(2.5, F64)))


def chained(dy):
    with tf.control_dependencies([waiting(dy)]):
        return tf.constant(5.0, F64)


def with_gradient(x, make):
    """x * 3, the gradient of which is made by `make`."""

    @tf.custom_gradient
    def operator(x):
        return x * 3.0, make

    return operator(x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [waiting, joined, computed, chained])
def test_constant_behind_gradient_call_stays_in_its_branch(run, control_flow, make):
    f, define = recursive("F", [I32, F64], [F64])
    define(lambda n, x: tf.cond(n < 1, lambda: 2.0 * x, lambda: f(n - 1, with_gradient(x, make))))
    x = tf.constant(1.5, F64)
    for n, expected in enumerate([2.0, 5.0, 5.0]):
        assert run(tf.gradients(f(n, x), x)[0]) == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [waiting, joined, computed, chained])
def test_constant_behind_gradient_call_stays_in_its_iteration(run, control_flow, make):
    f, define = recursive("F", [I32, F64], [F64], shapes=[[]])

    @define
    def F(n, x):
        step = lambda i, v: (i + 1, f(n - 1, with_gradient(v, make)) + v)
        return tf.cond(n < 1, lambda: 2.0 * x, lambda: tf.while_loop(lambda i, _: i < 3, step, [0, x])[1])

    x = tf.constant(1.5, F64)
    for n, expected in enumerate([2.0, 1.0 + 3 * 5, 1.0 + 3 * 5]):  # each of three iterations adds 5 to what comes
        assert run(tf.gradients(f(n, x), x)[0]) == expected


OPERATORS = {
    "sin": (tf.sin, np.sin),
    "exp": (tf.exp, np.exp),
    "asinh": (tf.asinh, np.arcsinh),
    "reciprocal": (tf.math.reciprocal, np.reciprocal),
}


@pytest.mark.each_value
@pytest.mark.parametrize("where", ["body", "main graph", "loop in loop"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operator_in_argument_of_call_in_loop_has_gradient(run, control_flow, name, where):
    operator, numpy_operator = OPERATORS[name]
    f, define = recursive("F", [I32, F64], [F64], shapes=[[]])

    def loop(n, x):
        step = lambda i, v: (i + 1, f(n - 1, operator(v * 0.25 + 0.3)))
        return tf.while_loop(lambda i, _: i < 2, step, [0, x])[1]

    def loops(n, x):
        return tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, loop(n, v)), [0, x])[1]

    inner = {"body": loop, "main graph": lambda n, x: f(n - 1, x), "loop in loop": loops}[where]
    define(lambda n, x: tf.cond(n < 1, lambda: 0.5 * x, lambda: inner(n, x)))

    def oracle(x, n=2, is_body=True):
        if n < 1 and is_body:
            return 0.5 * x
        if where == "main graph" and is_body:
            return oracle(x, n - 1)
        for _ in range(4 if where == "loop in loop" else 2):
            x = oracle(numpy_operator(x * 0.25 + 0.3), n - 1)
        return x

    x = tf.constant(0.7, F64)
    is_in_main = where == "main graph"
    y = loop(2, x) if is_in_main else f(2, x)
    value, gradient = run([y, tf.gradients(y, x)[0]])
    np.testing.assert_allclose(value, oracle(np.float64(0.7), is_body=not is_in_main), rtol=1e-9)
    [expected] = differences(lambda x: oracle(x, is_body=not is_in_main), [0.7], [1.0])
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-9)


def wait_for(tensor):
    with tf.control_dependencies([tensor]):
        return tf.constant(1)


ASKS = {
    "group": lambda dx: tf.group(dx),
    "group of groups": lambda dx: tf.group(tf.group(dx), tf.no_op()),
    "operation": lambda dx: dx.op,
    "wait": wait_for,
    "tuple": lambda dx: tf.tuple([dx])[0],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("source", ["argument", "weight"])
def test_gradient_is_computed_when_somebody_only_waits_for_it(run, control_flow, ask, source):
    counts = []

    def count(dy):
        counts.append(dy)
        return dy

    counted = lambda x: with_gradient(x, lambda dy: tf.ensure_shape(tf.numpy_function(count, [dy], F64), []))
    weight = tf.constant(1.5, F64)
    f, define = recursive("F", [I32, F64], [F64], shapes=[[]])
    define(lambda n, x: tf.cond(n < 1, lambda: counted(x), lambda: counted(f(n - 1, x * weight))))
    x = tf.constant(0.5, F64)
    run(ASKS[ask](tf.gradients(f(3, x), {"argument": x, "weight": weight}[source])[0]))
    assert len(counts) == 4


def test_gradient_is_computed_when_a_body_only_waits_for_it(run):
    counts = []

    def count(dy):
        counts.append(dy)
        return dy

    f, define = recursive("F", [I32, F64], [F64], shapes=[[]])
    counted = lambda x: with_gradient(x, lambda dy: tf.ensure_shape(tf.numpy_function(count, [dy], F64), []))
    define(lambda n, x: tf.cond(n < 1, lambda: counted(x), lambda: f(n - 1, x)))
    g, define_g = recursive("G", [F64], [I32])
    define_g(lambda x: wait_for(tf.gradients(f(2, x), x)[0]))
    run(g(tf.constant(0.5, F64)))
    assert len(counts) == 1
