"""Gradients as large as the weight in each call: a warning says why, and what to do, where something can be done."""
# SPDX-License-Identifier: Apache-2.0

import re
import sys
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


def unrolled(use, n):
    """The same with Python's recursion, in eager mode."""
    if n < 1:
        return tf.ones([1, SIZE])
    return use(unrolled(use, n - 1), unrolled(use, n - 1), tf.constant(n))


def assert_same(found, expected):
    for gradient, other in zip(found, expected, strict=True):
        assert (gradient is None) == (other is None)
        if gradient is not None:
            np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-6)


def gradients(function, sources, *args):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(function(*args) ** 2)
    return tape.gradient(y, sources)


@tfr.recursive
def product(x, w):
    return x @ w


ONCE = r"Compute that once outside of the recursion, and pass it to 'node' as an argument\."
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
        r"node '.*product.*' \(Recursion>Invoke, .*\)\. Pass the weight itself, and let the function that is called .*",
    ),
}
# What nothing is known to help against, or what is not slow.
SILENT = {
    "plain": lambda x, y, n, w, v, m: (x + y) @ w,
    "transposed": lambda x, y, n, w, v, m: x @ tf.transpose(w),
    "another one in each call": lambda x, y, n, w, v, m: x @ tf.tanh(w * tf.cast(n, F32)),
    "random": lambda x, y, n, w, v, m: x @ tf.nn.dropout(tf.tanh(w), 0.5),
    "convolution": lambda x, y, n, w, v, m: tf.nn.conv1d(x[None], w[None], 1, "VALID")[0],
    "convolution of what could be moved": lambda x, y, n, w, v, m: tf.nn.conv1d(x[None], tf.tanh(w)[None], 1, "VALID")[
        0
    ],
    "returned": lambda x, y, n, w, v, m: x + tf.cond(n > 1, lambda: tf.tanh(w), lambda: w)[:1],
    "no gradient": lambda x, y, n, w, v, m: x @ w + y @ tf.stop_gradient(tf.tanh(w)),
    "compared": lambda x, y, n, w, v, m: tf.where(tf.norm(w) > 1.0, x @ w, y),
}


# Programs that compute once what the warning says.
BETTER = {
    "nonlinear": (lambda w, v, m: tf.tanh(w), lambda x, y, made: (x + y) @ made),
    "masked": (lambda w, v, m: m * w, lambda x, y, made: (x + y) @ made),
    "two as one": (lambda w, v, m: tf.concat([w, v], 0), lambda x, y, made: tf.concat([x, y], 1) @ made),
}


def check(use):
    """Check the gradients, and return the warnings."""
    w, v, mask = variables()

    def of_tree(x, y, n):
        return use(x, y, n, w, v, mask)

    found = []
    texts = warnings_of_dense_gradients(lambda: found.extend(gradients(tree(of_tree), [w, v], 3)))
    if use is not SILENT["random"]:
        expected = gradients(lambda: unrolled(of_tree, 3), [w, v])
        for i, gradient in enumerate(expected):
            if gradient is None:
                expected[i] = found[i] and tf.zeros_like(found[i])
        assert_same(found, expected)
    return texts


@pytest.mark.parametrize("use, text", SLOW.values(), ids=list(SLOW))
def test_warning_says_what_makes_gradients_dense_and_what_to_do(use, text):
    found = check(use)
    assert len(found) == 1, found
    start = "Function 'node': each call computes the whole gradient for a weight of shape (64, 64), which takes long. "
    assert re.fullmatch(f"{re.escape(start)}It is used by {text}", found[0]), found[0]
    assert f"made in {__file__}:" in found[0]


@pytest.mark.parametrize("use", SILENT.values(), ids=list(SILENT))
def test_nothing_is_said_where_nothing_helps_or_nothing_is_slow(use):
    assert not check(use)


@pytest.mark.parametrize("program", BETTER)
def test_gradients_are_the_same_and_nothing_is_said_when_the_advice_is_followed(program):
    make, use = BETTER[program]
    w, v, mask = variables()

    @tfr.recursive(output_signature=ROW)
    def node(n, made):
        if n < 1:
            return tf.ones([1, SIZE])
        return use(node(n - 1, made), node(n - 1, made), made)

    slow = tree(lambda x, y, n: SLOW[program][0](x, y, n, w, v, mask))
    expected = gradients(slow, [w, v], 3)

    def run():
        found = gradients(lambda n: node(n, make(w, v, mask)), [w, v], tf.constant(3))
        assert_same(found, expected)

    assert not warnings_of_dense_gradients(run)


def test_nothing_is_said_of_small_weights():
    w, _, _ = variables(size=63)
    node = tree(lambda x, y, n: x @ tf.tanh(w), size=63)
    assert not warnings_of_dense_gradients(lambda: gradients(node, [w], 3))


def test_a_function_that_runs_once_may_compute_what_it_passes_on():
    w, _, _ = variables()

    @tfr.recursive(output_signature=ROW)
    def node(n, made):
        if n < 1:
            return tf.ones([1, SIZE])
        return node(n - 1, made) @ made

    @tfr.recursive(output_signature=ROW)
    def model(n):
        return node(n, tf.tanh(w))

    assert not warnings_of_dense_gradients(lambda: gradients(model, [w], tf.constant(3)))


def test_warning_names_the_function_that_runs_once_if_its_use_makes_all_gradients_dense():
    w, _, _ = variables()

    @tfr.recursive(output_signature=ROW)
    def node(n, weight):
        if n < 1:
            return tf.ones([1, SIZE])
        return node(n - 1, weight) @ weight

    @tfr.recursive(output_signature=ROW)
    def model(n, weight):
        return node(n, weight) @ tf.tanh(weight)

    (found,) = warnings_of_dense_gradients(lambda: gradients(model, [w], tf.constant(3), w))
    assert re.search(r"^Function 'model': .* Compute that once outside of the recursion, and pass it to 'model'", found)


def test_warning_comes_from_sessions_too():
    with tf.Graph().as_default():
        w = tf1.get_variable("w", [SIZE, SIZE])
        tfr.Declare("Net", [("n", I32)], [("y", F32)])

        @tfr.Defun(I32, func_name="Net", create_grad_func=True)
        def net(n):
            return tf.cond(n < 1, lambda: tf.ones([1, SIZE]), lambda: tf.reshape(net(n - 1), [1, SIZE]) @ tf.exp(w))

        (found,) = warnings_of_dense_gradients(lambda: tf1.gradients(net(3), [w]))
    assert re.search(r"^Function 'Net': .*Exp.* Compute that once outside of the recursion", found)


LONG_CHAINS = {"views": lambda w: w * 1.001, "nonlinear": tf.tanh}


@pytest.mark.thorough
@pytest.mark.parametrize("step", LONG_CHAINS.values(), ids=list(LONG_CHAINS))
def test_a_weight_may_go_through_more_operators_than_python_has_levels(step):
    w = tf.Variable(tf.eye(SIZE))
    length = sys.getrecursionlimit() // 2

    def long(weight):
        for _ in range(length):
            weight = step(weight)
        return weight

    with tf.GradientTape() as tape:
        expected = tf.reduce_sum((tf.ones([1, SIZE]) @ long(w) @ long(w)) ** 2)
    expected = tape.gradient(expected, w)

    @tfr.recursive(output_signature=ROW)
    def node(n):
        if n < 1:
            return tf.ones([1, SIZE])
        return node(n - 1) @ long(tf.convert_to_tensor(w))

    np.testing.assert_allclose(gradients(node, w, tf.constant(2)), expected, rtol=1e-4, atol=1e-6)
