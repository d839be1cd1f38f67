"""Gradients where shapes are open, of a Defun that states none or of a variable: right for each call."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative

import tensorflow_recursion as tfr


def define(name):
    """x³ by recursion."""
    power = tfr.Declare(name, [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @tfr.Defun(tf.float32, tf.int32, func_name=name, out_names=["y"])
    def power_impl(x, n):
        return tf.cond(n < 1, lambda: tf.ones_like(x), lambda: x * power(x, n - 1))

    return lambda x: power_impl(x, 3)


def tangent(f, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


DERIVATIVES = {
    "tape": (lambda f, x: nested_derivative(f, x, 1), lambda x: 3 * x**2),
    "nested_tapes": (lambda f, x: nested_derivative(f, x, 2), lambda x: 6 * x),
    "accumulator": (tangent, lambda x: 3 * x**2),
}


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("known", ["shape", "rank", "nothing"])
@pytest.mark.parametrize("kind", DERIVATIVES)
def test_derivatives_are_those_of_each_shape_when_defun_states_none(kind, known):
    of, by_hand = DERIVATIVES[kind]
    spec = {"shape": None, "rank": [tf.TensorSpec([None])], "nothing": [tf.TensorSpec(None)]}[known]
    function = tf.function(lambda x: of(define("Cube"), x), input_signature=spec)
    for shape in [[3], [5], [0], [3]] if known == "rank" else [[3], [2, 2], [], [3]]:
        x = np.linspace(0.5, 2.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        found = function(tf.constant(x))
        assert found.shape == shape
        np.testing.assert_allclose(found, by_hand(x), rtol=1e-5)


@pytest.mark.thorough
def test_eager_derivatives_are_those_of_each_shape_when_defun_states_none():
    cube = define("EagerCube")
    for of, by_hand in DERIVATIVES.values():
        for shape in [[3], [5], [2, 2], [0], [3]]:
            x = np.linspace(0.5, 2.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)
            np.testing.assert_allclose(of(cube, tf.constant(x)), by_hand(x), rtol=1e-5)


def test_gradients_of_two_calls_have_the_static_shapes_of_their_arguments():
    shapes = []

    @tf.function
    def slopes(a, b):
        cube = define("Cube")
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = tf.reduce_sum(cube(a)) + tf.reduce_sum(cube(b))
        found = tape.gradient(y, [a, b])
        shapes.extend(slope.shape.as_list() for slope in found)
        return found

    found = slopes(tf.fill([3], 2.0), tf.fill([5], 2.0))
    assert shapes == [[3], [5]]
    for slope, count in zip(found, (3, 5), strict=True):
        np.testing.assert_allclose(slope, np.full(count, 12.0))


@pytest.mark.full_matrix
@pytest.mark.parametrize("shape", [[None], None], ids=["rank", "nothing"])
def test_second_derivatives_where_a_body_reads_a_variable_of_open_shape(shape):
    """A call returns the variables that its gradient reads; nobody asks for the gradient of this result."""
    v = tf.Variable([1.0, 2.0, 3.0], shape=tf.TensorShape(shape))

    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([])])
    def scale(n, x):
        if n < 1:
            return tf.reduce_sum(v * x * x)
        return scale(n - 1, 2.0 * x)

    def second_derivatives(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = scale(2, x)
            slope = tape.gradient(y, x)
        return outer.gradient(slope, [x, v])

    for value in [[1.0, 2.0, 3.0], [4.0, 5.0]]:
        v.assign(value)
        for derive in (second_derivatives, tf.function(second_derivatives)):
            by_x, by_v = derive(tf.constant(1.5))
            np.testing.assert_allclose(by_x, 2.0 * 16.0 * sum(value))
            np.testing.assert_allclose(by_v, [2.0 * 16.0 * 1.5] * len(value))
