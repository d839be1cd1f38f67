"""A body may read values of Python, globals for example, that change between a call and its gradient."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

FACTOR = 2.0


class Settings:
    def __init__(self):
        self.factor = 2.0


@pytest.fixture(autouse=True)
def factor(monkeypatch):
    """Changes the global and puts it back."""
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    return lambda value: monkeypatch.setitem(globals(), "FACTOR", value)


@tfr.recursive
def by_global(x, n):
    if n < 1:
        return x
    return FACTOR * by_global(x, n - 1) * x


def by_attribute(settings):
    @tfr.recursive
    def power(x, n):
        if n < 1:
            return x
        return settings.factor * power(x, n - 1) * x

    return power


def by_list(values):
    @tfr.recursive
    def power(x, n):
        if n < 1:
            return x
        return values[-1] * power(x, n - 1) * x

    return power


def by_mutual_recursion(settings):
    @tfr.recursive
    def odd(x, n):
        return settings.factor * even(x, n - 1) * x

    @tfr.recursive
    def even(x, n):
        if n < 1:
            return x
        return odd(x, n)

    return even


def programs(factor):
    """For each way to read a number of Python: the function, and what changes the number."""
    settings, values = Settings(), [2.0]

    def set_attribute(value):
        settings.factor = value

    return {
        "global": (by_global, factor),
        "attribute": (by_attribute(settings), set_attribute),
        "list": (by_list(values), values.append),
        "mutual recursion": (by_mutual_recursion(settings), set_attribute),
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("way", ["global", "attribute", "list", "mutual recursion"])
def test_derivatives_are_of_the_function_that_was_called(way, outermost, factor):
    power, change = programs(factor)[way]

    def derivatives(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = power(x, tf.constant(3))  # 8 x^4
            change(100.0)
            slope = tape.gradient(y, x)
        change(10.0)
        return y, slope, outer.gradient(slope, x)

    np.testing.assert_allclose(outermost(derivatives)(tf.constant(0.5)), [0.5, 4.0, 24.0])


def test_derivatives_in_a_session_are_of_the_function_that_was_called(factor):
    with tf.Graph().as_default():
        x = tf.constant(0.5)
        y = by_global(x, tf.constant(3))
        factor(100.0)
        (slope,) = tf.compat.v1.gradients(y, x)
        factor(10.0)
        (curvature,) = tf.compat.v1.gradients(slope, x)
        with tf.compat.v1.Session(config=tfr.session_config()) as session:
            np.testing.assert_allclose(session.run([y, slope, curvature]), [0.5, 4.0, 24.0])


def test_body_is_traced_no_more_often_for_its_gradient():
    traces = []

    @tfr.recursive
    def power(x, n):
        traces.append(1)
        if n < 1:
            return x
        return power(x, n - 1) * x

    x = tf.constant(0.5)
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        outer.watch(x)
        tape.watch(x)
        y = power(x, tf.constant(3))
        count = len(traces)
        slope = tape.gradient(y, x)
    np.testing.assert_allclose([slope, outer.gradient(slope, x)], [0.5, 3.0])
    assert len(traces) == count


@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("length", [1, 500])
def test_tensors_made_in_an_init_scope_are_constants(outermost, length):
    """Each trace of the body makes another one, as TensorFlow's own code does to be clear of graphs."""
    factor = tf.Variable(2.0)

    @tfr.recursive
    def total(n, x):
        with tf.init_scope():
            values = tf.range(length) + 1
            name = tf.constant("abc")
        y = x * tf.reduce_sum(tf.cast(values, tf.float32)) * factor + tf.cast(tf.strings.length(name), tf.float32)
        return y if n < 1 else total(n - 1, x) + y

    def with_gradient(n, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = total(n, x)
        return y, *tape.gradient(y, [x, factor])

    weight = length * (length + 1) // 2
    found = outermost(with_gradient)(tf.constant(2), tf.constant(0.5))
    np.testing.assert_allclose(found, [3 * (weight + 3), 3 * 2 * weight, 3 * 0.5 * weight], rtol=1e-6)


class Table:
    def __init__(self):
        self.rows = None

    @tfr.recursive
    def product(self, x, n):
        if self.rows is None:
            self.rows = tf.ones([2])
        if n < 1:
            return x * self.rows
        return self.product(x, n - 1)


def test_tensor_that_a_body_keeps_in_an_object_is_an_error_that_says_where_to_make_it():
    with pytest.raises(ValueError, match=r"Call of 'product'.*put it into an object.*make it outside of bodies"):
        Table().product(tf.ones([2]), tf.constant(2))
