"""Handles of which only a run tells whose they are: a branch or a loop chooses between variables of two devices."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

DEVICES = ("/cpu:0", "/cpu:1")


def read(handle):
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


def even(n):
    return tf.equal(n % 2, 0)


def read_in_its_body(v, w):
    f, define = recursive("F", [tf.int32, tf.float32], [tf.float32])

    @define
    def body(n, x):
        chosen = read(tf.cond(even(n), lambda: v.handle, lambda: w.handle))
        return tf.cond(n < 1, lambda: x * chosen[0], lambda: f(n - 1, tf.sin(x)) * tf.reduce_sum(chosen * x))

    return f


def passed_to_another_function(v, w):
    g, define_g = recursive("G", [tf.int32, tf.float32, tf.resource], [tf.float32])
    f, define_f = recursive("F", [tf.int32, tf.float32], [tf.float32])
    define_g(
        lambda n, x, handle: tf.cond(
            n < 1, lambda: x * x, lambda: f(n - 1, tf.sin(x)) * tf.reduce_sum(tf.gather(read(handle), [0, 1]) * x)
        )
    )
    define_f(lambda n, x: g(n, x, tf.cond(even(n), lambda: v.handle, lambda: w.handle)))
    return f


def gathered_from(v, w):
    f, define = recursive("F", [tf.int32, tf.float32], [tf.float32])

    @define
    def body(n, x):
        handle = tf.cond(even(n), lambda: v.handle, lambda: w.handle)
        row = tf.raw_ops.ResourceGather(resource=handle, indices=n % 2, dtype=tf.float32)
        return tf.cond(n < 1, lambda: x, lambda: f(n - 1, x * row) + row)

    return f


def chosen_from_arguments(v, w):
    f, define = recursive("F", [tf.int32, tf.float32, tf.resource, tf.resource], [tf.float32])

    @define
    def body(n, x, one, other):
        chosen = tf.cond(even(n), lambda: one, lambda: other)
        below = lambda: f(n - 1, tf.sin(x), chosen, one) * read(other)[1]
        return tf.cond(n < 1, lambda: x * read(chosen)[0], below)

    return lambda n, x: f(n, x, v.handle, w.handle)


def swapped_by_a_loop(v, w):
    f, define = recursive("F", [tf.int32, tf.float32], [tf.float32])

    def turns(n, x):
        step = lambda i, x, one, other: [i + 1, x + read(one)[0] * x, other, one]
        return tf.while_loop(lambda i, *_: i < n, step, [0, x, v.handle, w.handle])[1]

    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: f(n - 1, turns(n, x))))
    return f


def chosen_twice(v, w):
    f, define = recursive("F", [tf.int32, tf.float32], [tf.float32])

    @define
    def body(n, x):
        first = tf.cond(even(n), lambda: v.handle, lambda: w.handle)
        second = tf.cond(n > 2, lambda: first, lambda: w.handle)
        return tf.cond(n < 1, lambda: x, lambda: f(n - 1, x * read(second)[1]) + read(first)[0])

    return f


PROGRAMS = [
    read_in_its_body,
    passed_to_another_function,
    gathered_from,
    chosen_from_arguments,
    swapped_by_a_loop,
    chosen_twice,
]


def results(program, devices, is_differentiated):
    """The values of a program with a variable on each of the devices, and its gradients."""
    with tf.Graph().as_default():
        variables = []
        for name, device, value in zip("vw", devices, ([0.5, 1.5], [2.0, -0.75]), strict=True):
            with tf.device(device):
                variables.append(tf1.get_variable(name, initializer=np.float32(value), use_resource=True))
        x = tf.constant(0.7)
        y = program(*variables)(3, x)
        gradients = tf.gradients(y, [x, *variables]) if is_differentiated else []
        fetches = [y, *(tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None)]
        config = tf1.ConfigProto(device_count={"CPU": 2})
        with tf1.Session(config=tfr.session_config(config, on_fallback="error")) as session:
            session.run(tf1.global_variables_initializer())
            return session.run(fetches)


@pytest.mark.each_value
@pytest.mark.parametrize("is_differentiated", [False, True], ids=["forward", "differentiated"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_variable_is_the_chosen_one_when_its_device_is_known_only_then(program, is_differentiated, control_flow):
    expected = results(program, DEVICES[:1] * 2, is_differentiated)
    for value, wanted in zip(results(program, DEVICES, is_differentiated), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


def test_assignments_go_to_the_chosen_variable(control_flow):
    with tf.device(DEVICES[0]):
        v = tf1.get_variable("v", initializer=0, use_resource=True)
    with tf.device(DEVICES[1]):
        w = tf1.get_variable("w", initializer=0, use_resource=True)
    f, define = recursive("F", [tf.int32], [tf.int32])

    @define
    def body(n):
        handle = tf.cond(even(n), lambda: v.handle, lambda: w.handle)
        with tf.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=handle, value=n)]):
            return tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + 1)

    config = tfr.session_config(tf1.ConfigProto(device_count={"CPU": 2}), on_fallback="error")
    with tf1.Session(config=config) as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(f(5)) == 5
        assert session.run([v.read_value(), w.read_value()]) == [0 + 2 + 4, 1 + 3 + 5]


@pytest.mark.thorough
def test_processes_are_not_chosen_from(cluster):
    """A variable of another process cannot be read from here, so the calls stay dynamic, and say so."""
    variables = []
    for name, device in zip("vw", cluster.devices, strict=True):
        with tf.device(device):
            variables.append(tf1.get_variable(name, initializer=[0.5, 1.5], use_resource=True))
    y = read_in_its_body(*variables)(3, tf.constant(0.7))
    with tf1.Session(cluster.target, config=tfr.session_config(on_fallback="error")) as session:
        session.run(tf1.global_variables_initializer())
        with pytest.raises(tf.errors.OpError, match="(?s)'F'.*dynamically|Cannot place"):
            session.run(y)
