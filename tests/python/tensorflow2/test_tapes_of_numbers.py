"""Gradients of functions on numbers by tapes, which run as bytecode: the same values as in frames."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf
from building import new_name

import tensorflow_recursion as tfr

F64, I32 = tf.float64, tf.int32
N = 6


def define_power():
    """x ** n, by n multiplications."""
    name = new_name("Power")
    f = tfr.Declare(name, [("x", F64), ("n", I32)], [("y", F64)], output_shapes=[[]])

    @tfr.Defun(F64, I32, func_name=name, out_names=["y"])
    def Power(x, n):
        return tf.cond(n < 1, lambda: tf.ones([], F64), lambda: x * f(x, n - 1))

    return Power


def define_tree():
    """Two calls in a body, one of which has another x."""
    name = new_name("Tree")
    f = tfr.Declare(name, [("x", F64), ("n", I32)], [("y", F64)], output_shapes=[[]])

    @tfr.Defun(F64, I32, func_name=name, out_names=["y"])
    def Tree(x, n):
        return tf.cond(n < 2, lambda: x * x, lambda: tf.sin(f(x, n - 1)) + x * f(x * 0.9, n - 2))

    return Tree


def by_tape(f, x, n=N):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, n)
    return y, tape.gradient(y, x)


def twice(f, x, n=N):
    with tf.GradientTape() as outer:
        outer.watch(x)
        y, dx = by_tape(f, x, n)
    return y, dx, outer.gradient(dx, x)


def in_function(differentiate):
    return lambda f, x: tf.function(lambda x: differentiate(f, x))(x)


def around_function(differentiate):
    """The forward call is in one tf.function, the backward call in another: the record goes from one to the other."""

    def differentiated(f, x):
        called = tf.function(lambda x, n: f(x, n))
        return differentiate(lambda x, n: called(x, tf.constant(n)), x)

    return differentiated


@pytest.fixture
def compiled():
    """Switches compilation off and on again."""
    before = tfr.config.get_options()
    yield lambda wanted: tfr.config.set_options(compile=wanted)
    tfr.config.set_options(**before)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("where", [lambda d: d, in_function, around_function], ids=["eager", "in", "around"])
@pytest.mark.parametrize("differentiate", [by_tape, twice], ids=["first", "second"])
@pytest.mark.parametrize("define", [define_power, define_tree], ids=["power", "tree"])
def test_gradients_are_those_of_frames(compiled, define, differentiate, where):
    results = []
    for is_compiled in (True, False):
        compiled(is_compiled)
        results.append([y.numpy().tobytes() for y in where(differentiate)(define(), tf.constant(1.2, F64))])
    assert results[0] == results[1]


def test_gradients_of_power():
    y, dx, dxx = (float(value) for value in twice(define_power(), tf.constant(1.2, F64)))
    assert (y, dx, dxx) == pytest.approx((1.2**6, 6 * 1.2**5, 30 * 1.2**4), rel=1e-12)


@pytest.mark.parametrize("define", [define_power, define_tree], ids=["power", "tree"])
def test_functions_and_their_gradients_are_compiled(define):
    f = define()
    graph = tf.function(lambda x: by_tape(f, x)).get_concrete_function(tf.constant(1.2, F64)).graph
    name = f.user_name
    forward, backward = (tfr.bytecode(graph, listed) for listed in (name, f"gradient of {name}"))
    assert "MakeRecord" in forward and "runs in frames" not in forward, forward
    assert "OpenRecord" in backward and "runs in frames" not in backward, backward


def test_many_calls_deep():
    y, dx = by_tape(define_power(), tf.constant(1.0, F64), 100_000)
    assert (float(y), float(dx)) == (1.0, 100_000.0)
