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
