"""Loops whose condition has side effects, for which each iteration waits.

The condition's result does not depend on them: TensorFlow's automatic control dependencies let it wait, and Grappler's
dependency optimizer moves that wait to the loop's LoopCond.
"""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

RUNS = 20  # an order that nothing keeps is right by chance in some


class Counted:
    """A loop of three iterations; its condition counts in one variable, its body notes the count in another."""

    def __init__(self):
        self.count = tf.Variable(0)
        self.seen = tf.Variable(0)

    def goes_on(self, i):
        self.count.assign_add(1)
        return i < 3

    def iterate(self):
        i = tf.constant(0)
        while self.goes_on(i):
            self.seen.assign(self.seen * 10 + self.count)
            i += 1
        return i

    def reset(self):
        self.count.assign(0)
        self.seen.assign(0)


@pytest.fixture
def counted():
    return Counted()


def loop_in_body(counted):
    @tfr.recursive
    def function(n):
        if n < 1:
            return 0
        return function(n - 1) + counted.iterate()

    return lambda: function(tf.constant(1))


def call_in_condition(counted):
    @tfr.recursive
    def counts(n):
        if n < 1:
            counted.count.assign_add(1)
            return 0
        return counts(n - 1)

    def goes_on(i):
        counts(tf.constant(1))
        return i < 3

    counted.goes_on = goes_on
    return loop_in_body(counted)


def call_beside_the_loop(counted):
    @tfr.recursive
    def number(n):
        if n < 1:
            return 0
        return number(n - 1) + 1

    return lambda: counted.iterate() + number(tf.constant(2)) - 2


@pytest.mark.parametrize("place", ["eager", "tf.function"])
@pytest.mark.parametrize("program", [loop_in_body, call_in_condition, call_beside_the_loop])
def test_iterations_wait_for_side_effects_of_the_condition(counted, program, place):
    run = program(counted)
    run = tf.function(run) if place == "tf.function" else run
    for _ in range(RUNS):
        counted.reset()
        assert int(run()) == 3
        assert (int(counted.seen), int(counted.count)) == (123, 4)
