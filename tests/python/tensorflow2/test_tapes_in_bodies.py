"""Tapes in bodies, around calls of recursive functions and of tf.functions, and derivatives of such bodies."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

F64 = tf.float64
X = np.array([[0.4, 0.9, 0.3], [0.7, 0.2, 0.5]])
OUTERMOST = pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])


@pytest.fixture
def kernel():
    return tf.Variable([[0.6, -0.2, 0.1], [0.3, 0.4, -0.5], [-0.1, 0.2, 0.7]], dtype=F64)


def reads_itself(define, kernel):
    @define
    def inner(x, n):
        if n < 1:
            return tf.reduce_sum(x**2)
        return inner(tf.tanh(x @ kernel), n - 1)

    return inner


def calls_a_tf_function(define, kernel):
    @tf.function
    def layer(x):
        return tf.tanh(x @ kernel)

    @define
    def inner(x, n):
        if n < 1:
            return tf.reduce_sum(x**2)
        return inner(layer(x), n - 1)

    return inner


def by_argument(define, inner, kernel):
    @define
    def outer(x, n):
        if n < 1:
            return tf.reduce_sum(x**3)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x, 1)
        return outer(tape.gradient(y, x) * 0.3 + x, n - 1)

    return outer


def by_argument_in_a_loop(define, inner, kernel):
    @define
    def outer(x, n):
        if n < 1:
            return tf.reduce_sum(x**3)
        for _ in tf.range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = inner(x, 1)
            x = tape.gradient(y, x) * 0.3 + x
        return outer(x, n - 1)

    return outer


def by_variable(define, inner, kernel):
    @define
    def outer(x, n):
        if n < 1:
            return tf.reduce_sum(x**3)
        with tf.GradientTape() as tape:
            y = inner(x, 1)
        return outer(x + tape.gradient(y, kernel)[:2] * 0.1, n - 1)

    return outer


def derivatives(function, kernel):
    def compute(x, n):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = function(x, n)
            slope = tape.gradient(y, x)
        return y, slope, outer.gradient(slope, x), tape.gradient(y, kernel)

    return compute


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(3)
@OUTERMOST
@pytest.mark.parametrize("inner", [reads_itself, calls_a_tf_function])
@pytest.mark.parametrize("outer", [by_argument, by_argument_in_a_loop, by_variable])
def test_derivatives_are_those_of_python(outer, inner, outermost, kernel):
    """The variable is captured by a function that is traced while the tape's body is."""

    def all_of(define):
        return derivatives(outer(define, inner(define, kernel), kernel), kernel)

    x = tf.constant(X)
    found = outermost(all_of(tfr.recursive))(x, tf.constant(2))
    for got, expected in zip(found, all_of(lambda body: body)(x, 2), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)
