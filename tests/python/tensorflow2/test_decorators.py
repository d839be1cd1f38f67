"""Other decorators above and below `tfr.recursive`."""
# SPDX-License-Identifier: Apache-2.0

import abc
import functools
import inspect

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


def with_a_note(function):
    @functools.wraps(function)
    def wrapper(n, x):
        if x > 1e9:  # AutoGraph has to convert this
            x = x * 0.0
        return function(n, x)

    return wrapper


def test_decorators_above_are_converted_as_those_of_tf_functions_are():
    @with_a_note
    @tfr.recursive
    def power(n, x):
        if n < 1:
            return tf.ones_like(x)
        return x * power(n - 1, x)

    assert float(power(tf.constant(3), tf.constant(2.0))) == 8.0
    assert power.__wrapped__.__qualname__.endswith("<locals>.power")
    assert power.__wrapped__.__module__ == __name__
    assert inspect.getsource(power.__wrapped__).lstrip().startswith("@with_a_note")


def test_abstract_methods_stay_abstract():
    class Shape(abc.ABC):
        @tfr.recursive
        @abc.abstractmethod
        def area(self, n): ...

    class Square(Shape):
        @tfr.recursive
        def area(self, n):
            return tf.constant(0) if n < 1 else self.area(n - 1) + 2 * n - 1

    with pytest.raises(TypeError, match="abstract"):
        Shape()
    assert int(Square().area(tf.constant(3))) == 9


def test_function_is_itself_as_an_argument_of_a_tf_function():
    @tfr.recursive
    def power(n, x):
        if n < 1:
            return tf.ones_like(x)
        return x * power(n - 1, x)

    traced = []

    @tf.function
    def apply(function, x):
        traced.append(function)
        return function(tf.constant(3), x)

    assert [float(apply(power, tf.constant(x))) for x in (2.0, 3.0)] == [8.0, 27.0]
    assert traced == [power]


def is_even(n):
    if n < 1:
        return True
    return is_odd(n - 1)


def is_odd(n):
    if n < 1:
        return False
    return is_even(n - 1)


def test_plain_function_under_another_name_calls_itself_by_its_own():
    def power(n, x):
        if n < 1:
            return tf.ones_like(x)
        return x * power(n - 1, x)

    fast, stated = (
        tfr.recursive(power),
        tfr.recursive(
            power, input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([])], output_signature=tf.TensorSpec([])
        ),
    )
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = fast(tf.constant(5), x), stated(5, x)
    assert float(y) == float(z) == 32.0
    assert float(tape.gradient(y, x)) == float(tape.gradient(z, x)) == 80.0
    assert float(fast(tf.constant(5), tf.constant(2.0, tf.float64))) == 32.0, "so it is where it is traced again"
    assert power(3, 2.0).numpy() == 8.0, "the plain function stays as it is"


def test_plain_functions_that_it_calls_call_it_back():
    even = tfr.recursive(is_even)
    assert [bool(even(tf.constant(n))) for n in (10, 7)] == [True, False]
    assert is_even(4) and is_odd(3)
