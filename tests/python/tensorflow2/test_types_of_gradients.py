"""The gradient of a table that bodies gather from: IndexedSlices where the same program without recursion has them."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

ROWS, COLUMNS, DEPTH = 6, 3, 3
IDS = [1, 1, 4]
F64 = tf.float64


@pytest.fixture
def tables():
    """Two tables of the same shape."""
    values = np.sin(np.arange(2.0 * ROWS * COLUMNS)).reshape([2, ROWS, COLUMNS])
    return [tf.Variable(value) for value in values]


def gathered(tables, ids, k):
    return tf.gather(tables[0], ids[k])


def many(tables, ids, k):
    return tf.reduce_sum(tf.nn.embedding_lookup(tables[0], ids[k:]), 0)


def gathered_twice(tables, ids, k):
    return tf.gather(tables[0], ids[k]) * tf.gather(tables[0], ids[k] + 1)


def gathered_by_index(tables, ids, k):
    return tf.gather_nd(tables[0], tf.reshape(ids[k], [1, 1]))[0]


def gathered_by_index_from_value(tables, ids, k):
    return tf.gather_nd(tf.convert_to_tensor(tables[0]), tf.reshape(ids[k], [1, 1]))[0]


def gathered_by_branch(tables, ids, k):
    return tf.cond(ids[k] > 1, lambda: tf.gather(tables[0], ids[k]), lambda: tf.zeros([COLUMNS], F64))


def of_two_tables(tables, ids, k):
    return tf.gather(tables[0], ids[k]) * tf.gather(tables[1], ids[k])


def of_no_ids(tables, ids, k):
    return tf.reduce_sum(tf.gather(tables[0], ids[DEPTH:]), 0)


def also_dense(tables, ids, k):
    return tf.gather(tables[0], ids[k]) * tf.reduce_sum(tables[0])


def of_product(tables, ids, k):
    return tf.gather(2.0 * tables[0], ids[k])


def gathered_at_a_fixed_place_for_a_product(tables, ids, k):
    return (tf.gather(tf.convert_to_tensor(tables[0]), [1]) @ tf.eye(COLUMNS, dtype=F64))[0]


READS = [
    gathered,
    many,
    gathered_twice,
    gathered_by_index,
    gathered_by_index_from_value,
    gathered_by_branch,
    of_two_tables,
    of_no_ids,
    also_dense,
    of_product,
    gathered_at_a_fixed_place_for_a_product,
]


def recursive_loss(read, tables):
    @tfr.recursive
    def states(ids, n):
        if n < 1:
            return tf.zeros([COLUMNS], F64)
        return tf.tanh(read(tables, ids, n - 1) + states(ids, n - 1))

    return lambda ids: tf.reduce_sum(states(ids, tf.constant(DEPTH)) ** 2)


def unrolled_loss(read, tables):
    def loss(ids):
        y = tf.zeros([COLUMNS], F64)
        for k in range(DEPTH):
            y = tf.tanh(read(tables, ids, k) + y)
        return tf.reduce_sum(y**2)

    return loss


def by_tape(loss, tables):
    def slopes(ids):
        with tf.GradientTape() as tape:
            y = loss(ids)
        return tape.gradient(y, tables)

    return slopes


def in_function(loss, tables):
    return tf.function(by_tape(loss, tables))


def around_function(loss, tables):
    return by_tape(tf.function(loss), tables)


def in_function_around_function(loss, tables):
    return tf.function(by_tape(tf.function(loss), tables))


def by_persistent_tape(loss, tables):
    def slopes(ids):
        with tf.GradientTape(persistent=True) as tape:
            y, z = loss(ids), 2.0 * loss(ids)
        tape.gradient(y, tables)
        return tape.gradient(z, tables)

    return slopes


def by_tf_gradients(loss, tables):
    return tf.function(lambda ids: tf.gradients(loss(ids), tables))


def twice(loss, tables):
    first = by_tape(loss, tables)

    def slopes(ids):
        with tf.GradientTape() as tape:
            y = sum(tf.reduce_sum(tf.convert_to_tensor(slope) ** 2) for slope in first(ids) if slope is not None)
        return tape.gradient(y, tables)

    return slopes


def twice_in_function(loss, tables):
    return tf.function(twice(loss, tables))


def with_rows_beside(loss, tables):
    return in_function(lambda ids: loss(ids) + tf.reduce_sum(tf.gather(tables[0], [0, 5])), tables)


def in_branch(loss, tables):
    return in_function(lambda ids: tf.cond(ids[0] > 0, lambda: loss(ids), lambda: tf.zeros([], F64)), tables)


def in_loop(loss, tables):
    def sum_of_two(ids):
        start = tf.constant(0), tf.zeros([], F64)
        return tf.while_loop(lambda k, y: k < 2, lambda k, y: (k + 1, y + loss(ids)), start)[1]

    return in_function(sum_of_two, tables)


def jacobians(loss, tables):
    def matrices(ids):
        with tf.GradientTape() as tape:
            y = tf.stack([loss(ids), loss(ids[::-1])])
        return tape.jacobian(y, tables)

    return tf.function(matrices)


WAYS = [
    around_function,
    in_function_around_function,
    by_persistent_tape,
    by_tf_gradients,
    twice,
    twice_in_function,
    with_rows_beside,
    in_branch,
    in_loop,
    jacobians,
]


def check_as_stock(found, stock):
    """Gradients have the types that stock TensorFlow's have, and the values."""
    for slope, other in zip(found, stock, strict=True):
        assert type(slope) is type(other)
        if slope is not None:
            np.testing.assert_allclose(tf.convert_to_tensor(slope), tf.convert_to_tensor(other), rtol=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", [by_tape, in_function])
@pytest.mark.parametrize("read", READS)
def test_gradient_is_of_the_type_that_reads_have_without_recursion(read, way, tables):
    ids = tf.constant(IDS)
    stock = in_function(unrolled_loss(read, tables), tables)(ids)
    check_as_stock(way(recursive_loss(read, tables), tables)(ids), stock)


@pytest.mark.thorough
@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
def test_gradient_of_gathered_table_is_of_the_type_that_it_has_without_recursion(way, tables):
    ids = tf.constant(IDS)
    stock = way(unrolled_loss(gathered, tables), tables)(ids)
    check_as_stock(way(recursive_loss(gathered, tables), tables)(ids), stock)
    is_dense = way in (in_loop, jacobians)
    assert isinstance(stock[0], tf.Tensor if is_dense else tf.IndexedSlices)


def of_argument(tables):
    @tfr.recursive
    def states(table, ids, n):
        if n < 1:
            return tf.zeros([COLUMNS], F64)
        return tf.tanh(tf.gather(table, ids[n - 1]) + states(table, ids, n - 1))

    return lambda ids: tf.reduce_sum(states(tables[0].read_value(), ids, tf.constant(DEPTH)) ** 2)


def of_two_functions(tables):
    @tfr.recursive
    def even(ids, n):
        if n < 1:
            return tf.zeros([COLUMNS], F64)
        return tf.tanh(tf.gather(tables[0], ids[n - 1]) + odd(ids, n - 1))

    @tfr.recursive
    def odd(ids, n):
        if n < 1:
            return tf.zeros([COLUMNS], F64)
        return tf.tanh(tf.gather(tables[0], ids[n - 1]) + even(ids, n - 1))

    return lambda ids: tf.reduce_sum(even(ids, tf.constant(DEPTH)) ** 2)


def of_pinned_body(tables):
    def read(tables, ids, k):
        with tf.device("/cpu:0"):
            return tf.gather(tables[0], ids[k])

    return recursive_loss(read, tables)


def of_defun(tables):
    specs = [tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)]

    @tf.function
    def loss(ids):
        declared = tfr.Declare("States", [("ids", tf.int32), ("n", tf.int32)], [("y", F64)], output_shapes=[[COLUMNS]])

        @tfr.Defun(*specs, func_name="States", out_names=["y"], output_shapes=[[COLUMNS]])
        def states(ids, n):
            def deeper():
                return tf.tanh(tf.gather(tables[0], ids[n - 1]) + declared(ids, n - 1))

            return tf.cond(n < 1, lambda: tf.zeros([COLUMNS], F64), deeper)

        return tf.reduce_sum(states(ids, tf.constant(DEPTH)) ** 2)

    return loss


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [of_argument, of_two_functions, of_pinned_body, of_defun])
def test_gradient_of_gathered_table_is_slices_however_functions_get_it(make, tables, static_or_error):
    ids = tf.constant(IDS)
    stock = in_function(unrolled_loss(gathered, tables), tables)(ids)
    for way in (by_tape, in_function):
        check_as_stock(way(make(tables), tables)(ids), stock)
    assert isinstance(stock[0], tf.IndexedSlices)


def test_gradient_that_a_body_takes_is_dense_in_all_of_its_traces(tables):
    types = set()
    slopes = by_tape(recursive_loss(gathered, tables), tables)

    def read(tables, ids, k):
        types.add(type(slopes(ids)[0]))
        return tf.gather(tables[1], ids[k])

    in_function(recursive_loss(read, tables), tables)(tf.constant(IDS))
    types.discard(type(None))  # while it is found out what the body returns
    assert types and all(issubclass(found, tf.Tensor) for found in types)


def test_rows_are_only_those_that_were_gathered(tables):
    large = tf.Variable(tf.zeros([100_000, COLUMNS], F64))
    loss = recursive_loss(lambda tables, ids, k: tf.gather(large, ids[k]) + 1.0, tables)
    [slope] = by_tape(loss, [large])(tf.constant(IDS))
    assert slope.values.shape == [DEPTH, COLUMNS]
    np.testing.assert_array_equal(np.sort(slope.indices), np.sort(IDS))
    np.testing.assert_array_equal(slope.dense_shape, large.shape)
