"""Gradients that a body takes itself, of what conditionals, loops, gathers and calls in it read from outside of it."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


class Captured:
    """What bodies read: two variables, and a tensor so large that a function captures it, and copies no constant."""

    def __init__(self):
        self.factor = tf.Variable(1.3)
        self.table = tf.Variable([[0.1, 0.2], [0.3, 0.4]])
        self.wide = tf.constant([[0.5, 0.7], [0.2, 0.9]] * 40)
        self.scaled = tf.function(lambda x: x * self.factor * tf.reduce_sum(self.table))


@pytest.fixture
def captured():
    return Captured()


def itself(x, c):
    return x * c.factor**2 * c.table[1, 0]


def conditional(x, c):
    return tf.cond(x > 0, lambda: x * c.factor**2 * tf.reduce_sum(c.table), lambda: x)


def case(x, c):
    return tf.switch_case(tf.cast(x > 0, tf.int32), [lambda: x, lambda: x * c.factor * c.table[1, 0]])


def times(count, step, x):
    return tf.while_loop(lambda i, _: i < count, lambda i, y: (i + 1, step(y)), (0, x))[1]


def loop(x, c):
    return times(3, lambda y: y * c.factor + tf.reduce_sum(c.table), x)


def loop_in_a_branch(x, c):
    return tf.cond(x > 0, lambda: times(3, lambda y: y * c.factor * c.table[0, 1], x), lambda: x)


def branch_in_a_loop(x, c):
    return times(3, lambda y: tf.cond(y > 0, lambda: y * c.factor * c.table[0, 1], lambda: y), x)


def map_fn(x, c):
    return tf.reduce_sum(tf.map_fn(lambda row: row * c.factor * x, c.table))


def scan(x, c):
    return tf.scan(lambda y, z: y * c.factor + z * x, c.table[0], tf.constant(0.5))[-1]


def vectorized_map(x, c):
    return tf.reduce_sum(tf.vectorized_map(lambda row: row * c.factor * x, c.table))


def gather(x, c):
    return x * c.factor * tf.reduce_sum(tf.gather(c.table, [1, 1]) ** 2)


def gather_nd(x, c):
    return x * c.factor * tf.reduce_sum(tf.gather_nd(c.table, [[1, 1], [0, 1]]) ** 2)


def embedding(x, c):
    return x * c.factor * tf.reduce_sum(tf.nn.embedding_lookup(c.table, [1, 0, 1]) ** 2)


def tf_function(x, c):
    return c.scaled(x)


def branch_that_reads_a_tensor(x, c):
    wide = tf.cond(x > 0, lambda: c.wide * c.factor, lambda: c.wide)
    return x * c.table[0, 0] * tf.reduce_sum(wide**2)


READS = [
    itself,
    conditional,
    case,
    loop,
    loop_in_a_branch,
    branch_in_a_loop,
    map_fn,
    scan,
    vectorized_map,
    gather,
    gather_nd,
    embedding,
    tf_function,
    branch_that_reads_a_tensor,
]


def with_a_tape(reads, x, c):
    with tf.GradientTape() as tape:
        tape.watch([x, c.wide])
        y = reads(x, c)
    return tape.gradient(y, [c.factor, c.table, x, c.wide])


def with_tf_gradients(reads, x, c):
    if tf.executing_eagerly():
        return with_a_tape(reads, x, c)
    return tf.gradients(reads(x, c), [c.factor, c.table, x, c.wide])


def recursion(define, taken, reads, c):
    """A function whose body takes gradients outside of all branches, and does something with each."""

    @define
    def function(n, x):
        factor, table, slope, wide = taken(reads, x, c)
        wide = 0.0 if wide is None else 0.01 * tf.reduce_sum(wide)
        found = 0.1 * factor + tf.reduce_sum(tf.convert_to_tensor(table) ** 2) + x * slope + wide
        if n < 1:
            return found
        return function(n - 1, x * 1.1) * c.factor + found

    return function


def values_of(function, c):
    def compute(n, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(n, x)
        slopes = tape.gradient(y, [x, c.factor, c.table], unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return y, *map(tf.convert_to_tensor, slopes)

    return compute


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(14)
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("taken", [with_a_tape, with_tf_gradients])
@pytest.mark.parametrize("reads", READS)
def test_gradients_are_those_of_python(reads, taken, outermost, captured):
    """The gradient is taken in the body, and that gradient is differentiated."""
    x = tf.constant(0.8)
    found = outermost(values_of(recursion(tfr.recursive, taken, reads, captured), captured))(tf.constant(2), x)
    expected = values_of(recursion(lambda body: body, with_a_tape, reads, captured), captured)(2, x)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3)


def once(define, c):
    @define
    def scaled(n, x):
        return x * c.factor**3

    return scaled


def often(define, c):
    @define
    def scaled(n, x):
        if n < 1:
            return x * c.factor * c.table[1, 0]
        return tf.sin(scaled(n - 1, x)) * c.factor

    return scaled


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("source", ["variable", "argument"])
@pytest.mark.parametrize("inner", [once, often])
def test_tapes_around_a_tf_function_that_calls_a_recursive_one(inner, source, outermost, captured):
    """The `tf.function` returns the handle of the variable for its gradient, through which that has to be followed."""

    def made(define, around):
        scaled = inner(define, captured)
        called = around(lambda n, x: scaled(n, x))

        @define
        def slope(n, x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = called(n, x)
            return tape.gradient(y, captured.factor if source == "variable" else x) * 2.0 + y * captured.factor

        return values_of(slope, captured)

    x = tf.constant(0.8)
    found = outermost(made(tfr.recursive, tf.function))(tf.constant(2), x)
    for got, wanted in zip(found, made(lambda body: body, lambda body: body)(2, x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4)


@pytest.mark.each_value
@pytest.mark.parametrize("reads", [conditional, loop, gather, embedding])
def test_defuns_take_the_same_gradients(reads, captured):
    """The body of a Defun is not converted by AutoGraph, and its graph captures in the same way."""

    @tfr.Defun(tf.float32)
    def gradients(x):
        factor, table, slope, _ = with_a_tape(reads, x, captured)
        return factor, tf.convert_to_tensor(table), slope

    x = tf.constant(0.8)
    found = tf.function(lambda: gradients(x))()
    for got, wanted in zip(found, with_a_tape(reads, x, captured), strict=False):
        np.testing.assert_allclose(got, tf.convert_to_tensor(wanted), rtol=1e-5)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("reads", [conditional, branch_that_reads_a_tensor])
def test_accumulators_follow_captures(reads, captured):
    def tangent(x):
        tangents = [tf.constant(1.0), tf.constant(0.5)]
        with tf.autodiff.ForwardAccumulator([captured.factor, x], tangents) as accumulator:
            y = reads(x, captured)
        return accumulator.jvp(y)

    @tfr.recursive
    def function(n, x):
        found = tangent(x)
        return found if n < 1 else function(n - 1, x) + found

    x = tf.constant(0.8)
    np.testing.assert_allclose(function(tf.constant(2), x), 3 * tangent(x), rtol=1e-5)
