"""Bodies that take gradients of what is not known yet while it is found out what a function returns.

Each gradient is multiplied or passed on, which would be an error for None.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


class Weights:
    """Variables that losses read."""

    def __init__(self):
        self.v = tf.Variable(1.3)
        self.w = tf.Variable([0.4, 0.7])


@pytest.fixture
def weights():
    return Weights()


def reads_a_variable(define, weights, **_):
    @define
    def loss(x):
        return weights.v * x

    return loss


def has_no_argument(define, weights, **_):
    @define
    def loss():
        return weights.v * 0.8

    return lambda x: loss()


def recurs(define, weights, **options):
    @define(**options)
    def loss(x, n=2):
        if n < 1:
            return x * weights.v * tf.reduce_sum(weights.w)
        return weights.v * tf.sin(loss(x, n - 1))

    return lambda x: loss(x, tf.constant(2))


def reads_after_its_call(define, weights, **options):
    @define(**options)
    def loss(x, n=2):
        return x if n < 1 else tf.sin(loss(x, n - 1)) * weights.v * weights.w[0]

    return lambda x: loss(x, tf.constant(2))


def states_what_it_returns(define, weights, **_):
    return recurs(define, weights, output_signature=tf.TensorSpec([], tf.float32))


def reads_in_a_loop(define, weights, **_):
    @define
    def loss(x):
        for _ in tf.range(3):
            x = x * weights.v
        return x

    return loss


def is_no_recursive_function(define, weights, **_):
    inner = tf.function(lambda x: x * weights.v * weights.w[0])

    @define
    def loss(x):
        return inner(x) if x > 0 else x

    return loss


LOSSES = [
    reads_a_variable,
    has_no_argument,
    recurs,
    reads_after_its_call,
    states_what_it_returns,
    reads_in_a_loop,
    is_no_recursive_function,
]


def with_a_tape(loss, x, weights):
    with tf.GradientTape() as tape:
        y = loss(x)
    return tape.gradient(y, weights.v) * 2.0


def with_a_tape_that_watches(loss, x, weights):
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(weights.v)
        y = loss(x)
    return tape.gradient(y, weights.v) * 2.0


def with_two_tapes(loss, x, weights):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = loss(x) ** 2
        slope = inner.gradient(y, weights.v)
    return outer.gradient(slope, weights.v) * 2.0


def with_a_jacobian(loss, x, weights):
    with tf.GradientTape(persistent=True) as tape:
        y = tf.stack([loss(x), 2.0 * loss(x)])
    return tape.jacobian(y, weights.v) * 2.0


def with_a_jacobian_by_a_loop(loss, x, weights):
    with tf.GradientTape(persistent=True) as tape:
        y = tf.stack([loss(x), 2.0 * loss(x)])
    return tape.jacobian(y, weights.v, experimental_use_pfor=False) * 2.0


def with_tf_gradients(loss, x, weights):
    if tf.executing_eagerly():
        return with_a_tape(loss, x, weights)
    return tf.gradients(loss(x), [weights.v])[0] * 2.0


WAYS = [
    with_a_tape,
    with_a_tape_that_watches,
    with_two_tapes,
    with_a_jacobian,
    with_a_jacobian_by_a_loop,
    with_tf_gradients,
]


def undecorated(function=None, **_):
    return (lambda func: func) if function is None else function


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(7)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("of", LOSSES)
def test_a_step_takes_the_gradient_of_a_loss(of, way, weights):
    """A training step is decorated as its loss is."""

    def step_of(define):
        loss = of(define, weights)

        @define
        def step(x):
            return way(loss, x, weights)

        return step

    x = tf.constant(0.8)
    expected = step_of(undecorated)(x)
    np.testing.assert_allclose(step_of(tfr.recursive)(x), expected, rtol=1e-4)
    np.testing.assert_allclose(tf.function(step_of(tfr.recursive))(x), expected, rtol=1e-4)


@pytest.mark.parametrize("of", ["all rows", "a batch"])
@pytest.mark.parametrize("vectorized", [True, False])
def test_a_body_solves_by_a_jacobian(vectorized, of):
    """The look at `solve` needs the shape of the Jacobian, and the call in `net` is one of which nothing is known."""

    def solution(define):
        @define
        def net(x, n):
            return x if n < 1 else tf.sin(net(x, n - 1)) * x[:, ::-1]

        @define
        def solve(x, n):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = net(x, tf.constant(2))
            slopes = (tape.jacobian if of == "all rows" else tape.batch_jacobian)(
                y, x, experimental_use_pfor=vectorized
            )
            if of == "all rows":
                slopes = tf.stack([slopes[k, :, k] for k in range(2)])
            if n < 1:
                return x
            return solve(x - 0.1 * tf.linalg.solve(slopes + tf.eye(2), y[..., None])[..., 0], n - 1)

        x = tf.constant([[0.7, 0.9], [0.2, 0.5]])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = solve(x, tf.constant(2))
        return y, tape.gradient(y, x)

    for got, expected in zip(solution(tfr.recursive), solution(undecorated), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_step_applies_gradients(optimizer):
    def trained(define):
        variable = tf.Variable([0.5, -0.3])
        rule = tf.keras.optimizers.get({"class_name": optimizer, "config": {"learning_rate": 0.1}})
        rule.build([variable])

        @define
        def loss(x, n):
            return tf.reduce_sum(x * variable) if n < 1 else tf.sin(loss(x, n - 1)) + tf.reduce_sum(variable**2)

        @define
        def step(x):
            with tf.GradientTape() as tape:
                value = loss(x, tf.constant(2))
            gradients = tape.gradient(value, [variable])
            rule.apply_gradients(zip([tf.clip_by_norm(one, 1.0) for one in gradients], [variable], strict=True))
            return value

        losses = [step(tf.constant([1.0, 2.0])) for _ in range(3)]
        return [*losses, variable.read_value()]

    for got, expected in zip(trained(tfr.recursive), trained(undecorated), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_watched_variables_are_known(weights):
    @tfr.recursive
    def loss(x):
        return weights.v * x * tf.reduce_sum(weights.w)

    @tfr.recursive
    def step(x):
        with tf.GradientTape() as tape:
            y = loss(x)
        return sum(map(tf.reduce_sum, tape.gradient(y, tape.watched_variables())))

    np.testing.assert_allclose(step(tf.constant(2.0)), 2.0 * 1.1 + 2 * 2.0 * 1.3, rtol=1e-5)


def test_a_function_made_in_the_body_reads_a_tensor_of_it():
    @tfr.recursive
    def step(x):
        y = x * 2.0

        @tfr.recursive
        def loss():
            return y * y

        with tf.GradientTape() as tape:
            tape.watch(y)
            value = loss()
        return tape.gradient(value, y) * 2.0

    np.testing.assert_allclose(step(tf.constant(5.0)), 40.0)


def test_what_the_branch_that_recurs_reads(weights):
    """The branch is given up, and with it what it reads; `tf.stop_gradient` ends the orders of derivatives."""

    def made(define):
        @define
        def function(n):
            with tf.GradientTape() as tape:
                y = weights.v * weights.v * tf.stop_gradient(function(n - 1)) if n > 0 else tf.constant(1.0)
            slope = tape.gradient(y, weights.v)
            return (0.0 if slope is None else slope) * 0.5 + y

        return function

    np.testing.assert_allclose(made(tfr.recursive)(tf.constant(3)), made(undecorated)(3), rtol=1e-5)


def test_no_gradient_is_none_where_all_is_known(weights):
    """The structure of what is returned depends on it."""

    @tfr.recursive
    def loss(x):
        return weights.v * x

    @tfr.recursive
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return [one for one in tape.gradient(y, [x, weights.w, weights.v]) if one is not None]

    assert [one.numpy() for one in step(tf.constant(2.0))] == [np.float32(1.3), 2.0]


def test_a_tape_from_outside_is_used_more_than_once(weights):
    """The body is built more than once, which a tape has to stand; the error for others says so."""

    def slope(persistent):
        @tfr.recursive
        def outer(x):
            with tf.GradientTape(persistent=persistent) as tape:
                y = weights.v * weights.v * x

            @tfr.recursive
            def inner(factor):
                return tape.gradient(y, weights.v) * factor

            return inner(x) + 1.0

        return outer(tf.constant(2.0))

    with pytest.raises(RuntimeError, match=r"'inner'.*persistent=True"):
        slope(persistent=False)
    np.testing.assert_allclose(slope(persistent=True), 2 * 1.3 * 2.0 * 2.0 + 1.0, rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["argument", "variable"])
def test_a_function_takes_the_gradient_of_one_that_calls_it(source, weights):
    """The gradient in the body of `slope` is made while it is not known yet what that captures by its call."""

    def made(define, stop):
        functions = {}

        @define
        def slope(n, x):
            if n < 1:
                return x
            with tf.GradientTape() as tape:
                if source == "argument":
                    tape.watch(x)
                y = functions["value"](n, x)
            return stop(tape.gradient(y, x if source == "argument" else weights.v)) * 2.0

        @define
        def value(n, x):
            return weights.v * tf.sin(x) * slope(n - 1, x)

        functions.update(slope=slope, value=value)
        return slope

    x = tf.constant(0.5)
    expected = made(undecorated(), tf.stop_gradient)(2, x)
    np.testing.assert_allclose(made(tfr.recursive, tf.stop_gradient)(tf.constant(2), x), expected, rtol=1e-5)
    with pytest.raises(Exception, match=r"every order of derivatives would need the next one; put tf\.stop_gradient"):
        made(tfr.recursive, tf.identity)(tf.constant(2), x)
