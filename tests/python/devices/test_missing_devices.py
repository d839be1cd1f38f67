"""Devices and kernels that are not there: an error that names the function, wherever stock TensorFlow has one."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import inspect

import pytest
import tensorflow as tf
from building import recursive
from tensorflow.python.eager import context

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32 = tf.int32
MISSING = ["/cpu:7", "/gpu:7", "/device:UNKNOWN:0"]
NO_PROCESS = "/job:nowhere/task:3/cpu:0"
GPU = "/device:GPU:0"
SAID = r"Function 'Pinned(_\d+)?': node '\S+' asks for device '[^']+', there are: .*CPU:0.* Pin it to one of these"


def on(device):
    """n - 1, computed there."""

    def below(n):
        with tf.device(device):
            return n - 1

    return below


def inverted_on(device):
    """n - 1 by an operator for which the fake GPU has no kernel."""

    def below(n):
        with tf.device(device):
            return tf.bitwise.invert(-n)

    return below


def reduced(n):
    """n - 1 by an operator for which no device of this TensorFlow has a kernel."""
    return tf.raw_ops.NcclAllReduce(input=n - 1, reduction="sum", num_devices=1, shared_name="alone")


def pinned(below):
    """Counts down; the operator that is pinned is in a branch of a branch of the body."""
    f, define = recursive("Pinned", [I32], [I32], shapes=[[]])
    return define(lambda n: tf.cond(n < 1, lambda: n, lambda: tf.cond(n < 2, lambda: n - 1, lambda: f(below(n)))))


@contextlib.contextmanager
def soft_placement(allowed):
    before = tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(allowed)
    try:
        yield
    finally:
        tf.config.set_soft_device_placement(before)


def value_in_session(below, soft, config):
    with tf.Graph().as_default():
        y = pinned(below)(3)
        config.allow_soft_placement = soft
        with tf1.Session(config=config) as session:
            return session.run(y)


def value_in_static_session(below, soft):
    return value_in_session(below, soft, tfr.session_config(on_fallback="error"))


def value_in_dynamic_session(below, soft):
    return value_in_session(below, soft, tf1.ConfigProto())


def value_in_eager_mode(below, soft):
    with context.eager_mode(), soft_placement(soft):
        return int(pinned(below)(tf.constant(3)))


def value_in_tf_function(below, soft):
    with context.eager_mode(), soft_placement(soft):
        return int(tf.function(pinned(below))(tf.constant(3)))


def value_in_dynamic_tf_function(below, soft):
    with tfr.config.static_execution(False):
        return value_in_tf_function(below, soft)


def value_in_loop_of_tf_function(below, soft):
    def count(n):
        return tf.while_loop(lambda i, _: i < 1, lambda i, s: [i + 1, s + pinned(below)(n)], [0, 0])[1]

    with context.eager_mode(), soft_placement(soft):
        return int(tf.function(count)(tf.constant(3)))


def value_in_dataset(below, soft):
    with context.eager_mode(), soft_placement(soft):
        values = tf.data.Dataset.from_tensors(3).map(pinned(below))
        return next(int(value) for value in values)


def value_of_recursive(below, soft):
    def Pinned(n):
        if n < 1:
            return n
        return Pinned(below(n))

    Pinned = tfr.recursive(Pinned)
    with context.eager_mode(), soft_placement(soft):
        return int(Pinned(tf.constant(3)))


WAYS = [
    value_in_static_session,
    value_in_dynamic_session,
    value_in_eager_mode,
    value_in_tf_function,
    value_in_dynamic_tf_function,
    value_in_loop_of_tf_function,
    value_in_dataset,
    value_of_recursive,
]
# TensorFlow's datasets know only whether placement was soft when the process began.
FOLLOWING = [way for way in WAYS if way is not value_in_dataset]
STATIC = [way for way in FOLLOWING if "dynamic" not in way.__name__]  # a dynamic call runs its body where it is
each_way = pytest.mark.parametrize("value", WAYS, ids=lambda way: way.__name__)


@each_way
@pytest.mark.parametrize("device", MISSING)
def test_pin_is_error_when_the_device_is_missing(value, device):
    with pytest.raises(tf.errors.InvalidArgumentError, match=SAID + ", or let others take its place"):
        value(on(device), soft=False)


@pytest.mark.parametrize("value", FOLLOWING, ids=lambda way: way.__name__)
def test_pin_is_error_when_the_process_is_missing_and_placement_is_soft(value):
    with pytest.raises(tf.errors.InvalidArgumentError, match=SAID):
        value(on(NO_PROCESS), soft=True)


@pytest.mark.parametrize("value", FOLLOWING, ids=lambda way: way.__name__)
@pytest.mark.parametrize("device", MISSING)
def test_another_device_takes_the_place_when_placement_is_soft(value, device):
    assert value(on(device), soft=True) == 0


def test_calls_stay_static_when_placement_becomes_soft():
    with context.eager_mode(), soft_placement(False):
        f = tf.function(pinned(on(MISSING[0])))
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(tf.constant(3))
    before = tfr.config.outermost_calls()
    assert value_in_tf_function(on(MISSING[0]), soft=True) == 0
    after = tfr.config.outermost_calls()
    assert (after["static"] - before["static"], after["dynamic"] - before["dynamic"]) == (1, 0)


@pytest.mark.parametrize("value", WAYS, ids=lambda way: way.__name__)
def test_message_names_the_line_of_the_pin(value):
    below = on(MISSING[0])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        value(below, soft=False)
    lines, first = inspect.getsourcelines(below)
    pinned_line = first + next(i for i, line in enumerate(lines) if "n - 1" in line)
    assert f'{__file__}", line {pinned_line}, in below' in caught.value.message


@each_way
@pytest.mark.parametrize("soft", [False, True])
def test_operator_is_error_when_no_device_has_a_kernel(value, soft):
    said = r"Function 'Pinned(_\d+)?': node '\S*NcclAllReduce': no device has a kernel for NcclAllReduce .*T=DT_INT32"
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        value(reduced, soft)


@pytest.mark.fake_gpu
@pytest.mark.usefixtures("fake_gpu")
@pytest.mark.parametrize("value", FOLLOWING, ids=lambda way: way.__name__)
def test_pin_is_error_when_the_device_has_no_kernel(value):
    said = rf"Function 'Pinned(_\d+)?': node '\S*[Ii]nvert' asks for device '{GPU}', which has no kernel for Invert "
    with pytest.raises(tf.errors.InvalidArgumentError, match=said + ".*or let others take its place"):
        value(inverted_on(GPU), soft=False)


@pytest.mark.fake_gpu
@pytest.mark.usefixtures("fake_gpu")
@pytest.mark.parametrize("value", STATIC, ids=lambda way: way.__name__)
def test_a_device_with_a_kernel_takes_the_place_when_placement_is_soft(value):
    assert value(inverted_on(GPU), soft=True) == 0
