"""Views of weights: what a body makes of a weight alone, and then uses; their gradients are collected, too."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import check_derivatives

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F32, F64, I32 = tf.float32, tf.float64, tf.int32
SIZE, DEPTH = 3, 3
ONES = np.ones([SIZE, SIZE])
transposed = tf.transpose


@dataclasses.dataclass
class Program:
    """What a net computes of itself and weights.

    Attributes:
      shapes: of the weights.
      count: how many parts of gradients are collected.
      step: a column, from the net, which takes an int, the depth, and the weights.
    """

    shapes: list[list[int]]
    count: int
    step: Callable[..., Any]


def in_all_ways(view):
    """A step that multiplies with a view of a weight, from both sides, and reads its rows."""

    def step(net, n, weight):
        x = net(n - 1)
        row = tf.gather(view(weight), [n % SIZE])
        return view(weight) @ x + transposed(transposed(x) @ view(weight)) + transposed(row) * x

    return step


# Views that are matrices with SIZE rows and columns, and the shape of the weight.
VIEWS = {
    "transpose": ([SIZE, SIZE], transposed),
    "transpose of more axes": ([2, SIZE, SIZE], lambda w: transposed(w, [0, 2, 1])[1]),
    "columns": ([SIZE, 5], lambda w: w[:, 1:4]),
    "rows": ([5, SIZE], lambda w: w[1:4]),
    "every other row backwards": ([5, SIZE], lambda w: w[::-2]),
    "new axis": ([SIZE, SIZE], lambda w: tf.squeeze(w[:, tf.newaxis], 1)),
    "ellipsis": ([SIZE, SIZE, 2], lambda w: w[..., 1]),
    "slice": ([5, 5], lambda w: tf.slice(w, [1, 2], [SIZE, SIZE])),
    "split": ([SIZE, 2 * SIZE], lambda w: tf.split(w, 2, 1)[1]),
    "split in parts of other sizes": ([SIZE, 6], lambda w: tf.split(w, [2, 3, 1], 1)[1]),
    "unstack": ([2, SIZE, SIZE], lambda w: tf.unstack(w)[1]),
    "reshape": ([SIZE * SIZE], lambda w: tf.reshape(w, [SIZE, -1])),
    "expand dims": ([SIZE, SIZE], lambda w: tf.expand_dims(w, 0)[0]),
    "squeeze": ([1, SIZE, 1, SIZE], tf.squeeze),
    "reverse": ([SIZE, SIZE], lambda w: tf.reverse(w, [1])),
    "roll": ([SIZE, SIZE], lambda w: tf.roll(w, [1, 2], [0, 1])),
    "negative": ([SIZE, SIZE], lambda w: -w),
    "quotient": ([SIZE, SIZE], lambda w: w / 3.0),
    "product": ([SIZE, SIZE], lambda w: w * 0.5),
    "product with a mask": ([SIZE, SIZE], lambda w: np.tril(ONES) * w),
    "product that is broadcast": ([SIZE, 1], lambda w: w * ONES),
    "sum": ([SIZE, SIZE], lambda w: w + 0.5),
    "sum that is broadcast": ([SIZE], lambda w: ONES + w),
    "difference": ([SIZE, SIZE], lambda w: w - 0.5),
    "difference to a constant": ([SIZE, 1], lambda w: ONES - w),
    "reduced sum": ([SIZE, 2, SIZE], lambda w: tf.reduce_sum(w, 1)),
    "reduced mean": ([2, SIZE, SIZE, 2], lambda w: tf.reduce_mean(w, [0, -1])),
    "pad": ([2, 2], lambda w: tf.pad(w, [[1, 0], [0, 1]])),
    "pad with a number": ([2, 2], lambda w: tf.pad(w, [[0, 1], [1, 0]], constant_values=0.7)),
    "tile": ([1, SIZE], lambda w: tf.tile(w, [SIZE, 1])),
    "broadcast": ([SIZE], lambda w: tf.broadcast_to(w, [SIZE, SIZE])),
    "band": ([SIZE, SIZE], lambda w: tf.linalg.band_part(w, -1, 0)),
    "concat in front": ([2, SIZE], lambda w: tf.concat([w, 0.2 * ONES[:1]], 0)),
    "concat in the middle": ([SIZE, 1], lambda w: tf.concat([ONES[:, :1], w, 0.2 * ONES[:, :1]], 1)),
    "stack": ([SIZE], lambda w: tf.stack([0.2 * ONES[0], w, ONES[0]])),
    "gathered columns": ([SIZE, 5], lambda w: tf.gather(w, [4, 0, 0], axis=1)),
    "gathered in batches": ([SIZE, 4], lambda w: tf.gather(w, [[2, 0, 1], [0, 0, 1], [1, 3, 1]], axis=1, batch_dims=1)),
    "there and back": ([SIZE, SIZE], lambda w: transposed(transposed(w))),
    "views of views": ([SIZE, 4 * SIZE], lambda w: -transposed(tf.split(w, 2, 1)[1][:, 2:5] * 0.5)),
}

# Views that are none for us, whose gradients are computed where they arise.
NO_VIEWS = {
    "function": ([SIZE, SIZE], tf.tanh),
    "with itself": ([SIZE, SIZE], lambda w: w + transposed(w)),
    "parts that are added up": ([SIZE, 2 * SIZE], lambda w: tf.add_n(tf.split(w, 2, 1))),
    "mirrored": ([2, 2], lambda w: tf.pad(w, [[1, 0], [0, 1]], "REFLECT")),
    "diagonal": ([SIZE], tf.linalg.diag),
}


def made_outside_of_branches(net, n, weight):
    x, view = net(n - 1), transposed(weight)
    return tf.cond(tf.convert_to_tensor(n) > 1, lambda: view @ x, lambda: x * transposed(tf.gather(view, [1])))


def made_in_branches(net, n, weight):
    x = net(n - 1)
    return tf.cond(tf.convert_to_tensor(n) > 1, lambda: transposed(weight) @ x, lambda: 0.5 * weight @ x)


def made_in_branches_of_a_switch(net, n, weight):
    x, view = net(n - 1), transposed(weight)
    return tf.switch_case(tf.convert_to_tensor(n % 3), [lambda: view @ x, lambda: weight[::-1] @ x, lambda: x])


def made_outside_of_branches_in_branches(net, n, weight):
    x, view, n = net(n - 1), transposed(weight), tf.convert_to_tensor(n)
    inner = lambda: tf.cond(n > 2, lambda: view @ x, lambda: transposed(view)[::-1] @ x)
    return tf.cond(n > 1, inner, lambda: x)


def repeat(x, step):
    return tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, step(i, x)), [0, x])[1]


def made_outside_of_loops(net, n, weight):
    view = transposed(weight)
    return repeat(net(n - 1), lambda i, x: tf.sin(view @ x))


def made_in_loops(net, n, weight):
    return repeat(net(n - 1), lambda i, x: tf.sin(transposed(weight) @ x) + transposed(tf.gather(-weight, [i])))


def carried_by_loops(net, n, weight):
    step = lambda i, x, view: (i + 1, tf.sin(view @ x), tf.identity(view))
    _, x, view = tf.while_loop(lambda i, *_: i < 2, step, [0, net(n - 1), transposed(weight)])
    return view @ x


def with_calls_in_loops(net, n, weight):
    view = transposed(weight)
    return repeat(tf.zeros([SIZE, 1], F64), lambda i, x: x + view @ net(n - 1) * tf.cast(i, F64))


def chosen_by_branches(net, n, weight):
    return tf.cond(tf.convert_to_tensor(n) > 1, lambda: transposed(weight), lambda: weight) @ net(n - 1)


def changed_by_loops(net, n, weight):
    step = lambda i, x, view: (i + 1, tf.sin(view @ x), transposed(view))
    return tf.while_loop(lambda i, *_: i < 2, step, [0, net(n - 1), transposed(weight)])[1]


def in_functions(net, n, weight):
    step = tf.function(lambda x: tf.sin(transposed(weight) @ x))
    return step(net(n - 1)) + transposed(weight) @ net(n - 2)


def given_to_functions(net, n, weight):
    step = tf.function(lambda x, view: tf.sin(view @ x))
    return step(net(n - 1), transposed(weight))


def gates(net, n, weight, bias):
    """An LSTM's cell, whose matrix holds those of four gates."""
    x = transposed(net(n - 1))
    i, f, g, o = (x @ weight[:, k * SIZE : (k + 1) * SIZE] + bias[k] for k in range(4))
    return transposed(tf.sigmoid(o) * tf.tanh(tf.sigmoid(f) * x + tf.sigmoid(i) * tf.tanh(g)))


def some_gates(net, n, weight):
    x = transposed(net(n - 1))
    i, _, g, _ = tf.split(weight, 4, 1)
    return transposed(tf.sigmoid(x @ i) * tf.tanh(x @ g))


def tied(net, n, table):
    """The table of what is read is also that of what is said."""
    logits = tf.matmul(transposed(net(n - 1)), table, transpose_b=True)
    other = transposed(net(n - 2)) @ transposed(table)
    return transposed(tf.gather(table, [n])) * tf.reduce_sum(tf.sin(logits + other))


def heads(net, n, query, output):
    """Weights with an axis for the heads, as in Keras's attention."""
    x = tf.concat([transposed(net(n - 1)), transposed(net(n - 2))], 0)[tf.newaxis]
    states = tf.sin(tf.einsum("abc,cde->abde", x, query))
    return transposed(tf.einsum("abde,dec->abc", states, output)[0, :1])


PROGRAMS = {
    **{name: Program([shape], 2, in_all_ways(view)) for name, (shape, view) in VIEWS.items()},
    **{name: Program([shape], 0, in_all_ways(view)) for name, (shape, view) in NO_VIEWS.items()},
    "made outside of branches": Program([[SIZE, SIZE]], 2, made_outside_of_branches),
    "made in branches": Program([[SIZE, SIZE]], 2, made_in_branches),
    "made in branches of a switch": Program([[SIZE, SIZE]], 2, made_in_branches_of_a_switch),
    "made outside of branches in branches": Program([[SIZE, SIZE]], 2, made_outside_of_branches_in_branches),
    "made outside of loops": Program([[SIZE, SIZE]], 1, made_outside_of_loops),
    "made in loops": Program([[SIZE, SIZE]], 2, made_in_loops),
    "carried by loops": Program([[SIZE, SIZE]], 1, carried_by_loops),
    "with calls in loops": Program([[SIZE, SIZE]], 1, with_calls_in_loops),
    "chosen by branches": Program([[SIZE, SIZE]], 0, chosen_by_branches),
    "changed by loops": Program([[SIZE, SIZE]], 0, changed_by_loops),
    "in functions": Program([[SIZE, SIZE]], 1, in_functions),
    "given to functions": Program([[SIZE, SIZE]], 0, given_to_functions),
    "gates": Program([[SIZE, 4 * SIZE], [4, SIZE]], 5, gates),
    "some gates": Program([[SIZE, 4 * SIZE]], 2, some_gates),
    "tied": Program([[DEPTH + 1, SIZE]], 3, tied),
    "heads": Program([[SIZE, 2, 2], [2, 2, SIZE]], 2, heads),
}


def variables(shapes):
    values = np.random.RandomState(1)
    starts = [values.uniform(-0.5, 0.5, shape) for shape in shapes]
    return [tf1.get_variable(f"w{i}", initializer=start, use_resource=True) for i, start in enumerate(starts)]


def recursive(step, weights):
    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([SIZE, 1], F64), autograph=False
    )
    def net(n):
        return tf.cond(n < 1, lambda: tf.ones([SIZE, 1], F64), lambda: tf.sin(step(net, n, *weights)))

    return net(tf.constant(DEPTH))


def unrolled(step, weights):
    def net(n):
        return tf.ones([SIZE, 1], F64) if n < 1 else tf.sin(step(net, n, *weights))

    return net(DEPTH)


def check(run, name, order):
    program = PROGRAMS[name]

    of = lambda make: lambda *weights: make(program.step, weights)
    check_derivatives(run, lambda: variables(program.shapes), of(recursive), of(unrolled), order, program.count)


@pytest.mark.each_value
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_function_unrolled(run, name):
    check(run, name, 1)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(64)
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_those_of_the_function_unrolled(run, name):
    check(run, name, 2)


# What calls multiply or gather with a weight in two bytes, and the weight's shape.
IN_TWO_BYTES = {
    "rows": ([3, 2], lambda w: tf.gather(w, [1])),
    "rows that are sliced": ([3, 2], lambda w: w[1:2]),
    "product": ([2, 2], lambda w: tf.ones([1, 2], w.dtype) @ w),
    "product with the transposed": ([2, 2], lambda w: tf.ones([1, 2], w.dtype) @ transposed(w * 0.5)),
    "batch of products": ([3, 2, 2], lambda w: tf.reduce_sum(tf.matmul(tf.ones([3, 1, 2], w.dtype), w), 0)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", IN_TWO_BYTES)
def test_gradients_of_views_in_two_bytes_are_added_up_in_four(run, name, dtype):
    """As without recursion, where each use casts the gradient back before they are added."""
    shape, use = IN_TWO_BYTES[name]
    weight = tf.ones(shape)
    calls, scale = 700, 128.0  # a sum of 700 ones is 256 in bfloat16; one of 128 each is more than float16 holds

    @tfr.recursive(
        input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, 2], F32), autograph=False
    )
    def net(n):
        one = lambda: scale * tf.cast(use(tf.cast(weight, dtype)), F32)
        return tf.cond(n < 1, lambda: tf.zeros([1, 2]), lambda: net(n - 1) + one())

    once = scale * tf.cast(use(tf.cast(weight, dtype)), F32)
    grads = [tf.convert_to_tensor(tf.gradients(y, weight)[0]) for y in (net(tf.constant(calls)), once)]
    grad, of_one_call = run(grads)
    np.testing.assert_allclose(grad, calls * of_one_call, rtol=1e-6)
