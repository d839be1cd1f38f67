"""Derivatives by nested tapes: their values, and the kernel runs that they take for each call of a recursion."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import CountedInAllOrders

import tensorflow_recursion as tfr

F64, I32 = tf.float64, tf.int32


def define(counted, v):
    @tfr.recursive(input_signature=[tf.TensorSpec([], F64), tf.TensorSpec([], I32)])
    def power(x, n):
        if n < 1:
            return v * 1.0
        return counted(x) * power(x, n - 1)

    return power


def nested_tapes(f, x, n, order):
    if order == 0:
        return f(x, n)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nested_tapes(f, x, n, order - 1)
    return tape.gradient(y, x)


def symbolic(f, x, n, order):
    y = f(x, n)
    for _ in range(order):
        y = tf.gradients(y, x)[0]
    return y


DERIVATIONS = {
    "eager": lambda f: lambda x, n, order: nested_tapes(f, x, n, order),
    "eager, in a tf.function": lambda f: (
        lambda x, n, order: nested_tapes(tf.function(lambda x, n: f(x, n)), x, n, order)
    ),
    "tf.function": lambda f: tf.function(lambda x, n, order: nested_tapes(f, x, n, order)),
    "tf.gradients": lambda f: tf.function(lambda x, n, order: symbolic(f, x, n, order)),
}


@pytest.mark.full_matrix
@pytest.mark.parametrize("derivation", DERIVATIONS.values(), ids=DERIVATIONS)
@pytest.mark.parametrize("order", [2, 3])
def test_kernel_runs_are_in_proportion_to_calls(derivation, order):
    counted = CountedInAllOrders()
    v = tf.Variable(2.0, dtype=F64)
    derivative = derivation(define(counted, v))
    x = tf.constant(1.1, F64)
    runs = []
    for depth in (6, 12, 24):
        counted.reset()
        got = derivative(x, tf.constant(depth), order)
        expected = 2 * np.polynomial.Polynomial.basis(depth).deriv(order)(1.1)
        np.testing.assert_allclose(got, expected, rtol=1e-9)
        runs.append(counted.runs / depth)
    assert max(runs) == min(runs), runs


@pytest.mark.thorough
def test_hessian_vector_product_for_a_variable_that_the_body_reads():
    v = tf.Variable(1.5, dtype=F64)

    @tfr.recursive(input_signature=[tf.TensorSpec([], F64), tf.TensorSpec([], I32)])
    def product(x, n):
        if n < 1:
            return x
        return v * v * product(x, n - 1)

    @tf.function
    def derivatives(n):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = product(tf.constant(3.0, F64), n)
            slope = inner.gradient(y, v)
        return slope, outer.gradient(slope, v)

    slope, second = derivatives(tf.constant(4))  # of 3 v^8
    np.testing.assert_allclose([slope, second], [24 * 1.5**7, 168 * 1.5**6])


@pytest.mark.full_matrix
@pytest.mark.parametrize("derivation", DERIVATIONS.values(), ids=DERIVATIONS)
def test_third_derivative_beside_vectors_that_the_body_reads(derivation):
    """Branches that are not taken have zeros in their records, which are scalars where no shape is known before."""
    v = tf.Variable([0.7, 0.3, -0.4], dtype=F64)

    @tfr.recursive(input_signature=[tf.TensorSpec([3], F64), tf.TensorSpec([], I32)])
    def product(x, n):
        if n < 1:
            return tf.reduce_sum(x * v * v)
        return product(x * v, n - 1) * tf.reduce_sum(v * v * x)

    of_sums = derivation(lambda s, n: product(s * tf.ones([3], F64), n))
    # product(x, n) is a multiple of x ** (n + 1): for n = 2, of x ** 3.
    third = of_sums(tf.constant(1.3, F64), tf.constant(2), 3)
    np.testing.assert_allclose(third, 6 * product(tf.ones([3], F64), tf.constant(2)), rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("in_function", [False, True])
def test_second_derivative_of_functions_that_only_call(in_function):
    v = tf.Variable(0.8, dtype=F64)

    @tfr.recursive
    def cube(x):
        return v * x * x * x

    @tfr.recursive
    def calls(x):
        return cube(x)

    f = tf.function(lambda x, n: calls(x) * n) if in_function else lambda x, n: calls(x) * n
    x, n = tf.constant(0.5, F64), tf.constant(2.0, F64)
    np.testing.assert_allclose(nested_tapes(f, x, n, 2), 12 * 0.8 * 0.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = calls(v)
        slope = inner.gradient(y, v)
    np.testing.assert_allclose(outer.gradient(slope, v), 12 * 0.8**2)


@pytest.mark.full_matrix
@pytest.mark.parametrize("in_function", [False, True])
def test_fourth_derivative_of_what_is_computed_with_a_call(in_function):
    @tfr.recursive
    def cube(x):
        return x * x * x

    def square(x, n):
        return cube(x) ** n

    x, n = tf.constant(0.8, F64), tf.constant(2.0, F64)
    f = tf.function(square) if in_function else square
    np.testing.assert_allclose(nested_tapes(f, x, n, 4), 360 * 0.8**2)


@pytest.mark.thorough
@pytest.mark.parametrize("in_function", [False, True])
def test_a_gradient_that_needs_no_value_of_the_forward_call_has_a_gradient(in_function):
    @tfr.recursive
    def doubled(x, n):
        if n < 1:  # a number of Python: the body has no branch
            return x
        return doubled(x, n - 1) * 2.0

    def cost(x, n):
        return doubled(x, n) ** 2

    x, n = tf.constant(1.5, F64), 3
    f = tf.function(cost) if in_function else cost
    assert [float(nested_tapes(f, x, n, order)) for order in range(3)] == [144.0, 192.0, 128.0]


BETWEEN = {"nothing else": lambda y: y, "an operator whose gradient needs no value": lambda y: y + 1.0}


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("after", BETWEEN.values(), ids=BETWEEN.keys())
def test_derivatives_when_a_record_holds_nothing_but_the_record_of_a_call(after, in_function):
    @tfr.recursive
    def sine(x):
        return tf.sin(x)

    @tfr.recursive
    def handed_on(x):
        return after(sine(x))

    @tfr.recursive
    def cost(x):
        return handed_on(x) ** 3

    def orders(f):
        return [nested_tapes(lambda x, _: f(x), tf.constant(0.7, F64), None, order) for order in range(4)]

    expected = orders(lambda x: after(tf.sin(x)) ** 3)
    np.testing.assert_allclose(orders(tf.function(cost) if in_function else cost), expected, rtol=1e-9)


def halves(again, x, n):
    """The branches return vectors of unequal lengths."""
    if n < 1:
        return tf.sin(x[:2])
    return tf.concat([again(x, n - 1)[:2] * x[:2]] * 2, 0)


def ranks(again, x, n):
    """The branches return tensors of unequal ranks."""
    if n < 1:
        return tf.reduce_sum(x * x)
    return again(x, n - 1) * tf.cos(x)


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("body", [halves, ranks])
def test_derivatives_of_branches_of_unequal_shapes(body, order):
    @tfr.recursive
    def recursive(x, n):
        return body(recursive, x, n)

    def plain(x, n):
        return body(plain, x, n)

    def derivative(f, x, order):
        if order == 0:
            return tf.reduce_sum(f(x) ** 2)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(f, x, order - 1)
        return tf.reduce_sum(tape.gradient(y, x) * tf.constant([1.0, 2.0, 3.0], F64))

    x = tf.constant([0.3, 0.5, 0.7], F64)
    got, expected = (derivative(lambda x, f=f: f(x, tf.constant(2)), x, order) for f in (recursive, plain))
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", ["eager", "tf.function", "loaded"])
def test_second_derivative_of_a_body_that_looks_up(place, tmp_path):
    """A lookup table's handle is one of no variable: TensorFlow knows no zeros like it."""
    module = tf.Module()
    module.w = tf.Variable(2.0)
    module.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [5]), 0)

    @tfr.recursive
    def power(n, key):
        if n < 1:
            return module.w * tf.cast(module.table.lookup(key), tf.float32)
        return module.w * power(n - 1, key)

    function = power if place == "eager" else tf.function(power)
    if place == "loaded":
        signature = [tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.string)]
        module.power = tf.function(power, input_signature=signature)
        tf.saved_model.save(module, str(tmp_path))
        module = tf.saved_model.load(str(tmp_path))
        function = module.power
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = function(tf.constant(3), tf.constant("a"))
        dw = tape.gradient(y, module.w)
    assert (float(y), float(dw), float(outer.gradient(dw, module.w))) == (80, 160, 240)
