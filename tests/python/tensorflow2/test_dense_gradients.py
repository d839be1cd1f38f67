"""Gradients as large as the weight in each call: a warning says why, and what to do, where something can be done."""
# SPDX-License-Identifier: Apache-2.0

import re
import sys
import warnings

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import collected

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


def tree_of_arguments(use, w, v, m):
    """The same, where `use(x, y, n, w, v, m)` gets weights that are arguments, which all calls hand on."""

    @tfr.recursive(output_signature=ROW)
    def node(n, w, v, m):
        if n < 1:
            return tf.ones([1, SIZE])
        return use(node(n - 1, w, v, m), node(n - 1, w, v, m), n, w, v, m)

    return lambda n: node(tf.constant(n), *map(tf.convert_to_tensor, (w, v, m)))


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


def repeat(step, start, goes_on=True):
    """A loop of two iterations."""
    return tf.while_loop(lambda i, _: tf.logical_and(i < 2, goes_on), lambda i, z: (i + 1, step(z)), [0, start])[1]


def checked(x, condition):
    with tf.control_dependencies([tf.debugging.Assert(condition, [x])]):
        return tf.identity(x)


PLACES = ["captured", "argument"]

# What a node makes of x and y, with two weights and a mask; and the operators that the warning names.
SLOW = {
    "nonlinear": (lambda x, y, n, w, v, m: (x + y) @ tf.tanh(w), ["Tanh"]),
    "masked": (lambda x, y, n, w, v, m: (x + y) @ (m * w), ["Mul"]),
    "two as one": (lambda x, y, n, w, v, m: tf.concat([x, y], 1) @ tf.concat([w, v], 0), ["ConcatV2"]),
    "normalized": (lambda x, y, n, w, v, m: x @ (w / tf.norm(w)), ["Mul", "RealDiv"]),
    "as it is, too": (lambda x, y, n, w, v, m: x @ w + y @ tf.nn.relu(w), ["Relu"]),
    "a view": (lambda x, y, n, w, v, m: x @ tf.exp(tf.transpose(w)), ["Exp"]),
    "step by step": (lambda x, y, n, w, v, m: x @ tf.tanh(tf.transpose(tf.nn.relu(w))), ["Tanh"]),
    "in two ways": (lambda x, y, n, w, v, m: x @ tf.tanh(w) + y @ tf.exp(w), ["Exp", "Tanh"]),
    "on the way, too": (lambda x, y, n, w, v, m: (lambda t: x @ t + y @ tf.exp(t))(tf.tanh(w)), ["Exp", "Tanh"]),
    "in a branch": (lambda x, y, n, w, v, m: tf.cond(n > 1, lambda: x @ tf.tanh(w), lambda: y), ["Tanh"]),
    "in a loop": (lambda x, y, n, w, v, m: repeat(lambda z: z @ tf.tanh(w), x) + y, ["Tanh"]),
    "a view is passed": (lambda x, y, n, w, v, m: product(x, tf.transpose(w)), ["Transpose"]),
    "it is passed": (lambda x, y, n, w, v, m: product(x, tf.tanh(w)), ["Tanh"]),
    "a view of it is passed": (lambda x, y, n, w, v, m: product(x, tf.transpose(tf.tanh(w))), ["Transpose"]),
}
# What nothing is known to help against, or what is not slow.
SILENT = {
    "plain": lambda x, y, n, w, v, m: (x + y) @ w,
    "transposed": lambda x, y, n, w, v, m: x @ tf.transpose(w),
    "another one in each call": lambda x, y, n, w, v, m: x @ tf.tanh(w * tf.cast(n, F32)),
    "random": lambda x, y, n, w, v, m: x @ tf.nn.dropout(tf.tanh(w), 0.5),
    "convolution": lambda x, y, n, w, v, m: tf.nn.conv1d(x[None], w[None], 1, "VALID")[0],
    "nonlinear convolution": lambda x, y, n, w, v, m: tf.nn.conv1d(x[None], tf.tanh(w)[None], 1, "VALID")[0],
    "returned": lambda x, y, n, w, v, m: x + tf.cond(n > 1, lambda: tf.tanh(w), lambda: w)[:1],
}
# Uses of what is made of the weight that have no gradient. All of these are collected.
NO_GRADIENT = {
    "stopped": lambda x, y, n, w, v, m: x @ w + y @ tf.stop_gradient(tf.tanh(w)),
    "compared": lambda x, y, n, w, v, m: tf.where(tf.norm(w) > 1.0, x @ w, y),
    "asserted": lambda x, y, n, w, v, m: checked(x @ w, tf.norm(w) < 1000.0) + y,
    "compared by a loop": lambda x, y, n, w, v, m: repeat(lambda z: z @ w, x, tf.norm(w) < 1000.0) + y,
    "compared in a loop": lambda x, y, n, w, v, m: (
        lambda size: repeat(lambda z: tf.where(size > 1.0, z, z @ w), x) + y
    )(tf.reduce_max(tf.abs(w))),
    "compared in a loop in a branch": lambda x, y, n, w, v, m: (
        lambda size: tf.cond(n > 1, lambda: repeat(lambda z: tf.where(size > 1.0, z, z @ w), x), lambda: y)
    )(tf.reduce_max(tf.abs(w))),
    "stopped in a loop": lambda x, y, n, w, v, m: (lambda t: repeat(lambda z: z @ w + y @ tf.stop_gradient(t), x))(
        tf.tanh(w)
    ),
    "compared for elements": lambda x, y, n, w, v, m: (
        lambda t: tf.map_fn(lambda row: tf.where(t[0, 0] > 1.0, row, row * 2.0), x) @ w + y
    )(tf.tanh(w)),
}


# Programs that compute once what the warning says.
BETTER = {
    "nonlinear": (lambda w, v, m: tf.tanh(w), lambda x, y, made: (x + y) @ made),
    "masked": (lambda w, v, m: m * w, lambda x, y, made: (x + y) @ made),
    "two as one": (lambda w, v, m: tf.concat([w, v], 0), lambda x, y, made: tf.concat([x, y], 1) @ made),
}


def check(use, place):
    """Check the gradients where the weights are captured tensors or arguments, and return the warnings."""
    w, v, mask = variables()

    def of_tree(x, y, n):
        return use(x, y, n, w, v, mask)

    node = tree(of_tree) if place == "captured" else tree_of_arguments(use, w, v, mask)
    found = []
    texts = warnings_of_dense_gradients(lambda: found.extend(gradients(node, [w, v], 3)))
    if use is not SILENT["random"]:
        expected = gradients(lambda: unrolled(of_tree, 3), [w, v])
        assert_same(*([np.zeros([SIZE, SIZE]) if dx is None else dx for dx in dxs] for dxs in (found, expected)))
    return texts


@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("use, operators", SLOW.values(), ids=list(SLOW))
def test_warning_says_what_makes_gradients_dense_and_what_to_do(use, operators, place):
    line = rf"{re.escape(__file__)}:\d+"
    named = ", ".join(f"{operator} in {line}" for operator in operators)
    (found,) = check(use, place)
    assert re.fullmatch(
        r"Function 'node': each call computes the whole gradient for a weight of shape \(64, 64\), which takes long, "
        rf"because of what is made of the weight: {named}\. Compute that once outside of the recursion, and pass it on "
        "as an argument",
        found,
    ), found


@pytest.mark.each_value
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("use", SILENT.values(), ids=list(SILENT))
def test_nothing_is_said_where_nothing_helps_or_nothing_is_slow(use, place):
    assert not check(use, place)


# What calls hand on as the weight, where they have not all the same.
CHANGED = {
    "as it is and changed": lambda f, n, w: f(n - 1, w) + f(n - 1, w * 0.5),
    "in a branch": lambda f, n, w: f(n - 1, w) + tf.cond(n > 1, lambda: f(n - 2, tf.exp(w)), lambda: f(n - 1, w)),
    "in a loop": lambda f, n, w: f(n - 1, w) + repeat(lambda x: x + f(n - 1, tf.concat([x, w[1:]], 0)), w[:1]),
    "by another function": None,
}


# The same for two weights of which both are handed on, and what is made of both.
EXCHANGED = {
    "places": lambda f, n, v, w: f(n - 1, w, v) @ (v - w),
    "one for both": lambda f, n, v, w: f(n - 1, w, w) @ (tf.tanh(v) * w),
    "a captured one": lambda f, n, v, w: (f(n - 1, v, CAPTURED) + f(n - 1, v, w)) @ (w * CAPTURED),
    "a chosen one": lambda f, n, v, w: f(n - 1, tf.cond(n > 1, lambda: v, lambda: w), w) @ tf.tanh(v * w),
}
CAPTURED = np.eye(SIZE, dtype=np.float32)


@pytest.mark.parametrize("use", EXCHANGED.values(), ids=list(EXCHANGED))
def test_nothing_is_said_of_what_is_made_of_weights_that_change_places(use):
    @tfr.recursive(output_signature=ROW)
    def node(n, v, w):
        if n < 1:
            return tf.ones([1, SIZE])
        return use(node, n, v, w)

    v, w, _ = variables()
    function = lambda n: node(n, v.value(), w.value())
    assert not warnings_of_dense_gradients(lambda: gradients(function, [v, w], tf.constant(3)))


@pytest.mark.parametrize("hand_on", CHANGED.values(), ids=list(CHANGED))
def test_nothing_is_said_of_arguments_that_change(hand_on):
    @tfr.recursive(output_signature=ROW)
    def other(n, w):
        return node(n, w * 0.5)

    @tfr.recursive(output_signature=ROW)
    def node(n, w):
        if n < 1:
            return w[:1]
        of_children = node(n - 1, w) + other(n - 1, w) if hand_on is None else hand_on(node, n, w)
        return of_children @ tf.tanh(w)

    w, _, _ = variables()
    assert not warnings_of_dense_gradients(lambda: gradients(lambda n: node(n, w.value()), [w], tf.constant(3)))


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("use", NO_GRADIENT.values(), ids=list(NO_GRADIENT))
def test_gradients_are_made_of_terms_when_other_uses_have_no_gradient(use):
    assert not check(use, "captured")
    with tf.Graph().as_default():
        w, v, mask = variables()
        y = tree(lambda x, y, n: use(x, y, n, w, v, mask))(tf.constant(3))
        assert collected([tf.convert_to_tensor(tf.gradients(y, w)[0])]) == 1


@pytest.mark.parametrize("program", BETTER)
def test_gradients_are_the_same_and_nothing_is_said_when_the_advice_is_followed(program):
    make, use = BETTER[program]
    w, v, mask = variables()

    @tfr.recursive(output_signature=ROW)
    def node(n, made):
        if n < 1:
            return tf.ones([1, SIZE])
        return use(node(n - 1, made), node(n - 1, made), made)

    slow, _ = SLOW[program]
    expected = gradients(lambda: unrolled(lambda x, y, n: slow(x, y, n, w, v, mask), 3), [w, v])

    def run():
        found = gradients(lambda n: node(n, make(w, v, mask)), [w, v], tf.constant(3))
        assert_same(found, expected)

    assert not warnings_of_dense_gradients(run)


def test_nothing_is_said_of_small_weights():
    w, _, _ = variables(size=63)
    node = tree(lambda x, y, n: x @ tf.tanh(w), size=63)
    assert not warnings_of_dense_gradients(lambda: gradients(node, [w], 3))


@tfr.recursive(output_signature=ROW)
def products(n, weight):
    if n < 1:
        return tf.ones([1, SIZE])
    return products(n - 1, weight) @ weight


def warnings_of_model(use):
    """Those of a function that runs once: it is `use` of a depth and a weight, and may call `products`."""
    w, _, _ = variables()

    @tfr.recursive(output_signature=ROW)
    def model(n):
        return use(n, w)

    return warnings_of_dense_gradients(lambda: gradients(model, [w], tf.constant(3)))


def test_a_function_that_runs_once_may_compute_what_it_gives_its_callee():
    assert not warnings_of_model(lambda n, w: products(n, tf.tanh(w)))


def test_warning_names_the_function_that_runs_once_if_its_use_makes_all_gradients_dense():
    (found,) = warnings_of_model(lambda n, w: products(n, w) @ tf.tanh(w))
    assert re.search(r"^Function 'model': .*: Tanh in .*\. Compute that once outside of the recursion", found)


def test_warning_comes_from_sessions_too():
    with tf.Graph().as_default():
        w = tf1.get_variable("w", [SIZE, SIZE])
        tfr.Declare("Net", [("n", I32)], [("y", F32)])

        @tfr.Defun(I32, func_name="Net", create_grad_func=True)
        def net(n):
            return tf.cond(n < 1, lambda: tf.ones([1, SIZE]), lambda: tf.reshape(net(n - 1), [1, SIZE]) @ tf.exp(w))

        (found,) = warnings_of_dense_gradients(lambda: tf1.gradients(net(3), [w]))
    assert re.search(r"^Function 'Net': .*: Exp in .*\. Compute that once outside of the recursion", found)


def many_times(step, times, weight):
    for _ in range(times):
        weight = step(weight)
    return weight


LONG_CHAINS = {"views": lambda w: w * 1.001, "nonlinear": tf.tanh}


@pytest.mark.full_matrix
@pytest.mark.filterwarnings("ignore:Function 'node'")
@pytest.mark.parametrize("step", LONG_CHAINS.values(), ids=list(LONG_CHAINS))
def test_a_weight_may_go_through_more_operators_than_python_has_levels(step):
    w = tf.Variable(tf.eye(SIZE))
    length = sys.getrecursionlimit() // 2
    use = lambda x, y, n: x @ many_times(step, length, tf.convert_to_tensor(w)) + y
    found = gradients(tree(use), [w], 2)
    assert_same(found, gradients(lambda: unrolled(use, 2), [w]))


@pytest.mark.thorough
@pytest.mark.parametrize("step", [lambda w: w * w * 60.0, lambda w: w + tf.tanh(w)], ids=["squares", "sums"])
def test_ways_through_diamonds_are_not_counted_one_by_one(step):
    w = tf.Variable(tf.eye(SIZE) / 60.0)

    node = tree(lambda x, y, n: x @ many_times(step, 40, w) + y)
    found = warnings_of_dense_gradients(lambda: gradients(node, w, 2))
    assert len(found) == 1, found


def test_warning_of_many_operators_names_some():
    w, _, _ = variables()
    node = tree(lambda x, y, n: x @ tf.add_n([f(w) for f in (tf.exp, tf.tan, tf.sin, tf.cos, tf.tanh)]) + y)
    (found,) = warnings_of_dense_gradients(lambda: gradients(node, w, 2))
    assert re.search(r"made of the weight: AddN in [^,]*\. ", found), found
    node = tree(lambda x, y, n: sum(x @ f(w) for f in (tf.exp, tf.tan, tf.sin, tf.cos, tf.tanh)) + y)
    (found,) = warnings_of_dense_gradients(lambda: gradients(node, w, 2))
    assert re.search(r"made of the weight: Cos in [^,]*, Exp in [^,]*, Sin in [^,]* and 2 more\. ", found), found
