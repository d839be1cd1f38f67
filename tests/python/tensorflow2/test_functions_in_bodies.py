"""`tf.function`s that bodies call, and that call recursive functions in turn: values and derivatives."""
# SPDX-License-Identifier: Apache-2.0

import gc

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


def of_another(recursive, function, v):
    @recursive
    def g(x, n):
        if n < 1:
            return x * x
        return g(x, n - 1) * x

    @function
    def h(x, n):
        return tf.sin(g(x, n) * x)

    @recursive
    def f(x, n):
        if n < 1:
            return x
        return f(x, n - 1) * h(x, n)

    return f


def of_one_that_reads_a_variable(recursive, function, v):
    @function
    def h(x, n):
        return tf.sin(f(x, n) * v) + v

    @recursive
    def f(x, n):
        if n < 1:
            return x
        return h(x, n - 1) * x * v

    return f


def in_branches_and_loops(recursive, function, v):
    @function
    def h(x, n):
        if n < 1:
            return tf.sin(x)
        y = x
        for _ in tf.range(2):
            y = y * f(x, n) + x
        return y

    @recursive
    def f(x, n):
        if n < 1:
            return x
        y = x
        for _ in tf.range(2):
            y = y + 0.1 * h(y, n - 1)
        return y

    return f


def in_one_another(recursive, function, v):
    @function
    def k(x, n):
        return f(x, n) * v

    @function
    def h(x, n):
        return tf.sin(k(x, n)) + k(x * 0.5, n)

    @recursive
    def f(x, n):
        if n < 1:
            return x * v
        return h(x, n - 1) * x + k(x, n - 1)

    return f


def inside_of_a_tape(recursive, function, v):
    @recursive
    def g(x, n):
        if n < 1:
            return x * x * x
        return g(x, n - 1) * x

    @function
    def h(x, n):
        return g(x, n) * x

    @recursive
    def f(x, n):
        if n < 1:
            return x
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = h(x, n)
        return f(x, n - 1) * tape.gradient(y, x)

    return f


def with_calls_in(recursive, function, called):
    """f(x, n) of calls of `called(f, x, n)` in a function."""

    @function
    def h(x, n):
        return called(f, x, n)

    @recursive
    def f(x, n):
        if n < 1:
            return x
        return h(x, n - 1) * x

    return f


def with_a_gradient_of_the_users(recursive, function, v):
    @tf.custom_gradient
    def sine(x):
        slope = tf.cos(x)
        return tf.sin(x), lambda dy: dy * slope

    return with_calls_in(recursive, function, lambda f, x, n: sine(f(x, n) * x) * sine(x))


def with_a_side_effect(recursive, function, v):
    def called(f, x, n):
        v.assign_add(1.0)
        return tf.sin(f(x, n) * x)

    return with_calls_in(recursive, function, called)


PROGRAMS = [
    of_another,
    of_one_that_reads_a_variable,
    in_branches_and_loops,
    in_one_another,
    inside_of_a_tape,
    with_a_gradient_of_the_users,
    with_a_side_effect,
]


def as_it_is(function):
    return function


def derivatives(program, recursive, function, order):
    """The derivative of an order, and the variable afterwards."""
    v = tf.Variable(1.3)
    f = program(recursive, function, v)
    return derivative(f, order), v.numpy()


def derivative(f, order):
    x = tf.constant(0.7)

    def nested(order):
        if order == 0:
            return f(x, tf.constant(2))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = nested(order - 1)
        return tape.gradient(y, x)

    return nested(order).numpy()


# Third derivatives take some ten seconds; the one of a first derivative in each level takes longer.
ORDERS = [pytest.param(program, order) for program in PROGRAMS for order in (0, 1, 2)] + [
    pytest.param(program, 3, marks=pytest.mark.slow if program is inside_of_a_tape else pytest.mark.full_matrix)
    for program in PROGRAMS
]


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("program", "order"), ORDERS)
def test_derivatives_are_those_of_the_function_unrolled(program, order):
    got = derivatives(program, tfr.recursive, tf.function, order)
    np.testing.assert_allclose(got, derivatives(program, as_it_is, as_it_is, order), rtol=1e-5)


@pytest.mark.thorough
def test_symbolic_derivatives_are_those_of_the_function_unrolled():
    f = of_one_that_reads_a_variable(tfr.recursive, tf.function, tf.Variable(1.3))

    @tf.function
    def second(x):
        return tf.gradients(tf.gradients(f(x, tf.constant(2)), x), x)[0]

    expected, _ = derivatives(of_one_that_reads_a_variable, as_it_is, as_it_is, 2)
    np.testing.assert_allclose(second(tf.constant(0.7)), expected, rtol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["<lambda>", "_step_2", "___"])
def test_functions_of_any_name_have_derivatives(name):
    called = lambda x, n: tf.sin(f(x, n - 1) * x)
    called.__name__ = name
    h = tf.function(called, autograph=False)

    @tfr.recursive
    def f(x, n):
        if n < 1:
            return x
        return h(x, n)

    def plain(x, n):
        return x if n < 1 else tf.sin(plain(x, n - 1) * x)

    np.testing.assert_allclose(derivative(f, 2), derivative(lambda x, _: plain(x, 2), 2), rtol=1e-5)


@pytest.mark.thorough
def test_derivatives_do_not_trace_it_again():
    traces = []

    @tf.function
    def h(x, n):
        traces.append(x)
        return tf.sin(f(x, n))

    @tfr.recursive
    def f(x, n):
        if n < 1:
            return x
        return h(x, n - 1) + h(x, n - 1)

    f(tf.constant(0.7), tf.constant(2))
    before = len(traces)
    derivative(f, 2)
    assert len(traces) == before


def test_one_that_a_body_has_called_can_be_called_when_that_is_gone():
    @tfr.recursive
    def g(x):
        return x * x

    @tf.function
    def h(x):
        return g(x) * 3.0

    def make():
        @tfr.recursive
        def f(x):
            return h(x)

        return tf.function(lambda x: f(x))

    assert make()(tf.constant(2.0)).numpy() == 12.0
    gc.collect()
    assert h(tf.constant(2.0)).numpy() == 12.0
    assert make()(tf.constant(2.0)).numpy() == 12.0
