"""Bodies with pins on two devices of one process, differentiated: static whatever is pinned, and as without pins."""
# SPDX-License-Identifier: Apache-2.0

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from distribution_helpers import CPUS, Spread
from tensorflow.python.framework import function as stock
from tensorflow.python.ops import control_flow_util_v2

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

FIRST, SECOND = "/cpu:0", "/cpu:1"


def tensor_in_branch(f, n, x, v, at):
    def rec():
        with at(SECOND):
            u = tf.sin(x) * x
        with at(FIRST):
            return f(n - 1, u) * u

    return tf.cond(n < 1, lambda: x * v[0, 0], rec)


def loop(f, n, x, v, at):
    with at(SECOND):
        u = tf.while_loop(lambda i, _: i < 2, lambda i, a: [i + 1, tf.sin(a) * x], [0, x])[1]
    return tf.cond(n < 1, lambda: u * v[0, 1], lambda: f(n - 1, u + 0.5))


def loop_over_two_devices(f, n, x, v, at):
    def step(i, a):
        with at(SECOND):
            a = tf.sin(a) * v[1, 0]
        with at(FIRST):
            return [i + 1, a * x]

    u = tf.while_loop(lambda i, _: i < 3, step, [0, x])[1]
    return tf.cond(n < 1, lambda: u, lambda: f(n - 1, u + 0.5))


def loop_of_calls(f, n, x, v, at):
    def step(i, a):
        with at(SECOND):
            a = tf.sin(a)
        return [i + 1, tf.ensure_shape(f(n - 1, a), []) * v[1, 1]]

    def rec():
        with at(FIRST):
            return tf.while_loop(lambda i, _: i < 2, step, [0, x])[1]

    return tf.cond(n < 1, lambda: x * x, rec)


def gather(f, n, x, v, at):
    with at(FIRST):
        u = tf.reduce_sum(tf.gather(v, [n % 3]) * x)
    with at(SECOND):
        w = tf.reduce_sum(tf.gather(v, [n % 2]) * x)
    return tf.cond(n < 1, lambda: u, lambda: f(n - 1, x * 0.5) * u + w)


def gather_in_branch(f, n, x, v, at):
    def rec():
        with at(FIRST):
            u = tf.reduce_sum(tf.nn.embedding_lookup(v, [n % 3]) * x)
        with at(SECOND):
            return u + f(n - 1, x * 0.5)

    return tf.cond(n < 1, lambda: x, rec)


def gather_in_loop(f, n, x, v, at):
    def step(i, a):
        with at(FIRST):
            a = a * tf.reduce_sum(tf.gather(v, [n % 3]) * x)
        with at(SECOND):
            return [i + 1, a + 0.25]

    u = tf.while_loop(lambda i, _: i < 2, step, [0, x])[1]
    return tf.cond(n < 1, lambda: u, lambda: u * f(n - 1, x * 0.5))


PROGRAMS = [
    tensor_in_branch,
    loop,
    loop_over_two_devices,
    loop_of_calls,
    gather,
    gather_in_branch,
    gather_in_loop,
]


def results(program, place, config, at=tf.device):
    """Value and gradients of a recursive function whose body `program` makes, with a variable on a device."""
    with tf.Graph().as_default():
        with tf.device(place):
            v = tf1.get_variable("v", initializer=tf.reshape(tf.range(6.0) * 0.3, [3, 2]), use_resource=True)
        f, define = recursive("F", [tf.int32, tf.float32], [tf.float32])
        define(lambda n, x: program(f, n, x, v, at))
        x = tf.constant(0.7)
        y = f(3, x)
        fetches = [y, *(tf.convert_to_tensor(gradient) for gradient in tf.gradients(y, [x, v]))]
        with tf1.Session(config=config) as session:
            session.run(v.initializer)
            return session.run(fetches)


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("place", [FIRST, SECOND])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_pins_do_not_hinder_static_gradients(program, place, soft):
    expected = results(program, FIRST, tf1.ConfigProto(), lambda _: contextlib.nullcontext())
    devices = tf1.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=soft)
    static = tfr.session_config(devices, on_fallback="error")
    for value, wanted in zip(results(program, place, static), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)


def weights_in_branch(f, n, x, w):
    return tf.cond(n < 1, lambda: x * w, lambda: tf.tanh(f(n - 1, x, w) * w + f(n - 2, x, w)))


def weights_in_branches_of_branches(f, n, x, w):
    further = lambda: tf.cond(n > 1, lambda: f(n - 1, tf.sin(x) * w, w) * x, lambda: tf.sin(f(n - 1, x, w)) * w)
    return tf.cond(n < 1, lambda: x * w, further)


def weights_in_loop(f, n, x, w):
    step = lambda i, a: [i + 1, tf.tanh(tf.ensure_shape(f(n - 1, a, w), [2]) * w + a * x)]
    return tf.cond(n < 1, lambda: x * w, lambda: tf.while_loop(lambda i, _: i < 2, step, [0, x])[1])


def weights_in_branch_of_loop(f, n, x, w):
    call = lambda a: tf.tanh(tf.ensure_shape(f(n - 1, a, w), [2]) * w * a)
    step = lambda i, a: [i + 1, tf.cond(n < 1, lambda: a + x, lambda: call(a))]
    return tf.while_loop(lambda i, _: i < 2, step, [0, x])[1]


def list_in_branch(f, n, x, w):
    def stacked():
        array = tf.TensorArray(tf.float32, 2, element_shape=[2]).write(0, x).write(1, f(n - 1, x * w, w))
        return tf.reduce_prod(array.stack(), 0)

    return tf.cond(n < 1, lambda: x * w, stacked)


def orders(program, config, devices, order):
    """The derivatives of a function of numbers and weights, of which all operators are spread over the devices."""
    with tf.Graph().as_default(), tf1.device(Spread(devices)):
        f, define = recursive("F", [tf.int32, tf.float32, tf.float32], [tf.float32])
        define(lambda n, x, w: program(f, n, x, w))
        x, w = tf.constant([0.5, 3.0]), tf.constant([0.3, -0.6])
        y = f(2, x, w)
        for _ in range(order):
            fetches = tf.gradients(y, [x, w])
            y = tf.add_n(fetches)
        with tf1.Session(config=config) as session:
            return session.run(fetches)


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("devices", [CPUS, CPUS[::-1]], ids=["first", "second"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "program",
    [
        weights_in_branch,
        weights_in_branches_of_branches,
        weights_in_loop,
        weights_in_branch_of_loop,
        list_in_branch,
    ],
    ids=lambda program: program.__name__,
)
def test_spread_operators_do_not_hinder_static_gradients(program, order, devices, soft):
    """Also those that unpack records: gradients of higher orders are built in the scope of the devices."""
    expected = orders(program, tf1.ConfigProto(), CPUS[:1], order)
    config = tf1.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=soft)
    static = orders(program, tfr.session_config(config, on_fallback="error"), devices, order)
    for value, wanted in zip(static, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-3, atol=1e-5)


def branch(f, n, x):
    return tf.cond(n < 1, lambda: x * tf.sin(x), lambda: f(n - 1, tf.sin(x) * x) * x)


def branch_in_loop(f, n, x):
    return tf.while_loop(lambda i, _: i < 2, lambda i, a: [i + 1, branch(f, n, a) + 0.5], [0, x])[1]


def loop_in_branch(f, n, x):
    step = lambda i, a: [i + 1, f(n - 1, tf.sin(a) * x) + 0.5]
    return tf.cond(n < 1, lambda: x * tf.sin(x), lambda: tf.while_loop(lambda i, _: i < 2, step, [0, x])[1])


def loop_in_loop_in_branch(f, n, x):
    step = lambda i, a: [i + 1, f(n - 1, tf.sin(a) * x) + 0.5]
    inner = lambda a: tf.while_loop(lambda i, _: i < 2, step, [0, a])[1]
    outer = lambda: tf.while_loop(lambda i, _: i < 2, lambda i, a: [i + 1, inner(a) * 0.5], [0, x])[1]
    return tf.cond(n < 1, lambda: x * tf.sin(x), outer)


def value_in_a_branch(body, is_differentiated):
    """A call in a branch of the main graph, too: what that packs up for nobody is no reason to keep a record either."""
    f, define = recursive("F", [tf.int32, tf.float32], [tf.float32], shapes=[[]])
    define(lambda n, x: body(f, n, x))
    x = tf1.placeholder_with_default(0.7, [])
    y = tf.cond(x < 1.0, lambda: f(2, x) * x, lambda: x)
    return tf.gradients(y, x)[0] if is_differentiated else y


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_differentiated", [False, True], ids=["forward", "differentiated"])
@pytest.mark.parametrize(
    "body", [branch, branch_in_loop, loop_in_branch, loop_in_loop_in_branch], ids=lambda body: body.__name__
)
def test_branches_that_return_all_intermediates_do_not_hinder(body, is_differentiated, monkeypatch):
    with tf.Graph().as_default(), tf1.Session() as session:
        expected = session.run(value_in_a_branch(body, is_differentiated))
    monkeypatch.setattr(control_flow_util_v2, "_EXPERIMENTAL_OUTPUT_ALL_INTERMEDIATES_OVERRIDE", True)
    fetch = value_in_a_branch(body, is_differentiated)
    assert not any(node.op == "Recursion>Invoke" for node in tfr.transform_graph(tf1.get_default_graph(), fetch).node)
    for config in (tfr.session_config(on_fallback="error"), tf1.ConfigProto()):
        with tf1.Session(config=config) as session:
            np.testing.assert_allclose(session.run(fetch), expected, rtol=1e-5)


def test_functions_of_stock_tensorflow_are_differentiated_inside_of_bodies():
    @stock.Defun(tf.float32, func_name="Stock")
    def inner(x):
        return tf.sin(x) * x

    f, define = recursive("F", [tf.int32, tf.float32], [tf.float32])

    def rec(n, x):
        return f(n - 1, tf.gradients(inner(x), x)[0]) * x  # a SymbolicGradient operator

    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: rec(n, x)))
    y = f(3, tf.constant(0.7))
    with tf1.Session() as session:
        expected = session.run(y)
    with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
        np.testing.assert_allclose(session.run(y), expected, rtol=1e-5)
