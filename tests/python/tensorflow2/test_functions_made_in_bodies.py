"""Functions that the body of another function makes: each trace of that body makes others, also those for gradients."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion.forward_backward import groups

tf1 = tf.compat.v1


def chain(w):
    """A function that makes another one, which uses an argument, a tensor and a variable of its surroundings."""

    @tfr.recursive
    def outer(n, x):
        shift = tf.sin(x)

        @tfr.recursive
        def inner(m, y):
            if m < 1:
                return y + shift
            return tf.tanh(tf.matmul(inner(m - 1, y), w)) * x

        if n < 1:
            return inner(n + 1, x)
        return outer(n - 1, inner(n, x)) + inner(n, shift)

    return outer


def chain_in_numpy(n, x, w):
    shift = np.sin(x)

    def inner(m, y):
        return y + shift if m < 1 else np.tanh(inner(m - 1, y) @ w) * x

    return inner(n + 1, x) if n < 1 else chain_in_numpy(n - 1, inner(n, x), w) + inner(n, shift)


def by_complex_step(function, x):
    """The gradient of a function of numpy at x, exact but for rounding."""
    grad = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        moved = x.astype(complex)
        moved[place] += 1e-20j
        grad[place] = function(moved).imag / 1e-20
    return grad


def by_differences(function, x, step=1e-6):
    grad = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        grad[place] = (function(up) - function(down)) / (2 * step)
    return grad


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrap", [lambda function: function, tf.function], ids=["eager", "tf.function"])
def test_gradients_of_two_orders_go_through_a_function_that_uses_its_surroundings(wrap):
    x, w = np.array([[0.3, 0.7]]), np.array([[0.5, 0.2], [0.1, 0.3]])
    weights = tf.Variable(w)
    outer = chain(weights)

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(outer(tf.constant(2), x) * [[1.0, 2.0]])
        return y, tape.gradient(y, [x, weights])

    def second(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, (dx, _) = first(x)
            y = tf.reduce_sum(dx * dx)
        return tape.gradient(y, [x, weights])

    def y_in_numpy(x, w):
        return (chain_in_numpy(2, x, w) * [[1.0, 2.0]]).sum()

    def square_in_numpy(x, w):
        return (by_complex_step(lambda x: y_in_numpy(x, w), x) ** 2).sum()

    y, (dx, dw) = wrap(first)(tf.constant(x))
    np.testing.assert_allclose(y, y_in_numpy(x, w))
    np.testing.assert_allclose(dx, by_complex_step(lambda x: y_in_numpy(x, w), x))
    np.testing.assert_allclose(dw, by_complex_step(lambda w: y_in_numpy(x, w), w))
    dx, dw = wrap(second)(tf.constant(x))
    np.testing.assert_allclose(dx, by_differences(lambda x: square_in_numpy(x, w), x), rtol=1e-5)
    np.testing.assert_allclose(dw, by_differences(lambda w: square_in_numpy(x, w), w), rtol=1e-5)


def test_gradient_goes_through_a_defun_that_the_body_of_a_defun_makes():
    with tf.Graph().as_default():
        outer = tfr.Declare("Outer", [("n", tf.int32), ("x", tf.float32)], [("y", tf.float32)])

        @tfr.Defun(tf.int32, tf.float32, func_name="Outer", out_names=["y"])
        def outer_impl(n, x):
            @tfr.Defun(tf.int32)
            def times(m):
                return x * tf.cast(m, tf.float32)

            @tfr.Defun()
            def plus(a, b):
                return a + b * x

            return tf.cond(n < 1, lambda: times(n + 1), lambda: outer(n - 1, plus(times(n), x)))

        x = tf.constant(0.5)
        y = outer_impl(2, x)
        (dx,) = tf.gradients(y, x)
        with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
            # x -> 2 x + x^2 = 1.25 -> 1.25 + 1.25^2
            np.testing.assert_allclose(session.run([y, dx]), [1.25 + 1.25**2, (1 + 2 * 1.25) * (2 + 2 * 0.5)])


def test_defun_of_a_given_name_in_a_differentiated_body_is_an_error_that_says_what_to_do():
    with tf.Graph().as_default():

        @tfr.Defun(tf.float32, func_name="Outer")
        def outer(x):
            @tfr.Defun(tf.float32, func_name="Inner")
            def inner(y):
                return x * y

            return inner(x)

        x = tf.constant(0.5)
        y = outer(x)
        with pytest.raises(ValueError, match=r"'Inner' is defined twice.* leave out its func_name"):
            tf.gradients(y, x)


class Doubled(tf.Module):
    def __init__(self, x):
        super().__init__()
        self.x = x

    @tfr.recursive
    def power(self, n):
        if n < 1:
            return self.x
        return self.power(n - 1) * 2.0


def test_method_of_an_object_that_a_body_does_not_keep_is_an_error_that_says_what_to_do():
    @tfr.recursive
    def outer(n, x):
        return Doubled(x).power(n)

    with pytest.raises(ReferenceError, match=r"'power' is a method of an object that is gone; keep the object"):
        outer(tf.constant(2), tf.constant(0.5))


@pytest.mark.full_matrix
def test_derivatives_without_end_are_an_error_whose_remedy_helps(monkeypatch):
    """Each trace of `outer` makes another `inner`, and the gradient in the body makes others of those."""
    monkeypatch.setattr(groups, "_MAX_SWEEPS", 8)
    weights, factor, x = tf.Variable([0.4, 0.7]), tf.Variable(1.3), tf.constant(0.5)

    def power(function, z, a, k):
        return a * z * weights[0] if k < 1 else function(k - 1, a) * z

    def slope(function, n, x, z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = function(n, x)
        return tf.reduce_sum(tf.convert_to_tensor(tape.gradient(y, weights)))

    @tfr.recursive
    def outer(n, x):
        z = x * factor

        @tfr.recursive(output_signature=tf.TensorSpec([]))
        def inner(k, a):
            return power(inner, z, a, k)

        return slope(inner, n, x, z)

    @tfr.recursive(output_signature=tf.TensorSpec([]))
    def of_arguments(k, a, z):
        return power(lambda k, a: of_arguments(k, a, z), z, a, k)

    @tfr.recursive
    def as_advised(n, x):
        z = x * factor
        return slope(lambda n, x: of_arguments(n, x, z), n, x, z)

    def derivatives(function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(tf.constant(2), x)
        return y, *tape.gradient(y, [x, factor])

    with pytest.raises(LookupError, match=r"'outer'.* does not come to an end.*'inner'; define that function outside"):
        derivatives(outer)
    np.testing.assert_allclose(derivatives(as_advised), [0.5**4 * 1.3**3, 4 * 0.5**3 * 1.3**3, 3 * 0.5**4 * 1.3**2])
