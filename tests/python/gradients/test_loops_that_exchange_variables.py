"""Loops of which an iteration returns what it was given in another place: `lambda i, a, b: (i + 1, b, a * b)`.

A variable that is returned is not the same in all iterations. TensorFlow takes it for that where it differentiates a
graph of a session, or the body of a function.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import derivatives, differences, fed

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32
AT, TIMES = 0.7, 4

# What an iteration makes of three numbers, and of x, which it captures.
STEPS = {
    "shifted": lambda a, b, c, x: (b, c, a * b * x),
    "exchanged": lambda a, b, c, x: (b, a, a * c + b * x),
    "rotated": lambda a, b, c, x: (c, a * b + x, b),
    "one twice": lambda a, b, c, x: (b, b, a * b * c),
    "one kept": lambda a, b, c, x: (c * a, b, a * b * x),
    "one kept twice": lambda a, b, c, x: (b, b, c * b + a),
    "one for x": lambda a, b, c, x: (x, a, a * b * c),
}


def starts(x):
    return (x, 1.1 * x * x, x + 0.2)


def in_graph(step, times, x):
    body = lambda i, *values: (i + 1, *step(*values, x))
    return sum(tf.while_loop(lambda i, *_: i < times, body, [0, *starts(x)])[1:])


def in_python(step, times, x):
    values = starts(x)
    for _ in range(times):
        values = step(*values, x)
    return sum(values)


def check(run, y, x, oracle, orders):
    """The value and its derivatives of one or two orders."""
    gradient = lambda x: differences(oracle, [x], [1.0], step=1e-4)[0]
    expected = [oracle(AT), gradient(AT), differences(gradient, [AT], [1.0], step=1e-4)[0]]
    np.testing.assert_allclose(run(derivatives(y, x, orders)), expected[: orders + 1], rtol=1e-5)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", STEPS)
def test_derivatives_of_loop_in_body(run, control_flow, name):
    f, define = recursive("F", [F64, I32], [F64])
    step = STEPS[name]
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: in_graph(step, TIMES, tf.ensure_shape(f(x, n - 1), []))))
    [x] = fed([AT])

    def oracle(x):
        return in_python(step, TIMES, in_python(step, TIMES, x))

    check(run, f(x, 2), x, oracle, 2)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STEPS)
def test_derivatives_of_loop_around_call(run, control_flow, name):
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.sin(f(x, n - 1))))
    [x] = fed([AT])
    around = lambda sine: lambda a, b, c, x: [*STEPS[name](a, b, c, x)[:2], sine(STEPS[name](a, b, c, x)[2])]
    y = in_graph(around(lambda c: tf.ensure_shape(f(c, 2), [])), TIMES, x)
    oracle = lambda x: in_python(around(lambda c: np.sin(np.sin(c))), TIMES, x)
    check(run, y, x, oracle, 1 if control_flow == "v1" else 2)  # TensorFlow has no second order of loops v1


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STEPS)
def test_derivatives_of_loop_in_loop_in_branch(run, control_flow, name):
    f, define = recursive("F", [F64, I32], [F64])
    outer = lambda loop: lambda a, b, c, x: (b, loop(STEPS[name], 3, a / 4), c * x)

    @define
    def F(x, n):
        inner = lambda step, times, x: in_graph(step, times, tf.ensure_shape(x, []))
        loops = lambda: in_graph(outer(inner), 3, tf.ensure_shape(f(x, n - 1), []))
        return tf.cond(n < 1, lambda: x, lambda: tf.cond(x > 9.0, lambda: x, loops))

    [x] = fed([AT / 4])
    y = f(4.0 * x, 1) / 4.0
    oracle = lambda x: in_python(outer(in_python), 3, x)
    [expected] = differences(oracle, [AT], [1.0])
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), expected, rtol=1e-6)


@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("around", [lambda f: f, tf.function])
def test_derivatives_by_tapes(name, around):
    """In eager mode and in a tf.function."""
    with tf.__internal__.eager_context.eager_mode():

        @tfr.recursive(input_signature=[tf.TensorSpec([], F64), tf.TensorSpec([], I32)])
        def f(x, n):
            if n < 1:
                return x
            return in_graph(STEPS[name], TIMES, f(x, n - 1))

        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x, 2)
            return tape.gradient(y, x)

        got = around(gradient)(tf.constant(AT, F64)).numpy()
    [expected] = differences(lambda x: in_python(STEPS[name], TIMES, in_python(STEPS[name], TIMES, x)), [AT], [1.0])
    np.testing.assert_allclose(got, expected, rtol=1e-6)
