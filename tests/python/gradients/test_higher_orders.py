"""Gradients of gradients, against differences of the gradients one order below."""
# SPDX-License-Identifier: Apache-2.0

import re

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import differences, fed
from gradient_programs import captured_oracle, define_captured, define_power, mutual_recursion, tree_recursion

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
pytestmark = pytest.mark.thorough

F64, I32 = tf.float64, tf.int32

WEIGHT = np.array([[0.5, 0.3], [0.2, 0.7], [0.1, 0.9]])
SQUARE = WEIGHT[:2]


def variable(value):
    return tf1.get_variable("w", initializer=value, use_resource=True)


KINDS = {"tensor": tf.constant, "variable": variable}


def check_orders(y, x, orders=2):
    """Derivatives of `y` along one direction: each of the next is the difference quotient of the one before."""
    direction = np.random.default_rng(3).normal(size=x.shape.as_list())
    derivatives = [y]
    for _ in range(orders):
        [gradient] = tf.gradients(derivatives[-1], x)
        derivatives.append(tf.reduce_sum(tf.convert_to_tensor(gradient) * direction))
    for config in (tf1.ConfigProto(), tfr.session_config()):
        with tf1.Session(config=config) as session:
            session.run(tf1.global_variables_initializer())
            at, step = session.run(x), 1e-5
            # Feeds are the same each time: TensorFlow prepares a large graph once.
            steps = (0, step, -step)
            got, above, below = (run_with(session, derivatives, x, at + delta * direction) for delta in steps)
            expected = (np.array(above[:-1]) - np.array(below[:-1])) / (2 * step)
            np.testing.assert_allclose(got[1:], expected, rtol=1e-6, atol=1e-6)


def run_with(session, fetches, x, value):
    if isinstance(x, tf.Tensor):
        return session.run(fetches, {x: value})
    x.load(value, session)
    return session.run(fetches)


def loop(times, step, start, shape=()):
    """`step` applied to `start` again and again."""
    body = lambda i, value: (i + 1, tf.ensure_shape(step(value), shape))
    return tf.while_loop(lambda i, _: i < times, body, [0, tf.ensure_shape(start, shape)])[1]


def unless_zero(define, first, then):
    define(lambda x, n: tf.cond(n < 1, lambda: first(x), lambda: then(x, n)))


# --- Recursion ----------------------------------------------------------------------------------------------------


def test_derivatives_of_second_and_third_order(run, control_flow):
    f = define_power()
    x, n = tf.constant(1.3, F64), tf1.placeholder(I32, [])
    derivatives = [f(x, n)]
    for _ in range(3):
        derivatives.append(tf.gradients(derivatives[-1], x, unconnected_gradients="zero")[0])
    for degree in (0, 1, 2, 6):
        power = np.polynomial.Polynomial.basis(degree)
        expected = [power.deriv(order)(1.3) if order else 1.3**degree for order in range(4)]
        np.testing.assert_allclose(run(derivatives, {n: degree}), expected, atol=1e-12)


@pytest.mark.parametrize("make", [tf.Variable, variable], ids=["tf.Variable", "get_variable"])
def test_body_makes_its_variable_once_when_derivatives_are_of_any_order(run, make):
    @tfr.Defun(F64, func_name="F", out_names=["y"])
    def F(x):
        return make(np.float64(2)) * x * x * x

    x = tf.constant(3.0, F64)
    derivatives = [F(x)]
    for _ in range(3):
        derivatives += tf.gradients(derivatives[-1], x)
    assert len(tf1.global_variables()) == 1
    assert run(derivatives) == [54, 54, 36, 12]


@pytest.mark.parametrize(("build", "at"), [(tree_recursion, 0.8), (mutual_recursion, 0.4)])
def test_second_derivative_is_second_difference(run, control_flow, build, at):
    f, oracle = build()
    x = tf.constant(at, F64)
    [dx] = tf.gradients(f(x, 5), x)
    [ddx] = tf.gradients(dx, x)
    h = 1e-4
    expected = (oracle(at + h, 5) - 2 * oracle(at, 5) + oracle(at - h, 5)) / h**2
    np.testing.assert_allclose(run(ddx), expected, rtol=1e-5)


def test_second_derivatives_by_captured_tensors(run, control_flow):
    w, c = fed([0.6, 0.7])
    f = define_captured(w, c)
    x = tf.constant(0.3, F64)
    dw, dc = tf.gradients(f(x, 5), [w, c])
    second = [tf.gradients(one, [w, c], unconnected_gradients="zero") for one in (dw, dc)]
    first = lambda w, c: differences(lambda w, c: captured_oracle(0.3, w, c, 5), [w, c], [1.0], 1e-4)
    h = 1e-4
    by_w = (np.array(first(0.6 + h, 0.7)) - np.array(first(0.6 - h, 0.7))) / (2 * h)
    by_c = (np.array(first(0.6, 0.7 + h)) - np.array(first(0.6, 0.7 - h))) / (2 * h)
    np.testing.assert_allclose(run(second), [by_w, by_c], rtol=1e-4, atol=1e-6)  # one of them is 0


@pytest.mark.parametrize("control_flow", ["v2"], indirect=True)  # stock TensorFlow has no hessians of v1 loops
def test_hessians(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64])
    deeper = lambda v, n: f(v * v[0] + tf.sin(v), n - 1) * v[1]
    define(lambda v, n: tf.cond(n < 1, lambda: tf.reduce_sum(v * v * v), lambda: deeper(v, n)))
    v = tf.constant([0.5, 0.8], F64)
    [hessian] = tf.hessians(f(v, 2), v)

    def oracle(v, n=2):
        return np.sum(v**3) if n < 1 else oracle(v * v[0] + np.sin(v), n - 1) * v[1]

    h, at = 1e-4, np.array([0.5, 0.8])
    gradient = lambda v: differences(oracle, [v], [1.0], 1e-5)[0]
    expected = [(gradient(at + step) - gradient(at - step)) / (2 * h) for step in np.eye(2) * h]
    np.testing.assert_allclose(run(hessian), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("around", ["cond", "loop"])
def test_second_derivative_through_control_flow_of_main_graph(run, control_flow, around):
    f = define_power()
    x = tf.constant(1.5, F64)
    power = lambda v: tf.ensure_shape(f(v, 3), [])
    if around == "cond":
        y, expected = tf.cond(x > 0, lambda: power(x), lambda: x), 6 * 1.5
    elif control_flow == "v1":
        pytest.skip("stock TensorFlow has no second derivatives of v1 loops")
    else:
        y, expected = tf.while_loop(lambda i, _: i < 1, lambda i, v: (i + 1, power(v)), [0, x])[1], 6 * 1.5
    [dx] = tf.gradients(y, x)
    np.testing.assert_allclose(run(tf.gradients(dx, x)[0]), expected)


def test_function_named_like_a_gradient(run):
    f, g = define_power(), recursive("Power__gradient", [F64], [F64])
    g[1](lambda x: 2 * x)
    x = tf.constant(2.0, F64)
    [dx] = tf.gradients(f(x, 3), x)
    assert run([tf.gradients(dx, x)[0], g[0](x)]) == [12, 4]


# --- Control flow in bodies ---------------------------------------------------------------------------------------


BODIES = {
    "loop": lambda f, x, n: loop(3, lambda a: a * x, f(x, n - 1)),
    "cond in loop": lambda f, x, n: loop(2, lambda a: tf.cond(a > 100, lambda: a, lambda: a * f(x, n - 1)), x),
    "loop in loop": lambda f, x, n: loop(2, lambda a: loop(2, lambda b: tf.sin(b) * f(x, n - 1), a), x),
    "loop in cond": lambda f, x, n: tf.cond(x > 100, lambda: loop(3, tf.sin, x), lambda: x * f(tf.sin(x), n - 1)),
    "case": lambda f, x, n: tf.switch_case(
        n - 1, [lambda: loop(2, lambda a: a * f(x, n - 1), x), lambda: tf.sin(x) * f(x, n - 1)]
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_orders_through_control_flow_in_body(control_flow, body):
    f, define = recursive("F", [F64, I32], [F64], shapes=[[]])
    unless_zero(define, lambda x: x * x, lambda x, n: body(f, x, n))
    x = tf.constant(1.1, F64)
    check_orders(f(x, 2), x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("over", [tf.map_fn, tf.scan], ids=["map_fn", "scan"])
def test_orders_through_tensor_arrays_in_body(control_flow, over):
    f, define = recursive("F", [F64, I32], [F64], shapes=[[3]])
    step = (lambda e: tf.sin(e) * e) if over is tf.map_fn else (lambda a, e: tf.sin(a) * e)
    unless_zero(define, lambda x: x * x, lambda x, n: over(step, f(x, n - 1)))
    x = tf.constant([0.1, 0.2, 0.3], F64)
    check_orders(tf.reduce_sum(f(x, 2)), x)


def define_sines(name="G"):
    g, define = recursive(name, [F64, I32], [F64], shapes=[[]])
    unless_zero(define, lambda x: x, lambda x, n: tf.sin(x) * g(x, n - 1))
    return g


@pytest.mark.sampled(2)
@pytest.mark.parametrize("taken", [True, False])
def test_orders_when_record_crosses_a_cond_in_body(control_flow, taken):
    g = define_sines()
    f, define = recursive("F", [F64, I32], [F64], shapes=[[]])
    bound = 0.0 if taken else 100.0
    chosen = lambda x: tf.cond(x > bound, lambda: g(x, 2), lambda: tf.tanh(x))
    unless_zero(define, lambda x: x, lambda x, n: chosen(x) * f(x, n - 1))
    x = tf.constant(0.7, F64)
    check_orders(f(x, 2), x)


@pytest.mark.full_matrix
def test_orders_when_records_cross_a_cond_in_a_loop(control_flow):
    g = define_sines()
    f, define = recursive("F", [F64, I32], [F64], shapes=[[]])
    step = lambda a, x, n: tf.cond(a > x, lambda: g(a, 2), lambda: tf.cos(a) * f(x, n - 1))
    unless_zero(define, lambda x: x * x, lambda x, n: loop(3, lambda a: step(a, x, n), 1.5 * x))
    x = tf.constant(0.9, F64)
    check_orders(f(x, 2), x)


@pytest.mark.parametrize("taken", [True, False])
def test_orders_when_record_crosses_a_cond_around_call(control_flow, taken):
    g = define_sines()
    x = tf.constant(0.7, F64)
    flag = tf1.placeholder_with_default(taken, [])
    check_orders(tf.cond(flag, lambda: g(x, 2), lambda: x * g(x, 3)), x)


@pytest.mark.full_matrix
@pytest.mark.parametrize("control_flow", ["v2"], indirect=True)  # stock TensorFlow: no second gradient of v1 loops
def test_orders_through_loops_around_and_in_body(control_flow):
    f, define = recursive("F", [F64, I32], [F64], shapes=[[]])
    unless_zero(define, lambda x: x * x, lambda x, n: loop(2, lambda a: a * f(x, n - 1), x))
    x = tf.constant(1.1, F64)
    check_orders(loop(2, lambda a: f(a, 1), x), x)


@pytest.mark.full_matrix
def test_orders_of_gradient_in_body(control_flow):
    g = define_sines()
    f, define = recursive("F", [F64, I32], [F64], shapes=[[]])

    def slope(x):
        x = tf.identity(x)
        return tf.gradients(g(x, 2), x)[0]

    unless_zero(define, lambda x: x, lambda x, n: slope(x) * f(x, n - 1))
    x = tf.constant(0.7, F64)
    check_orders(f(x, 2), x)


# --- Weights ------------------------------------------------------------------------------------------------------


def product(w, x):
    return tf.tanh(tf.matmul(x, w))


def read_in_loop_and_branch(f, w, x, n):
    y = loop(2, lambda a: product(w, a), x, [1, 2])
    return f(y, n - 1) + tf.cond(n > 100, lambda: x, lambda: tf.matmul(y, w))


PRODUCTS = {
    "calls": lambda f, w, x, n: product(w, f(x, n - 1) + f(tf.sin(x), n - 2)),
    "loop": lambda f, w, x, n: loop(2, lambda a: product(w, a), f(x, n - 1), [1, 2]),
    "calls in loop": lambda f, w, x, n: loop(2, lambda a: product(w, f(a, n - 1)), x, [1, 2]),
    "loop and branch": read_in_loop_and_branch,
}


@pytest.mark.full_matrix
@pytest.mark.parametrize("body", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("kind", KINDS)
def test_orders_by_weight_that_is_multiplied_with(control_flow, kind, body):
    w = KINDS[kind](SQUARE)
    f, define = recursive("F", [F64, I32], [F64], shapes=[[1, 2]])
    unless_zero(define, tf.sin, lambda x, n: body(f, w, x, n))
    y = tf.reduce_sum(f(tf.constant([[1.0, 2.0]], F64), 2))
    check_orders(y, w)


def define_gathering(w):
    f, define = recursive("F", [F64, I32], [F64], shapes=[[2]])
    unless_zero(define, lambda x: x, lambda x, n: tf.sin(tf.gather(w, n)) * f(x, n - 1) * tf.gather(w, 0))
    return f


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_orders_by_weight_that_is_gathered_from(control_flow, kind):
    w = KINDS[kind](WEIGHT)
    f = define_gathering(w)
    check_orders(tf.reduce_sum(f(tf.constant([1.0, 2.0], F64), 2)), w)


@pytest.mark.full_matrix
def test_orders_by_weight_that_is_gathered_from_in_loop(control_flow):
    w = variable(WEIGHT)
    f, define = recursive("F", [F64, I32], [F64], shapes=[[2]])
    step = lambda a, n: tf.sin(tf.gather(w, n)) * f(a, n - 1)
    unless_zero(define, lambda x: x * tf.gather(w, 0), lambda x, n: loop(2, lambda a: step(a, n), x, [2]))
    check_orders(tf.reduce_sum(f(tf.constant([1.0, 2.0], F64), 2)), w)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("around", ["cond", "loop"])
def test_orders_by_weight_that_is_gathered_from_within_control_flow(control_flow, around):
    w = variable(WEIGHT)
    f = define_gathering(w)
    x = tf.constant([1.0, 2.0], F64)
    flag = tf1.placeholder_with_default(True, [])
    y = tf.cond(flag, lambda: f(x, 2), lambda: x) if around == "cond" else loop(2, lambda a: f(a, 2), x, [2])
    is_impossible = around == "loop" and control_flow == "v1"  # stock TensorFlow: no second gradient of v1 loops
    check_orders(tf.reduce_sum(y), w, orders=1 if is_impossible else 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scale", [1.0, np.inf, np.nan])
def test_rows_of_gathered_weight_are_differentiated_again_when_not_finite(run, scale):
    w = tf1.get_variable("w", initializer=np.ones([3, 2], np.float32))
    f = tfr.Declare("Cubes", [("n", tf.int32)], [("y", tf.float32)], output_shapes=[[]])

    @tfr.Defun(tf.int32, func_name="Cubes", out_names=["y"], output_shapes=[[]])
    def cubes(n):
        return tf.cond(n < 1, lambda: 0.0, lambda: tf.reduce_sum(tf.gather(w, [n % 3]) ** 3) + f(n - 1))

    [dw] = tf.gradients(cubes(3), w)
    scaled = tf.convert_to_tensor(dw) * tf1.placeholder_with_default(np.float32(scale), [])
    [ddw] = tf.gradients(tf.reduce_sum(scaled), w)
    np.testing.assert_array_equal(run(tf.convert_to_tensor(ddw)), np.full([3, 2], 6 * scale))


def test_rows_of_gathered_weight_are_differentiated_one_by_one_when_each_is_gathered_once(run, control_flow):
    w = tf.constant(WEIGHT)
    f, define = recursive("F", [F64, I32], [F64], shapes=[[2]])
    unless_zero(define, lambda x: x, lambda x, n: tf.gather(w, n) ** 3 * f(x, n - 1))
    [rows] = tf.gradients(tf.reduce_sum(f(tf.ones([2], F64), 2)), w)
    assert isinstance(rows, tf.IndexedSlices)
    [second] = tf.gradients(tf.reduce_sum(tf.square(rows.values)), w)
    a, b = WEIGHT[1], WEIGHT[2]
    # The gradients are 3 a^2 b^3 and 3 b^2 a^3, by row.
    np.testing.assert_allclose(run(tf.convert_to_tensor(second))[1], 36 * a**3 * b**6 + 54 * a**5 * b**4)


def test_run_is_error_when_rows_of_one_row_of_the_weight_count_differently(run, control_flow):
    w = tf.constant(WEIGHT)
    f, define = recursive("F", [F64, I32], [F64], shapes=[[2]])
    unless_zero(define, lambda x: x, lambda x, n: tf.gather(w, 0) ** tf.cast(n, F64) * f(x, n - 1))
    [rows] = tf.gradients(tf.reduce_sum(f(tf.ones([2], F64), 2)), w)
    [second] = tf.gradients(tf.reduce_sum(rows.values**3), w)
    [right] = tf.gradients(tf.reduce_sum(tf.convert_to_tensor(rows) ** 3), w)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)gathered from.*convert_to_tensor"):
            run(tf.convert_to_tensor(second))
        run(tf.convert_to_tensor(right))


# --- Derivatives without end --------------------------------------------------------------------------------------


def slope_of(f, x, n, wrap=lambda slope: slope):
    x = tf.identity(x)
    return wrap(tf.gradients(f(x, n - 1), x)[0]) * tf.sin(x)


def test_gradient_of_own_call_in_body_is_error_when_it_has_to_be_differentiated(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64], shapes=[[]])
    unless_zero(define, lambda x: x**3, lambda x, n: slope_of(f, x, n))
    x = tf.constant(0.7, F64)
    for _ in range(2):
        with pytest.raises(LookupError, match=re.escape("'F'") + ".*own calls.*tf.stop_gradient"):
            tf.gradients(f(x, 2), x)


def test_gradient_of_own_call_in_body_is_error_when_another_function_is_between(run, control_flow):
    f, define_f = recursive("F", [F64, I32], [F64], shapes=[[]])
    g, define_g = recursive("G", [F64, I32], [F64], shapes=[[]])
    define_g(lambda x, n: x * f(x, n))
    unless_zero(define_f, lambda x: x**3, lambda x, n: slope_of(g, x, n))
    x = tf.constant(0.7, F64)
    with pytest.raises(LookupError, match="own calls.*tf.stop_gradient"):
        tf.gradients(f(x, 2), x)


def test_gradient_of_own_call_in_body_is_a_constant_when_stopped(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64], shapes=[[]])
    unless_zero(define, lambda x: x**3, lambda x, n: slope_of(f, x, n, tf.stop_gradient))
    x = tf.constant(0.7, F64)
    y = f(x, 2)
    [dx] = tf.gradients(y, x)
    [ddx] = tf.gradients(dx, x)
    slope = 3 * 0.7**2 * np.cos(0.7)  # of f(x, 1), whose own is stopped
    np.testing.assert_allclose(run([y, dx, ddx]), [slope * np.sin(0.7), slope * np.cos(0.7), -slope * np.sin(0.7)])


def test_gradient_of_function_that_the_graph_has_called_before_is_differentiated(run, control_flow):
    """The first gradient's functions are in the session's graph when those of the second come."""
    g = define_sines()
    x = tf.constant(0.7, F64)
    y = g(x, 2)
    [dx] = tf.gradients(y, x)
    np.testing.assert_allclose(run([y, dx]), [0.7 * np.sin(0.7) ** 2, np.sin(0.7) ** 2 + 0.7 * np.sin(1.4)])
    [ddx] = tf.gradients(dx, x)
    np.testing.assert_allclose(run(ddx), 2 * np.sin(1.4) + 1.4 * np.cos(1.4))


def test_options_of_a_gradient_are_those_of_its_function():
    """A function that forbids its gradient forbids second ones of those that call it."""
    g, define_g = recursive("G", [F64], [F64], create_grad_func=False)
    define_g(lambda x: x * x)
    f, define = recursive("F", [F64], [F64])
    define(lambda x: tf.stop_gradient(g(x)) * x * x)
    x = tf.constant(2.0, F64)
    [dx] = tf.gradients(f(x), x)
    [ddx] = tf.gradients(dx, x)
    with tf1.Session(config=tfr.session_config()) as session:
        assert session.run([dx, ddx]) == [16, 8]


# --- Parts of a gradient that have no gradient themselves ---------------------------------------------------------


def held(x):
    """An identity whose gradient counts as a constant: nothing goes through it to the second order."""

    @tf.custom_gradient
    def identity(x):
        return tf.identity(x), tf.stop_gradient

    return identity(x)


@pytest.mark.parametrize("shape", [[], [2], None])
def test_second_derivative_where_a_gradient_in_the_body_counts_as_constant(run, control_flow, shape):
    f, define = recursive("F", [F64, I32], [F64], shapes=[shape])
    unless_zero(define, lambda x: x * x, lambda x, n: x * f(held(x), n - 1))
    x = tf1.placeholder_with_default(np.full(shape or [], 1.5), shape)
    [dx] = tf.gradients(f(x, 2), x)
    [ddx] = tf.gradients(dx, x)
    run_dx, run_ddx = run([dx, ddx])
    np.testing.assert_allclose(run_dx, np.full(shape or [], 4 * 1.5**3))
    np.testing.assert_allclose(run_ddx, np.full(shape or [], unrolled_second_derivative(1.5)))


def unrolled_second_derivative(at):
    """What TensorFlow computes for the same program without recursion."""
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf.constant(at, F64)
        y = x
        first = held(y)
        second = held(first)
        [dx] = tf.gradients(y * (first * (second * second)), y)
        return session.run(tf.gradients(dx, x)[0])
