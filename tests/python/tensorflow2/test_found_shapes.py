"""Static shapes of results that nobody states: other paths may return more than those that do not recurse."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


@pytest.mark.parametrize("depth", [2, 3])
def test_sparse_tensor_grows_from_call_to_call(depth):
    """Its dense shape was that of the path that does not recurse, although its three tensors had the right shapes."""

    @tfr.recursive
    def stack(n, rows):
        if n < 1:
            return rows
        return tf.sparse.concat(0, [stack(n - 1, rows), rows])

    rows = tf.constant([[1.0, 0.0], [0.0, 2.0]])
    for call in (stack, tf.function(lambda n, rows: stack(n, rows))):
        result = call(tf.constant(depth), tf.sparse.from_dense(rows))
        np.testing.assert_array_equal(tf.sparse.to_dense(result), np.tile(rows, [depth + 1, 1]))


def test_optional_holds_more_from_call_to_call():
    @tfr.recursive
    def grow(n, x):
        if n < 1:
            return tf.experimental.Optional.from_value(x)
        return tf.experimental.Optional.from_value(tf.concat([grow(n - 1, x).get_value(), x], 0))

    np.testing.assert_array_equal(grow(tf.constant(2), tf.constant([1.0, 2.0])).get_value(), [1.0, 2.0] * 3)


@tfr.recursive
def fibonacci_numbers(n):
    """Reads two numbers of what it returns of 1 and more; of 0 it returns one."""
    if n < 1:
        return tf.constant([1])
    known = fibonacci_numbers(n - 1)
    if n < 2:
        return tf.concat([known, [1]], 0)
    return tf.concat([known, [known[-1] + known[-2]]], 0)


@tfr.recursive
def widened(n, x):
    if n < 1:
        return x
    y = widened(n - 1, x)
    if n < 2:
        return tf.tile(y, [1, 2])
    return y @ tf.ones([4, 4])


@tfr.recursive
def ones_and_more(n):
    if n < 1:
        return tf.constant([1])
    known = twos_and_more(n - 1)
    return tf.concat([known, known[:1]], 0)


@tfr.recursive
def twos_and_more(n):
    """Reads two numbers of what the other function returns of 1 and more."""
    if n < 1:
        return tf.constant([2])
    known = ones_and_more(n - 1)
    if n < 2:
        return tf.concat([known, known], 0)
    return tf.concat([known, [known[-1] + known[-2]]], 0)


@pytest.mark.thorough
def test_body_that_needs_other_shapes_than_the_paths_without_calls_return():
    np.testing.assert_array_equal(fibonacci_numbers(tf.constant(5)), [1, 1, 2, 3, 5, 8])
    np.testing.assert_array_equal(twos_and_more(tf.constant(5)), [1, 1, 1, 2, 1, 3])
    np.testing.assert_array_equal(ones_and_more(tf.constant(5)), [2, 2, 4, 2, 6, 2])
    x = tf.Variable(tf.ones([2, 2]))
    with tf.GradientTape() as tape:
        y = widened(tf.constant(2), x)
    np.testing.assert_array_equal(y, np.full([2, 4], 4.0))
    np.testing.assert_array_equal(tape.gradient(y, x), np.full([2, 2], 8.0))


def test_error_of_a_body_is_that_of_its_first_trace():
    """A body that fails for open shapes, too, is wrong in another way, and nothing is taken for less."""
    message = "the body's own error"

    @tfr.recursive
    def wrong(n, x):
        if n < 1:
            return x
        y = wrong(n - 1, x)
        raise ValueError(f"{message}: {y.shape}")

    for _ in range(2):
        with pytest.raises(ValueError, match=rf"{message}: \(2,\)"):
            wrong(tf.constant(2), tf.ones([2]))
