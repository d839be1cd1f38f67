"""Higher derivatives for weights: products, and rows that only a branch gathers, against the net unrolled."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

F64 = tf.float64
DEPTH = 4


@pytest.fixture
def weights():
    generator = np.random.default_rng(5)
    return {
        "product": tf.Variable(generator.normal(size=(3, 3)) / 2, dtype=F64),
        "rows": tf.Variable(generator.normal(size=(4, 3)), dtype=F64),
    }


@pytest.fixture
def nets(weights):
    """A net by recursion, and unrolled; both take the depth."""
    w, table = weights["product"], weights["rows"]

    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
    def net(i):
        if i < 2:
            return tf.gather(table, [i])
        return tf.tanh(tf.matmul(net(i - 1) * net(i - 2), w))

    def unrolled(i):
        if i < 2:
            return tf.gather(table, [i])
        return tf.tanh(tf.matmul(unrolled(i - 1) * unrolled(i - 2), w))

    return (lambda: net(tf.constant(DEPTH))), (lambda: unrolled(DEPTH))


def derivative(net, weight, order):
    """The derivative of a sum of squares, each order of which is summed up with the same factors."""
    if order == 0:
        return tf.reduce_sum(net() ** 2)
    with tf.GradientTape() as tape:
        y = derivative(net, weight, order - 1)
    gradient = tf.convert_to_tensor(tape.gradient(y, weight))
    factors = tf.reshape(tf.range(1, tf.size(gradient) + 1), tf.shape(gradient))
    return tf.reduce_sum(gradient * tf.cast(factors, F64))


def hessian(net, weight, pfor):
    with tf.GradientTape(persistent=not pfor) as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(net() ** 2)
        gradient = tf.convert_to_tensor(inner.gradient(y, weight))
    return outer.jacobian(gradient, weight, experimental_use_pfor=pfor)


@pytest.mark.full_matrix
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("pfor", [False, True])
@pytest.mark.parametrize("kind", ["product", "rows"])
def test_jacobian_of_a_gradient(weights, nets, kind, pfor, in_function):
    net, unrolled = nets
    got = (tf.function(hessian) if in_function else hessian)(net, weights[kind], pfor)
    np.testing.assert_allclose(got, hessian(unrolled, weights[kind], True), rtol=1e-9, atol=1e-12)


@pytest.mark.full_matrix
def test_third_derivative_for_rows_that_only_a_branch_gathers(weights):
    """The branches give gradients of unequal shapes for the rows: of one of them, and of all."""
    table = weights["rows"]

    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
    def product(i):
        if i < 3:
            return tf.gather(table, [i])
        return product(i - 1) * product(i - 2)

    def unrolled(i):
        return tf.gather(table, [i]) if i < 3 else unrolled(i - 1) * unrolled(i - 2)

    got = derivative(lambda: product(tf.constant(DEPTH)), table, 3)
    np.testing.assert_allclose(got, derivative(lambda: unrolled(DEPTH), table, 3), rtol=1e-9)


def by_sum(x, w):
    return tf.reduce_sum(x) * w[0] * tf.reduce_sum(w)


def by_product(x, w):
    return tf.linalg.matvec(w, x) * 0.1


def by_rows(x, w):
    return x * tf.gather(w, 1) * tf.gather(w, 0)


# What uses a weight, and its shape; each is used in a way of which gradients are dense, products, or rows.
USES = {"sum": (by_sum, [3]), "product": (by_product, [3, 3]), "rows": (by_rows, [4, 3])}


@pytest.mark.full_matrix
@pytest.mark.parametrize("is_variable", [False, True], ids=["tensor", "variable"])
@pytest.mark.parametrize("use", list(USES))
def test_third_derivative_of_a_body_with_a_tape(use, is_variable):
    """The gradient in the body is differentiated as a function, whose weights are those of the body's other calls."""
    make, shape = USES[use]
    values = np.random.default_rng(6).normal(size=[100, *shape])  # so large that a tensor is captured
    weight, factor = tf.Variable(values) if is_variable else tf.constant(values), tf.Variable(1.3, dtype=F64)
    x = tf.constant([0.3, 0.5, 0.7], F64)

    def loss(n, x):
        y = make(x, weight[1]) * factor
        return tf.reduce_sum(y) if n < 1 else loss(n - 1, x * y) * 0.1 * factor

    @tfr.recursive
    def recursive_loss(n, x):
        y = make(x, weight[1]) * factor
        return tf.reduce_sum(y) if n < 1 else recursive_loss(n - 1, x * y) * 0.1 * factor

    def step_of(loss):
        def step(n, x):
            with tf.GradientTape() as tape:
                y = loss(n, x)
            return tape.gradient(y, factor) * 2 + y

        return step

    def derivatives(step):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, weight])
            y = step(tf.constant(2), x)
            y = tf.reduce_sum(tape.gradient(y, x) ** 2)
        return [tf.convert_to_tensor(grad) for grad in tape.gradient(y, [x, factor, weight])]

    got = derivatives(tfr.recursive(step_of(recursive_loss)))
    for one, expected in zip(got, derivatives(step_of(loss)), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-9)
