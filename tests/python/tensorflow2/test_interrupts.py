"""A user who interrupts a trace (Ctrl-C, the stop button of a notebook) can go on: nothing half made is left behind."""
# SPDX-License-Identifier: Apache-2.0

import contextlib

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


class Interrupting:
    """Raises KeyboardInterrupt at its `count`-th call, if it ever comes, and at no other."""

    def __init__(self, count):
        self.count = count

    def __call__(self, x):
        self.count -= 1
        if self.count == 0:
            raise KeyboardInterrupt
        return x


def interrupted_and_again(run, interrupting):
    """What `run` returns after it was interrupted; None if it never was."""
    try:
        run()
    except KeyboardInterrupt:
        return run()
    assert interrupting.count > 0
    return None


def of_every_point(program, *args):
    """Interrupts `program` at each point in turn; returns how many there are."""
    for count in range(1, 100):
        interrupting = Interrupting(count)
        with tf.Graph().as_default() if args else contextlib.nullcontext():
            run = program(interrupting, *args)
            again = interrupted_and_again(run, interrupting)
        if again is None:
            return count - 1
        np.testing.assert_allclose(again, [4.0, 4.0], err_msg=f"interrupted at point {count}")
    raise AssertionError("no end")


def recursive_pair(interrupting):
    @tf.custom_gradient
    def same(x):
        return tf.identity(x), interrupting

    @tfr.recursive
    def even(x, n):
        if n < 1:
            return interrupting(x)
        return interrupting(odd(interrupting(x), n - 1)) * 2

    @tfr.recursive
    def odd(x, n):
        if n < 1:
            return x
        return interrupting(same(even(x, n - 1))) + even(x, n - 1)

    return even


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "tf_function"])
def test_interrupt_while_functions_and_their_gradients_are_traced(in_function):
    def program(interrupting):
        even = recursive_pair(interrupting)
        call = tf.function(even) if in_function else even

        def run():
            x = tf.constant(1.0)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = call(x, tf.constant(2))
            return y, tape.gradient(y, x)

        return run

    assert of_every_point(program) > 5


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["recursive", "defun"])
def test_interrupt_while_a_graph_is_made(kind):
    def program(interrupting, kind):
        if kind == "recursive":
            even = recursive_pair(interrupting)
        else:
            declared = tfr.Declare("F", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

            @tfr.Defun(tf.float32, tf.int32, func_name="F", out_names=["y"], create_grad_func=True)
            def even(x, n):
                return tf.cond(n < 1, lambda: interrupting(x), lambda: interrupting(declared(x, n - 1)) * 2)

        def run():
            x = tf.constant(1.0)
            y = even(x, tf.constant(2))
            gradient = tf.gradients(y, x)
            with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
                return session.run([y, *gradient])

        return run

    assert of_every_point(program, kind) > 3
