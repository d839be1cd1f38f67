"""Branches and loops that fix a shape which is open around them, as base cases of recursions over slices do.

TensorFlow's optimizers take for granted that all operators run, so that such a shape would hold outside, too.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import switches
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
VECTOR = tf.TensorSpec([None])


def by_reshape(f, x, w):
    if tf.size(x) < 2:
        return tf.reshape(x, [1])[0] * w
    return f(x[1:]) * 2 + x[0]


def by_ensure_shape(f, x, w):
    if tf.shape(x)[0] < 2:
        return tf.reduce_sum(tf.ensure_shape(x, [1]) * w)
    return f(x[:1]) * f(x[1:]) * w


def by_unstack(f, x, w):
    if tf.size(x) < 3:
        if tf.size(x) < 2:
            [a] = tf.unstack(x, num=1)
            return a * w
        a, b = tf.unstack(x, num=2)
        return a * b * w
    return f(x[2:]) * w + f(x[:2])


def by_product(f, x, w):
    if tf.size(x) < 2:
        return tf.reshape(tf.reshape(x, [1, 1]) @ tf.reshape(w, [1, 1]), [])
    half = tf.size(x) // 2
    return f(x[:half]) * w + f(x[half:])


def by_gather(f, x, w):
    if tf.size(x) < 2:
        return tf.gather(tf.reshape(w * [1.0, 2.0, 3.0], [3, 1]), tf.reshape(tf.cast(x, tf.int32) % 3, [1]))[0, 0]
    return f(x[1:]) * w + x[0]


def by_case(f, x, w):
    def both():
        return tf.reduce_sum(tf.reshape(x, [2]) * w)

    return tf.switch_case(
        tf.minimum(tf.size(x), 3) - 1, [lambda: tf.reshape(x, [1])[0] * w, both, lambda: f(x[1:]) * w + x[0]]
    )


def behind_a_loop(f, x, w):
    if tf.size(x) > 3:
        return f(x[1:]) * w
    while tf.size(x) > 1:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
        x = x[1:] + x[:-1] * 0.5
    return tf.reshape(x, [1])[0] * w


def in_a_loop(f, x, w):
    """The loop does not run for fewer elements than it needs."""
    total = tf.constant(0.0)
    i = 0
    while i < 2 and tf.size(x) > 2:
        total += tf.reduce_sum(tf.reshape(x[:3], [3]) * w)
        i += 1
    if tf.size(x) < 2:
        return total + x[0]
    return f(x[1:]) * w + total


PROGRAMS = [by_reshape, by_ensure_shape, by_unstack, by_product, by_gather, by_case, behind_a_loop, in_a_loop]


def with_gradients(f, x, w):
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = f(x)
    return [y, *tape.gradient(y, [x, w], unconnected_gradients="zero")]


@pytest.mark.each_value
@pytest.mark.sampled(8)
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "tf_function"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_condition_by_an_open_shape(program, in_function):
    x, w = tf.constant([5.0, 7.0, 11.0, 2.0]), tf.constant(3.0)

    def plain(x):
        return program(plain, x, w)

    @tfr.recursive(input_signature=[VECTOR, tf.TensorSpec([])])
    def recursive(x, w):
        return program(lambda rest: recursive(rest, w), x, w)

    expected = with_gradients(plain, x, w)

    def of_recursive():
        return with_gradients(lambda x: recursive(x, w), x, w)

    got = (tf.function(of_recursive) if in_function else of_recursive)()
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("with_gradient", [False, True])
def test_condition_by_an_open_shape_in_a_session(with_gradient):
    with tf.Graph().as_default():
        x, w = tf1.placeholder(tf.float32, [None]), tf.constant([3.0])
        declared = tfr.Declare("F", [("x", tf.float32)], [("y", tf.float32)], output_shapes=[[1]])

        @tfr.Defun(VECTOR, func_name="F", out_names=["y"], output_shapes=[[1]])
        def defined(x):
            return tf.cond(tf.size(x) < 2, lambda: tf.reshape(x, [1]) * w, lambda: declared(x[1:]) * 2)

        y = defined(x)
        fetches = [y, *(tf.gradients(y, [x]) if with_gradient else [])]
        with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
            value, *gradient = session.run(fetches, {x: [5.0, 7.0, 11.0]})
    np.testing.assert_allclose(value, [132.0])
    for one in gradient:
        np.testing.assert_allclose(one, [0.0, 0.0, 12.0])


def test_condition_around_a_call_in_a_tf_function():
    """What a tf.function does beside its call is optimized along with it."""

    @tfr.recursive(input_signature=[VECTOR])
    def total(x):
        if tf.size(x) < 1:
            return 0.0
        return x[0] + total(x[1:])

    @tf.function(input_signature=[VECTOR])
    def outer(x):
        if tf.size(x) < 2:
            return total(tf.reshape(x, [1]))
        return total(x) * 10

    with tf.GradientTape() as tape:
        x = tf.constant([1.0, 2.0, 3.0])
        tape.watch(x)
        y = outer(x)
    np.testing.assert_allclose(y, 60.0)
    np.testing.assert_allclose(tape.gradient(y, x), [10.0, 10.0, 10.0])


def of_variable(x):
    variable = tf1.Variable(x, shape=[None], validate_shape=False, use_resource=True)
    return lambda: variable.value() * 1.0


def of_array(x):
    array = tf.TensorArray(tf.float32, 1, clear_after_read=False, element_shape=[None]).write(0, x)
    return lambda: array.read(0)


def of_list(x):
    handle = tf.raw_ops.TensorListFromTensor(tensor=tf.stack([x, x]), element_shape=[-1])
    return lambda: tf.raw_ops.TensorListGetItem(
        input_handle=handle, index=0, element_shape=[-1], element_dtype=tf.float32
    )


def branch(read):
    """The sum of what `read` returns, which has more than one element."""
    return tf.cond(
        tf.size(read()) < 2, lambda: tf.reduce_sum(tf.reshape(read(), [1])) * 100.0, lambda: tf.reduce_sum(read())
    )


def loop(read):
    """The same; the loop does not run."""

    def add(i, total):
        return i + 1, total + tf.reduce_sum(tf.reshape(read(), [1]))

    length = tf.cast(tf.size(read()) < 2, tf.int32)
    return tf.while_loop(lambda i, _: i < length, add, (0, tf.reduce_sum(read())))[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("where", ["in_body", "around_call"])
@pytest.mark.parametrize("compute", [branch, loop])
@pytest.mark.parametrize("of", [of_variable, of_array, of_list])
def test_open_shapes_that_handles_tell_of(of, compute, where, control_flow):
    with switches.control_flow_v2(control_flow == "v2"), tf.Graph().as_default():
        declared = tfr.Declare("F", [("n", tf.int32), ("x", tf.float32)], [("y", tf.float32)])
        in_body = where == "in_body"
        variable = of(tf.constant([1.0, 2.0, 3.0])) if of is of_variable else None

        @tfr.Defun(tf.int32, VECTOR, func_name="F", out_names=["y"])
        def defined(n, x):
            y = compute(variable or of(x)) if in_body else tf.reduce_sum(x)
            return tf.cond(n < 1, lambda: y, lambda: y + declared(n - 1, x))

        x = tf1.placeholder_with_default([1.0, 2.0, 3.0], [None])
        y = defined(1, x)
        if not in_body:
            y += compute(variable or of(x))
        with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
            session.run(tf1.global_variables_initializer())
            assert session.run(y) == (12.0 if in_body else 18.0)


def test_condition_by_the_open_shape_of_a_variable_in_a_tf_function():
    variable = tf.Variable([1.0, 2.0, 3.0], shape=[None])

    @tfr.recursive(input_signature=[tf.TensorSpec([])])
    def halved(x):
        if x < 1.0:
            return x
        return halved(x / 2)

    @tf.function
    def outer():
        if tf.size(variable) < 2:
            return halved(tf.reshape(variable, [1])[0])
        return halved(8.0) + tf.reduce_sum(variable)

    np.testing.assert_allclose(outer(), 6.5)
    variable.assign([4.0])
    np.testing.assert_allclose(outer(), 0.5)
