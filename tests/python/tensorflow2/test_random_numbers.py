"""Random numbers that bodies draw from a seed are the same in each run, where the pages say so."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf
from tensorflow.python.framework import config as framework_config

import tensorflow_recursion as tfr

RUNS = 6


@tfr.recursive
def numbers(depth):
    if depth == 0:
        return tf.random.uniform([])
    return numbers(depth - 1) * 0.5 + numbers(depth - 1)


@tfr.recursive
def vectors(depth):
    if depth == 0:
        return tf.random.normal([40])
    return tf.concat([vectors(depth - 1), vectors(depth - 1)], axis=0)


@tfr.recursive
def seeded(seed, depth):
    if depth == 0:
        return tf.random.stateless_uniform([2], seed)
    left, right = tf.unstack(tf.random.split(seed))
    return seeded(left, depth - 1) * 0.5 + seeded(right, depth - 1)


@pytest.fixture
def deterministic_operators():
    tf.config.experimental.enable_op_determinism()
    yield
    framework_config.disable_op_determinism()


def results(program, reset=lambda: None):
    """What a program returns in several runs, each from the same seeds."""
    called = tf.function(program)
    found = set()
    for _ in range(RUNS):
        tf.random.set_seed(3)
        reset()
        found.add(called().numpy().tobytes())
    return found


PROGRAMS = pytest.mark.parametrize(
    "program",
    [lambda: numbers(tf.constant(16)), lambda: vectors(tf.constant(12))],
    ids=["numbers", "vectors"],
)


@PROGRAMS
def test_one_worker_draws_the_same_numbers_in_each_run(program, static_or_error):
    tfr.config.set_options(workers=1)
    assert len(results(program)) == 1


@PROGRAMS
def test_deterministic_operators_draw_the_same_numbers_in_each_run(program, static_or_error, deterministic_operators):
    tfr.config.set_options(workers=4)
    assert len(results(program)) == 1


def test_several_workers_draw_the_same_numbers_by_seeds_that_are_passed(static_or_error):
    tfr.config.set_options(workers=4)
    assert len(results(lambda: seeded(tf.constant([1, 2]), tf.constant(11)))) == 1


def test_several_workers_draw_the_same_numbers_from_a_generator(static_or_error):
    generator = tf.random.Generator.from_seed(3)

    @tfr.recursive
    def generated(depth):
        if depth == 0:
            return generator.uniform([2])
        return generated(depth - 1) * 0.5 + generated(depth - 1)

    tfr.config.set_options(workers=4)
    assert len(results(lambda: generated(tf.constant(8)), lambda: generator.reset_from_seed(3))) == 1
