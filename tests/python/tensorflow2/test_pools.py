"""Second derivatives of max pooling: TensorFlow's kernel overwrites what it is given where the size stays."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

SIZES = {"2-1": (2, 1), "3-1": (3, 1), "2-2": (2, 2), "1-1": (1, 1), "1-2": (1, 2)}  # of windows and strides
SHAPES = {"plane": (2, 5, 4, 3), "point": (1, 1, 1, 2), "space": (2, 3, 4, 3, 2)}


def second_derivatives(function, x, w):
    with tf.GradientTape() as outer:
        outer.watch([x, w])
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.reduce_sum(tf.sin(function(x, w)))
        dx, dw = tape.gradient(y, [x, w])
        z = tf.reduce_sum(dx**2) + dw**2
    return outer.gradient(z, [x, w])


@pytest.mark.sampled(12)
@pytest.mark.parametrize("place", ["body", "tf.function"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("size, stride", SIZES.values(), ids=list(SIZES))
def test_second_derivatives_are_those_of_eager_mode(size, stride, shape, padding, place):
    if padding == "VALID" and min(shape[1:-1]) < size:
        pytest.skip("no window fits")
    pool = tf.nn.max_pool2d if len(shape) == 4 else tf.nn.max_pool3d
    x = tf.constant(np.random.default_rng(0).normal(size=shape), tf.float32)
    w = tf.constant(1.3)

    def pooled(x, w):
        return pool(w * x + x * x, size, stride, padding)

    @tfr.recursive
    def descend(n, x, w):
        if n < 1:
            return pooled(x, w)
        return descend(n - 1, x, w)

    expected = second_derivatives(pooled, x, w)
    if place == "body":
        found = second_derivatives(lambda x, w: descend(tf.constant(1), x, w), x, w)
    else:
        found = tf.function(lambda x, w: second_derivatives(pooled, x, w))(x, w)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-4)


def test_sizes_that_are_inputs():
    x = tf.constant(np.random.default_rng(0).normal(size=(2, 5, 4, 3)), tf.float32)

    def pooled(x, w):
        return tf.raw_ops.MaxPoolV2(input=w * x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")

    w = tf.constant(1.3)
    expected = second_derivatives(pooled, x, w)
    for one, wanted in zip(tf.function(second_derivatives)(pooled, x, w), expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-4)
