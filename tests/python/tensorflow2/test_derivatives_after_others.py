"""A derivative is what it is alone, whatever derivatives of the same function, or of the same call, came before it."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32
DEPTH = 2
W = np.array([[0.5, 0.2], [0.1, 0.3]])
X = np.array([[0.3, 0.8], [0.1, 0.5]])
DIRECTION = np.array([[1.0, 2.0], [-1.0, 0.5]])


def sliced(w):
    """The index n of `x[n]` is kept for gradients in reverse mode alone: for tangents, records hold something else."""

    @tfr.recursive
    def net(n, x):
        if n < 1:
            return x[n]
        return tf.tanh(tf.linalg.matvec(w, net(n - 1, x)))

    return net


def unrolled(w):
    def net(_, x):
        y = x[0]
        for _ in range(DEPTH):
            y = tf.tanh(tf.linalg.matvec(w, y))
        return y

    return net


def loss(net, x):
    return tf.reduce_sum(net(tf.constant(DEPTH), x) ** 2)


def gradient(net, x, w):
    with tf.GradientTape() as tape:
        y = loss(net, x)
    return tf.convert_to_tensor(tape.gradient(y, w))


def by_accumulator(net, x, w):
    with tf.autodiff.ForwardAccumulator(w, tf.constant(DIRECTION)) as accumulator:
        found = gradient(net, x, w)
    return accumulator.jvp(found)


def by_nested_tapes(net, x, w):
    with tf.GradientTape() as tape:
        found = tf.reduce_sum(gradient(net, x, w) * DIRECTION)
    return tf.convert_to_tensor(tape.gradient(found, w))


def in_branch(net):
    return tf.function(lambda n, x: tf.cond(x[0, 0] < 1.0, lambda: net(n, x), lambda: x[0]))


@pytest.mark.full_matrix
@pytest.mark.parametrize("first", [gradient, by_nested_tapes])
def test_tangent_of_a_gradient_after_a_gradient(first):
    w, x = tf.Variable(W), tf.constant(X)
    net, plain = sliced(w), unrolled(w)
    for what in (first, by_accumulator, first):
        np.testing.assert_allclose(what(net, x, w), what(plain, x, w), rtol=1e-9)


@pytest.mark.full_matrix
def test_tangent_of_a_gradient_after_a_gradient_where_a_branch_calls():
    w, x = tf.Variable(W), tf.constant(X)
    net, plain = in_branch(sliced(w)), unrolled(w)
    for what in (gradient, by_accumulator, gradient):
        np.testing.assert_allclose(what(net, x, w), what(plain, x, w), rtol=1e-9)


@pytest.mark.full_matrix
def test_gradient_of_a_call_that_came_before_the_tangent_of_another():
    w, x = tf.Variable(W), tf.constant(X)
    found = []
    for net in (sliced(w), unrolled(w)):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = loss(net, x)
        of_x = tape.gradient(y, x)
        by_accumulator(net, x, w)
        found.append([of_x, tape.gradient(y, w), *tape.gradient(y, [x, w])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.thorough
def test_gradient_of_one_call_again_under_an_accumulator():
    w = tf.Variable(W)

    def gradients(net):
        @tf.function
        def both(x):
            y = loss(net, x)
            before = tf.gradients(y, x)[0]
            with tf.autodiff.ForwardAccumulator(x, tf.constant(DIRECTION)):
                return before, tf.gradients(y, x)[0]

        return both(tf.constant(X))

    for one, other in zip(gradients(sliced(w)), gradients(unrolled(w)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("is_session", [True, False])
def test_gradient_of_one_call_again_when_more_is_known_of_its_shapes(is_session):
    """What the records hold depends on the shapes: where they are open, gradients read them."""

    def gradients(w):
        net = tfr.Declare("net", [("n", I32), ("x", F64)], [("y", F64)])

        @tfr.Defun(I32, F64, func_name="net", out_names=["y"])
        def _(n, x):
            return tf.cond(n < 1, lambda: x[n], lambda: tf.tanh(tf.linalg.matvec(w, net(n - 1, x))))

        x = tf1.placeholder_with_default(tf.constant(X), [None, None])
        y = net(tf.constant(DEPTH), x)
        y.set_shape([2])
        of_open = tf.gradients(y, x)[0]
        x.set_shape([2, 2])
        return of_open, tf.gradients(y, x)[0]

    if is_session:
        with tf.Graph().as_default(), tf1.Session() as session:
            found = session.run(gradients(tf.constant(W)))
    else:
        w = tf.Variable(W)
        found = tf.function(lambda: gradients(w))()
    w, x = tf.constant(W), tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = unrolled(w)(None, x)
    expected = tape.gradient(y, x)
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=1e-9)
