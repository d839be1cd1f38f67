"""Lists of tensors in recursive functions: what they hold may be known only once a function is differentiated."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

F32 = tf.float32
NUMBER = np.zeros(0, np.int32)


def new():
    return tf.raw_ops.EmptyTensorList(element_shape=NUMBER, max_num_elements=-1, element_dtype=F32)


def push(values, x):
    return tf.raw_ops.TensorListPushBack(input_handle=values, tensor=x)


def stacked(values):
    return tf.raw_ops.TensorListStack(input_handle=values, element_shape=NUMBER, element_dtype=F32)


# Each program is given what makes a function of a body, and returns a function of x.


def takes_a_list(recursive):
    @recursive
    def pushed(values, x, n):
        if n < 1:
            return push(values, x)
        return pushed(push(values, x * 2.0), x * x, n - 1)

    return lambda x: stacked(pushed(new(), x, tf.constant(3)))


def returns_a_list(recursive):
    @recursive
    def made(x, n):
        if n < 1:
            return push(new(), x)
        return push(made(x * x, n - 1), x * 2.0)

    return lambda x: stacked(made(x, tf.constant(3)))


def hands_a_list_on(recursive):
    @recursive
    def handed(values, n):
        if n < 1:
            return values
        return handed(values, n - 1)

    @recursive
    def made(x, n):
        if n < 1:
            return push(push(new(), x), x * x)
        return handed(made(x * x, n - 1), n)

    return lambda x: stacked(made(x, tf.constant(2)))


def list_in_loops(recursive):
    @recursive
    def made(x, n):
        values = new()
        for i in tf.range(3):
            values = push(values, x * tf.cast(i, F32))
        if n < 1:
            return values
        longer = made(x * x, n - 1)
        for _ in tf.range(2):
            longer = push(longer, x)
        return longer

    return lambda x: stacked(made(x, tf.constant(2)))


def takes_an_array(recursive):
    @recursive
    def written(array, x, n):
        if n < 0:
            return array
        return written(array.write(n, x), x * x, n - 1)

    return lambda x: written(tf.TensorArray(F32, 4, element_shape=[]), x, tf.constant(3)).stack()


def returns_an_array(recursive):
    @recursive
    def written(x, n):
        if n < 1:
            return tf.TensorArray(F32, 1, element_shape=[], dynamic_size=True).write(0, x)
        return written(x * x, n - 1).write(n, x * 3.0)

    return lambda x: written(x, tf.constant(3)).stack()


def array_through_calls_in_a_row(recursive):
    @recursive
    def written(array, x, n):
        if n < 1:
            return array
        return written(array.write(array.size(), x), x * x, n - 1)

    def compute(x):
        array = tf.TensorArray(F32, 0, element_shape=[], dynamic_size=True, clear_after_read=False)
        return written(written(array, x, tf.constant(2)), x, tf.constant(1)).stack()

    return compute


PROGRAMS = [takes_a_list, returns_a_list, hands_a_list_on, list_in_loops, takes_an_array, returns_an_array]
PROGRAMS += [array_through_calls_in_a_row]


def derivatives(program):
    """The function of x whose value is the sum of squares of what `program` returns, with two derivatives."""

    def compute(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(program(x) ** 2)
            slope = tape.gradient(y, x)
        return y, slope, outer.gradient(slope, x)

    return compute


@pytest.mark.thorough
@pytest.mark.sampled(6)
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_are_those_of_python(program):
    x = tf.constant(1.1)
    found = tf.function(derivatives(program(tfr.recursive)))(x)
    expected = derivatives(program(lambda body: body))(x)  # in eager mode
    np.testing.assert_allclose(found, expected, rtol=1e-5)
