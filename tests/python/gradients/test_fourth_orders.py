"""Fourth derivatives, in which there are records that hold nothing but records."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr
from tensorflow_recursion._tf import handles

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32
X, U = 0.8, 1.7


def cube():
    """x^3, without a recursive call."""
    return tfr.Defun(tf.TensorSpec([], F64), func_name="Cube", output_shapes=[[]])(lambda x: x * x * x)


def recursive_cube():
    """x^3 by three calls."""
    power, define = recursive("Power", [F64, I32], [F64], shapes=[[]])
    define(lambda x, n: tf.cond(n < 1, lambda: tf.ones([], F64), lambda: x * power(x, n - 1)))
    return lambda x: power(x, 3)


USES = {
    "square": (lambda call, x: call(x) ** 2, 6),
    "product": (lambda call, x: call(x) * x, 4),
    "two calls": (lambda call, x: call(x) * call(x), 6),
    "call of a call": (lambda call, x: call(call(x)), 9),
}


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("define", [cube, recursive_cube])
@pytest.mark.parametrize("use", USES)
def test_fourth_derivative_is_that_of_the_power(run, define, use):
    make, degree = USES[use]
    x = tf.constant(X, F64)
    derivatives = [make(define(), x)]
    for _ in range(4):
        derivatives += tf.gradients(derivatives[-1], x)
    power = np.polynomial.Polynomial.basis(degree)
    np.testing.assert_allclose(run(derivatives), [power(X), *(power.deriv(order)(X) for order in (1, 2, 3, 4))])


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("order", ["xuxx", "xxux", "xxxu", "uxxx"])
@pytest.mark.parametrize("define", [cube, recursive_cube])
def test_mixed_derivative_is_the_same_in_every_order(run, define, order):
    """The gradient of x^3 u by x, and what it is multiplied with, which is u, have gradients at different times."""
    sources = {"x": tf.constant(X, F64), "u": tf.constant(U, F64)}
    y = define()(sources["x"]) * sources["u"]
    for name in order:
        [y] = tf.gradients(y, sources[name])
    np.testing.assert_allclose(run(y), 6)


def test_record_of_a_call_gets_a_gradient_and_a_list_of_integers_none():
    """Both say that they hold int64: TensorFlow says of the one alone that it is a list."""
    record = cube()(1.0).op.outputs[-1]
    shape = tf.constant([], I32)
    numbers = tf.raw_ops.TensorListReserve(element_shape=shape, num_elements=3, element_dtype=tf.int64)
    of_record, of_list = (handles.handle_data(tensor) for tensor in (record, numbers))
    assert not handles.holds_trainable(of_record) and not handles.holds_trainable(of_list)
    assert handles.with_gradient(of_record) == handles.OF_RECORD
    assert handles.with_gradient(of_list) == of_list
    assert handles.with_gradient(None) is None
