"""What all calls hand on may have dimensions that only a run tells, as the batches of a Keras model have.

Its gradient is collected as that of a weight whose shape is known.
"""
# SPDX-License-Identifier: Apache-2.0

import pathlib

import numpy as np
import processes
import pytest
import tensorflow as tf
from gradient_helpers import check_derivatives, collected

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, F64 = tf.int32, tf.float64
BATCH, TIMES, SIZE, DEPTH = 2, 5, 8, 3
STATE = [BATCH, SIZE]


def scores(x, xs):
    return tf.nn.softmax(tf.einsum("btd,bd->bt", xs, x))


def places(n, xs):
    """A place for each element of the batch."""
    return (n + tf.range(tf.shape(xs)[0])) % TIMES


def repeat(times, step, x):
    return tf.while_loop(lambda i, _: i < times, lambda i, x: (i + 1, step(x)), [0, x])[1]


# What a net computes of its state x of [BATCH, SIZE] at depth n, with a batch of sequences xs of [BATCH, TIMES, SIZE]
# and a matrix m of [TIMES, SIZE]. Of each: how many gradients are collected, one for each view of these, unless no
# dimension is known.
PROGRAMS = {
    "slice": (1, lambda n, x, xs, m: x * xs[:, n]),
    "slice of another axis": (1, lambda n, x, xs, m: x * tf.reduce_sum(xs[..., n])),
    "slice as a range": (1, lambda n, x, xs, m: x * xs[:, n : n + 1][:, 0]),
    "slice by sizes": (1, lambda n, x, xs, m: x * tf.slice(xs, [0, n, 0], [-1, 1, -1])[:, 0]),
    "slice with a new axis": (1, lambda n, x, xs, m: x * tf.reduce_sum(xs[:, n, tf.newaxis], 1)),
    "range and new axes": (1, lambda n, x, xs, m: x * xs[:, tf.newaxis, n : n + 1][:, 0, 0]),
    "element of the batch": (1, lambda n, x, xs, m: x * xs[n % 2, 1]),
    "gathered": (1, lambda n, x, xs, m: x * tf.gather(xs, n, axis=1)),
    "several gathered": (1, lambda n, x, xs, m: x * tf.reduce_sum(tf.gather(xs, [[n, 1], [n, n]], axis=1), [1, 2])),
    "gathered by the batch": (1, lambda n, x, xs, m: x * tf.gather(xs, places(n, xs), batch_dims=1)),
    "several gathered by the batch": (
        1,
        lambda n, x, xs, m: x * tf.reduce_sum(tf.gather(xs, tf.stack([places(n, xs)] * 3, 1), axis=1, batch_dims=1), 1),
    ),
    "gathered by indices": (
        1,
        lambda n, x, xs, m: x * tf.gather_nd(xs, tf.stack([tf.range(tf.shape(xs)[0]), places(n, xs)], 1)),
    ),
    "gathered by indices of the batch": (
        1,
        lambda n, x, xs, m: x * tf.gather_nd(xs, places(n, xs)[:, tf.newaxis], batch_dims=1),
    ),
    "rows of a matrix": (2, lambda n, x, xs, m: x * m[n] + tf.gather(m, [n, n])),
    "scores": (1, lambda n, x, xs, m: x * tf.reduce_sum(scores(x, xs) ** 2)),
    "attention": (2, lambda n, x, xs, m: tf.einsum("btd,bt->bd", xs, scores(x, xs))),
    "attention by products": (
        2,
        lambda n, x, xs, m: (tf.nn.softmax(tf.matmul(x[:, tf.newaxis], xs, transpose_b=True)) @ xs)[:, 0],
    ),
    "product on the left": (1, lambda n, x, xs, m: x * tf.reduce_sum(xs @ x[..., tf.newaxis])),
    "one row for all": (1, lambda n, x, xs, m: x * tf.reduce_sum(tf.matmul(xs, x[:1, :, tf.newaxis]))),
    "products with a matrix": (1, lambda n, x, xs, m: tf.tanh(tf.matmul(x, m, transpose_b=True)) @ m),
    "batch of products with a matrix": (
        1,
        lambda n, x, xs, m: tf.reshape(tf.matmul(m, x[..., tf.newaxis])[:, :1], [BATCH, 1]) * x,
    ),
    "transposed": (1, lambda n, x, xs, m: x * tf.transpose(xs, [1, 0, 2])[n]),
    "reshaped": (1, lambda n, x, xs, m: x * tf.reshape(xs, [-1, TIMES * SIZE])[:, :SIZE]),
    "scaled": (1, lambda n, x, xs, m: x * (0.5 * xs)[:, n]),
    "both": (2, lambda n, x, xs, m: x * xs[:, n] + m[n]),
    "in a branch": (1, lambda n, x, xs, m: tf.cond(n > 1, lambda: x * xs[:, n], lambda: x + xs[:, 0])),
    "in a loop": (1, lambda n, x, xs, m: repeat(2, lambda x: x * xs[:, n], x)),
    "elements": (0, lambda n, x, xs, m: x * tf.reduce_sum(xs * xs, 1)),
    "unused": (0, lambda n, x, xs, m: tf.sin(x)),
}
# Which dimensions of a batch of sequences are open.
OPEN = {"batch": [None, TIMES, SIZE], "batch and times": [None, None, SIZE], "all": [None, None, None]}


def inputs():
    """The start, a batch of sequences, and a matrix."""
    shapes = [STATE, [BATCH, TIMES, SIZE], [TIMES, SIZE]]
    return [tf.random.stateless_uniform(shape, [1, i], -0.5, 0.5, F64) for i, shape in enumerate(shapes)]


def check(run, name, order, place, shape):
    count, program = PROGRAMS[name]

    def recursive(start, *weights):
        captured = [
            tf1.placeholder_with_default(weight, known[-len(weight.shape) :])
            for weight, known in zip(weights, (OPEN[shape], OPEN[shape]), strict=True)
        ]
        specs = [tf.TensorSpec(weight.shape, F64) for weight in captured]

        @tfr.recursive(
            input_signature=[tf.TensorSpec([], I32), *(specs if place == "argument" else [])],
            output_signature=tf.TensorSpec(STATE, F64),
            autograph=False,
        )
        def net(n, *arguments):
            def step():
                of_call = arguments or captured
                return tf.sin(program(n, net(n - 1, *arguments) + net(n - 2, *arguments), *of_call))

            return tf.ensure_shape(tf.cond(n < 1, lambda: tf.identity(start), step), STATE)

        return net(tf.constant(DEPTH), *(captured if place == "argument" else []))

    def unrolled(start, *weights):
        def net(n):
            return start if n < 1 else tf.sin(program(tf.constant(n), net(n - 1) + net(n - 2), *weights))

        return net(DEPTH)

    check_derivatives(run, inputs, recursive, unrolled, order, None if shape == "all" else count)


@pytest.mark.each_value
@pytest.mark.sampled(6)
@pytest.mark.parametrize("shape", OPEN)
@pytest.mark.parametrize("place", ["captured", "argument"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_function_unrolled(run, name, place, shape):
    check(run, name, 1, place, shape)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(16)
@pytest.mark.parametrize("shape", OPEN)
@pytest.mark.parametrize("place", ["captured", "argument"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_those_of_the_function_unrolled(run, name, place, shape):
    check(run, name, 2, place, shape)


# What a call computes of xs, whatever the sizes of these are, and of a row of SIZE.
OF_ANY_SIZE = {
    "slice": lambda n, row, xs: tf.reduce_sum(xs[:, n : n + 1]),
    "gathered by the batch": lambda n, row, xs: tf.reduce_sum(
        tf.gather(xs, tf.zeros([tf.shape(xs)[0], tf.minimum(tf.shape(xs)[1], 1)], I32), batch_dims=1)
    ),
    "several gathered": lambda n, row, xs: tf.reduce_sum(
        tf.gather(xs, tf.range(tf.minimum(tf.shape(xs)[1], 1)), axis=1)
    ),
    "einsum": lambda n, row, xs: tf.reduce_sum(tf.einsum("btd,d->bt", xs, row) ** 2),
    "product": lambda n, row, xs: tf.reduce_sum((xs @ row[tf.newaxis, :, tf.newaxis]) ** 2),
    "product by repeated rows": lambda n, row, xs: tf.reduce_sum(
        tf.matmul(tf.repeat(row[tf.newaxis, tf.newaxis], tf.shape(xs)[0], 0), xs, transpose_b=True) ** 2
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("sizes", [[0, TIMES], [BATCH, 0], [1, 1], [3, 2]], ids=str)
@pytest.mark.parametrize("use", OF_ANY_SIZE.values(), ids=list(OF_ANY_SIZE))
def test_batches_may_be_empty(run, use, sizes):
    @tfr.recursive
    def net(n, row, xs):
        if n < 1:
            return tf.reduce_sum(row)
        return net(n - 1, row, xs) * 0.5 + use(n - 1, row, xs)

    rng = np.random.default_rng(2)
    values = [rng.normal(size=[SIZE]), rng.normal(size=[*sizes, SIZE])]
    with tf.__internal__.eager_context.eager_mode(), tf.GradientTape() as tape:
        sources = [tf.constant(value) for value in values]
        tape.watch(sources)
        y = tf.reduce_sum(sources[0])
        for n in range(3):
            y = y * 0.5 + use(n, *sources)
        expected = [dx.numpy() for dx in tape.gradient(y, sources)]
    row, xs = tf.constant(values[0]), tf1.placeholder_with_default(values[1], [None, None, SIZE])
    found, without_a_term = run([tf.gradients(net(tf.constant(n), row, xs), [row, xs]) for n in (3, 0)])
    for dx, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(dx, other, rtol=1e-12)
    for dx, other in zip(without_a_term, (np.ones(SIZE), np.zeros([*sizes, SIZE])), strict=True):
        np.testing.assert_array_equal(dx, other)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", [(3, 3), (1, 3), (3, 1)], ids=str)
@pytest.mark.parametrize("axes", [1, 2])
def test_either_factor_may_be_repeated_along_an_open_axis(run, sizes, axes):
    of_weight, of_x = ([size, *([2] * (axes - 1))] for size in sizes)
    rng = np.random.default_rng(3)
    values = rng.normal(size=[*of_weight, 4, SIZE]), rng.normal(size=[*of_x, SIZE, 1])
    weight, x = (tf1.placeholder_with_default(value, [None, *value.shape[1:]]) for value in values)

    @tfr.recursive(output_signature=tf.TensorSpec([None, *of_x[1:], SIZE, 1], F64))
    def net(n, x, weight):
        if n < 1:
            return tf.identity(x)
        return net(n - 1, x, weight) + tf.sin(tf.reduce_sum(weight @ net(n - 1, x, weight), -2, keepdims=True))

    dxs = tf.gradients(tf.reduce_sum(net(tf.constant(2), x, weight) ** 2), [weight, x])
    with tf.__internal__.eager_context.eager_mode(), tf.GradientTape() as tape:
        eager = [tf.constant(value) for value in values]
        tape.watch(eager)
        y = eager[1]
        for _ in range(2):
            y = y + tf.sin(tf.reduce_sum(eager[0] @ y, -2, keepdims=True))
        expected = [dx.numpy() for dx in tape.gradient(tf.reduce_sum(y**2), eager)]
    for found, other in zip(run(dxs), expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-9)
    assert collected(dxs[:1]) == 1


V1_SHAPES = """
import sys
sys.path[:0] = sys.argv[1:]
import tensorflow as tf
tf.compat.v1.disable_v2_behavior()
import tensorflow_recursion as tfr
import test_open_shapes_of_weights as tests

def run(fetches):
    with tf.compat.v1.Session(config=tfr.session_config(on_fallback="error")) as session:
        return session.run(fetches)

for name in tests.PROGRAMS:
    with tf.Graph().as_default():
        tests.check(run, name, 1, "argument", "batch and times")
print("all are right")
"""


@pytest.mark.full_matrix
def test_gradients_where_dimensions_are_objects():
    """As they are where v2 behavior is disabled, for a whole process."""
    here = pathlib.Path(__file__).parent
    done = processes.run_python("-c", V1_SHAPES, str(here), str(here.parent))
    assert done.stdout.splitlines()[-1:] == ["all are right"], done.stderr[-3000:]


@pytest.mark.thorough
@pytest.mark.parametrize("use", [lambda x, w: x @ w, lambda x, w: x + tf.gather(w, [0, 0]) + w[:1, 1:2]])
def test_jacobian_of_calls_with_weights_of_open_shapes(run, use):
    values = [np.random.default_rng(4).normal(size=shape) for shape in ([2, SIZE], [SIZE, SIZE])]

    @tfr.recursive(output_signature=tf.TensorSpec([2, SIZE], F64))
    def net(n, x, w):
        if n < 1:
            return tf.identity(x)
        return tf.sin(use(net(n - 1, x, w), w)) + net(n - 1, x, w)

    def jacobian(net, x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = net(x, w)
        return tape.jacobian(y, w)

    def unrolled(x, w):
        y = x
        for _ in range(2):
            y = tf.sin(use(y, w)) + y
        return y

    with tf.__internal__.eager_context.eager_mode():
        expected = jacobian(unrolled, *map(tf.constant, values)).numpy()
    function = tf.function(lambda x, w: jacobian(lambda x, w: net(tf.constant(2), x, w), x, w))
    x, w = (tf1.placeholder_with_default(value, [None, None]) for value in values)
    np.testing.assert_allclose(run(function(tf.ensure_shape(x, [2, SIZE]), w)), expected, rtol=1e-9, atol=1e-12)
