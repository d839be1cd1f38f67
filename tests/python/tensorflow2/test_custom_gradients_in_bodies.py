"""Custom gradients that read tensors of the body around them, also in branches and loops: of every order."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
FLOAT, INT = tf.TensorSpec([], tf.float64), tf.TensorSpec([], tf.int32)


@tf.custom_gradient
def of_an_argument(x):
    return x * x * x, lambda dy: dy * 3 * x * x


@tf.custom_gradient
def of_an_operator(x):
    z = tf.sin(x)
    return z * x, lambda dy: dy * (tf.cos(x) * x + z)


@tf.custom_gradient
def in_a_branch(x):
    z = tf.sin(x)

    def grad(dy):
        return tf.cond(z > 0.0, lambda: dy * (tf.cos(x) * x + z), lambda: dy * 7.0)

    return z * x, grad


@tf.custom_gradient
def in_a_loop(x):
    z = tf.sin(x)

    def grad(dy):
        return tf.while_loop(lambda i, _: i < 1, lambda i, dx: [i + 1, dx * (tf.cos(x) * x + z)], [0, dy])[1]

    return z * x, grad


@tf.custom_gradient
def by_another_one(x):
    z = tf.sin(x)

    @tf.custom_gradient
    def times_slope(dy, x):
        slope = tf.cos(x) * x + tf.sin(x)
        return dy * slope, lambda ddy: (ddy * slope, ddy * dy * (2 * tf.cos(x) - tf.sin(x) * x))

    return z * x, lambda dy: times_slope(dy, x)


STEPS = [of_an_argument, of_an_operator, in_a_branch, in_a_loop, by_another_one]


def recursive(step):
    @tfr.recursive(input_signature=[FLOAT, INT], output_signature=FLOAT)
    def f(x, n):
        y = step(tf.sin(x))
        if n < 1:
            return y
        return f(y * 2.0, n - 1)

    return lambda x: f(x, tf.constant(1))


def unrolled(step):
    return lambda x: step(tf.sin(step(tf.sin(x)) * 2.0))


@pytest.mark.each_value
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_derivatives_are_those_of_the_function_unrolled(step, order):
    x = tf.constant(0.4, tf.float64)
    want = nested_derivative(unrolled(step), x, order)
    f = recursive(step)
    np.testing.assert_allclose(tf.function(lambda x: nested_derivative(f, x, order))(x), want)


@pytest.mark.each_value
@pytest.mark.parametrize("step", STEPS)
def test_second_derivatives_in_a_session_are_those_of_the_function_unrolled(step):
    want = nested_derivative(unrolled(step), tf.constant(0.4, tf.float64), 2)
    with tf.Graph().as_default():
        x = tf.constant(0.4, tf.float64)
        (first,) = tf.gradients(recursive(step)(x), x)
        (second,) = tf.gradients(first, x)
        with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
            np.testing.assert_allclose(session.run(second), want)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("in_branch", [True, False])
def test_derivatives_where_it_reads_a_constant_from_outside(in_branch):
    factor = tf.constant(2.0, tf.float64)

    @tf.custom_gradient
    def scaled(x):
        return tf.exp(x) * factor, lambda dy: dy * factor * x

    @tfr.recursive(input_signature=[FLOAT, INT], output_signature=FLOAT, autograph=False)
    def f(x, n):
        if in_branch:
            return tf.cond(n < 1, lambda: scaled(x), lambda: scaled(f(x * 0.1, n - 1) * 0.1))
        y = scaled(x * factor)
        return tf.cond(n < 1, lambda: y, lambda: f(y * 0.1, n - 1))

    def unrolled(x):
        return scaled(scaled(x * 0.1) * 0.1) if in_branch else scaled(scaled(x * factor) * 0.1 * factor)

    x = tf.constant(0.4, tf.float64)
    for order in (1, 2, 3):
        got = nested_derivative(lambda x: f(x, tf.constant(1)), x, order)
        np.testing.assert_allclose(got, nested_derivative(unrolled, x, order), err_msg=f"order {order}")


def of_one_in_the_gradient_of_another(x, *, is_argument):
    """The gradient of the inner one reads `sine`, which the gradient that it is in does not use."""

    @tf.custom_gradient
    def square(x):
        sine = tf.sin(x)

        def times_slope(dy, x, sine):
            return 2.0 * dy * x, lambda ddy: (ddy * x * sine, ddy * dy * sine, None)

        @tf.custom_gradient
        def given(dy, x, sine):
            return times_slope(dy, x, sine)

        @tf.custom_gradient
        def reading(dy, x):
            value, gradient = times_slope(dy, x, sine)
            return value, lambda ddy: gradient(ddy)[:2]

        return x * x, lambda dy: given(dy, x, sine) if is_argument else reading(dy, x)

    return square(x)


@pytest.mark.parametrize("in_branch", [False, True])
def test_error_where_one_in_another_reads_what_that_does_not_use(in_branch):
    @tfr.recursive(input_signature=[FLOAT, INT], output_signature=FLOAT)
    def f(x, n):
        if in_branch:
            if n < 1:
                return x
            return f(of_one_in_the_gradient_of_another(x, is_argument=False), n - 1)
        y = of_one_in_the_gradient_of_another(x, is_argument=False)
        return y if n < 1 else f(y, n - 1)

    message = "Function 'f'.* to the inner tf.custom_gradient as an argument"
    with pytest.raises((LookupError, ValueError), match=message):
        nested_derivative(lambda x: f(x, tf.constant(1)), tf.constant(0.4, tf.float64), 2)


@pytest.mark.thorough
def test_one_in_another_takes_what_that_does_not_use_as_an_argument():
    def step(x):
        return of_one_in_the_gradient_of_another(x, is_argument=True)

    x = tf.constant(0.4, tf.float64)
    want = nested_derivative(unrolled(step), x, 2)
    np.testing.assert_allclose(nested_derivative(recursive(step), x, 2), want)


# --- Of what is outside of the body -----------------------------------------------------------------------------------


def looped(step, x):
    return tf.while_loop(lambda i, _: i < 2, lambda i, y: [i + 1, step(y)], [0, x])[1]


LOOPS = {
    "loop": looped,
    "map": lambda step, x: tf.reduce_sum(tf.map_fn(step, tf.stack([x, 2.0 * x]))),
    "loop in a branch": lambda step, x: tf.cond(x > -9.0, lambda: looped(step, x), lambda: x),
    "branch in a loop": lambda step, x: looped(lambda y: tf.cond(y > -9.0, lambda: step(y), lambda: y), x),
    "loop in a loop": lambda step, x: looped(lambda y: looped(step, y), x),
}


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("loop", LOOPS.values(), ids=list(LOOPS))
def test_gradient_in_a_loop_reads_a_variable_and_an_eager_tensor(loop, is_large, order):
    """TensorFlow's gradients of loops take these for inputs, and forget to return them."""
    w, sizes = tf.Variable(0.75, dtype=tf.float64), tf.ones([1000 if is_large else 2], tf.float64)

    @tf.custom_gradient
    def step(x):
        def grad(dy, variables):
            slope = dy * tf.cos(x * w) * tf.reduce_mean(sizes) * 3.0
            return slope * w, [slope * x for _ in variables]

        return tf.sin(x * w), grad

    @tfr.recursive(input_signature=[FLOAT, INT], output_signature=FLOAT, autograph=False)
    def recursion(x, n):
        y = loop(step, x)
        return tf.cond(n < 1, lambda: y, lambda: recursion(y, n - 1))

    def derivatives(function):
        """By the argument, and by the variable."""
        with tf.GradientTape() as tape:
            lower = nested_derivative(function, tf.constant(0.4, tf.float64), order - 1)
        return [nested_derivative(function, tf.constant(0.4, tf.float64), order), tape.gradient(lower, w)]

    found = derivatives(lambda x: recursion(x, tf.constant(1)))
    np.testing.assert_allclose(found, derivatives(lambda x: loop(step, loop(step, x))), rtol=1e-9)


@pytest.mark.each_value
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("is_in_branch", [False, True])
@pytest.mark.parametrize("value", [-0.5, [0.25] * 3, np.full([1000], -2.0)], ids=["number", "small", "large"])
def test_gradient_reads_an_eager_tensor_that_the_body_does_not(value, is_in_branch, order):
    """As one that reverses gradients does: its factor is no argument of the body, and cannot become one any more."""
    factor = tf.constant(value, tf.float64)

    @tf.custom_gradient
    def reversed_slope(x):
        return x * x, lambda dy: 2.0 * x * dy * tf.reduce_mean(factor)

    @tfr.recursive(input_signature=[FLOAT, INT])
    def recursion(x, n):
        y = reversed_slope(x) if not is_in_branch else x
        if n < 1:
            return reversed_slope(x) if is_in_branch else y
        return tf.sin(recursion(y, n - 1))

    expected = lambda x: tf.sin(reversed_slope(x)) if is_in_branch else tf.sin(reversed_slope(reversed_slope(x)))
    derivatives = [
        nested_derivative(function, tf.constant(0.7, tf.float64), order)
        for function in (lambda x: recursion(x, tf.constant(1)), expected)
    ]
    np.testing.assert_allclose(*derivatives, rtol=1e-9)
