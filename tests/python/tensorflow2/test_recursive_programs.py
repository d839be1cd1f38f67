"""Programs decorated with `tfr.recursive` compute what they do in Python: eagerly, in tf.functions, in TF1 sessions."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from recursive_programs import PROGRAMS

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

pytestmark = pytest.mark.every_program


def tensors(args):
    return [tf.constant(arg) for arg in args]


def eagerly(function, args):
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), function(*tensors(args)))


def in_tf_function(function, args):
    @tf.function
    def call(*args):
        return function(*args)

    return tf.nest.map_structure(lambda tensor: tensor.numpy(), call(*tensors(args)))


def in_session(function, args, config):
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        return session.run(function(*tensors(args)))


RUNS = {
    "eager": eagerly,
    "tf.function": in_tf_function,
    "static session": lambda function, args: in_session(function, args, tfr.session_config(on_fallback="error")),
    "dynamic session": lambda function, args: in_session(function, args, None),
}


@pytest.fixture(params=RUNS)
def mode(request):
    """How a function is run."""
    return RUNS[request.param]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_it_does_in_python(name, mode):
    make, calls = PROGRAMS[name]
    expected = make(lambda func: func)
    function = make(tfr.recursive)
    for args in calls:
        got = mode(function, args)
        tf.nest.assert_same_structure(got, expected(*args))
        assert tf.nest.flatten(got) == pytest.approx(tf.nest.flatten(expected(*args)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["fib", "gcd", "parity"])
def test_program_with_signatures_takes_python_numbers(name, mode):
    make, calls = PROGRAMS[name]
    count = len(calls[0])
    function = make(tfr.recursive(input_signature=[tf.TensorSpec([], tf.int64)] * count))
    expected = make(lambda func: func)
    for args in calls:
        assert mode(lambda *_, args=args: function(*args), []) == expected(*args)


@pytest.mark.parametrize("autograph", [True, False])
def test_control_flow_of_tensorflow_is_taken(mode, autograph):
    @tfr.recursive(autograph=autograph)
    def count(n):
        return tf.cond(n < 1, lambda: n * 0, lambda: 1 + count(n - 1))

    assert mode(count, [np.int32(7)]) == 7


def test_switch_case_and_while_loop_are_taken(mode):
    @tfr.recursive
    def digits(n):
        def by_loop():
            return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + digits(i)), [tf.constant(0), n * 0])[1]

        return tf.switch_case(tf.minimum(n, 2), [lambda: tf.constant(5), lambda: digits(n - 1) + 1, by_loop])

    def expected(n):
        return 5 if n == 0 else expected(0) + 1 if n == 1 else sum(expected(i) for i in range(n))

    assert mode(digits, [np.int32(4)]) == expected(4)
