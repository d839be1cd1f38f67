"""Matrices of a stack, which share its memory: values and gradients."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import check_derivatives

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, F64 = tf.int32, tf.float64
COUNT, DEPTH = 3, 4
# Matrices of these many rows and columns of float64 are large enough to be shared. A matrix of the first size lies as
# kernels expect a tensor to lie (8,192 bytes are a multiple of 64), one of the second size does not.
SIZES = [32, 23]

# What a net does with rows x and matrix k of a stack w. Matrices are multiplied with by native kernels or by stock
# ones, in a branch, after other uses, or not at all.
PROGRAMS = {
    "gathered": lambda x, w, k: x @ tf.gather(w, k),
    "picked": lambda x, w, k: x @ w[k],
    "gathered as a stack of one": lambda x, w, k: x @ tf.gather(w, [k])[0],
    "transposed": lambda x, w, k: tf.matmul(x, w[k], transpose_b=True),
    "by many rows": lambda x, w, k: tf.reduce_sum(tf.concat([x, x * x], 0) @ w[k], 0, keepdims=True) + x * 0.1,
    "on the left": lambda x, w, k: tf.transpose(tf.gather(w, k) @ tf.transpose(x)),
    "with a bias": lambda x, w, k: tf.nn.bias_add(x @ w[k], w[0, 0]),
    "used otherwise too": lambda x, w, k: (lambda m: x @ m + m[:1] * 0.1)(w[k]),
    "in a branch": lambda x, w, k: (lambda m: tf.cond(k > 1, lambda: x @ m, lambda: m[:1] * x))(w[k]),
    "returned by a branch": lambda x, w, k: x @ tf.cond(k > 1, lambda: w[k], lambda: tf.gather(w, 0)),
    "several": lambda x, w, k: (lambda both: x @ both[0] @ both[1])(w[k % 2 : k % 2 + 2]),
    "not multiplied": lambda x, w, k: x * tf.reduce_sum(tf.gather(w, k), 0),
}


def of_depth(size, program, w, is_recursive):
    """The net's result. It begins with 10 rows where `program` is to have more than native products take."""
    start = tf.constant(np.random.RandomState(2).uniform(-1.0, 1.0, [10, size]))
    step = lambda x, k: tf.sin(program(x, w, k) / 4) + x / 2
    if not is_recursive:
        x = start
        for n in range(1, DEPTH + 1):
            x = step(x, tf.constant(n % COUNT))
        return x

    @tfr.recursive(input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([10, size], F64))
    def net(n):
        if n < 1:
            return tf.identity(start)
        return step(net(n - 1), n % COUNT)

    return net(tf.constant(DEPTH))


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("is_variable", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_the_function_unrolled(run, name, size, is_variable, order):
    def inputs():
        values = np.random.RandomState(1).uniform(-0.5, 0.5, [COUNT, size, size])
        return [tf1.get_variable("w", initializer=values, use_resource=True) if is_variable else tf.constant(values)]

    of = lambda is_recursive: lambda w: of_depth(size, PROGRAMS[name], w, is_recursive)
    check_derivatives(run, inputs, of(True), of(False), order)
