"""Higher derivatives of functions whose records hold nothing but records: of calls alone, and those of fourth order."""
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


def only_calls(cube):
    return tfr.Defun(tf.TensorSpec([], F64), func_name="Calls", output_shapes=[[]])(lambda x: cube(x))


def sums_calls(cube):
    return tfr.Defun(tf.TensorSpec([], F64), func_name="Sums", output_shapes=[[]])(lambda x: (cube(x) + cube(x)) / 2)


@pytest.mark.parametrize("define", [only_calls, sums_calls])
def test_derivatives_of_a_function_that_only_calls(run, define):
    """It keeps nothing but records: what it gives the function that it calls is its argument."""
    call = define(cube())
    x = tf.constant(X, F64)
    derivatives = [call(x) * x + call(call(x))]
    for _ in range(2):
        derivatives += tf.gradients(derivatives[-1], x)
    power = np.polynomial.Polynomial.basis(4) + np.polynomial.Polynomial.basis(9)
    np.testing.assert_allclose(run(derivatives), [power(X), *(power.deriv(order)(X) for order in (1, 2))])


def test_second_derivative_for_a_variable_that_only_a_called_function_reads(run):
    v = tf1.get_variable("v", initializer=np.float64(X), use_resource=True)
    inner = tfr.Defun(func_name="Inner", output_shapes=[[]])(lambda: v * v * v)
    outer = tfr.Defun(func_name="Outer", output_shapes=[[]])(lambda: inner())
    [first] = tf.gradients(outer(), v)
    np.testing.assert_allclose(run([first, *tf.gradients(first, v)]), [3 * X**2, 6 * X])


USES = {
    "square": (lambda call, x: call(x) ** 2, 6),
    "product": (lambda call, x: call(x) * x, 4),
    "two calls": (lambda call, x: call(x) * call(x), 6),
    "call of a call": (lambda call, x: call(call(x)), 9),
}


@pytest.mark.full_matrix
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
@pytest.mark.sampled(4)
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
