"""Rows that a recursion collects, as ropes: records that a tape takes from one program to another hold them, too."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr

COLUMNS = 50


def _row(n, x):
    return tf.reshape(tf.sin(x * tf.cast(n, x.dtype) + tf.range(float(COLUMNS), dtype=x.dtype)), [1, COLUMNS])


def test_rows_in_eager_mode_and_their_tape():
    @tfr.recursive(
        input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float64)],
        output_signature=tf.TensorSpec([None, COLUMNS], tf.float64),
    )
    def rows(n, x):
        if n < 1:
            return _row(n, x)
        return tf.concat([rows(n - 1, x), rows(n - 1, 0.9 * x), _row(n, x)], 0)

    def plain(n, x):
        return _row(n, x) if n < 1 else tf.concat([plain(n - 1, x), plain(n - 1, 0.9 * x), _row(n, x)], 0)

    results = []
    for f in (rows, plain):
        x = tf.constant(0.7, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(tf.constant(6) if f is rows else 6, x)
            loss = tf.reduce_sum(y * y)
        results.append((y.numpy(), tape.gradient(loss, x).numpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-9)
