"""Uses of weights whose gradients are collected: factors of products, as they are or transposed, and rows."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import check_net, collected

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, F64, C128 = tf.int32, tf.float64, tf.complex128
SIZE, OTHER, DEPTH = 3, 4, 4


def transposed(x):
    return tf.transpose(x)


# What a net does with a column x, a square matrix w, and two others, u and v. Of each: how many of them have terms.
PROGRAMS = {
    "x w": (1, lambda x, w, u, v: transposed(transposed(x) @ w)),
    "x w transposed": (1, lambda x, w, u, v: transposed(tf.matmul(transposed(x), w, transpose_b=True))),
    "x transposed w": (1, lambda x, w, u, v: transposed(tf.matmul(x, w, transpose_a=True))),
    "x transposed w transposed": (
        1,
        lambda x, w, u, v: transposed(tf.matmul(x, w, transpose_a=True, transpose_b=True)),
    ),
    "w x": (1, lambda x, w, u, v: w @ x),
    "w x transposed": (1, lambda x, w, u, v: tf.matmul(w, transposed(x), transpose_b=True)),
    "w transposed x": (1, lambda x, w, u, v: tf.matmul(w, x, transpose_a=True)),
    "w transposed x transposed": (
        1,
        lambda x, w, u, v: tf.matmul(w, transposed(x), transpose_a=True, transpose_b=True),
    ),
    "vector": (1, lambda x, w, u, v: tf.linalg.matvec(w, x[:, 0])[:, tf.newaxis]),
    "tensordot": (1, lambda x, w, u, v: tf.tensordot(x[:, 0], w, 1)[:, tf.newaxis]),
    "several columns": (1, lambda x, w, u, v: tf.reduce_sum(w @ tf.concat([x, x * x], 1), 1, keepdims=True)),
    "several rows": (1, lambda x, w, u, v: tf.reduce_sum(tf.stack([x[:, 0], x[:, 0] ** 2]) @ w, 0)[:, tf.newaxis]),
    "not square": (2, lambda x, w, u, v: tf.matmul(v, tf.matmul(u, x, transpose_a=True), transpose_a=True)),
    "both sides": (1, lambda x, w, u, v: w @ x + transposed(tf.matmul(x, w, transpose_a=True))),
    "twice": (1, lambda x, w, u, v: w @ tf.sin(w @ x)),
    "with itself": (1, lambda x, w, u, v: tf.matmul(w, w, transpose_a=True) @ x),
    "with another": (2, lambda x, w, u, v: (u @ v) @ x),
    "batch": (1, lambda x, w, u, v: tf.reshape(tf.reshape(x, [1, 1, -1]) @ w, [-1, 1])),
    "batch on the right": (1, lambda x, w, u, v: (w @ tf.stack([x, x * x]))[1]),
    "batch transposed": (1, lambda x, w, u, v: transposed(tf.matmul(tf.stack([x, x * x]), w, transpose_a=True)[1])),
    "weight of a batch transposed": (
        1,
        lambda x, w, u, v: tf.matmul(w, tf.stack([transposed(x)]), transpose_a=True, transpose_b=True)[0],
    ),
    "batch of several": (
        1,
        lambda x, w, u, v: tf.matmul(tf.stack([transposed(x), transposed(x * x)]), w, transpose_b=True)[1, 0, :, None],
    ),
    "row": (1, lambda x, w, u, v: x * w[1][:, tf.newaxis]),
    "row from the end": (1, lambda x, w, u, v: x * w[tf.cast(tf.math.real(x[0, 0]) * 0.0, I32) - 1, :][:, tf.newaxis]),
    "rows and gathered rows": (2, lambda x, w, u, v: x * w[1][:, tf.newaxis] + transposed(tf.gather(w, [2, 2]))[:, :1]),
    "rows of a product": (1, lambda x, w, u, v: transposed(tf.gather(w @ w, [2])) * x),
    "rows of a range": (1, lambda x, w, u, v: transposed(tf.gather(w[1:], [1, 1])[1:]) * x),
    "column": (0, lambda x, w, u, v: x * w[:, 1:2]),
    "every other row": (1, lambda x, w, u, v: x * tf.reduce_sum(w[::2])),
    "elements": (0, lambda x, w, u, v: (w * w) @ x),
    "rows and products": (2, lambda x, w, u, v: (w @ x) * tf.gather(w, [1])[0, 0]),
}
# A batch of products conjugates what it transposes; of complex numbers, its gradients are TensorFlow's.
COMPLEX = {name: program for name, program in PROGRAMS.items() if "batch" not in name}


def inputs(dtype):
    """The start and the matrices."""
    values = np.random.RandomState(1)
    shapes = [[SIZE, 1], [SIZE, SIZE], [SIZE, OTHER], [OTHER, SIZE]]
    parts = [[values.uniform(-0.5, 0.5, shape) for shape in shapes] for _ in range(2)]
    starts = [real + 1j * other if dtype.is_complex else real for real, other in zip(*parts, strict=True)]
    return [tf.constant(start, dtype) for start in starts]


def check(run, name, dtype, order):
    count, program = PROGRAMS[name]
    count = None if dtype.is_complex else count
    check_net(run, lambda: inputs(dtype), lambda n, x, *weights: program(x, *weights), DEPTH, order, count)


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_function_unrolled(run, name):
    check(run, name, F64, 1)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_those_of_the_function_unrolled(run, name):
    check(run, name, F64, 2)


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", COMPLEX)
def test_derivatives_of_complex_numbers_are_those_of_the_function_unrolled(run, name, order):
    check(run, name, C128, order)


@pytest.mark.parametrize(("step", "count"), [(lambda w, x: w @ x, 1), (lambda w, x: (w @ w) @ x, 0)])
def test_terms_are_kept_until_the_last_call_unless_they_are_larger_than_the_weight(step, count):
    weights = tf.constant(np.eye(40))

    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([40, 1], F64), autograph=False
    )
    def net(n):
        return tf.cond(n < 1, lambda: tf.ones([40, 1], F64), lambda: step(weights, net(n - 1)))

    assert collected(tf.gradients(net(tf.constant(3)), [weights])) == count


def test_gradient_for_a_weight_without_columns_is_empty(run):
    w, x = tf.zeros([3, 0], F64), tf.ones([0, 3], F64)

    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32), tf.TensorSpec([None, 3], F64)],
        output_signature=tf.TensorSpec([None, 3], F64),
        autograph=False,
    )
    def net(n, x):
        return tf.cond(n < 1, lambda: x, lambda: net(n - 1, x) + tf.reduce_sum(x[tf.newaxis] @ w))

    assert run(tf.gradients(net(tf.constant(2), x), [w])[0]).shape == (3, 0)


# --- Elements of an array that is passed on -----------------------------------------------------------------------


def sliced(xs, i):
    return xs[i]


def gathered(xs, i):
    return tf.gather(xs, i)


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("element", [sliced, gathered])
@pytest.mark.parametrize("shape", [[None], [6], [None, 2], [None, None]])
def test_gradients_for_elements_of_an_array_are_collected_whatever_its_length(run, shape, element, order):
    values = np.random.RandomState(2).uniform(-1.0, 1.0, [6, 2][: len(shape)])

    @tfr.recursive(
        input_signature=[tf.TensorSpec(shape, F64), tf.TensorSpec([], I32)],
        output_signature=tf.TensorSpec(shape[1:], F64),
        autograph=False,
    )
    def total(xs, i):
        deeper = lambda: element(xs, i) ** 2 + tf.sin(total(xs, i - 1)) * element(xs, i // 2)
        return tf.cond(i < 1, lambda: element(xs, i), deeper)

    def unrolled(xs, i):
        return xs[i] if i < 1 else xs[i] ** 2 + tf.sin(unrolled(xs, i - 1)) * xs[i // 2]

    def derivatives(function, xs):
        dx = tf.convert_to_tensor(tf.gradients(function(xs, 5), xs)[0])
        return dx if order == 1 else tf.convert_to_tensor(tf.gradients(tf.reduce_sum(dx**3), xs)[0])

    with tf.Graph().as_default(), tf1.Session() as session:
        expected = session.run(derivatives(unrolled, tf.constant(values)))
    dx = derivatives(total, tf.constant(values))
    np.testing.assert_allclose(run(dx), expected, rtol=1e-9)
    assert order == 2 or collected([dx]) == 1
