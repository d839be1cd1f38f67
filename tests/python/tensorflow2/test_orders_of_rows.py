"""Derivatives of every order of bodies that gather rows in a branch, for a product with a SparseTensor for example."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

INDICES = [[0, 0], [1, 1], [2, 0]]


def product(f, sparse, w, n):
    if n < 1:
        return tf.sparse.sparse_dense_matmul(sparse, w)
    return tf.sparse.sparse_dense_matmul(sparse, tf.sin(f(sparse, w, n - 1)))


def rows(f, sparse, w, n):
    if n < 1:
        return w * sparse.values[0]
    return tf.gather(tf.sin(f(sparse, w, n - 1)), [2, 0, 2]) * w * sparse.values[1]


def derivative(f, which, order):
    given = {"values": tf.constant([1.0, 2.0, 3.0]), "w": tf.constant([[0.5, 0.1], [0.3, 0.4], [0.2, 0.2]])}

    def nested(order):
        if order == 0:
            return f(tf.SparseTensor(INDICES, given["values"], [3, 3]), given["w"], tf.constant(2))
        with tf.GradientTape() as tape:
            tape.watch(given[which])
            y = nested(order - 1)
        return tape.gradient(y, given[which]) ** 2

    return nested(order).numpy()


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("which", ["values", "w"])
@pytest.mark.parametrize("body", [product, rows])
def test_derivatives_are_those_of_the_function_unrolled(body, which, order):
    @tfr.recursive
    def recursive(sparse, w, n):
        return body(recursive, sparse, w, n)

    def unrolled(sparse, w, n):
        return body(unrolled, sparse, w, n)

    np.testing.assert_allclose(derivative(recursive, which, order), derivative(unrolled, which, order), rtol=1e-5)
