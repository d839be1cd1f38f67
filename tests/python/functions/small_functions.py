"""Functions that several tests of functions define: a factorial, and two that call one another."""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf

import tensorflow_recursion as tfr


def define_factorial(name="Fac"):
    fac = tfr.Declare(name, [("n", tf.int64)], [("ret", tf.int64)])

    @tfr.Defun(tf.int64, func_name=name, out_names=["ret"])
    def FacImpl(n):
        return tf.cond(n < 2, lambda: tf.constant(1, tf.int64), lambda: n * fac(n - 1))

    return fac, FacImpl


def define_parity():
    even = tfr.Declare("Even", [("n", tf.int32)], [("ret", tf.bool)])
    odd = tfr.Declare("Odd", [("n", tf.int32)], [("ret", tf.bool)])

    @tfr.Defun(tf.int32, func_name="Even", out_names=["ret"])
    def EvenImpl(n):
        return tf.cond(tf.equal(n, 0), lambda: True, lambda: odd(n - 1))

    @tfr.Defun(tf.int32, func_name="Odd", out_names=["ret"])
    def OddImpl(n):
        return tf.cond(tf.equal(n, 0), lambda: False, lambda: even(n - 1))

    return even, odd
