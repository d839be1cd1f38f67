"""Stacks of matrices, of which a call uses one, `x @ w[k]`, or all, `xs @ w`; and small views, a column for example."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import check_net

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, F64 = tf.int32, tf.float64
SIZE, COUNT, DEPTH = 3, 4, 4


def place(n, count=COUNT):
    return n % count


def batch(x):
    """As many different rows as there are matrices."""
    return tf.stack([x, x * x, tf.sin(x), x / 2])


# What a net does at depth n with a row x, a stack w of square matrices, and a wide matrix v. Of each: how many
# gradients are collected for w and v.
PROGRAMS = {
    "picked": (1, lambda n, x, w, v: x @ w[place(n)]),
    "picked from the end": (1, lambda n, x, w, v: x @ w[-1 - place(n)]),
    "picked at one place": (1, lambda n, x, w, v: x @ w[2]),
    "gathered": (1, lambda n, x, w, v: x @ tf.gather(w, place(n))),
    "picked of the transpose": (1, lambda n, x, w, v: x @ tf.transpose(w, [0, 2, 1])[place(n)]),
    "on the left": (1, lambda n, x, w, v: tf.transpose(w[place(n)] @ tf.transpose(x))),
    "transposed": (1, lambda n, x, w, v: tf.matmul(x, w[place(n)], transpose_b=True)),
    "picked twice": (2, lambda n, x, w, v: tf.sin(x @ w[place(n)]) @ w[0]),
    "two products": (1, lambda n, x, w, v: (lambda m: tf.sin(x @ m) @ m)(w[place(n)])),
    "several rows": (1, lambda n, x, w, v: tf.reduce_sum(tf.concat([x, x * x], 0) @ w[place(n)], 0, keepdims=True)),
    "picked and used otherwise": (1, lambda n, x, w, v: (lambda m: x @ m + m[:1])(w[place(n)])),
    "gathered and used otherwise": (1, lambda n, x, w, v: (lambda m: x @ m + m[:1])(tf.gather(w, place(n)))),
    "picked outside of a branch": (
        1,
        lambda n, x, w, v: (lambda m: tf.cond(n > 2, lambda: x @ m, lambda: m[:1] * x))(w[place(n)]),
    ),
    "returned by a branch": (1, lambda n, x, w, v: x @ tf.cond(n > 2, lambda: w[place(n)], lambda: w[0])),
    "several picked": (1, lambda n, x, w, v: x @ tf.reduce_sum(tf.gather(w, [place(n), 0]), 0)),
    "all": (1, lambda n, x, w, v: tf.reduce_sum(batch(x) @ w, 0)),
    "all, of one row": (1, lambda n, x, w, v: tf.reduce_sum(x @ w, 0)),
    "all, of one row in a batch": (1, lambda n, x, w, v: tf.reduce_sum(x[tf.newaxis] @ w, 0)),
    "all transposed": (1, lambda n, x, w, v: tf.reduce_sum(tf.matmul(batch(x), w, transpose_b=True), 0)),
    "all on the left": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.transpose(tf.matmul(w, batch(x), transpose_b=True), [0, 2, 1]), 0),
    ),
    "all transposed on the left": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.matmul(w, tf.transpose(batch(x), [0, 2, 1]), transpose_a=True), [0, 2])[
            tf.newaxis
        ],
    ),
    "all, of several rows": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.concat([batch(x), batch(x * x)], 1) @ w, [0, 1])[tf.newaxis],
    ),
    "all, of batches of batches": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.stack([batch(x), batch(x * x)]) @ w, [0, 1]),
    ),
    "batches repeated for all": (
        1,
        lambda n, x, w, v: tf.reduce_sum(batch(x)[:2, tf.newaxis] @ tf.reshape(w, [1, 4, 3, 3]), [0, 1]),
    ),
    "matrices repeated": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.stack([batch(x), batch(x * x)], 1) @ w[:, tf.newaxis], [0, 1]),
    ),
    "batches of one": (1, lambda n, x, w, v: tf.reduce_sum(batch(x)[tf.newaxis] @ w[tf.newaxis], [0, 1])),
    "stack of one repeated": (1, lambda n, x, w, v: tf.reduce_sum(x @ w[tf.newaxis], [0, 1])),
    "stack of stacks": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.reshape(batch(x), [2, 2, 1, 3]) @ tf.reshape(w, [2, 2, 3, 3]), [0, 1]),
    ),
    "all vectors": (1, lambda n, x, w, v: tf.reduce_sum(tf.linalg.matvec(w, batch(x)[:, 0]), 0)[tf.newaxis]),
    "sum by axes": (1, lambda n, x, w, v: tf.einsum("kbi,kij->bj", batch(x), w)),
    "all by axes": (1, lambda n, x, w, v: tf.reduce_sum(tf.einsum("kbi,kij->kbj", batch(x), w), 0)),
    "all by axes in another order": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.einsum("bik,kji->bkj", tf.transpose(batch(x), [1, 2, 0]), w), 1),
    ),
    "all by last axes": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.einsum("ijk,ki->kj", tf.transpose(w, [2, 1, 0]), batch(x)[:, 0]), 0)[
            tf.newaxis
        ],
    ),
    "all by axes, of one row each": (
        1,
        lambda n, x, w, v: tf.einsum("ki,kij->jk", batch(x)[:, 0], w)[tf.newaxis, :, 1],
    ),
    "sum by axes without a name": (
        1,
        lambda n, x, w, v: tf.reduce_sum(
            tf.einsum("...ki,kij->...j", tf.transpose(batch(x), [1, 0, 2])[tf.newaxis], w), 0
        ),
    ),
    "all by axes without a name": (
        1,
        lambda n, x, w, v: tf.reduce_sum(tf.einsum("k...i,kij->...kj", tf.stack([batch(x), batch(x)], 1), w), [0, 2]),
    ),
    "weight with axes without a name": (0, lambda n, x, w, v: tf.reduce_sum(tf.einsum("bi,...ij->...bj", x, w), 0)),
    "all and picked": (2, lambda n, x, w, v: tf.reduce_sum(batch(x) @ w, 0) @ w[place(n)]),
    "all and elements": (0, lambda n, x, w, v: tf.reduce_sum(batch(x) @ w, 0) * tf.reduce_sum(w * w)),
    "vectors": (1, lambda n, x, w, v: tf.reduce_sum(tf.einsum("ki,ki->ki", batch(x)[:, 0], w[:, 0]), 0)[tf.newaxis]),
    "column": (1, lambda n, x, w, v: x * tf.reduce_sum(v[:, 1:2])),
    "row of it": (1, lambda n, x, w, v: x * v[:, 2]),
    "sums": (1, lambda n, x, w, v: x * tf.reduce_mean(v, 1)),
    "diagonal": (1, lambda n, x, w, v: x * tf.linalg.diag_part(v)),
    "column that is returned": (1, lambda n, x, w, v: x + tf.cond(n > 2, lambda: v[:, 2], lambda: v[:, 1] * 2.0)),
    "column twice": (1, lambda n, x, w, v: x * v[:, 2] + tf.sin(v[:, 2])),
}


def inputs():
    """The start and the weights."""
    values = np.random.RandomState(1)
    return [
        tf.constant(values.uniform(-0.5, 0.5, shape)) for shape in ([1, SIZE], [COUNT, SIZE, SIZE], [SIZE, 5 * SIZE])
    ]


def check(run, name, order):
    count, program = PROGRAMS[name]
    check_net(run, inputs, program, DEPTH, order, count)


@pytest.mark.each_value
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_function_unrolled(run, name):
    check(run, name, 1)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(32)
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_those_of_the_function_unrolled(run, name):
    check(run, name, 2)


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("pick", [lambda w, n: w[n], tf.gather])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, F64])
def test_numbers_of_matrices_survive_in_every_dtype(run, dtype, pick):
    """Of sixteen bits, a number would be rounded: such gradients are made of those for matrices."""
    w = tf.cast(tf.reshape(tf.range(60 * 4) % 7, [60, 2, 2]), dtype) / 8
    start = tf.ones([1, 2], dtype)

    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, 2], dtype), autograph=False
    )
    def net(n):
        return tf.cond(n < 1, lambda: start, lambda: net(n - 1) @ pick(w, n) / 2)

    right = start
    for n in range(1, 60):
        right = right @ w[n] / 2
    grads = [tf.convert_to_tensor(tf.gradients(y, w)[0]) for y in (net(tf.constant(59)), right)]
    grad, expected = run([tf.cast(grad, F64) for grad in grads])
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True) + 1e-30
    np.testing.assert_allclose(grad / scale, expected / scale, atol=0.1 if dtype.size == 2 else 1e-4)


def test_gradients_for_a_stack_of_many_matrices_are_made_of_those_for_single_ones(run):
    w = tf.constant(np.full([100, 2, 2], 0.5))

    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, 2], F64), autograph=False
    )
    def net(n):
        return tf.cond(n < 1, lambda: tf.ones([1, 2], F64), lambda: net(n - 1) @ tf.gather(w, n))

    grad = tf.gradients(net(tf.constant(3)), w)[0]
    assert isinstance(grad, tf.IndexedSlices)
    values, indices = run([grad.values, grad.indices])
    np.testing.assert_allclose(values, np.ones([3, 2, 2]))
    assert sorted(indices) == [1, 2, 3]
