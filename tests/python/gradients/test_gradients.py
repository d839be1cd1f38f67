"""tf.gradients through recursive functions: what it returns."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_programs import PROGRAMS, check_gradients, define_power

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32


# --- Dtypes and shapes --------------------------------------------------------------------------------------------


@pytest.fixture(params=PROGRAMS)
def chosen(request):
    return PROGRAMS[request.param]


@pytest.mark.sampled(6)
def test_gradients_are_those_of_the_oracle(run, control_flow, chosen):
    function, oracle = chosen.build()
    for arguments in chosen.inputs:
        check_gradients(run, function, oracle, arguments)


UNSHAPED = ["recurrent_net", "results_that_grow", "arguments_that_shrink", "several_outputs", "tail_recursion"]


@pytest.mark.parametrize("chosen", UNSHAPED, indirect=True)
def test_gradients_are_those_of_the_oracle_when_shapes_are_unknown(run, control_flow, chosen):
    function, oracle = chosen.build()
    check_gradients(run, function, oracle, chosen.inputs[-1], shapes=False)


@pytest.mark.parametrize("dtype", [tf.float32, tf.complex64, tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_gradient_has_dtype_and_shape_of_argument(run, control_flow, dtype):
    f = define_power(dtype)
    x = tf1.placeholder(dtype, [])
    [dx] = tf.gradients(f(x, 4), x, grad_ys=tf.ones([], dtype))
    assert dx.dtype == dtype
    got = run(dx, {x: 0.5})
    assert got.shape == ()
    np.testing.assert_allclose(np.complex64(got).real, 4 * 0.5**3, rtol=1e-2)


def test_gradient_is_float32_accurate(run, control_flow):
    f = define_power(tf.float32)
    x = tf1.placeholder(tf.float32, [])
    np.testing.assert_allclose(run(tf.gradients(f(x, 20), x)[0], {x: 1.1}), 20 * 1.1**19, rtol=1e-5)


# --- None ---------------------------------------------------------------------------------------------------------


def test_gradient_is_none_when_argument_is_no_floating_number(control_flow):
    f, define = recursive("F", [F64, I32, tf.bool, tf.string, tf.int64], [F64, I32, tf.string])
    define(lambda x, n, b, s, k: tf.cond(n < 1, lambda: (x, n, s), lambda: f(x * x, n - 1, b, s, k)))
    x, n = tf.constant(1.0, F64), tf.constant(2)
    rest = [tf.constant(True), tf.constant("a"), tf.constant(3, tf.int64)]
    y = f(x, n, *rest)
    dx, *others = tf.gradients(y[0], [x, n, *rest])
    assert dx is not None
    assert others == [None] * 4


def test_gradient_is_none_when_the_path_is_of_integers(control_flow):
    f, define = recursive("F", [I32, F64], [F64, I32])
    define(lambda n, x: tf.cond(n < 1, lambda: (x, n), lambda: f(n - 1, x * x)))
    x = tf.constant(2.5, F64)
    y, _ = f(tf.cast(x, I32), tf.constant(1.5, F64))
    assert tf.gradients(y, x) == [None]
    _, n = f(2, x)
    assert tf.gradients(tf.cast(n, F64), x) == [None]


def test_gradient_is_zeros_or_none_when_unconnected_as_asked(run, control_flow):
    f = define_power()
    x, z = tf1.placeholder(F64, [2]), tf.constant(2.0, F64)
    y = f(z, 3)
    assert tf.gradients(y, x) == [None]
    [zeros] = tf.gradients(y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert run(zeros, {x: [1, 2]}).tolist() == [0, 0]
    [zero] = tf.gradients(y, tf.constant(1), unconnected_gradients="zero")
    assert run(zero) == 0


def test_calls_of_many_static_shapes(run):
    f = define_power()
    xs = [tf.fill([k], tf.constant(2.0, F64)) for k in range(1, 8)]
    g, define = recursive("Squares", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: x * g(x, n - 1)))
    gradients = tf.gradients(tf.add_n([tf.reduce_sum(g(x, 2)) for x in xs]) + f(tf.constant(1.0, F64), 2), xs)
    for k, value in enumerate(run(gradients), 1):
        np.testing.assert_allclose(value, np.full(k, 12.0))
