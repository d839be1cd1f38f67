"""Tapes in the gradients that users give by tf.custom_gradient: around calls, in the bodies of recursive functions."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

F64 = tf.float64
OUTERMOST = pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])


def power(define, v):
    @define
    def function(x, n):
        if n < 1:
            return tf.sin(x) * v
        return function(x, n - 1) * v

    return function


def by_a_tape(call):
    """What `call` returns for x, with a gradient that calls again, with a tape that watches x and the variables."""

    @tf.custom_gradient
    def computed(x):
        def gradient(dy, variables=None):
            variables = variables or []
            with tf.GradientTape() as tape:
                tape.watch([x, *variables])
                y = call(x)
            dx, *others = tape.gradient(y, [x, *variables], output_gradients=dy)
            return dx, others

        return call(x), gradient

    return computed


def in_a_branch(define, inner, v):
    @define
    def outer(x, n):
        if n < 1:
            return tf.sin(x)
        return by_a_tape(lambda a: inner(a, n))(x) + x

    return outer


def in_no_branch(define, inner, v):
    @define
    def outer(x, n):
        return by_a_tape(lambda a: inner(a, n))(x) + x * v

    return outer


def recomputed(define, inner, v):
    @define
    def outer(x, n):
        if n < 1:
            return tf.sin(x)
        return tf.recompute_grad(lambda a: tf.sin(outer(a * v, n - 1)))(x) + x

    return outer


@pytest.mark.thorough
@pytest.mark.each_value
@OUTERMOST
@pytest.mark.parametrize("outer", [in_a_branch, in_no_branch, recomputed])
def test_gradients_are_those_of_python(outer, outermost):
    """The tape watches a tensor of the trace; what the call is given is the one of the copy."""
    v, x = tf.Variable(0.7, dtype=F64), tf.constant(0.4, F64)

    def gradients(define, n):
        inner = power(define, v)
        inner(x, n)
        function = outer(define, inner, v)

        def compute(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x, n)
            return [y, *tape.gradient(y, [x, v])]

        return outermost(compute)(x)

    np.testing.assert_allclose(gradients(tfr.recursive, tf.constant(2)), gradients(lambda body: body, 2))


def reads_at_the_end(define, around, weight):
    @define
    def f(x, n):
        if n < 1:
            return tf.sin(x) * weight
        return around(lambda a: tf.sin(f(a, n - 1)))(x) + x

    return f


def reads_in_the_call(define, around, weight):
    @define
    def f(x, n):
        if n < 1:
            return tf.sin(x)
        return around(lambda a: tf.sin(f(a * weight, n - 1)))(x) + x

    return f


def calls_one_that_reads(define, around, weight):
    g = power(define, weight)

    @define
    def f(x, n):
        if n < 1:
            return tf.sin(x)
        return around(lambda a: tf.sin(g(a, n)))(x) + x

    return f


@pytest.mark.parametrize("make", [reads_at_the_end, reads_in_the_call, calls_one_that_reads])
def test_recomputation_knows_the_variables_of_what_is_traced_later(make):
    """What a call reads is not known yet when the body is traced first; the custom gradient asks for it then."""
    weight, x = tf.Variable(0.7), tf.constant(0.4)
    found = []
    for define, around, n in ((tfr.recursive, tf.recompute_grad, tf.constant(2)), (lambda f: f, lambda g: g, 2)):
        function = make(define, around, weight)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, n)
        found.append(tape.gradient(y, [x, weight]))
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_tape_that_takes_zeros_for_unconnected_variables_knows_them():
    weight = tf.Variable(0.7)

    def make(define):
        g = power(define, weight)

        @define
        def f(x, n):
            if n < 1:
                return x
            with tf.GradientTape() as tape:
                y = g(x, n)
            return f(x + tape.gradient(y, weight, unconnected_gradients="zero"), n - 1)

        return f

    expected = make(lambda f: f)(tf.constant(0.4), 2)
    np.testing.assert_allclose(make(tfr.recursive)(tf.constant(0.4), tf.constant(2)), expected, rtol=1e-6)


def by_a_tape_around_the_call(call):
    """What `call` returns for x, with twice its gradient: by a tape that has followed the call itself."""

    @tf.custom_gradient
    def doubled(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        return y, lambda dy, variables=None: (
            2 * tape.gradient(y, x, output_gradients=dy),
            [None] * len(variables or []),
        )

    return doubled


def after_it(n, x, computed):
    return computed(x) * x


def in_the_branch(n, x, computed):
    return tf.cond(n > 0, lambda: computed(x), lambda: computed(x) * x)


def in_the_loop(n, x, computed):
    return tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, computed(y)), (0, x))[1]


@pytest.mark.sampled(3)
@OUTERMOST
@pytest.mark.parametrize("place", [after_it, in_the_branch, in_the_loop])
@pytest.mark.parametrize("factor", ["constant", "variable"])
def test_tape_that_has_followed_a_call_in_a_body(place, factor, outermost):
    """The body is copied to be differentiated. The tape knows the calls of what it is a copy of."""
    v = tf.Variable(0.7, dtype=F64) if factor == "variable" else tf.constant(0.7, F64)
    x, n = tf.constant([0.5, 0.6], F64), tf.constant(2)

    def program(define):
        inner = power(define, v)

        @define
        def outer(n, x):
            return place(n, x, by_a_tape_around_the_call(lambda a: inner(a, n)))

        @define
        def recursion(n, x):
            return outer(n, x) if n < 1 else recursion(n - 1, x * 0.5) + outer(n, x)

        def run():
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = recursion(n, x)
            return y, tape.gradient(y, x)

        return run

    got, expected = outermost(program(tfr.recursive))(), program(lambda function: function)()
    np.testing.assert_allclose(got, expected, rtol=1e-9)
