"""The two programs that the tours follow, exactly as the pages show them."""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf

import tensorflow_recursion as tfr


def fib() -> tf.Tensor:
    """docs/tour.md: fib(2)."""
    fib = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"])
    def fib_impl(n):
        return tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))

    return fib_impl(2)


def power() -> tf.Tensor:
    """docs/tour_gradient.md: the gradient of x^3 at 2."""
    power = tfr.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @tfr.Defun(tf.float32, tf.int32, func_name="Power", out_names=["y"])
    def power_impl(x, n):
        return tf.cond(n < 1, lambda: tf.constant(1.0), lambda: x * power(x, n - 1))

    x = tf.constant(2.0, name="x")
    y = power_impl(x, 3)
    return tf.gradients(y, x)[0]


PROGRAMS = {"fib": fib, "power": power}
