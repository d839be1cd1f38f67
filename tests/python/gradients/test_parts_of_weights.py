"""Parts of weights that are chosen at run time, in whatever way: `w[k, None]`, `w[..., k]`, `tf.slice(w, [k, 0], ...)`.

Their gradients are collected as rows of the weight, or of a view of it that has the axes in front that are not taken
whole.
"""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf
from gradient_helpers import check_net

F64 = tf.float64
SIZE, DEPTH = 4, 4


def column(part):
    return tf.reshape(part, [SIZE, 1])


def sparse_product(x, k, w, **options):
    """The product of a sparse matrix, which has two entries of x in columns k and 1, with w."""
    places = tf.stack([[0, tf.cast(k % SIZE, tf.int64)], [tf.constant(2, tf.int64), 1]])
    return tf.sparse.sparse_dense_matmul(tf.SparseTensor(places, x[:2, 0], [SIZE, SIZE]), w, **options)


def product_of_many_entries(x, w):
    places = tf.where(tf.ones([SIZE, SIZE], tf.bool))
    return tf.sparse.sparse_dense_matmul(tf.SparseTensor(places, tf.tile(x[:, 0], [SIZE]), [SIZE, SIZE]), w)


# What a net computes of a column x, a place k, which counts from either end, a matrix w and a stack of matrices s. Of
# each: how many gradients are collected.
PROGRAMS = {
    "row and new axis": (1, lambda x, k, w, s: x * tf.transpose(w[k, None])),
    "new axis and row": (1, lambda x, k, w, s: x * tf.transpose(w[None, k])),
    "row and ellipsis": (1, lambda x, k, w, s: x * w[k, ...][:, None]),
    "ellipsis of no axis": (1, lambda x, k, w, s: x * w[k, :, ...][:, None]),
    "column": (1, lambda x, k, w, s: x * w[:, k][:, None]),
    "column by ellipsis": (1, lambda x, k, w, s: x * w[..., k][:, None]),
    "column as a range": (1, lambda x, k, w, s: (lambda i: x * w[:, i : i + 1])(k % SIZE)),
    "column as a range from the end": (1, lambda x, k, w, s: x + tf.reduce_sum(w[:, k - 1 : k], 1, keepdims=True)),
    "column and new axes": (1, lambda x, k, w, s: x * w[None, :, None, k][0]),
    "row as a range": (1, lambda x, k, w, s: x * tf.reduce_sum(w[k : k + 1], 0)[:, None]),
    "row as a range and new axis": (1, lambda x, k, w, s: x * tf.reduce_sum(w[k : k + 1, None], [0, 1])[:, None]),
    "rows up to one": (1, lambda x, k, w, s: x * tf.reduce_sum(w[:k], 0)[:, None]),
    "element": (1, lambda x, k, w, s: x * w[k, -k]),
    "element and new axis": (1, lambda x, k, w, s: x * w[k, None, -k]),
    "part of a row": (1, lambda x, k, w, s: x * tf.reduce_sum(w[k, k : k + 1])),
    "part of a column": (1, lambda x, k, w, s: x * tf.reduce_sum(w[k : k + 2, k])),
    "wide part": (0, lambda x, k, w, s: x + tf.reduce_sum(w[:, k : k + 3], 1, keepdims=True)),
    "part of unknown width": (0, lambda x, k, w, s: x + tf.reduce_sum(w[:, k : 2 * k], 1, keepdims=True)),
    "two ranges": (0, lambda x, k, w, s: x * tf.reduce_sum(w[k : k + 1, k : k + 1])),
    "every other row": (0, lambda x, k, w, s: x * tf.reduce_sum(w[k::2])),
    "matrix": (1, lambda x, k, w, s: s[k % 2, ...] @ x),
    "matrix behind an ellipsis": (1, lambda x, k, w, s: s[..., k % 2, :, :] @ x),
    "middle axis": (1, lambda x, k, w, s: x * tf.reduce_sum(s[:, k], 0)[:, None]),
    "two axes": (1, lambda x, k, w, s: x * s[1, :, k][:, None]),
    "last axis": (1, lambda x, k, w, s: x * tf.reduce_sum(s[..., k], 0)[:, None]),
    "outer axes": (1, lambda x, k, w, s: x * s[k % 2, :, k][:, None]),
    "all axes": (1, lambda x, k, w, s: x * s[k % 2, k, -k]),
    "middle axis as a range": (1, lambda x, k, w, s: x * tf.reduce_sum(s[:, k : k + 1], [0, 1])[:, None]),
    "last axis as a range": (1, lambda x, k, w, s: x * tf.reduce_sum(s[k % 2, :, k : k + 1], 1)[:, None]),
    "sliced row": (1, lambda x, k, w, s: x * tf.transpose(tf.slice(w, [k % SIZE, 0], [1, SIZE]))),
    "sliced row to the end": (1, lambda x, k, w, s: x * tf.transpose(tf.slice(w, [k % SIZE, 0], [1, -1]))),
    "sliced column": (1, lambda x, k, w, s: x * tf.slice(w, [0, k % SIZE], [SIZE, 1])),
    "sliced rows": (1, lambda x, k, w, s: x * tf.reduce_sum(tf.slice(w, [0, 0], [k % SIZE, SIZE]))),
    "sliced product": (1, lambda x, k, w, s: x * tf.reduce_sum(tf.slice(w, [1, 0], [k % 3, -1]) @ x)),
    "sliced twice": (0, lambda x, k, w, s: x * tf.reduce_sum(tf.slice(w, [k % SIZE, k % SIZE], [1, 1]))),
    "gathered columns": (1, lambda x, k, w, s: x * tf.gather(w, [k % SIZE], axis=1)),
    "gathered in the middle": (
        1,
        lambda x, k, w, s: x * tf.reduce_sum(tf.gather(s, [k % SIZE, 1], axis=1), [0, 1])[:, None],
    ),
    "gathered at the end": (1, lambda x, k, w, s: x * tf.reduce_sum(tf.gather(s, k % SIZE, axis=-1), 0)[:, None]),
    "gathered by a matrix": (
        1,
        lambda x, k, w, s: x * tf.reduce_sum(tf.gather(s, [[0, k % SIZE], [1, 1]], axis=1), [0, 1, 2])[:, None],
    ),
    "gathered places": (1, lambda x, k, w, s: x * tf.gather_nd(s, [[k % 2, k % SIZE]])[0, :, None]),
    "masked rows": (1, lambda x, k, w, s: x * tf.reduce_sum(tf.boolean_mask(w, [True, False, True, False]))),
    "sparse product": (1, lambda x, k, w, s: x + tf.reduce_sum(tf.sin(sparse_product(x, k, w)), 1)[:, None]),
    "sparse product transposed": (
        1,
        lambda x, k, w, s: x + tf.reduce_sum(tf.sin(sparse_product(x, k, w, adjoint_a=True)), 1)[:, None],
    ),
    "sparse product of many entries": (1, lambda x, k, w, s: tf.sin(product_of_many_entries(x, w)) @ x),
    "weight transposed in a sparse product": (
        0,
        lambda x, k, w, s: x + tf.reduce_sum(sparse_product(x, k, w, adjoint_b=True)),
    ),
    "ensured shape": (1, lambda x, k, w, s: tf.ensure_shape(w, [SIZE, SIZE]) @ x),
}


def inputs():
    """The start, a matrix and a stack of two matrices."""
    shapes = [[SIZE, 1], [SIZE, SIZE], [2, SIZE, SIZE]]
    return [tf.random.stateless_uniform(shape, [1, i], -0.5, 0.5, F64) for i, shape in enumerate(shapes)]


def check(run, name, order):
    count, program = PROGRAMS[name]
    check_net(run, inputs, lambda n, x, *weights: column(program(x, 1 - n, *weights)), DEPTH, order, count)


@pytest.mark.each_value
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_function_unrolled(run, name):
    check(run, name, 1)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(32)
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_those_of_the_function_unrolled(run, name):
    check(run, name, 2)
