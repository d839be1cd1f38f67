"""Derivatives of Jacobians, and of gradients in branches, loops and maps, of functions that use a weight.

The gradient for the weight is a sum of terms that is computed last, so the control flow around it may keep the terms.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

F64 = tf.float64
DEPTH = 2

# What uses a weight [3, 3]; its gradient is collected as products, also of the transposed weight, or as rows.
USES = {
    "product": lambda y, w: y @ w,
    "transposed": lambda y, w: tf.matmul(y, w, transpose_b=True),
    "rows": lambda y, w: y * tf.gather(w, [2, 0]),
    "several": lambda y, w: (y @ w) * tf.gather(w, [1, 1]) + y @ tf.transpose(w),
}
uses = pytest.mark.parametrize("use", list(USES))
in_function = pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])


@pytest.fixture
def weight():
    return tf.Variable(np.random.default_rng(8).normal(size=[3, 3]) / 2, dtype=F64)


@pytest.fixture
def x():
    return tf.constant(np.random.default_rng(9).normal(size=[2, 3]), F64)


def decorate(function, is_recursive):
    return tfr.recursive(function) if is_recursive else function


def net_of(use, weight, is_recursive):
    def net(x, n):
        if n < 1:
            return tf.tanh(x)
        return tf.tanh(USES[use](net(x, n - 1), weight))

    net = decorate(net, is_recursive)
    return lambda x: net(x, tf.constant(DEPTH) if is_recursive else DEPTH)


def energy_gradient(net, x, of):
    with tf.GradientTape() as tape:
        tape.watch(x)
        energy = tf.reduce_sum(net(x) ** 2)
    return tape.gradient(energy, of)


def force(net, x):
    return energy_gradient(net, x, x)


def jacobian(net, x, weight, pfor=True):
    with tf.GradientTape(persistent=not pfor) as tape:
        tape.watch(x)
        y = net(x)
    return tape.jacobian(y, x, experimental_use_pfor=pfor)


def jacobian_in_loop(net, x, weight):
    return jacobian(net, x, weight, pfor=False)


def jacobian_of_weight(net, x, weight):
    with tf.GradientTape() as tape:
        y = net(x)
    return tape.jacobian(y, weight)


def batch_jacobian(net, x, weight):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = net(x)
    return tape.batch_jacobian(y, x)


def hessian(net, x, weight):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = force(net, x)
    return tape.jacobian(y, x)


def vectorized_forces(net, x, weight):
    return tf.vectorized_map(lambda x: force(net, x), tf.stack([x, 2 * x]))


def vectorized_gradients(net, x, weight):
    def gradients(x):
        return [tf.convert_to_tensor(grad) for grad in energy_gradient(net, x, [x, weight])]

    return tf.concat(tf.vectorized_map(gradients, tf.stack([x, 2 * x])), 1)


JACOBIANS = [jacobian, jacobian_in_loop, jacobian_of_weight, batch_jacobian, hessian]


def derivatives(program, net, x, weight, order):
    """The derivative of each order for `x` and the weight, of a sum that the derivatives before are part of."""
    if order == 0:
        return [program(net, x, weight)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = derivatives(program, net, x, weight, order - 1)
        total = tf.add_n([tf.reduce_sum(tf.sin(y * (i + 1))) for i, y in enumerate(found)])
    grads = tape.gradient(total, [x, weight], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return found + [tf.convert_to_tensor(grad) for grad in grads]


def check(program, use, x, weight, order, in_function):
    net = net_of(use, weight, is_recursive=True)
    taken = tf.function(derivatives, autograph=False) if in_function else derivatives
    got = taken(program, net, x, weight, order)
    expected = derivatives(program, net_of(use, weight, is_recursive=False), x, weight, order)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(8)
@pytest.mark.parametrize("program", JACOBIANS)
@uses
@in_function
def test_derivative_of_a_jacobian(program, use, in_function, x, weight):
    check(program, use, x, weight, 1, in_function)


@pytest.mark.full_matrix
@pytest.mark.parametrize(("program", "order"), [(vectorized_forces, 2), (vectorized_gradients, 1)])
@uses
def test_derivatives_of_gradients_that_are_vectorized(program, order, use, x, weight):
    check(program, use, x, weight, order, True)


@pytest.mark.full_matrix
def test_log_determinant_of_a_jacobian(x, weight):
    """As flows have it; the call is in a `tf.function` of its own, which keeps the terms for gradients."""

    def log_determinant(net, x, weight):
        matrix = tf.reshape(jacobian(tf.function(net), x, weight), [6, 6])
        return tf.linalg.slogdet(matrix)[1]

    check(log_determinant, "product", x, weight, 1, True)


def in_cond(net, x, weight):
    return tf.cond(x[0, 0] < 5, lambda: force(net, x), lambda: x)


def in_branch_not_taken(net, x, weight):
    return tf.cond(x[0, 0] > 5, lambda: force(net, x), lambda: x * x)


def in_switch_case(net, x, weight):
    branches = [lambda: x, lambda: force(net, x), lambda: x @ tf.convert_to_tensor(energy_gradient(net, x, weight))]
    return tf.switch_case(tf.where(x[0, 0] < 5, 1, 0), branches)


def in_while_loop(net, x, weight):
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x - 0.1 * force(net, x)), [0, x])[1]


def in_loop_for_weight(net, x, weight):
    def step(i, x):
        return i + 1, x + 0.1 * x @ tf.convert_to_tensor(energy_gradient(net, x, weight))

    return tf.while_loop(lambda i, x: i < 2, step, [0, x])[1]


def in_map(net, x, weight):
    return tf.map_fn(lambda x: force(net, x), tf.stack([x, 2 * x]))


def in_scan(net, x, weight):
    return tf.scan(lambda x, factor: x - factor * force(net, x), tf.constant([0.1, 0.2], F64), initializer=x)


@pytest.mark.full_matrix
@pytest.mark.parametrize(
    "program",
    [in_cond, in_branch_not_taken, in_switch_case, in_while_loop, in_loop_for_weight, in_map, in_scan],
)
@uses
@in_function
def test_third_derivative_through_control_flow(program, use, in_function, x, weight):
    check(program, use, x, weight, 2, in_function)


@pytest.mark.full_matrix
@pytest.mark.parametrize("place", [in_cond, in_loop_for_weight])
def test_third_derivative_through_control_flow_in_a_body(place, x, weight):
    """The gradient for the terms is a value of the body then, which its own gradient may keep in a record."""

    def program_of(is_recursive):
        net = net_of("product", weight, is_recursive)

        def steps(x, n):
            if n < 1:
                return x
            return x + 0.1 * place(net, x, weight) + 0.1 * steps(tf.sin(x), n - 1)

        steps = decorate(steps, is_recursive)
        return lambda _, x, __: steps(x, tf.constant(2))

    got = tf.function(derivatives, autograph=False)(program_of(is_recursive=True), None, x, weight, 2)
    expected = derivatives(program_of(is_recursive=False), None, x, weight, 2)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
