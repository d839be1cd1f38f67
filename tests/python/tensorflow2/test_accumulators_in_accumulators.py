"""Accumulators in one another give for a recursive function the derivatives of the same one unrolled in Python."""
# SPDX-License-Identifier: Apache-2.0

import contextlib

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

F64 = tf.float64


def power():
    @tfr.recursive
    def power(x, n):
        if n < 1:
            return tf.ones_like(x)
        return x * power(x, n - 1)

    return lambda x: power(x, tf.constant(4)), lambda x: x * x * x * x, [[0.5, -1.5]]


def tree():
    """A TreeRNN, followed by its weight and by its leaves; its bodies have a condition and two calls."""
    left, right = tf.constant([1, -1, -1, 4, -1, -1]), tf.constant([2, 0, 0, 5, 0, 0])

    @tfr.recursive
    def net(w, leaves, node):
        if left[node] < 0:
            return leaves[node : node + 1]
        children = tf.concat([net(w, leaves, left[node]), net(w, leaves, right[node])], 1)
        return tf.tanh(tf.matmul(children, w))

    def unrolled(w, leaves, node=0):
        if left[node] < 0:
            return leaves[node : node + 1]
        children = tf.concat([unrolled(w, leaves, int(left[node])), unrolled(w, leaves, int(right[node]))], 1)
        return tf.tanh(tf.matmul(children, w))

    w = np.arange(1.0, 9.0).reshape(4, 2) / 8
    return lambda w, leaves: net(w, leaves, tf.constant(0)), unrolled, [w, np.arange(6.0).reshape(3, 2) / 6 - 0.5]


def pairs():
    """A function with several arguments and results, one of them linear, in a branch that reads what it is given."""

    @tfr.recursive
    def net(x, y, n):
        if n < 1:
            return x * y, 2.0 * x
        if y[0] > 0:
            z, linear = net(x * y, tf.sin(y), n - 1)
        else:
            z, linear = net(y, x, n - 1)
        return tf.exp(0.5 * z) * x, linear

    def unrolled(x, y, n=2):
        if n < 1:
            return x * y, 2.0 * x
        z, linear = unrolled(x * y, tf.sin(y), n - 1) if y[0] > 0 else unrolled(y, x, n - 1)
        return tf.exp(0.5 * z) * x, linear

    return lambda x, y: net(x, y, tf.constant(2)), unrolled, [[0.5, 0.25], [1.25, -0.5]]


def analytic():
    """A function of complex numbers."""

    @tfr.recursive
    def net(z, n):
        if n < 1:
            return z
        return z * tf.exp(net(z, n - 1))

    def unrolled(z, n=2):
        return z if n < 1 else z * tf.exp(unrolled(z, n - 1))

    return lambda z: net(z, tf.constant(2)), unrolled, [[0.5 + 0.25j, -0.25j]]


def rows():
    """A function that reads rows of a captured weight, of which gradients are sums that are made once."""
    w = tf.Variable(np.arange(1.0, 7.0).reshape(3, 2) / 6)

    @tfr.recursive
    def net(x, n):
        if n < 1:
            return x
        return tf.tanh(net(x, n - 1) * tf.gather(w, [n]))

    def unrolled(x, n=2):
        return x if n < 1 else tf.tanh(unrolled(x, n - 1) * w[n : n + 1])

    return lambda x: net(x, tf.constant(2)), unrolled, [[[0.5, -0.25]]]


FUNCTIONS = {"power": power, "tree": tree, "pairs": pairs, "analytic": analytic, "rows": rows}


def in_function(f):
    return tf.function(f, autograph=False)


# How the call and what is around it are put into functions.
PLACES = {
    "eager": lambda program, f: program(f),
    "around a tf.function": lambda program, f: program(in_function(f)),
    "in a tf.function": lambda program, f: in_function(lambda *args: program(f)(*args)),
    "in a tf.function, around another": lambda program, f: in_function(lambda *args: program(in_function(f))(*args)),
}


def direction(i, sources):
    """A constant direction for the accumulator `i`, counted from inside out."""
    numbers = [np.cos(np.arange(i, i + x.shape.num_elements())).reshape(x.shape) for x in sources]
    return [tf.constant(one, x.dtype) for one, x in zip(numbers, sources, strict=True)]


def changing_direction(i, sources):
    """One that the accumulators around follow."""
    return [x * one for x, one in zip(sources, direction(i, sources), strict=True)]


def by_accumulators(order, directions):
    """Makes of a function its derivatives along directions that accumulators in one another follow."""

    def program(f):
        def derivative(*sources):
            with contextlib.ExitStack() as stack:
                accumulators = []
                for i in reversed(range(order)):
                    accumulator = tf.autodiff.ForwardAccumulator(list(sources), directions(i, sources))
                    accumulators.append(stack.enter_context(accumulator))
                found = tf.nest.flatten(f(*sources))
                for accumulator in reversed(accumulators):
                    found = [accumulator.jvp(one) for one in found]
            return found

        return derivative

    return program


def by_tapes(f, order, directions):
    """The same derivatives by tapes: each is the gradient of gradients, which are linear in the factors of results."""

    def along(f, i):
        def derivative(*sources):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    inner.watch(sources)
                    results = tf.nest.flatten(f(*sources))
                factors = [tf.zeros_like(result) for result in results]
                outer.watch(factors)
                grads = inner.gradient(results, sources, factors, unconnected_gradients="zero")
            return outer.gradient(grads, factors, directions(i, sources), unconnected_gradients="zero")

        return derivative

    for i in range(order):
        f = along(f, i)
    return f


def check(name, place, order, directions):
    recursive, unrolled, values = FUNCTIONS[name]()
    sources = [tf.constant(value, tf.complex128 if np.iscomplexobj(value) else F64) for value in values]
    got = PLACES[place](by_accumulators(order, directions), recursive)(*sources)
    expected = by_tapes(unrolled, order, directions)(*sources)
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.each_value
@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivative_is_that_of_the_unrolled_function(name, place):
    check(name, place, 2, direction)


@pytest.mark.each_value
@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
def test_direction_of_the_inner_accumulator_is_followed_by_the_outer_one(place):
    check("power", place, 2, changing_direction)


@pytest.mark.each_value
@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "power" else pytest.mark.slow) for name in FUNCTIONS]
)
def test_third_derivative_is_that_of_the_unrolled_function(name, place):
    check(name, place, 3, direction)


@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
def test_accumulator_of_which_the_call_is_given_nothing_makes_no_difference(place):
    recursive, _, (value,) = power()
    other = tf.constant(3.0, F64)

    def program(f):
        def derivative(x):
            ones = tf.ones_like(x)
            with (
                tf.autodiff.ForwardAccumulator(x, ones) as outer,
                tf.autodiff.ForwardAccumulator(other, 1.0),
                tf.autodiff.ForwardAccumulator(x, ones) as inner,
            ):
                y = f(x)
                return y, inner.jvp(y), outer.jvp(y), outer.jvp(inner.jvp(y))

        return derivative

    x = np.array(value)
    found = PLACES[place](program, recursive)(tf.constant(value, F64))
    np.testing.assert_allclose(found, [x**4, 4 * x**3, 4 * x**3, 12 * x**2], rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["eager", "in a tf.function"])
def test_variable_that_the_body_reads_is_followed_beside_an_argument(place):
    w = tf.Variable([0.75, -0.25], dtype=F64)

    @tfr.recursive
    def scaled(x, n):
        if n < 1:
            return x
        return w * scaled(x, n - 1)

    def program(f):
        def derivative(x):
            with (
                tf.autodiff.ForwardAccumulator([x, w], [tf.ones_like(x)] * 2) as outer,
                tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as inner,
            ):
                y = f(x)
                of_x = inner.jvp(y)
            return of_x, outer.jvp(y), outer.jvp(of_x)

        return derivative

    x, factor = np.array([0.5, -1.5]), np.array([0.75, -0.25])
    found = PLACES[place](program, lambda x: scaled(x, tf.constant(2)))(tf.constant(x))
    np.testing.assert_allclose(found, [factor**2, factor**2 + 2 * factor * x, 2 * factor], rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
def test_tape_around_accumulators_sees_their_tangents(place):
    recursive, _, (value,) = power()

    def program(f):
        def gradient(x):
            second = by_accumulators(2, lambda i, sources: [tf.ones_like(x)])(f)
            with tf.GradientTape() as tape:
                tape.watch(x)
                (y,) = second(x)
            return tape.gradient(y, x)

        return gradient

    found = PLACES[place](program, recursive)(tf.constant(value, F64))
    np.testing.assert_allclose(found, 24 * np.array(value), rtol=1e-12)
