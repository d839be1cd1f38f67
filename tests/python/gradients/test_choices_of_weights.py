"""Weights that a condition chooses: `x @ tf.cond(b, lambda: v, lambda: w)`, `x @ tf.where(b, v, w)`.

Their gradients are collected, too.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import check_derivatives

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, F64 = tf.int32, tf.float64
SIZE, DEPTH = 3, 5


def one_of_two(n, v, w):
    return tf.cond(n % 2 < 1, lambda: v, lambda: w)


def one_of_three(n, u, v, w):
    return tf.case([(tf.equal(n % 3, 0), lambda: u), (tf.equal(n % 3, 1), lambda: v)], default=lambda: w)


def where(n, v, w):
    return tf.where(n % 2 < 1, v, w)


def in_a_loop(n, x, v, w, choose=one_of_two):
    step = lambda i, y: (i + 1, tf.sin(y @ choose(i + n, v, w)))
    return tf.while_loop(lambda i, _: i < 3, step, [0, x])[1]


def two_at_once(n, x, v, w):
    a, b = tf.cond(n % 2 < 1, lambda: (v, w), lambda: (w, v))
    return tf.sin(x @ a) @ b


# What a net does at depth n with a row x and square matrices u, v, w. Of each: how many gradients are collected for
# these, in as many parts.
PROGRAMS = {
    "cond": (2, lambda n, x, u, v, w: x @ one_of_two(n, v, w)),
    "switch_case": (3, lambda n, x, u, v, w: x @ tf.switch_case(n % 3, [lambda: u, lambda: v, lambda: w])),
    "case": (3, lambda n, x, u, v, w: x @ one_of_three(n, u, v, w)),
    "choice of a choice": (3, lambda n, x, u, v, w: x @ one_of_two(n // 2, one_of_two(n, u, v), w)),
    "in a branch": (2, lambda n, x, u, v, w: tf.cond(n > 2, lambda: x @ one_of_two(n, v, w), lambda: 2.0 * x)),
    "used in a branch": (
        2,
        lambda n, x, u, v, w: (lambda m: tf.cond(n > 2, lambda: x @ m, lambda: 2.0 * x))(one_of_two(n, v, w)),
    ),
    "in a loop": (2, lambda n, x, u, v, w: in_a_loop(n, x, v, w)),
    "two at once": (2, lambda n, x, u, v, w: two_at_once(n, x, v, w)),
    "one from both branches": (1, lambda n, x, u, v, w: x @ one_of_two(n, v, v)),
    "chosen and not": (2, lambda n, x, u, v, w: tf.sin(x @ one_of_two(n, v, w)) @ v),
    "on the left": (2, lambda n, x, u, v, w: tf.linalg.matvec(one_of_two(n, v, w), x[0])[tf.newaxis]),
    "transposed": (2, lambda n, x, u, v, w: x @ tf.transpose(one_of_two(n, v, w))),
    "where": (2, lambda n, x, u, v, w: x @ where(n, v, w)),
    "where of where": (3, lambda n, x, u, v, w: x @ where(n // 2, where(n, u, v), w)),
    "where of cond": (3, lambda n, x, u, v, w: x @ where(n // 2, one_of_two(n, u, v), w)),
    "cond of where": (3, lambda n, x, u, v, w: x @ one_of_two(n // 2, where(n, u, v), w)),
    "where in a branch": (2, lambda n, x, u, v, w: tf.cond(n > 2, lambda: x @ where(n, v, w), lambda: 2.0 * x)),
    "where in a loop": (2, lambda n, x, u, v, w: in_a_loop(n, x, v, w, where)),
    "where of one": (1, lambda n, x, u, v, w: x @ where(n, v, v)),
    "where of rows": (2, lambda n, x, u, v, w: x * tf.gather(where(n, v, w), [n % 3])),
    "where of a view": (4, lambda n, x, u, v, w: x @ tf.transpose(where(n, v, w)) + x @ v),
    "where of views": (0, lambda n, x, u, v, w: x @ where(n, v, tf.transpose(w))),
    "where of something else": (0, lambda n, x, u, v, w: x @ where(n, v, tf.sin(w)) + x @ w),
    "where of elements": (0, lambda n, x, u, v, w: x @ tf.where(v > 0.0, v, w)),
    "where of a row": (1, lambda n, x, u, v, w: x @ tf.where(n % 2 < 1, v, w[0])),
    "where of a number": (0, lambda n, x, u, v, w: x @ where(n, v, tf.constant(0.5, F64))),
    "where that is not used": (0, lambda n, x, u, v, w: x + 0.0 * tf.stop_gradient(where(n, v, w))[:1]),
    "rows": (2, lambda n, x, u, v, w: x * tf.gather(one_of_two(n, v, w), [n % 3])),
    "rows and products": (4, lambda n, x, u, v, w: (lambda m: x @ m * m[1])(one_of_two(n, v, w))),
    "only compared": (0, lambda n, x, u, v, w: tf.where(tf.norm(one_of_two(n, v, w)) > 1.0, x @ v, x @ w)),
    "not used": (2, lambda n, x, u, v, w: x @ tf.cond(n % 2 < 1, lambda: (v, w), lambda: (w, v))[0]),
    "elements": (0, lambda n, x, u, v, w: x @ tf.square(one_of_two(n, v, w))),
    "elements of one": (0, lambda n, x, u, v, w: x @ one_of_two(n, v, w) + tf.reduce_sum(w * w)),
    "something else": (0, lambda n, x, u, v, w: x @ tf.cond(n % 2 < 1, lambda: v, lambda: w * w)),
    "constant": (0, lambda n, x, u, v, w: x @ tf.cond(n % 2 < 1, lambda: v, lambda: tf.eye(SIZE, dtype=F64))),
    "view": (0, lambda n, x, u, v, w: x @ tf.cond(n % 2 < 1, lambda: v, lambda: tf.transpose(w))),
    "something else in a choice": (0, lambda n, x, u, v, w: x @ one_of_three(n, u, v * v, w)),
}


def weights(are_variables):
    values = np.random.RandomState(1)
    made = [tf.constant(values.uniform(-0.5, 0.5, [SIZE, SIZE])) for _ in range(3)]
    return [tf1.Variable(value, use_resource=True) for value in made] if are_variables else made


def recursive(program, weights):
    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, SIZE], F64), autograph=False
    )
    def net(n):
        step = lambda: tf.sin(program(n, net(n - 1) + net(n - 2), *weights))
        return tf.cond(n < 1, lambda: tf.ones([1, SIZE], F64), step)

    return net(tf.constant(DEPTH))


def unrolled(program, weights):
    def net(n):
        x = tf.ones([1, SIZE], F64)
        return x if n < 1 else tf.sin(program(tf.constant(n), net(n - 1) + net(n - 2), *weights))

    return net(DEPTH)


def check(run, name, order, are_variables):
    count, program = PROGRAMS[name]

    of = lambda make: lambda *xs: make(program, xs)
    check_derivatives(run, lambda: weights(are_variables), of(recursive), of(unrolled), order, count)


@pytest.mark.each_value
@pytest.mark.sampled(8)
@pytest.mark.parametrize("are_variables", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_function_unrolled(run, name, are_variables):
    check(run, name, 1, are_variables)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(32)
@pytest.mark.parametrize("are_variables", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_those_of_the_function_unrolled(run, name, are_variables):
    check(run, name, 2, are_variables)
