"""Derivatives of every order take so many kernel runs for each call: they are counted, at several depths."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import CountedInAllOrders, derivatives

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32


def define(build, counted):
    """A function F(x, n) of one call for n < 1, `build(f, counted, x, n)` above."""
    f, definer = recursive("F", [F64, I32], [F64], shapes=[[]])
    definer(lambda x, n: tf.cond(n < 1, lambda: x + 0.5, lambda: build(f, counted, x, n)))
    return f


def product(f, counted, x, n):
    return counted(x) * f(x, n - 1)


def tree(f, counted, x, n):
    return f(counted(x) * 0.9, n - 1) * f(tf.sin(x), n - 2)


def two_branches(f, counted, x, n):
    even = lambda: counted(x) * f(tf.sin(x), n - 1)
    return tf.cond(tf.equal(n % 2, 0), even, lambda: tf.cos(counted(x)) * f(x, n - 1))


def loop(f, counted, x, n):
    step = lambda i, a: (i + 1, tf.ensure_shape(counted(a) * f(x, n - 1), []))
    return tf.while_loop(lambda i, _: i < 1, step, [0, x])[1]


def in_list(f, counted, x, n):
    values = tf.map_fn(lambda e: counted(e) * x, tf.stack([x, f(x, n - 1)]))
    return values[0] * values[1]


def capturing(w):
    def captured(f, counted, x, n):
        return w * tf.sin(counted(x)) * f(x, n - 1)

    return captured


def through_another():
    g, definer = recursive("G", [F64, I32], [F64], shapes=[[]])
    callers = []

    def calling(f, counted, x, n):
        callers.append(f)
        return counted(x) * g(x, n - 1)

    definer(lambda x, n: tf.tanh(x) * callers[0](x, n))
    return calling


PROGRAMS = {
    "product": lambda: product,
    "tree": lambda: tree,
    "two branches": lambda: two_branches,
    "loop": lambda: loop,
    "in list": lambda: in_list,
    "captured": lambda: capturing(tf.constant(0.7, F64)),
    "through another": through_another,
}


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.thorough
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("build", PROGRAMS.values(), ids=PROGRAMS)
def test_kernel_runs_are_in_proportion_to_calls(run, control_flow, build, order):
    counted = CountedInAllOrders()
    x, n = tf.constant(0.8, F64), tf1.placeholder(I32, [])
    all_orders = derivatives(define(build(), counted)(x, n), x, order)
    ratios = []
    for depth in (2, 5, 8):
        counted.reset()
        run(all_orders[0], {n: depth})
        calls = counted.runs
        counted.reset()
        run(all_orders[-1], {n: depth})
        ratios.append(counted.runs / calls)
    assert ratios[0] == ratios[1] == ratios[2], ratios


def test_kernel_runs_of_a_hessian_vector_product_for_each_call(run, control_flow):
    """At most one for x and one for what its gradient is multiplied with, each forth and back."""
    counted = CountedInAllOrders()
    x, n = tf.constant(1.1, F64), tf1.placeholder(I32, [])
    f, definer = recursive("Power", [F64, I32], [F64], shapes=[[]])
    definer(lambda x, n: tf.cond(n < 1, lambda: tf.ones([], F64), lambda: counted(x) * f(x, n - 1)))
    second = derivatives(f(x, n), x, 2)[-1]
    runs = []
    for depth in (10, 20, 40):
        counted.reset()
        np.testing.assert_allclose(run(second, {n: depth}), depth * (depth - 1) * 1.1 ** (depth - 2))
        runs.append(counted.runs / depth)
    assert max(runs) == min(runs) <= 4
