"""Weights that bodies hand to `tf.function`s: their gradients are collected as where the body itself uses them."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import collected

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32
SIZE, ROWS, DEPTH = 3, 5, 4
SHAPES = [[], [2 * SIZE, SIZE], [SIZE]]


def combined(left, right, weights, bias):
    return tf.tanh(tf.concat([left, right], 1) @ weights + bias)


# Ways to hand weights to a function: of `wrap`, which makes a tf.function or nothing, and the weights and the table,
# two functions for a body: of two rows and the weights that it has itself, and of a number.


def captured(wrap, weights, bias, table):
    combine = wrap(lambda left, right: combined(left, right, weights, bias))
    leaf = wrap(lambda n: tf.gather(table, [n % ROWS]))
    return lambda left, right, *own: combine(left, right), leaf


def given(wrap, weights, bias, table):
    combine = wrap(combined)
    leaf = wrap(lambda n, table: tf.gather(table, [n % ROWS]))
    return lambda left, right, *own: combine(left, right, weights, bias), lambda n: leaf(n, table)


def read_by_the_body(wrap, weights, bias, table):
    combine = wrap(combined)
    read = [tf.convert_to_tensor(weights), tf.identity(bias)]
    return lambda left, right, *own: combine(left, right, *map(tf.identity, read)), lambda n: tf.gather(
        table, [n % ROWS]
    )


def arguments_of_the_body(wrap, weights, bias, table):
    return wrap(combined), lambda n: tf.gather(table, [n % ROWS])


def in_one_another(wrap, weights, bias, table):
    inner = wrap(combined)
    outer = wrap(lambda left, right: inner(left, right, weights, bias) * inner(right, left, weights, bias))
    return lambda left, right, *own: outer(left, right), lambda n: tf.gather(table, [n % ROWS])


def in_branches(wrap, weights, bias, table):
    combine = wrap(combined)

    def choose(left, right, *own):
        is_small = tf.reduce_sum(left) < 1.0
        return tf.cond(is_small, lambda: combine(left, right, weights, bias), lambda: combine(right, left, *own))

    return choose, lambda n: tf.gather(table, [n % ROWS])


def several_times(wrap, weights, bias, table):
    combine = wrap(lambda left, right, bias: combined(left, right, weights, bias))
    twice = lambda left, right, *own: combine(left, right, bias) + combine(right, left, 2.0 * bias)
    return twice, lambda n: tf.gather(table, [n % ROWS])


WAYS = [captured, given, read_by_the_body, arguments_of_the_body, in_one_another, in_branches, several_times]


def gradients(way, wrap, make):
    """The gradients for the weights and the table of a net over a tree, in the default graph."""
    values = np.random.RandomState(1)
    weights = [make(values.uniform(-0.5, 0.5, shape)) for shape in ([2 * SIZE, SIZE], [SIZE], [ROWS, SIZE])]
    combine, leaf = way(wrap, *weights)

    @tfr.recursive(
        input_signature=[tf.TensorSpec(shape, dtype) for shape, dtype in zip(SHAPES, (I32, F64, F64), strict=True)],
        output_signature=tf.TensorSpec([1, SIZE], F64),
    )
    def net(n, *own):
        return tf.cond(n < 1, lambda: leaf(n + 7), lambda: combine(net(n - 1, *own), net(n - 2, *own), *own))

    loss = tf.reduce_sum(net(DEPTH, *map(tf.convert_to_tensor, weights[:2])) ** 2)
    return [tf.convert_to_tensor(gradient) for gradient in tf.gradients(loss, weights)]


def nothing(function):
    return function


def variable(start):
    return tf1.get_variable(f"w{start.size}", initializer=start, use_resource=True)


def reference(start):
    return tf1.get_variable(f"w{start.size}", initializer=start, use_resource=False)


def constant(start):
    return tf1.placeholder_with_default(start, start.shape)


@pytest.mark.each_value
@pytest.mark.sampled(6)
@pytest.mark.parametrize("make", [variable, reference, constant])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_collected_as_where_the_body_itself_uses_the_weights(way, make):
    found = {}
    for wrap in (nothing, tf.function):
        with tf.Graph().as_default(), tf1.Session(config=tfr.session_config()) as session:
            fetches = gradients(way, wrap, make)
            session.run(tf1.global_variables_initializer())
            found[wrap] = collected(fetches), session.run(fetches)
    assert found[tf.function][0] == found[nothing][0] > 0
    for one, other in zip(found[tf.function][1], found[nothing][1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
