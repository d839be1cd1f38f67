"""Gradients as large as the weight in each call: a warning says why, and what to do, where something can be done."""
# SPDX-License-Identifier: Apache-2.0

import inspect
import warnings

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F32, I32 = tf.float32, tf.int32
SIZE = 64
ROW = tf.TensorSpec([1, SIZE], F32)


def warnings_of_dense_gradients(run):
    """The texts of the warnings of weights that `run` gives."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return list(dict.fromkeys(str(warning.message) for warning in found if "whole gradient" in str(warning.message)))


def variables(size=SIZE):
    """A weight, another one, and a mask, which has no gradient."""
    drawn = np.random.default_rng(1).normal(size=[3, size, size]) / size
    return [tf.Variable(array, dtype=F32, trainable=i < 2) for i, array in enumerate(drawn)]


def tree(use, size=SIZE):
    """A function of a depth, over a tree where `use(x, y, n)` joins what the children return."""

    @tfr.recursive(input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, size], F32))
    def node(n):
        if n < 1:
            return tf.ones([1, size])
        return use(node(n - 1), node(n - 1), n)

    return node


def gradients(function, sources, *args):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(function(*args) ** 2)
    return tape.gradient(y, sources)


@tfr.recursive
def product(x, w):
    return x @ w


ONCE = r"Compute that once where 'node' is called, and pass it to 'node' as an argument\."
# What a node makes of x and y, with two weights and a mask; and how the warning goes on behind "It is used by ".
SLOW = {
    "nonlinear": (lambda x, y, n, w, v, m: (x + y) @ tf.tanh(w), rf"node '.*Tanh' \(Tanh, made in .*\)\. {ONCE}"),
    "masked": (lambda x, y, n, w, v, m: (x + y) @ (m * w), rf"node '.*mul' \(Mul, .*\)\. {ONCE}"),
    "two as one": (
        lambda x, y, n, w, v, m: tf.concat([x, y], 1) @ tf.concat([w, v], 0),
        rf"node '.*concat.*' \(ConcatV2, .*\)\. {ONCE}",
    ),
    "normalized": (lambda x, y, n, w, v, m: x @ (w / tf.norm(w)), rf"node '.*' \(Mul.*\)\. {ONCE}|.*RealDiv.*{ONCE}"),
    "as it is, too": (lambda x, y, n, w, v, m: x @ w + y @ tf.nn.relu(w), rf"node '.*Relu' \(Relu, .*\)\. {ONCE}"),
    "a view": (lambda x, y, n, w, v, m: x @ tf.exp(tf.transpose(w)), rf"node '.*Exp' \(Exp, .*\)\. {ONCE}"),
    "step by step": (
        lambda x, y, n, w, v, m: x @ tf.tanh(tf.transpose(tf.nn.relu(w))),
        rf"node '.*Tanh' \(Tanh, .*\)\. {ONCE}",
    ),
    "in two ways": (
        lambda x, y, n, w, v, m: x @ tf.tanh(w) + y @ tf.exp(w),
        rf"node '.*Tanh' \(Tanh, .*\) and by node '.*Exp' \(Exp, .*\)\. {ONCE}",
    ),
    "in a branch": (
        lambda x, y, n, w, v, m: tf.cond(n > 1, lambda: x @ tf.tanh(w), lambda: y),
        rf"node '.*Tanh' \(Tanh, .*\)\. {ONCE}",
    ),
    "a view is passed": (
        lambda x, y, n, w, v, m: product(x, tf.transpose(w)),
        r"node 'product.*' \(Recursion>Invoke, .*\)\. Pass the weight itself, and let the function that is called take",
    ),
}
# What nothing is known to help against, or what is not slow.
SILENT = {
    "plain": lambda x, y, n, w, v, m: (x + y) @ w,
    "transposed": lambda x, y, n, w, v, m: x @ tf.transpose(w),
    "another one in each call": lambda x, y, n, w, v, m: x @ tf.tanh(w * tf.cast(n, F32)),
    "random": lambda x, y, n, w, v, m: x @ tf.nn.dropout(tf.tanh(w), 0.5),
    "convolution": lambda x, y, n, w, v, m: tf.nn.conv1d(x[None], w[None], 1, "VALID")[0],
    "convolution of what could be moved": lambda x, y, n, w, v, m: tf.nn.conv1d(x[None], tf.tanh(w)[None], 1, "VALID")[0],
    "returned": lambda x, y, n, w, v, m: x + tf.cond(n > 1, lambda: tf.tanh(w), lambda: w)[:1],
    "no gradient": lambda x, y, n, w, v, m: x @ tf.stop_gradient(tf.tanh(w)),
}


@pytest.mark.parametrize("use, text", SLOW.values(), ids=list(SLOW))
def test_warning_says_what_makes_gradients_dense_and_what_to_do(use, text):
    w, v, mask = variables()
    node = tree(lambda x, y, n: use(x, y, n, w, v, mask))
    found = warnings_of_dense_gradients(lambda: gradients(node, [w, v], 3))
    assert len(found) == 1, found
    start = r"Function 'node': each call computes the whole gradient for a weight of shape \(64, 64\), which takes long\. "
    pattern = start + r"It is used by " + f"(?:{text})"
    import re

    assert re.match(pattern, found[0]), found[0]
    assert f"{__file__}:{inspect.getsourcelines(use)[1]}" in found[0].replace("__init__", "") or "made in" in found[0]


@pytest.mark.parametrize("use", SILENT.values(), ids=list(SILENT))
def test_nothing_is_said_where_nothing_helps(use):
    w, v, mask = variables()
    node = tree(lambda x, y, n: use(x, y, n, w, v, mask))
    assert not warnings_of_dense_gradients(lambda: gradients(node, [w, v], 3))
