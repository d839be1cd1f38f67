"""Bodies with annotations, which AutoGraph writes into the functions that it makes of them.

Here annotations are evaluated when a function is defined: no `from __future__ import annotations`.
"""
# SPDX-License-Identifier: Apache-2.0

import logging

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

# Names that only annotations read, so that the code of no function does.
Count, Number, Options = tf.Tensor, tf.Tensor, dict[str, float]
STEP = 2


@pytest.fixture(autouse=True)
def everything_is_converted():
    """AutoGraph says in TensorFlow's log what it could not convert, and runs that as it is."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = tf.get_logger()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    assert not [line for line in said if "could not transform" in line]


def fib_of(n: Count) -> Count:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


fib = tfr.recursive(fib_of)


def rounded(n: Count, *others: Number, down: Count = 1, **options: Options) -> Count:
    if n > 5:
        return n - down
    return n + len(others) + len(options)


@tfr.recursive
def total(n: Count, start: Count = STEP) -> Count:
    def inner(k: Count) -> Number:
        if k > 3:
            return k
        return k - 1

    class Local:
        base = STEP

    if n < 2:
        return n * Local.base + start
    return inner(rounded(total(n - 1, start), 7, unused=0.5))


@tfr.recursive
def applied(step, n: Count) -> Count:
    if n == 0:
        return n
    return step(applied(step, n - 1))


class Power(tf.Module):
    def __init__(self, w):
        super().__init__()
        self.w = tf.Variable(w)

    @tfr.recursive
    def __call__(self, n: Count) -> Number:
        if n == 0:
            return 1.0
        return self.w * self(n - 1)


def test_parameters_and_results_of_a_function():
    assert int(fib(tf.constant(10))) == 55


def test_helpers_and_functions_and_classes_in_bodies():
    def expected(n, start):
        if n < 2:
            return n * STEP + start
        k = expected(n - 1, start)
        k = k - 1 if k > 5 else k + 2
        return k if k > 3 else k - 1

    for n, start in [(1, 2), (4, 2), (9, 0)]:
        assert int(total(tf.constant(n), start)) == expected(n, start)


def test_functions_that_are_arguments():
    def step(v: Number) -> Count:
        if v > 2:
            return v + 2
        return v + 1

    assert int(applied(step, tf.constant(5))) == 7
    assert int(applied(lambda v: rounded(v), tf.constant(3))) == 0


def test_methods_and_their_gradients():
    power = Power(2.0)
    with tf.GradientTape() as tape:
        y = power(tf.constant(3))
    assert (float(y), float(tape.gradient(y, power.w))) == (8.0, 12.0)


@pytest.mark.thorough
def test_body_in_a_tf_function_and_a_loop():
    @tf.function
    def sums(n: Count) -> Number:
        result = 0
        for k in tf.range(n):
            result += fib(k)
        return result

    assert int(sums(tf.constant(10))) == sum([0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
