"""Operators whose gradients need static shapes, in branches that are built anew to be differentiated."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


def by_svd(x):
    s, u, v = tf.linalg.svd(x)
    return u @ tf.linalg.diag(tf.sqrt(s)) @ v


def by_patches(x):
    patches = tf.image.extract_patches(x[None, :, :, None], [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
    return tf.reduce_sum(patches[0] ** 2, 2)


OF_MATRICES = {
    "pinv": tf.linalg.pinv,
    "qr": lambda x: tf.linalg.inv(tf.linalg.qr(x)[1]),
    "svd": by_svd,
    "patches": by_patches,
}


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("place", ["eager", "tf.function"])
@pytest.mark.parametrize("of_matrix", OF_MATRICES.values(), ids=list(OF_MATRICES))
def test_second_derivative_by_a_variable_that_a_branch_reads(of_matrix, place):
    """A branch was imported before it knew which variable its handle is of, and nothing in it had a shape."""
    v = tf.Variable(tf.linalg.diag([1.0, 2.0, 3.0]) + 0.1)

    @tfr.recursive
    def product(n, x):
        if n < 1:
            return x
        return of_matrix(v) @ product(n - 1, x)

    def unrolled(n, x):
        return x if n < 1 else of_matrix(v) @ unrolled(n - 1, x)

    def second(function, n):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(function(n, tf.ones([3, 3])) ** 2)
            slope = tape.gradient(y, v)
        return outer.gradient(slope, v)

    derive = second if place == "eager" else tf.function(second)
    expected = second(unrolled, 2).numpy()
    np.testing.assert_allclose(derive(product, tf.constant(2)), expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


@pytest.mark.thorough
def test_loop_without_output_shapes():
    """`tf.nn.ctc_loss` makes its loop of functions, without the attribute that says the shapes of its variables."""
    logits = tf.Variable(tf.random.stateless_normal([2, 2, 3], [1, 2]))
    labels, lengths = tf.constant([[1], [1]]), (tf.constant([1, 1]), tf.constant([2, 2]))

    def loss():
        return tf.reduce_sum(tf.nn.ctc_loss(labels, logits, *lengths, blank_index=0))

    @tfr.recursive
    def losses(n):
        if n < 1:
            return 0.0
        return losses(n - 1) + loss()

    with tf.GradientTape(persistent=True) as tape:
        y, expected = losses(tf.constant(2)), 2.0 * loss()
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, logits), tape.gradient(expected, logits), rtol=1e-5)
