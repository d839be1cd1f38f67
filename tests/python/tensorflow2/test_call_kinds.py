"""Which kinds of call gradients meet, by the examples in the table of gradients/call_kinds.py."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion.gradients import requests
from tensorflow_recursion.gradients.call_kinds import CallKind


@pytest.fixture
def met(monkeypatch):
    """The kinds of call that gradients have met."""
    kinds = set()
    classify = requests.classify

    def noted(*args):
        kinds.add(kind := classify(*args))
        return kind

    monkeypatch.setattr(requests, "classify", noted)
    return kinds


def cube():
    @tfr.recursive(autograph=False)
    def power(x, n):
        return tf.cond(n < 1, lambda: tf.ones_like(x), lambda: x * power(x, n - 1))

    return lambda x: power(x, tf.constant(3))


def derivative(f, order=1):
    """The derivative of f, by tapes in one another."""
    if order == 0:
        return f

    def of(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(f, order - 1)(x)
        return tape.gradient(y, x)

    return of


def value(f):
    return float(tf.function(f, autograph=False)(tf.constant(2.0)))


def test_first_derivative_meets_calls_of_functions_that_are_defined(met):
    assert value(derivative(cube())) == 12
    assert met == {CallKind.DEFINED}


def test_second_derivative_meets_calls_of_backward_functions_and_of_what_is_made_of_templates(met):
    assert value(derivative(cube(), 2)) == 12
    assert met == {CallKind.DEFINED, CallKind.BACKWARD, CallKind.OF_PAIR}


def test_second_gradient_of_a_call_meets_a_forward_function(met):
    def twice(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = cubed(x)
        return tape.gradient(y, x) + tape.gradient(y, x)

    cubed = cube()
    assert value(twice) == 24
    assert met == {CallKind.DEFINED, CallKind.FORWARD}


def test_gradient_of_a_body_meets_a_call_of_a_tf_function_that_calls_the_body(met):
    @tfr.recursive(autograph=False)
    def power(x, n):
        return tf.cond(n < 1, lambda: tf.ones_like(x), lambda: x * less(x, n))

    less = tf.function(lambda x, n: power(x, n - 1), autograph=False)
    assert value(derivative(lambda x: power(x, tf.constant(3)))) == 12
    assert CallKind.TF_FUNCTION in met


@pytest.mark.thorough
def test_gradients_of_what_was_loaded_meet_calls_of_functions_that_came_along(met, tmp_path):
    spec = tf.TensorSpec([], tf.float32)
    module = tf.Module()
    module.f = tf.function(cube(), input_signature=[spec], autograph=False)
    module.df = tf.function(derivative(cube()), input_signature=[spec], autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    met.clear()
    assert value(derivative(loaded.f)) == 12
    assert CallKind.IMPORTED in met
    met.clear()
    assert value(derivative(loaded.df)) == 12
    assert CallKind.IMPORTED_BACKWARD in met
