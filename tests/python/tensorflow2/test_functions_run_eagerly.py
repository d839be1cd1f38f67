"""Calls where `tf.config.run_functions_eagerly(True)` lets functions run in Python, as one does to debug them."""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf

import tensorflow_recursion as tfr


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


def test_result_of_which_nothing_is_stated_stays_where_functions_run_eagerly(functions_run_eagerly):
    assert tfr.recursive(lambda n: "text")(tf.constant(1)) == "text"


def test_defun_stays_a_graph_where_functions_run_eagerly(functions_run_eagerly):
    factorial = tfr.Declare("eager_factorial", [("n", tf.int32)], [("product", tf.int32)])

    @tfr.Defun(tf.int32, func_name="eager_factorial", out_names=["product"])
    def body(n):
        return tf.cond(n < 2, lambda: 1, lambda: n * factorial(n - 1))

    assert int(body(tf.constant(5))) == 120
    assert int(factorial(4)) == 24
