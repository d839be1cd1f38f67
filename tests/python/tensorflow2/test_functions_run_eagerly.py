"""Calls where `tf.config.run_functions_eagerly(True)` lets functions run in Python, as one does to debug them."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


@pytest.fixture
def functions_run_eagerly():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def test_bodies_run_in_python_where_functions_run_eagerly(functions_run_eagerly):
    seen = []

    @tfr.recursive
    def power(x, n):
        seen.append(int(n))
        if n < 1:
            return tf.ones_like(x)
        return x * power(x, n - 1)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = power(x, tf.constant(3))
    assert (float(y), float(tape.gradient(y, x))) == (8.0, 12.0)
    assert seen == [3, 2, 1, 0]
    assert float(tf.function(lambda x: power(x, tf.constant(2)))(x)) == 4.0


def stated(signature, base):
    """A function that returns `base` at the end of its recursion, and states something of it."""

    @tfr.recursive(output_signature=signature)
    def f(n):
        if n < 1:
            return base(n)
        return f(n - 1)

    return f


@pytest.mark.parametrize("signature, error", [
    (tf.float32, TypeError),
    ((tf.int32, tf.int32), TypeError),
    ({"n": tf.int32}, TypeError),
    (tf.TensorSpec([2], tf.int32), ValueError),
])  # fmt: skip
def test_result_is_checked_as_in_graphs_where_functions_run_eagerly(functions_run_eagerly, signature, error):
    with pytest.raises(error, match=r"(?s)Function 'f'.*output_signature states"):
        stated(signature, lambda n: n)(tf.constant(3))


def test_result_is_converted_as_in_graphs_where_functions_run_eagerly(functions_run_eagerly):
    variable = tf.Variable([1.0, 2.0])
    number, pair = stated(tf.int64, lambda n: 7), stated((tf.float32, tf.float64), lambda n: (variable, 1))
    assert number(tf.constant(2)).dtype == tf.int64
    first, second = pair(tf.constant(2))
    assert tf.is_tensor(first) and first.numpy().tolist() == [1.0, 2.0]
    assert second.dtype == tf.float64
    with pytest.raises(TypeError, match=r"Function 'f' returns .*, expected tensors"):
        stated(tf.int32, lambda n: object())(tf.constant(2))


def test_result_of_which_nothing_is_stated_stays_where_functions_run_eagerly(functions_run_eagerly):
    assert tfr.recursive(lambda n: "text")(tf.constant(1)) == "text"


def test_defun_stays_a_graph_where_functions_run_eagerly(functions_run_eagerly):
    factorial = tfr.Declare("eager_factorial", [("n", tf.int32)], [("product", tf.int32)])

    @tfr.Defun(tf.int32, func_name="eager_factorial", out_names=["product"])
    def body(n):
        return tf.cond(n < 2, lambda: 1, lambda: n * factorial(n - 1))

    assert int(body(tf.constant(5))) == 120
    assert int(factorial(4)) == 24
