"""Dtypes that TensorFlow's Switch has no kernel for: calls that hand them on are dynamic, and the warning says why."""
# SPDX-License-Identifier: Apache-2.0

import warnings

import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels

import tensorflow_recursion as tfr

# What each of these can be cast to, for which there is a kernel.
REMEDIES = {
    "float8_e5m2": tf.bfloat16,
    "float8_e4m3fn": tf.float32,
    "int4": tf.int32,
    "uint4": tf.int32,
    "qint16": tf.int32,
    "quint16": tf.int32,
}
# Only loops have no kernel for these.
IN_LOOPS = {"qint8", "quint8", "qint32"}
# Nothing makes values of these from others on a CPU.
WITHOUT_CASTS = {"float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int2", "uint2", "float4_e2m1fn"}


def dtypes():
    """The dtypes that this TensorFlow knows, apart from references."""
    found = [tf.as_dtype(number) for number in types_pb2.DataType.values() if 0 < number < 100]
    return [dtype for dtype in found if dtype.name != "float"]


def served(op):
    """The dtypes that an operator has kernels for on a CPU."""
    registered = kernels.get_registered_kernels_for_op(op).kernel
    found = [kernel for kernel in registered if kernel.device_type in ("CPU", "DEFAULT")]
    if any(not kernel.constraint for kernel in found):
        return set(dtypes())
    return {tf.as_dtype(kind) for one in found for limit in one.constraint for kind in limit.allowed_values.list.type}


@pytest.fixture
def named(request):
    if not any(dtype.name == request.param for dtype in dtypes()):
        pytest.skip("this TensorFlow does not know the dtype")
    return tf.as_dtype(request.param)


def test_dtypes_without_kernels_are_those_that_are_listed():
    for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration"):
        missing = {dtype.name for dtype in set(dtypes()) - served(op)}
        listed = REMEDIES.keys() | WITHOUT_CASTS
        assert missing <= (listed | IN_LOOPS if op == "NextIteration" else listed), op


def counting(dtype, step):
    """A function that hands on values of a dtype, and adds 1 to them by way of another one."""

    @tfr.recursive
    def count(x, n):
        if n < 1:
            return x
        return count(tf.cast(tf.cast(x, step) + 1, dtype), n - 1)

    return count


@pytest.mark.parametrize("named", REMEDIES, indirect=True)
def test_warning_names_the_dtype_and_what_to_cast_it_to(named):
    to, count = REMEDIES[named.name], counting(named, REMEDIES[named.name])
    with pytest.warns(RuntimeWarning, match=f"'count' runs dynamically.*values of {named.name}.*Switch has no") as seen:
        value = count(tf.cast(tf.constant([3], to), named), tf.constant(2))
    assert tf.cast(value, to).numpy().tolist() == [5]
    text = str(seen[0].message)
    assert "\n" not in text and len(text) < 500
    assert to.name in text.partition("with tf.cast, to ")[2].partition(".")[0]


@pytest.mark.parametrize("name", sorted(IN_LOOPS))
def test_warning_names_the_dtype_that_a_loop_hands_on(name):
    dtype = tf.as_dtype(name)

    @tfr.recursive
    def count(x, n):
        for _ in tf.range(n):
            x = tf.cast(tf.cast(x, tf.int32) + 1, dtype)
        if n < 1:
            return x
        return count(x, n - 1)

    with pytest.warns(RuntimeWarning, match=f"values of {name}, for which .*NextIteration has no .* to int32"):
        value = count(tf.cast(tf.constant([3]), dtype), tf.constant(2))
    assert tf.cast(value, tf.int32).numpy().tolist() == [6]


@pytest.mark.parametrize("named", ["float8_e5m2"], indirect=True)
def test_error_has_the_same_text(named):
    count = counting(named, tf.float32)
    tfr.config.set_options(on_fallback="error")
    try:
        with pytest.raises(tf.errors.FailedPreconditionError, match=f"values of {named.name}") as error:
            count(tf.cast(tf.constant([3.0]), named), tf.constant(2))
    finally:
        tfr.config.set_options(on_fallback="warn")
    assert "Registered kernels" not in str(error.value)


@pytest.mark.parametrize("named", REMEDIES, indirect=True)
def test_call_is_static_as_the_warning_says(named):
    to = REMEDIES[named.name]

    @tfr.recursive
    def count(x, n):
        if n < 1:
            return x
        return count(tf.cast(tf.cast(x, named), to) + 1, n - 1)

    x = tf.cast(tf.constant([3], to), named)
    before = tfr.config.outermost_calls()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = tf.cast(count(tf.cast(x, to), tf.constant(2)), named)
    assert tf.cast(value, to).numpy().tolist() == [5]
    after = tfr.config.outermost_calls()
    assert after["static"] == before["static"] + 1 and after["dynamic"] == before["dynamic"]
