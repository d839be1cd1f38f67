"""Variables that bodies read: what they hold at that moment, before and after updates."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr

_DIM = 19


def test_variables_of_tensorflow_2_are_read_as_they_are():
    """By their handles in the body, which hold them: numbers, rows, and whole weights, before and after updates."""
    start = np.arange(5 * _DIM, dtype=np.float32).reshape(5, _DIM)
    table, weight, scale = tf.Variable(start), tf.Variable(np.eye(_DIM, dtype=np.float32)), tf.Variable(2.0)

    @tfr.recursive
    def rows(n):
        if n < 1:
            return tf.gather(table, [n])
        return tf.matmul(rows(n - 1), weight) * scale + tf.gather(table, [n])

    @tf.function
    def step():
        before = rows(3)
        table.scatter_add(tf.IndexedSlices(tf.ones([1, _DIM]), [1]))
        weight.assign_add(tf.eye(_DIM))
        scale.assign(scale * 0.5)
        return before, rows(3), tf.reduce_sum(table)

    numbers, matrix, factor = start.copy(), 1.0, 2.0
    for _ in range(3):
        before, after, total = step()
        np.testing.assert_allclose(before, _expected_rows(numbers, matrix * factor))
        numbers[1] += 1
        matrix, factor = matrix + 1, factor / 2
        np.testing.assert_allclose(after, _expected_rows(numbers, matrix * factor))
        np.testing.assert_allclose(total, numbers.sum())


def _expected_rows(table, factor):
    row = table[:1]
    for n in range(1, 4):
        row = row * factor + table[n : n + 1]
    return row
