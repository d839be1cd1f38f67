"""`tf.experimental.ExtensionType`s: as arguments and results, and with recursive methods."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

TRACED = []


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor
    factor: float = 2.0

    @tfr.recursive
    def grown(self, n):
        if n < 1:
            return self
        return Masked(self.values * self.factor, tf.logical_not(self.mask)).grown(n - 1)

    @tfr.recursive
    def total(self, n):
        TRACED.append(self)
        if n < 1:
            return tf.reduce_sum(tf.boolean_mask(self.values, self.mask))
        return self.total(n - 1) + 1.0

    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
    def sum(self, n):
        return tf.reduce_sum(self.values) if n < 1 else 2.0 * self.sum(n - 1)


def masked(*values):
    return Masked(tf.constant(values), tf.constant([True, False]))


def test_extension_types_are_arguments_and_results():
    @tfr.recursive
    def grow(x, n):
        if n < 1:
            return x
        y = grow(x, n - 1)
        return Masked(tf.concat([y.values, 2 * y.values], 0), tf.concat([y.mask, [False]], 0), y.factor)

    with tf.GradientTape() as tape:
        tape.watch(values := tf.constant([1.0]))
        y = grow(Masked(values, [True], 3.0), tf.constant(2))
    assert np.array_equal(y.values, [1.0, 2.0, 2.0, 4.0]) and np.array_equal(y.mask, [True, False, False])
    assert y.factor == 3.0
    assert np.array_equal(tape.gradient(y.values, values), [9.0])


@pytest.mark.parametrize("wrapped", [lambda f: f, tf.function], ids=["eagerly", "in a tf.function"])
def test_methods_call_those_of_objects_that_they_make(wrapped):
    @wrapped
    def gradient(values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            y = Masked(values, [True, False]).grown(tf.constant(3))
        return y.mask, tape.gradient(y.values, values)

    mask, gradients = gradient(tf.constant([1.0, 2.0]))
    assert np.array_equal(mask, [False, True]) and np.array_equal(gradients, [8.0, 8.0])


def test_objects_of_one_kind_share_a_trace():
    assert float(masked(1.0, 2.0).total(tf.constant(2))) == 3.0
    TRACED.clear()
    assert [float(masked(x, 2.0).total(tf.constant(2))) for x in (2.0, 3.0)] == [4.0, 5.0]
    assert not TRACED


def test_input_signature_of_a_method_leaves_out_the_object():
    assert [float(masked(x, 2.0).sum(1)) for x in (2.0, 3.0)] == [8.0, 10.0]


def test_method_is_an_argument():
    @tfr.recursive
    def doubled(method, n):
        return method(n) if n < 1 else 2 * doubled(method, n - 1)

    with tf.GradientTape() as tape:
        tape.watch(values := tf.constant([3.0, 2.0]))
        y = doubled(Masked(values, [True, False]).total, tf.constant(2))
    assert float(y) == 12.0 and np.array_equal(tape.gradient(y, values), [4.0, 0.0])
