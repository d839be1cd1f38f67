"""Derivatives through optionals: those that conditionals in `tf.function`s return for gradients, and those of users."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

DEPTH = 2
Optional = tf.experimental.Optional


@pytest.fixture
def weights():
    return tf.Variable([[1.3, 0.2], [0.4, 0.7]])


def conditional(x, v):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x @ v) * x, lambda: x * x @ v)


def nested(x, v):
    return tf.cond(x[0, 0] > 0.1, lambda: conditional(x, v) * 2, lambda: x * tf.sin(x))


def case(x, v):
    return tf.switch_case(tf.cast(x[0, 0] > 0.2, tf.int32), [lambda: x * x, lambda: tf.tanh(x) @ v, lambda: x])


def with_integers(x, v):
    """One branch keeps integers where the other one keeps floats."""

    def first():
        count = tf.cast(tf.round(x[0, 0] * 3), tf.int32)
        return x * x * tf.cast(count * count, tf.float32) @ v

    return tf.cond(x[0, 0] > 0.2, first, lambda: tf.sin(x) * x)


def of_open_shape(x, v):
    return tf.cond(
        x[0, 0] > 0.2,
        lambda: tf.reshape(tf.boolean_mask(x, x > 0.1) ** 2, [-1, 1]) * tf.reduce_sum(x @ v),
        lambda: tf.reshape(tf.boolean_mask(x, x < 0.3) ** 3, [-1, 1]),
    )


CONDITIONALS = [conditional, nested, case, with_integers, of_open_shape]


def with_gradient(function, x):
    """What a `tf.function` returns, summed up, and its gradient."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x))
    return y, tape.gradient(y, x)


def in_body(function, n, x):
    return with_gradient(function, x)


def in_branch(function, n, x):
    return tf.cond(n > 0, lambda: with_gradient(function, x), lambda: with_gradient(function, x * 0.5))


def in_loop(function, n, x):
    return tf.while_loop(lambda i, *_: i < 2, lambda i, _, y: (i + 1, *with_gradient(function, y)), (0, 0.0, x))[1:]


def derivatives(function, order, sources):
    """Each order of derivatives of what a function returns: for the first of `sources`, and in the end for all."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        found = [function()]
        for _ in range(order - 1):
            found.append(tf.reduce_sum(tape.gradient(found[-1], sources[0]) ** 2))
    return found + [tf.convert_to_tensor(grad) for grad in tape.gradient(found[-1], sources)]


def check(got, expected):
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def check_tapes_around(conditional, weights, place, order, in_function):
    x = tf.constant([[0.3, 0.2], [0.1, 0.4]])

    def body_that_calls(call, function):
        def body(n, x):
            y, grad = place(function, n, x)
            return y + tf.reduce_sum(grad) if n < 1 else call(n - 1, x * 0.5 + grad * 0.1) * y

        return body

    def plain(n, x):
        return body_that_calls(plain, lambda x: conditional(x, weights))(n, x)

    function = tf.function(lambda x: conditional(x, weights))

    @tfr.recursive
    def recursive(n, x):
        return body_that_calls(recursive, function)(n, x)

    def of(call):
        return derivatives(lambda: call(tf.constant(DEPTH), x), order, [x, weights])

    check((tf.function(of) if in_function else of)(recursive), of(plain))


@pytest.mark.full_matrix
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "tf_function"])
@pytest.mark.parametrize("place", [in_body, in_branch, in_loop], ids=lambda place: place.__name__)
@pytest.mark.parametrize("conditional", CONDITIONALS, ids=lambda conditional: conditional.__name__)
def test_second_derivative_of_a_tape_around_a_conditional_of_a_tf_function(conditional, place, in_function, weights):
    check_tapes_around(conditional, weights, place, 2, in_function)


@pytest.mark.full_matrix
@pytest.mark.parametrize("conditional", CONDITIONALS, ids=lambda conditional: conditional.__name__)
def test_third_derivative_of_such_a_tape(conditional, weights):
    check_tapes_around(conditional, weights, in_body, 3, in_function=False)


def returned(call, n, x, v):
    y = Optional.from_value(x * v) if n < 1 else call(n - 1, x * x * v)
    return Optional.from_value(y.get_value() * x)


def given(call, n, x, v):
    value = x.get_value()
    return value * v if n < 1 else call(n - 1, Optional.from_value(tf.sin(value) * v)) * value


def maybe_empty(call, n, x, v):
    value = tf.cond(x.has_value(), lambda: x.get_value(), lambda: v * v)
    return value * v if n < 1 else call(n - 1, x) * v


# How a function is called with a number, and what is made of its result.
OF_USERS = {
    "returned": (returned, lambda x: x, lambda y: y.get_value()),
    "given": (given, lambda x: Optional.from_value(x * x), lambda y: y),
    "maybe_empty": (maybe_empty, lambda x: Optional.from_value(x * x), lambda y: y),
    "empty": (maybe_empty, lambda x: Optional.empty(tf.TensorSpec([], tf.float32)), lambda y: y),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", list(OF_USERS))
def test_optionals_of_users(kind, order):
    program, before, after = OF_USERS[kind]
    v, x = tf.Variable(1.3), tf.constant(0.6)

    def plain(n, x):
        return program(plain, n, x, v)

    @tfr.recursive
    def recursive(n, x):
        return program(recursive, n, x, v)

    def of(call):
        return derivatives(lambda: after(call(tf.constant(DEPTH), before(x))), order, [v])

    check(tf.function(of)(recursive), of(plain))


@pytest.mark.thorough
@pytest.mark.parametrize("order", [1, 2])
def test_captured_optional(order):
    v, x, captured = tf.Variable(1.3), tf.constant(0.6), Optional.from_value(tf.constant(0.7))

    def plain(n, x):
        return captured.get_value() * x * v if n < 1 else plain(n - 1, x * x * v) * captured.get_value()

    @tfr.recursive
    def recursive(n, x):
        return captured.get_value() * x * v if n < 1 else recursive(n - 1, x * x * v) * captured.get_value()

    def of(call):
        return derivatives(lambda: call(tf.constant(DEPTH), x), order, [v])

    check(tf.function(of)(recursive), of(plain))


@pytest.mark.thorough
def test_list_that_a_branch_of_an_inner_tf_function_returns():
    """What the elements are is told by the branches of the function that is called last."""

    @tf.function
    def innermost(x):
        return tf.cond(
            x > 0,
            lambda: tf.raw_ops.TensorListFromTensor(tensor=[x, x * x], element_shape=tf.constant([], tf.int32)),
            lambda: tf.raw_ops.TensorListFromTensor(tensor=[x, -x], element_shape=tf.constant([], tf.int32)),
        )

    @tf.function
    def inner(x):
        return innermost(x * 2)

    @tfr.recursive
    def total(n, x):
        stacked = tf.raw_ops.TensorListStack(
            input_handle=inner(x), element_shape=tf.constant([], tf.int32), element_dtype=tf.float32
        )
        return tf.reduce_sum(stacked) if n < 1 else total(n - 1, x) * tf.reduce_sum(stacked)

    x = tf.constant(0.6)
    _, first, second = derivatives(lambda: total(tf.constant(1), x), 2, [x])
    # (2 x + 4 x^2)^2 = 4 x^2 + 16 x^3 + 16 x^4
    slope = 8 * 0.6 + 48 * 0.6**2 + 64 * 0.6**3
    np.testing.assert_allclose(first, slope**2, rtol=1e-5)
    np.testing.assert_allclose(second, 2 * slope * (8 + 96 * 0.6 + 192 * 0.6**2), rtol=1e-5)
