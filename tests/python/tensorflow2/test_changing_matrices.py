"""Matrices of a variable, which share its memory, while the variable changes."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

I32, F64 = tf.int32, tf.float64
COUNT, DEPTH = 3, 4
# Matrices of these many rows and columns of float64 are large enough to be shared. A matrix of the first size lies as
# kernels expect a tensor to lie (8,192 bytes are a multiple of 64), one of the second size does not.
SIZES = [32, 23]


def assign(w, k):
    return w.assign(tf.zeros_like(w) + 0.1, read_value=False)


def assign_add(w, k):
    return w.assign_add(tf.ones_like(w), read_value=False)


def scatter_add(w, k):
    return w.scatter_add(tf.IndexedSlices(tf.ones([1, *w.shape[1:]], w.dtype), [k]))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("change", [assign, assign_add, scatter_add])
@pytest.mark.parametrize("pick", [tf.gather, lambda w, k: w[k]], ids=["gathered", "picked"])
def test_a_matrix_keeps_its_numbers_when_the_variable_changes(pick, change, size, static_or_error):
    values = np.random.RandomState(1).uniform(-0.5, 0.5, [COUNT, size, size])
    w = tf.Variable(values)

    @tfr.recursive(input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, size], F64))
    def net(n):
        if n < 1:
            return tf.ones([1, size], F64)
        x = net(n - 1)
        matrix = pick(w, n % COUNT)
        with tf.control_dependencies([matrix]):
            changed = change(w, n % COUNT)
        with tf.control_dependencies([changed]):
            return tf.tanh(tf.identity(x) @ matrix)

    def by_hand(values):
        x = np.ones([1, size])
        for n in range(1, DEPTH + 1):
            matrix = values[n % COUNT].copy()
            if change is assign:
                values[...] = 0.1
            else:
                values[slice(None) if change is assign_add else n % COUNT] += 1
            x = np.tanh(x @ matrix)
        return x

    for _ in range(2):  # sparse updates copy a variable once, before they change it in place
        np.testing.assert_allclose(net(tf.constant(DEPTH)), by_hand(values), rtol=1e-9)
        np.testing.assert_allclose(w, values)
