"""Concatenations that are handed on are ropes, which somebody copies later: nobody may see a difference."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

SWITCH = "TENSORFLOW_RECURSION_NATIVE_KERNELS"
COLUMNS = 50
DEPTH = 6  # the upper levels have more rows than the smallest rope


def _row(n, x):
    return tf.reshape(tf.sin(x * tf.cast(n, x.dtype) + tf.range(float(COLUMNS), dtype=x.dtype)), [1, COLUMNS])


def _empty(x):
    return tf.zeros([0, COLUMNS], x.dtype)


# What f(n, x) makes of the rows of f(n - 1, ...), each a way to hand rows on, or to read them on the way.
LEVELS = {
    "two_children": lambda f, n, x: tf.concat([f(n - 1, x), _row(n, x), f(n - 1, x * 0.9)], 0),
    "left_deep": lambda f, n, x: tf.concat([f(n - 1, x), _rows(x, 15)], 0),
    "right_deep": lambda f, n, x: tf.concat([_rows(x, 15), _empty(x), f(n - 1, x)], 0),
    "sum_read": lambda f, n, x: _with_sum(tf.concat([f(n - 1, x), f(n - 1, x + 0.1)], 0)),
    "shape_read": lambda f, n, x: _with_shape(tf.concat([f(n - 1, x), f(n - 1, x + 0.1)], 0)),
    "element_read": lambda f, n, x: _with_element(tf.concat([f(n - 1, x), f(n - 1, x + 0.1)], 0)),
    "size_read": lambda f, n, x: _with_size(tf.concat([f(n - 1, x), f(n - 1, x + 0.1)], 0)),
    "last_rows_read": lambda f, n, x: _with_next_row(f(n - 1, x)),
    "cut_again": lambda f, n, x: tf.concat(tf.split(tf.concat([f(n - 1, x), f(n - 1, -x)], 0), 2)[::-1], 0),
    "rows_read": lambda f, n, x: _reversed_rows(tf.concat([f(n - 1, x), f(n - 1, x * 0.5)], 0)),
    "chosen": lambda f, n, x: _chosen(n, tf.concat([f(n - 1, x), f(n - 1, x * 0.5)], 0)),
    "collected_in_a_loop": lambda f, n, x: _collected(f(n - 1, x), n, x),
    "middle_axis": lambda f, n, x: tf.concat([f(n - 1, x)[tf.newaxis], f(n - 1, -x)[tf.newaxis]], 1)[0],
}


def _rows(x, count):
    return tf.tile(_row(1, x), [count, 1])


def _with_sum(rows):
    return rows + tf.reduce_mean(rows)


def _with_shape(rows):
    return rows * (1 + tf.cast(tf.shape(rows)[0], rows.dtype) * 1e-3)


def _with_size(rows):
    return tf.concat([rows, tf.fill([1, COLUMNS], tf.cast(tf.size(rows) + tf.rank(rows), rows.dtype) * 1e-4)], 0)


def _with_next_row(rows):
    return tf.concat([rows, tf.tile(rows[-1:] * 0.9 + rows[-2:-1] * 0.1, [9, 1])], 0)


def _with_element(rows):
    return tf.concat([rows, tf.fill([1, COLUMNS], rows[3, 2] + rows[0, 1])], 0)


def _reversed_rows(rows):
    return tf.gather(rows, tf.range(tf.shape(rows)[0] - 1, -1, -1))


def _chosen(n, rows):
    return tf.cond(tf.equal(n % 2, 0), lambda: tf.concat([rows, rows[:1]], 0), lambda: rows)


def _collected(rows, n, x):
    shapes = [tf.TensorShape([]), tf.TensorShape([None, COLUMNS])]
    return tf.while_loop(
        lambda i, _: i < n, lambda i, r: [i + 1, tf.concat([r, _rows(x, 8)], 0)], [0, rows], shape_invariants=shapes
    )[1]


def _define(level, dtype):
    f, define = recursive("Rows", [tf.int32, dtype], [dtype], output_shapes=[[None, COLUMNS]], create_grad_func=True)
    define(lambda n, x: tf.cond(n < 1, lambda: tf.concat([_row(n, x), _row(2, x)], 0), lambda: LEVELS[level](f, n, x)))
    return f


def _results(level, dtype, workers=1, config=None):
    with tf.Graph().as_default():
        f = _define(level, dtype)
        x = tf1.placeholder(dtype, [])
        rows = f(DEPTH, x)
        weights = tf.sin(tf.reshape(tf.cast(tf.range(tf.size(rows)), dtype), tf.shape(rows)))
        (gradient,) = tf.gradients(rows * weights, x)
        fetches = [rows, gradient, *(tf.gradients(gradient, x) if level == "two_children" else [])]
        with tf1.Session(config=config or tfr.session_config(workers=workers, on_fallback="error")) as session:
            return session.run(fetches, {x: 0.3})


@pytest.mark.each_value
@pytest.mark.sampled(12)
@pytest.mark.parametrize("level", LEVELS)
def test_rows_and_their_gradients_are_those_of_copies(monkeypatch, level):
    got = _results(level, "float64")
    for one, other in zip(got, _results(level, "float64", workers=4), strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setenv(SWITCH, "0")
    for one, other in zip(got, _results(level, "float64"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
def test_rows_are_those_of_dynamic_calls():
    want = _results("two_children", "float32", config=tf1.ConfigProto())
    for one, other in zip(_results("two_children", "float32"), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-4)


# Stated shapes of results are checked without reading the numbers.
def test_another_shape_than_stated_is_an_error():
    with tf.Graph().as_default():
        f, define = recursive("Wide", [tf.int32], ["float32"], output_shapes=[[None, COLUMNS]])
        wide = tf1.placeholder_with_default(tf.ones([100, COLUMNS + 1]), None)
        define(lambda n: tf.cond(n < 1, lambda: tf.identity(wide), lambda: tf.concat([f(n - 1)] * 2, 0)))
        y = f(2)
        with tf1.Session(config=tfr.session_config()) as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match="Wide"):
                session.run(y)


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("is_resource", [True, False])
def test_a_variable_that_changes_later_does_not_change_rows(is_resource, is_elsewhere):
    start = np.arange(3000, dtype=np.float32)
    place = "/cpu:1" if is_elsewhere else "/cpu:0"
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        f, define = recursive("Twice", [tf.int32, "float32"], ["float32"], output_shapes=[[None]])
        define(lambda n, x: tf.cond(n < 1, lambda: tf.concat([x, x], 0), lambda: tf.concat([f(n - 1, x), x], 0)))
        with tf.device(place):
            v = tf1.get_variable("v", initializer=start, use_resource=is_resource)
            value = v.read_value() if is_resource else tf.identity(v)
        y = f(2, value)
        with tf.control_dependencies([y]), tf.device(place):
            changed = tf1.assign_add(v, tf.ones([3000]))
        with tf.control_dependencies([changed]):
            later = tf.identity(y)
        config = tfr.session_config(tf1.ConfigProto(device_count={"CPU": 2}), on_fallback="error")
        with tf1.Session(config=config) as session:
            session.run(v.initializer)
            for got in session.run([y, later, changed])[:2]:
                np.testing.assert_array_equal(got, np.tile(start, 4))


# An argument that no call changes is lent to all frames.
def test_a_rope_that_all_calls_read():
    with tf.Graph().as_default():
        table, define_table = recursive("Table", [tf.int32], ["float32"], output_shapes=[[None]])
        define_table(
            lambda n: tf.cond(n < 1, lambda: tf.range(600.0), lambda: tf.concat([table(n - 1), tf.range(600.0)], 0))
        )
        total, define_total = recursive("Total", [tf.int32, "float32"], ["float32"], output_shapes=[[]])
        define_total(lambda i, t: tf.cond(i < 0, lambda: 0.0, lambda: t[i] + tf.gather(t, i) + total(i - 1, t)))
        outer, define_outer = recursive("Outer", [tf.int32], ["float32"], output_shapes=[[]])
        define_outer(lambda n: tf.cond(n < 1, lambda: 0.0, lambda: total(1199, table(1)) + outer(n - 1)))
        y = outer(3)
        with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
            assert session.run(y) == 3 * 2 * 2 * sum(range(600))
