"""Weights that loops in bodies use: their gradients are collected as where the body itself uses them."""
# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import check_derivatives

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32
SIZE, ROWS, DEPTH = 3, 5, 2


def repeat(start, step, times=2):
    invariants = [tf.TensorShape([]), start.shape]
    return tf.while_loop(lambda i, _: i < times, lambda i, a: (i + 1, step(i, a)), [0, start], invariants)[1]


def zeros():
    return tf.zeros([1, SIZE], F64)


# What a node of a net computes of calls `net(n)` with smaller n, a matrix of weights and a table of rows.


def calls(net, n, weights, table):
    return tf.tanh(repeat(zeros(), lambda i, a: a + net(n - 1)) @ weights)


def products(net, n, weights, table):
    return repeat(zeros(), lambda i, a: tf.tanh(a + net(n - 1) @ weights))


def rows(net, n, weights, table):
    return repeat(net(n - 1) @ weights, lambda i, a: a * tf.gather(table, [i + 1]))


def loops_in_loops(net, n, weights, table):
    inner = lambda a: repeat(a, lambda j, b: tf.tanh(b @ weights) + tf.gather(table, [j]))
    return repeat(net(n - 1), lambda i, a: inner(a) + net(n - 2))


def branches_in_loops(net, n, weights, table):
    choose = lambda i, a: tf.cond(i < 1, lambda: tf.tanh(a @ weights), lambda: a + net(n - 2))
    return repeat(net(n - 1), choose)


def rows_of_open_number_in_branches_in_loops(net, n, weights, table):
    rows = lambda: tf.tanh(tf.gather(table, tf.range(n % 3 + 1)))
    choose = lambda i, a: tf.cond(i < 1, lambda: a * tf.reduce_sum(rows(), 0), lambda: a + net(n - 2))
    return repeat(net(n - 1) @ weights, choose)


def loops_in_branches(net, n, weights, table):
    loop = lambda: repeat(net(n - 1), lambda i, a: tf.tanh(a @ weights))
    return tf.cond(tf.convert_to_tensor(n) > 1, loop, lambda: net(n - 1) @ weights)


def loops_that_end_at_once(net, n, weights, table):
    return repeat(net(n - 1), lambda i, a: tf.tanh(a @ weights) + net(n - 2), times=n % 2) * 2.0


def uses_in_and_behind_loops(net, n, weights, table):
    return repeat(net(n - 1), lambda i, a: tf.tanh(a @ weights)) @ weights + tf.gather(table, [2])


def elements(net, n, weights, table):
    element = lambda i: tf.tanh(net(n - 1) @ weights) * tf.cast(i, F64)
    return tf.reduce_sum(tf.map_fn(element, tf.range(1, 3), fn_output_signature=tf.TensorSpec([1, SIZE], F64)), 0)


def functions_in_loops(net, n, weights, table):
    step = tf.function(lambda a: tf.tanh(a @ weights))
    return repeat(net(n - 1), lambda i, a: step(a))


def loops_in_functions(net, n, weights, table):
    step = tf.function(lambda a: repeat(a, lambda i, b: tf.tanh(b @ weights)))
    return step(net(n - 1))


def carried(net, n, weights, table):
    """The weights are a variable of the loop, and as they were behind it."""
    step = lambda i, a, w: (i + 1, tf.tanh(a @ w), tf.identity(w))
    _, a, w = tf.while_loop(lambda i, *_: i < 2, step, [0, net(n - 1), tf.convert_to_tensor(weights)])
    return a @ w


def unused(net, n, weights, table):
    repeat(net(n - 1), lambda i, a: tf.tanh(a @ weights))
    return net(n - 1) @ weights


def conditions_that_read(net, n, weights, table):
    is_small = lambda i: tf.logical_and(i < 2, tf.reduce_sum(weights) < 100.0)
    return tf.while_loop(lambda i, _: is_small(i), lambda i, a: (i + 1, tf.tanh(a @ weights)), [0, net(n - 1)])[1]


COLLECTED = [
    calls,
    products,
    rows,
    loops_in_loops,
    branches_in_loops,
    rows_of_open_number_in_branches_in_loops,
    loops_in_branches,
    loops_that_end_at_once,
    uses_in_and_behind_loops,
    elements,
    functions_in_loops,
    loops_in_functions,
    carried,
    unused,
    conditions_that_read,
]


# Loops that do something else with the weights.


def changed(net, n, weights, table):
    step = lambda i, a, w: (i + 1, tf.tanh(a @ w), w * 0.5)
    _, a, w = tf.while_loop(lambda i, *_: i < 2, step, [0, net(n - 1), tf.convert_to_tensor(weights)])
    return a @ w


def exchanged(net, n, weights, table):
    w = tf.convert_to_tensor(weights)
    step = lambda i, a, v, w: (i + 1, tf.tanh(a @ v), w, v)
    _, a, v, w = tf.while_loop(lambda i, *_: i < 3, step, [0, net(n - 1), w, 2.0 * w])
    return a @ v + a @ w


def returned(net, n, weights, table):
    step = lambda i, a, w: (i + 1, tf.tanh(a @ w), w)
    _, a, w = tf.while_loop(lambda i, *_: i < 2, step, [0, net(n - 1), tf.convert_to_tensor(weights)])
    return a + tf.reduce_sum(w * w)


DENSE = [changed, exchanged, returned]


def variables():
    values = np.random.RandomState(1)
    shapes = {"weights": [SIZE, SIZE], "table": [ROWS, SIZE]}
    starts = {name: values.uniform(-0.5, 0.5, shape) for name, shape in shapes.items()}
    return [tf1.get_variable(name, initializer=start, use_resource=True) for name, start in starts.items()]


def recursive(program, weights, table):
    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, SIZE], F64), autograph=False
    )
    def net(n):
        return tf.cond(n < 1, lambda: tf.gather(table, [3]), lambda: program(net, n, weights, table))

    return net(tf.constant(DEPTH))


def unrolled(program, weights, table):
    def net(n):
        return tf.gather(table, [3]) if n < 1 else program(net, n, weights, table)

    return net(DEPTH)


def check(run, program, order):
    of = lambda make: functools.partial(make, program)
    check_derivatives(run, variables, of(recursive), of(unrolled), order, 2 if program in COLLECTED else 1)


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", [*COLLECTED, *DENSE])
def test_gradients_are_those_of_the_function_unrolled(run, program):
    check(run, program, 1)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", [*COLLECTED, *DENSE])
def test_second_derivatives_are_those_of_the_function_unrolled(run, program):
    check(run, program, 2)
