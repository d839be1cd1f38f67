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


def in_map(f, x, table, ids):
    return tf.map_fn(lambda i: f(x, table, i, tf.constant(1)), ids, fn_output_signature=tf.float32)


def in_while_loop(f, x, table, ids):
    def step(i, total):
        return i + 1, total + f(x, table, ids[i], tf.constant(1)) * total

    return tf.while_loop(lambda i, _: i < 3, step, [tf.constant(0), tf.constant(1.0)])[1]


def in_cond(f, x, table, ids):
    return tf.cond(x > 0.0, lambda: f(x, table, ids[0], tf.constant(1)), lambda: x)


def in_loop_in_cond(f, x, table, ids):
    return tf.cond(x > 0.0, lambda: in_while_loop(f, x, table, ids), lambda: x)


def in_cond_in_map(f, x, table, ids):
    return tf.map_fn(lambda i: tf.cond(i > 1, lambda: f(x, table, i, tf.constant(1)), lambda: x), ids, tf.float32)


def in_scan(f, x, table, ids):
    return tf.scan(lambda total, i: total * f(x, table, i, tf.constant(1)), ids, x)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(6)
@pytest.mark.parametrize("place", [in_map, in_while_loop, in_cond, in_loop_in_cond, in_cond_in_map, in_scan])
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "tf.function"])
def test_second_derivatives_by_eager_tapes_around_control_flow_whose_calls_gather(place, is_compiled):
    """Of nested tapes, TensorFlow makes a conditional or loop of a `tf.function` a function of its own."""

    def body(f, x, table, i, n):
        row = tf.gather(table, i)
        if n < 1:
            return tf.reduce_sum(row * tf.sin(x))
        return f(x * tf.reduce_sum(row), table, i, n - 1) * x

    @tfr.recursive
    def recursive(x, table, i, n):
        return body(recursive, x, table, i, n)

    def unrolled(x, table, i, n):
        return body(unrolled, x, table, i, 1 if isinstance(n, tf.Tensor) else n)

    def derivatives(f, compiled):
        x, ids = tf.constant(0.7), tf.constant([1, 3, 0])
        table = tf.Variable(np.arange(12, dtype=np.float32).reshape(6, 2) / 10)
        in_function = compiled(lambda: place(f, x, table, ids))
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(in_function())
            first, by_table = inner.gradient(y, [x, table])
            first += tf.reduce_sum(tf.convert_to_tensor(by_table) ** 2)
        return [tf.convert_to_tensor(found) for found in (first, *outer.gradient(first, [x, table]))]

    found = derivatives(recursive, tf.function if is_compiled else lambda function: function)
    for got, want in zip(found, derivatives(unrolled, lambda function: function), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4)


@pytest.mark.parametrize("dtype", [tf.complex64, tf.float16])
def test_second_derivatives_take_rows_of_complex_numbers_and_many_of_few_bits(dtype):
    # In float16 one counts to 2,048. The last 16 of the 5,000 uses do not cancel out.
    signs = tf.cast([*[1.0, -1.0] * 2492, *[1.0] * 16], dtype)
    weight = tf.Variable(tf.cast([[1.0, 2.0], [3.0, 4.0]], dtype))

    @tfr.recursive(output_signature=tf.TensorSpec([], dtype))
    def f(n):
        if n < 1:
            return tf.reduce_sum(tf.gather(weight, tf.zeros([5000], tf.int32)) ** 2 * signs[:, None])
        return f(n - 1)

    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = f(tf.constant(1))
        rows = tape.gradient(y, weight)
        z = tf.reduce_sum(tf.convert_to_tensor(rows) * tf.cast(1.5, dtype))
    assert isinstance(rows, tf.IndexedSlices)
    np.testing.assert_array_equal(tf.convert_to_tensor(outer.gradient(z, weight)), [[48, 48], [0, 0]])
