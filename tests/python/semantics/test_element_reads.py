"""Bodies with tensors read single elements, `x[i]`, as operators of the executor: values, ends, errors, gradients."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

WIDTH = 3
LEFT = np.array([1, 3, 5, -1, -1, -1, -1], np.int32)
RIGHT = np.array([2, 4, 6, -1, -1, -1, -1], np.int64)
ROWS = np.arange(21, dtype=np.float32).reshape(7, WIDTH) / 8


def tree(left, right, rows):
    """Sums up rows of a tree whose children are found by element reads; its frames hold vectors."""
    node = tfr.Declare("Node", [("i", tf.int32)], [("sum", tf.float32)], output_shapes=[[WIDTH]])

    @tfr.Defun(tf.int32, func_name="Node", out_names=["sum"], output_shapes=[[WIDTH]], create_grad_func=True)
    def node_impl(i):
        def inner():
            of_children = node(left[i]) + node(tf.cast(right[i], tf.int32))
            return of_children * rows[i, 1] + rows[-1, i % WIDTH] + rows[0, -1]

        return tf.cond(left[i] < 0, lambda: rows[i], inner)

    return node_impl


def expected(i):
    if LEFT[i] < 0:
        return ROWS[i]
    return (expected(LEFT[i]) + expected(RIGHT[i])) * ROWS[i, 1] + ROWS[-1, i % WIDTH] + ROWS[0, -1]


def run(fetch, feeds, **options):
    with tf1.Session(config=tfr.session_config()) as session:
        session.run(tf1.global_variables_initializer())
        return session.run(fetch(), feeds, **options)


def test_elements_of_vectors_and_matrices():
    with tf1.Graph().as_default():
        got = run(lambda: tree(tf.constant(LEFT), tf.constant(RIGHT), tf.constant(ROWS))(0), {})
    np.testing.assert_allclose(got, expected(0), rtol=1e-6)


def test_elements_when_run_is_traced():
    with tf1.Graph().as_default():
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        fetch = lambda: tree(tf.constant(LEFT), tf.constant(RIGHT), tf.constant(ROWS))(0)
        got = run(fetch, {}, options=options, run_metadata=tf1.RunMetadata())
    np.testing.assert_allclose(got, expected(0), rtol=1e-6)


@pytest.mark.parametrize("index", [7, -8, 1000])
def test_error_names_node_when_index_is_out_of_range(index):
    with tf1.Graph().as_default():
        i = tf1.placeholder(tf.int32, [])
        fetch = lambda: tree(tf.constant(LEFT), tf.constant(RIGHT), tf.constant(ROWS))(i)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"(?s)slice index .*out of bounds.*Node/strided_slice"
        ):
            run(fetch, {i: index})


def test_element_when_index_counts_from_end():
    with tf1.Graph().as_default():
        i = tf1.placeholder(tf.int32, [])
        got = run(lambda: tree(tf.constant(LEFT), tf.constant(RIGHT), tf.constant(ROWS))(i), {i: -3})
    np.testing.assert_array_equal(got, ROWS[4])


@pytest.mark.parametrize("use_resource", [True, False])
def test_elements_of_variables(use_resource):
    with tf1.Graph().as_default():
        rows = tf1.get_variable("rows", initializer=ROWS, use_resource=use_resource)
        got = run(lambda: tree(tf.constant(LEFT), tf.constant(RIGHT), rows)(0), {})
    np.testing.assert_allclose(got, expected(0), rtol=1e-6)


def test_gradient_when_elements_are_read():
    with tf1.Graph().as_default():
        rows = tf1.get_variable("rows", initializer=ROWS)
        result = tree(tf.constant(LEFT), tf.constant(RIGHT), rows)(0)
        (gradient,) = tf.gradients(tf.reduce_sum(result), [rows])
        got = run(lambda: tf.convert_to_tensor(gradient), {})
    numeric = np.zeros_like(ROWS)
    for position in np.ndindex(ROWS.shape):
        before = ROWS[position]
        ends = []
        for step in (0.5, -0.5):
            ROWS[position] = before + step
            ends.append(expected(0).astype(np.float64).sum())
        ROWS[position] = before
        numeric[position] = ends[0] - ends[1]
    # Each element enters at most quadratically, so the central difference is exact but for rounding.
    np.testing.assert_allclose(got, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [tf.int16, tf.int32, tf.int64])
def test_element_when_bounds_are_of_any_dtype(run, control_flow, dtype):
    """Bounds of int16 are for the stock kernel alone."""
    x = tf.constant([3, 5, 7])
    at = lambda i: tf.strided_slice(x, tf.constant([i], dtype), tf.constant([i + 1], dtype), shrink_axis_mask=1)
    f = tfr.Declare("Read", [("n", tf.int32)], [("r", tf.int32)])
    define = tfr.Defun(tf.int32, func_name="Read", out_names=["r"])
    define(lambda n: tf.cond(n < 1, lambda: at(2), lambda: f(n - 1) + at(1)))
    assert run(f(2)) == 17
