"""What tf.gradients is asked for, and how: many at once, stopped, weighed, by the user's own functions."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import differences, fed
from gradient_programs import MATRIX, VECTOR, define_power

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32


# --- What tf.gradients is asked for -------------------------------------------------------------------------------


def test_several_gradients_of_one_call(run, control_flow):
    f, define = recursive("F", [F64, F64, I32], [F64, F64])
    define(lambda x, y, n: tf.cond(n < 1, lambda: (x, y), lambda: f(x * y, y + 1.0, n - 1)))
    x, y = fed([0.8, 1.2])
    a, b = f(x, y, 3)
    gradients = [tf.gradients(a, x), tf.gradients(a, y), tf.gradients([a, b], [x, y]), tf.gradients(b * a, y)]
    first = lambda x, y: x * y * (y + 1) * (y + 2)
    da = differences(first, [0.8, 1.2], [1.0])
    dab = differences(lambda x, y: first(x, y) * (y + 3), [0.8, 1.2], [1.0])
    got = run(gradients)
    for one, other in zip(got, [[da[0]], [da[1]], [da[0], da[1] + 1], [dab[1]]], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    for gradient, one in zip(gradients, got, strict=True):
        np.testing.assert_allclose(run(gradient), one)


def test_gradients_of_several_calls(run, control_flow):
    f = define_power()
    x = tf.constant(1.1, F64)
    calls = [f(x, n) for n in range(5)]
    expected = [n * 1.1 ** (n - 1) for n in range(5)]
    np.testing.assert_allclose(run([tf.gradients(y, x)[0] for y in calls]), expected)
    np.testing.assert_allclose(run(tf.gradients(calls, x)[0]), sum(expected))


def test_same_step_runs_again_and_again(run, control_flow):
    f = define_power()
    x, n = tf1.placeholder(F64, []), tf1.placeholder(I32, [])
    y = f(x, n)
    [dx] = tf.gradients(y, x)
    for i in range(12):
        fetches = [[y, dx], [dx], [y]][i % 3]
        expected = [[1.2**i, i * 1.2 ** (i - 1)], [i * 1.2 ** (i - 1)], [1.2**i]][i % 3]
        np.testing.assert_allclose(run(fetches, {x: 1.2, n: i}), expected, atol=1e-12)


@pytest.mark.parametrize("is_recursive", [True, False])
def test_part_of_the_gradients_of_a_loop(run, control_flow, is_recursive):
    """A loop of control flow v1 keeps what all gradients need, the call's record too, whichever of them is fetched."""
    f = define_power()
    if not is_recursive:
        f, define = recursive("Square", [F64, I32], [F64], [[]])
        define(lambda x, n: x * x)
    w, x = tf.constant(2.0, F64), tf.constant(3.0, F64)
    step = lambda i, s, t: (i + 1, s + tf.ensure_shape(f(w, 2), []), t * x)
    _, s, t = tf.while_loop(lambda i, *_: i < 3, step, [0, tf.zeros([], F64), tf.ones([], F64)])
    dw, dx = tf.gradients(s + t, [w, x])
    for fetch, expected in ((dx, 27), (dw, 12), ([dw, dx], [12, 27]), (s, 12)):
        assert run(fetch) == expected


def test_jacobian_by_gradients_of_elements(run, control_flow):
    f, define = recursive("F", [F64, F64, I32], [F64])
    define(lambda v, w, n: tf.cond(n < 1, lambda: v, lambda: f(tf.tanh(tf.linalg.matvec(w, v)), w, n - 1)))
    v, w = fed([VECTOR, MATRIX])
    y = tf.ensure_shape(f(v, w, 3), [3])
    rows = run([tf.gradients(y[i], [v, w]) for i in range(3)])

    def oracle(v, w):
        for _ in range(3):
            v = np.tanh(w @ v)
        return v

    for i in range(3):
        for got, wanted in zip(rows[i], differences(oracle, [VECTOR, MATRIX], [np.eye(3)[i]]), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


def test_grad_ys_weigh_the_outputs(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64, F64])
    define(lambda x, n: tf.cond(n < 1, lambda: (x, 2.0 * x), lambda: f(x * x, n - 1)))
    x, weight = fed([VECTOR, VECTOR + 1])
    a, b = f(x, 2)
    [dx] = tf.gradients([a, b], x, grad_ys=[weight, None])
    np.testing.assert_allclose(run(dx), 4 * VECTOR**3 * (VECTOR + 1 + 2))
    [dx] = tf.gradients(b, x, grad_ys=weight * 0.0)
    np.testing.assert_allclose(run(dx), 0 * VECTOR)


def test_gradient_by_grad_ys_is_linear(run, control_flow):
    """A forward-mode product, by differentiating the gradient by its weight."""
    f = define_power()
    x, u = fed([1.2, 1.0])
    [g] = tf.gradients(f(x, 4), x, grad_ys=u)
    np.testing.assert_allclose(run(tf.gradients(g, u)[0]), 4 * 1.2**3)


def test_stop_gradients_end_the_way(run, control_flow):
    f = define_power()
    x = tf.constant(1.2, F64)
    inner = f(x, 2)
    y = f(inner, 3) * x
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), 7 * 1.2**6)
    np.testing.assert_allclose(run(tf.gradients(y, x, stop_gradients=inner)[0]), 1.2**6)
    np.testing.assert_allclose(run(tf.gradients(y, [x, inner], stop_gradients=[x, inner])), [1.2**6, 3 * 1.2**5])


def test_stop_gradient_in_body(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.stop_gradient(x) * f(x, n - 1)))
    x = tf.constant(1.2, F64)
    np.testing.assert_allclose(run(tf.gradients(f(x, 4), x)[0]), 1.2**4)


def test_stop_gradient_around_calls(run, control_flow):
    f = define_power()
    x = tf.constant(1.2, F64)
    y = tf.stop_gradient(f(x, 3)) * f(x, 2) + f(tf.stop_gradient(x), 5)
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), 2 * 1.2**4)
    assert tf.gradients(tf.stop_gradient(f(x, 3)), x) == [None]


def test_custom_gradient_in_body_is_used(run, control_flow):
    @tf.custom_gradient
    def tripled(x):
        return x * 2.0, lambda dy: 3.0 * dy

    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tripled(f(x, n - 1))))
    x = tf.constant(1.2, F64)
    y = f(x, 4)
    np.testing.assert_allclose(run([y, tf.gradients(y, x)[0]]), [16 * 1.2, 81])


def test_custom_gradient_around_call_is_used(run, control_flow):
    f = define_power()

    @tf.custom_gradient
    def clipped(x):
        return f(x, 3), lambda dy: tf.minimum(dy * 100.0, 1.0)

    x = tf.constant(1.2, F64)
    np.testing.assert_allclose(run(tf.gradients(clipped(x) * 2.0, x)[0]), 1.0)


METHODS = [
    tf1.AggregationMethod.ADD_N,
    tf1.AggregationMethod.EXPERIMENTAL_TREE,
    tf1.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_aggregation_method_does_not_change_the_result(run, control_flow, method):
    f = define_power()
    x = tf.constant(VECTOR)
    product = lambda: tf.reduce_prod(tf.stack([f(x[0], n) for n in range(1, 5)]))
    y = product() * tf.reduce_sum(x * x) + product()
    [dx] = tf.gradients(y, x, aggregation_method=method)
    oracle = lambda x: x[0] ** 10 * np.sum(x * x) + x[0] ** 10
    np.testing.assert_allclose(run(dx), differences(oracle, [VECTOR], [1.0])[0], rtol=1e-6, atol=1e-9)


# --- The user's own gradient --------------------------------------------------------------------------------------


def test_python_grad_func_is_used(run, control_flow):
    """It gets the call's operation and the outputs' gradients, and returns one for each argument."""

    def gradient(op, dy):
        return dy * 10.0 * op.inputs[0], None

    f, define = recursive("F", [F64, I32], [F64], python_grad_func=gradient)
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: x * f(x, n - 1)))
    x, n = tf.constant(1.2, F64), tf.constant(4)
    dx, dn = tf.gradients(f(x, n) * 2.0, [x, n])
    np.testing.assert_allclose(run(dx), 2 * 10 * 1.2)
    assert dn is None


def test_python_grad_func_is_used_of_function_that_a_body_calls(run, control_flow):
    def gradient(op, dy):
        return 5.0 * dy

    g, define_g = recursive("G", [F64], [F64], python_grad_func=gradient)
    define_g(lambda x: tf.sin(x))
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: g(f(x, n - 1))))
    x = tf.constant(0.3, F64)
    np.testing.assert_allclose(run(tf.gradients(f(x, 3), x)[0]), 125)


def test_python_grad_func_may_call_the_function(run, control_flow):
    """x ** n has the derivative n * x ** (n - 1)."""

    def gradient(op, dy):
        x, n = op.inputs[:2]
        return dy * tf.cast(n, F64) * f(x, n - 1), None

    f, define = recursive("F", [F64, I32], [F64], python_grad_func=gradient)
    define(lambda x, n: tf.cond(n < 1, lambda: tf.ones_like(x), lambda: x * f(x, n - 1)))
    x = tf.constant(1.2, F64)
    np.testing.assert_allclose(run(tf.gradients(f(x, 5), x)[0]), 5 * 1.2**4)


def test_python_grad_func_with_several_outputs(run, control_flow):
    def gradient(op, da, db):
        return da * 2.0 + db * 3.0, db * op.outputs[0]

    f, define = recursive("F", [F64, F64], [F64, F64], python_grad_func=gradient)
    define(lambda x, y: (x * y, x + y))
    x, y = fed([1.5, 2.5])
    a, b = f(x, y)
    np.testing.assert_allclose(run(tf.gradients([a, b], [x, y])), [5, 1.5 * 2.5])
    np.testing.assert_allclose(run(tf.gradients(a, [x, y])), [2, 0])


def test_grad_func_is_used(run, control_flow):
    """It is a function of the arguments and the outputs' gradients."""

    @tfr.Defun(F64, F64, F64, func_name="Grad", out_names=["dx", "dy"])
    def Grad(x, y, dz):
        return dz * 10.0 * x, dz * y

    @tfr.Defun(F64, F64, func_name="F", out_names=["z"], grad_func=Grad)
    def F(x, y):
        return x * y

    x, y = fed([1.5, 2.5])
    np.testing.assert_allclose(run(tf.gradients(F(x, y) * 2.0, [x, y])), [2 * 10 * 1.5, 2 * 2.5])


def test_grad_func_is_used_when_function_is_recursive(run, control_flow):
    @tfr.Defun(F64, I32, F64, func_name="Grad", out_names=["dx", "dn"])
    def Grad(x, n, dy):
        return dy * tf.cast(n, F64) * f(x, n - 1), tf.zeros_like(n)

    f, define = recursive("F", [F64, I32], [F64], grad_func=Grad)
    define(lambda x, n: tf.cond(n < 1, lambda: tf.ones_like(x), lambda: x * f(x, n - 1)))
    x, n = tf.constant(1.2, F64), tf.constant(5)
    dx, dn = tf.gradients(f(x, n), [x, n])
    np.testing.assert_allclose(run(dx), 5 * 1.2**4)
    assert dn is None


@pytest.mark.parametrize("flag", [True, None])
def test_gradient_exists_when_create_grad_func_is_true_or_left_out(run, control_flow, flag):
    f = define_power(create_grad_func=flag)
    x = tf.constant(1.2, F64)
    np.testing.assert_allclose(run(tf.gradients(f(x, 3), x)[0]), 3 * 1.2**2)


def test_gradient_of_call_that_a_session_knows_already(run):
    f, define = recursive("Later", [F64], [F64])
    x = tf.constant(0.5, F64)
    y = f(x)
    assert run(x) == 0.5  # the session takes the graph as it is
    define(lambda x: x * x * x)
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), 0.75)
