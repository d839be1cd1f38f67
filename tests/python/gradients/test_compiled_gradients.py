"""Gradients of functions on numbers run as bytecode: the same values and errors as in frames."""
# SPDX-License-Identifier: Apache-2.0

import re
import time

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_programs import define_power
from limits import HANG_SECONDS
from switches import control_flow_v2

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, F32, I32 = tf.float64, tf.float32, tf.int32


def run_orders(build, *settings, order=1):
    """What `build` returns, ys and xs, makes: ys, and the gradients of their sum up to the order, with each setting."""
    with tf1.Graph().as_default():
        ys, xs = build()
        fetches, sums = [ys], ys
        for _ in range(order):
            sums = tf.gradients(sums, xs)
            fetches.append(sums)
        results = []
        for setting in settings:
            with tf1.Session(config=tfr.session_config(**setting)) as session:
                session.run(tf1.global_variables_initializer())
                results.append(session.run(fetches))
        return results


def values_and_gradients(build, **options):
    return run_orders(build, options)[0]


def both_ways(build, order=1):
    """Expects the same bits compiled and in frames, of one graph; returns them."""
    compiled, frames = run_orders(build, {"compile": True}, {"compile": False}, order=order)
    for one, other in zip(tf.nest.flatten(compiled), tf.nest.flatten(frames), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), (compiled, frames)
    return compiled


def listings(build, name):
    """What the function and its gradient are compiled to."""
    with tf1.Graph().as_default() as graph:
        ys, xs = build()
        tf.gradients(ys, xs)
        return tfr.bytecode(graph, name), tfr.bytecode(graph, f"gradient of {name}")


def assert_compiled(build, name):
    forward, backward = listings(build, name)
    assert "MakeRecord" in forward and "runs in frames" not in forward, forward
    assert "OpenRecord" in backward and "runs in frames" not in backward, backward


# --- Programs: each returns ys and the xs to differentiate by -----------------------------------------------------


def power():
    x = tf.constant(1.1, F64)
    return define_power()(x, 20), [x]


def power_of_floats():
    x = tf.constant(-0.9, F32)
    return define_power(F32)(x, 7), [x]


def squaring():
    """Conditionals in conditionals, of which each branch keeps something else."""
    f, define = recursive("F", [F64, I32], [F64])

    @define
    def F(x, n):
        odd = lambda: x * f(x, n - 1)
        deeper = lambda: tf.cond(tf.equal(n % 2, 0), lambda: f(x * x, n // 2), odd)
        return tf.cond(n < 1, lambda: tf.ones_like(x), deeper)

    x = tf.constant(1.01, F64)
    return f(x, 1000), [x]


def tree():
    """Two records of calls in one."""
    f, define = recursive("F", [F64, I32], [F64])
    deeper = lambda x, n: tf.sin(f(x, n - 1)) * 0.5 + f(x * 0.9, n - 2) * x
    define(lambda x, n: tf.cond(n < 2, lambda: x * x, lambda: deeper(x, n)))
    x = tf.constant(1.1, F64)
    return f(x, 12), [x]


def bumps(t, p):
    return tf.exp(-p * t) * tf.sin(p * t * t)


def simpson(a, b, fa, fm, fb):
    return (b - a) / 6 * (fa + 4 * fm + fb)


def quadrature():
    """The integral of a function of t and of a parameter p, by that parameter and by the bounds."""
    f, define = recursive("F", [F64] * 8, [F64])

    @define
    def F(a, b, fa, fm, fb, whole, tolerance, p):
        m = (a + b) / 2
        fl, fr = bumps((a + m) / 2, p), bumps((m + b) / 2, p)
        left, right = simpson(a, m, fa, fl, fm), simpson(m, b, fm, fr, fb)
        error = left + right - whole
        halves = lambda: f(a, m, fa, fl, fm, left, tolerance / 2, p) + f(m, b, fm, fr, fb, right, tolerance / 2, p)
        return tf.cond(tf.abs(error) <= 15 * tolerance, lambda: left + right + error / 15, halves)

    a, b, p = tf.constant(0.0, F64), tf.constant(3.0, F64), tf.constant(2.0, F64)
    fa, fm, fb = bumps(a, p), bumps((a + b) / 2, p), bumps(b, p)
    return f(a, b, fa, fm, fb, simpson(a, b, fa, fm, fb), tf.constant(1e-6, F64), p), [a, b, p]


def mutual_recursion():
    f, define_f = recursive("F", [F64, I32], [F64])
    g, define_g = recursive("G", [F64, I32], [F64])
    define_f(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.sin(x) + g(x * x, n - 1)))
    define_g(lambda x, n: tf.cond(n < 1, lambda: 2.0 * x, lambda: x * f(tf.cos(x), n - 1)))
    x = tf.constant(0.4, F64)
    return f(x, 9), [x]


def several_results():
    f, define = recursive("F", [F64, F64, I32], [F64, F64])

    @define
    def F(x, y, n):
        def deeper():
            a, b = f(x * y, y + 0.25, n - 1)
            return a * b, b - x

        return tf.cond(n < 1, lambda: (x, y), deeper)

    x, y = tf.constant(0.7, F64), tf.constant(1.3, F64)
    return f(x, y, 5), [x, y]


def captured_weight():
    weight = tf1.get_variable("weight", [], F64, tf1.constant_initializer(1.5), use_resource=True)
    weight = tf.identity(weight)
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 2, lambda: x * weight, lambda: f(x * weight, n - 1) + weight))
    x = tf.constant(1.1, F64)
    return f(x, 6), [x, weight]


def many_uses():
    """Sums of more than two gradients, one of which is a constant."""
    f, define = recursive("F", [F64, I32], [F64])

    @define
    def F(x, n):
        here = x * 2.0 + x * x + tf.sin(x) + tf.exp(x) / (1.0 + x * x)
        return tf.cond(n < 1, lambda: here, lambda: here - f(x * 0.5, n - 1) * x)

    x = tf.constant(0.3, F64)
    return f(x, 5), [x]


def loop_of_calls_without_gradient():
    """A loop that is not differentiated stands in a function that is."""
    f, define = recursive("F", [F64, I32], [F64])

    @define
    def F(x, n):
        digits = tf.while_loop(lambda i, _: i < n, lambda i, total: (i + 1, total + i % 3), [0, 0])[1]
        return tf.cond(n < 1, lambda: x, lambda: x * f(x, n - 1) + tf.cast(digits, F64))

    x = tf.constant(1.1, F64)
    return f(x, 6), [x]


def functions_of_numbers():
    """Operators whose gradients are operators of their own, or are chosen."""
    f, define = recursive("F", [F64, I32], [F64])

    @define
    def F(x, n):
        smooth = tf.sqrt(x) + tf.tanh(x) / tf.math.reciprocal(1.0 + x * x) + tf.pow(x, 2.5) + tf.math.log(x)
        chosen = tf.maximum(x, 1.0) - tf.where(x > 0.5, x, x * x) + tf.minimum(x, 2.0) + tf.abs(x - 0.7)
        narrow = tf.cast(tf.cast(x, F32) * 3.0, F64)
        return tf.cond(n < 1, lambda: smooth, lambda: chosen * f(x * 0.9, n - 1) + narrow)

    x = tf.constant(1.1, F64)
    return f(x, 4), [x]


def unknown_shape():
    """The gradient computes shapes, over which axes to sum, and sums, none of which is anything of numbers."""
    f, define = recursive("F", [F64, F64, I32], [F64])
    define(lambda x, y, n: tf.cond(n < 1, lambda: x / y, lambda: x * f(x - y, y * 0.5, n - 1) + tf.sin(y)))
    x, y = (tf1.placeholder_with_default(np.float64(value), None) for value in (1.3, 0.4))
    return f(x, y, 5), [x, y]


PROGRAMS = [
    functions_of_numbers,
    unknown_shape,
    power,
    power_of_floats,
    squaring,
    tree,
    quadrature,
    mutual_recursion,
    several_results,
    captured_weight,
    many_uses,
    loop_of_calls_without_gradient,
]


# --- Values -------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("is_v2", [True, False], ids=["v2", "v1"])
def test_values_and_gradients_are_those_of_frames(program, is_v2):
    with control_flow_v2(is_v2):
        both_ways(program)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("is_v2", [True, False], ids=["v2", "v1"])
def test_functions_and_their_gradients_are_compiled(program, is_v2):
    with control_flow_v2(is_v2):
        assert_compiled(program, "Power" if program in (power, power_of_floats) else "F")


HIGHER = [power, tree, captured_weight, quadrature, functions_of_numbers]


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", HIGHER, ids=lambda program: program.__name__)
@pytest.mark.parametrize("order", [2, 3])
def test_higher_orders_are_those_of_frames(program, order):
    both_ways(program, order=order)


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", HIGHER, ids=lambda program: program.__name__)
def test_second_order_is_compiled(program):
    name = "Power" if program is power else "F"
    with tf1.Graph().as_default() as graph:
        ys, xs = program()
        tf.gradients(tf.gradients(ys, xs), xs)
        for function in (name, f"gradient of {name}", f"gradient of gradient of {name}"):
            listing = tfr.bytecode(graph, function)
            assert "Record" in listing and "runs in frames" not in listing, listing


def test_gradient_of_power():
    y, [dx] = values_and_gradients(power)
    assert (y, dx) == pytest.approx((1.1**20, 20 * 1.1**19), rel=1e-12)


@pytest.mark.thorough
def test_gradient_of_quadrature():
    """Against differences of what the same algorithm computes."""

    def integral(a, b, p):
        def f(t):
            return np.exp(-p * t) * np.sin(p * t * t)

        def deeper(a, b, fa, fm, fb, whole, tolerance):
            m = (a + b) / 2
            fl, fr = f((a + m) / 2), f((m + b) / 2)
            left, right = simpson(a, m, fa, fl, fm), simpson(m, b, fm, fr, fb)
            error = left + right - whole
            if abs(error) <= 15 * tolerance:
                return left + right + error / 15
            return deeper(a, m, fa, fl, fm, left, tolerance / 2) + deeper(m, b, fm, fr, fb, right, tolerance / 2)

        fa, fm, fb = f(a), f((a + b) / 2), f(b)
        return deeper(a, b, fa, fm, fb, simpson(a, b, fa, fm, fb), 1e-6)

    value, gradients = values_and_gradients(quadrature)
    at, step = np.array([0.0, 3.0, 2.0]), 1e-6
    assert value == pytest.approx(integral(*at), rel=1e-12)
    for i, gradient in enumerate(gradients):
        change = np.eye(3)[i] * step
        difference = (integral(*(at + change)) - integral(*(at - change))) / (2 * step)
        assert gradient == pytest.approx(difference, abs=1e-7)


def test_one_record_serves_several_gradients():
    def build():
        f, x = define_power(), tf.constant(1.2, F64)
        y = f(x, 6)
        first, second = tf.gradients(y, x), tf.gradients(y * y, x)
        return (y, first, second), [x]

    (y, [first], [second]), _ = both_ways(build)
    assert (y, first, second) == pytest.approx((1.2**6, 6 * 1.2**5, 12 * 1.2**11), rel=1e-12)


def test_gradient_in_a_branch_of_the_main_graph():
    """The record of a call is read in a branch, or by nobody."""
    for wanted, expected in ((True, 12.0), (False, 0.0)):

        def build(wanted=wanted):
            x = tf.constant(2.0, F64)
            y = define_power()(x, 3)
            chosen = tf1.placeholder_with_default(wanted, [])
            return tf.cond(chosen, lambda: tf.gradients(y, x)[0], lambda: tf.zeros([], F64)), [x]

        with tf1.Graph().as_default():
            result, _ = build()
            with tf1.Session(config=tfr.session_config()) as session:
                assert session.run(result) == expected


def test_a_vector_runs_in_frames():
    """The code is for numbers; a call with a vector has the same gradient, and one with a number after it, too."""

    def build():
        f, define = recursive("F", [F64, I32], [F64])
        define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: x * f(x, n - 1)))
        vector = tf1.placeholder_with_default(np.array([1.5, 2.0]), None)
        number = tf1.placeholder_with_default(np.float64(3.0), None)
        return [f(vector, 2), f(number, 2)], [vector, number]

    _, gradients = both_ways(build)
    np.testing.assert_allclose(gradients[0], 3 * np.array([1.5, 2.0]) ** 2)
    np.testing.assert_allclose(gradients[1], 27.0)


# --- Errors and limits --------------------------------------------------------------------------------------------


def error_of(build, kind, **options):
    with pytest.raises(kind) as error:
        values_and_gradients(build, **options)
    return re.sub(r"run_\d+", "run", error.value.message)  # our node's name: one for each graph


def test_error_in_a_forward_call_names_node_and_calls():
    def build():
        f, define = recursive("F", [F64, I32], [F64])

        @define
        def F(x, n):
            fails = lambda: x * tf.cast(tf.math.floordiv(7, n, name="quotient"), F64)
            return tf.cond(n < 1, fails, lambda: x * f(x, n - 1))

        x = tf.constant(1.5, F64)
        return f(x, 9), [x]

    texts = [error_of(build, tf.errors.InvalidArgumentError, compile=compile) for compile in (True, False)]
    assert "quotient" in texts[0]
    assert "F > F > F > (4 more) > F > F > F" in texts[0]
    assert texts[0] == texts[1]


def test_unbounded_recursion_is_error():
    def build():
        f, define = recursive("F", [F64], [F64])
        define(lambda x: x * f(x + 1.0))
        x = tf.constant(1.5, F64)
        return f(x), [x]

    texts = [error_of(build, tf.errors.ResourceExhaustedError, compile=c, max_depth=1000) for c in (True, False)]
    assert "call of 'F' would be at depth 1001, the limit is 1000" in texts[0]
    assert texts[0] == texts[1]


def test_a_million_deep():
    def build():
        x, n = tf.constant(1.0, F64), tf.constant(1_000_000)
        return define_power()(x, n), [x]

    assert values_and_gradients(build) == [1.0, [1_000_000.0]]


def test_a_long_forward_call_is_cancelled():
    """In a loop of 2 ** 31 iterations, which would take longer than the test may."""

    def build():
        f, define = recursive("F", [F64, I32], [F64])

        @define
        def F(x, n):
            odd = tf.while_loop(lambda i, _: i < n, lambda i, odd: (i + 1, odd + i % 2), [0, 0])[1]
            return tf.cond(n < 1, lambda: x, lambda: x * x * tf.cast(odd, F64))

        x = tf.constant(1.5, F64)
        return f(x, 2**31 - 1), [x]

    with tf1.Graph().as_default():
        y, xs = build()
        fetches = [y, tf.gradients(y, xs)]
        with tf1.Session(config=tfr.session_config()) as session:
            before = time.monotonic()
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(fetches, options=tf1.RunOptions(timeout_in_ms=200))
            assert time.monotonic() - before < HANG_SECONDS
