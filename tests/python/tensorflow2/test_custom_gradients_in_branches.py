"""Custom gradients that read tensors of the branch around them: of every order, as without recursion in the graph."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative

import tensorflow_recursion as tfr

FLOAT, INT = tf.TensorSpec([], tf.float64), tf.TensorSpec([], tf.int32)


@tf.custom_gradient
def square(x):
    return x * x, lambda dy: dy * 2 * x


@tf.custom_gradient
def product(x, y):
    return x * y, lambda dy: (dy * y, dy * x)


def of_an_operator(f, x, n):
    return f(square(tf.sin(x)), n - 1) * x


def of_an_argument(f, x, n):
    return f(square(x), n - 1) * tf.sin(x)


def of_a_call(f, x, n):
    y = tf.cos(x)
    return product(f(x * 0.5, n - 1), y) + product(x, y)


def of_the_branch_around_the_branch(f, x, n):
    y = tf.sin(x)
    return tf.cond(tf.equal(n % 2, 0), lambda: product(f(y, n - 1), y), lambda: f(square(x), n - 1) + square(y))


def of_what_another_branch_reads(f, x, n):
    return tf.cond(n > 1, lambda: x * f(x, n - 1), lambda: square(x))


def of_what_another_branch_in_a_loop_reads(f, x, n):
    step = lambda y: tf.cond(n > 1, lambda: y * f(x, n - 1), lambda: square(y))
    return tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, step(y)), (0, x))[1]


STEPS = [
    of_an_operator,
    of_an_argument,
    of_a_call,
    of_the_branch_around_the_branch,
    of_what_another_branch_reads,
    of_what_another_branch_in_a_loop_reads,
]


def recursive(step):
    @tfr.recursive(input_signature=[FLOAT, INT], output_signature=FLOAT, autograph=False)
    def f(x, n):
        return tf.cond(n < 1, lambda: x * x * x, lambda: step(f, x, n))

    return f


def unrolled(step):
    def f(x, n):
        return x * x * x if int(n) < 1 else step(f, x, n)

    return f


def at_depth(f):
    return lambda x: f(x, tf.constant(3))


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(6)
@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_derivatives_are_those_of_the_function_unrolled(step, is_static, static_or_error):
    x = tf.constant(0.5, tf.float64)
    f = recursive(step)
    with tfr.config.static_execution(is_static):
        for order in (1, 2) if step is of_what_another_branch_in_a_loop_reads else (1, 2, 3):  # a third takes long
            expected = nested_derivative(at_depth(unrolled(step)), x, order)
            got = nested_derivative(at_depth(f), x, order)
            np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=f"order {order}")


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("is_of_function", [False, True], ids=["in_a_body", "around_a_call"])
@pytest.mark.parametrize("size", [2, 200])
@pytest.mark.parametrize("kind", ["branch", "loop"])
def test_derivative_by_an_eager_tensor_that_a_custom_gradient_reads(kind, size, is_of_function):
    """TensorFlow raises an error for such gradients of branches and loops, as around a call."""
    factors = tf.range(1.0, size + 1)

    @tf.custom_gradient
    def scaled(x):
        return x * tf.reduce_sum(factors), lambda dy: dy * tf.reduce_sum(factors)

    def step(x):
        if kind == "loop":
            for _ in tf.range(2):
                x = scaled(x)
        elif x > 0.0:
            x = scaled(x)
        return x

    @tfr.recursive
    def recursion(x, n):
        if n < 1:
            return x
        return recursion(x, n - 1) if is_of_function else step(recursion(x, n - 1))

    @tf.function
    def function(x):
        y = recursion(x, tf.constant(1))
        return step(y) if is_of_function else y

    x, total = tf.constant(1.0), size * (size + 1) / 2
    for run in (lambda x: recursion(x, tf.constant(1)), function)[is_of_function:]:
        with tf.GradientTape() as outer:
            outer.watch(factors)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = run(x)
            slope = tape.gradient(y, x)
        np.testing.assert_allclose(slope, total**2 if kind == "loop" else total)
        np.testing.assert_allclose(outer.gradient(slope, factors), [2 * total if kind == "loop" else 1.0] * size)
