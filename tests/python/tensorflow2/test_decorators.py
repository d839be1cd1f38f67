"""Other decorators above and below `tfr.recursive`."""
# SPDX-License-Identifier: Apache-2.0

import abc
import copy
import functools
import inspect
import operator
import pickle

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


class Scaled(tf.Module):
    def __init__(self):
        self.factor = tf.Variable(2.0)
        self.functions = [halved, self.power]

    @tfr.recursive
    def power(self, n):
        if n < 1:
            return tf.ones([])
        return self.factor * self.power(n - 1)


@tfr.recursive
def halved(n):
    if n < 1:
        return tf.ones([])
    return halved(n - 1) / 2.0


def test_objects_with_functions_are_copied_as_those_with_python_functions_are():
    scaled = Scaled()
    assert float(scaled.functions[1](tf.constant(2))) == 4.0
    copied = copy.deepcopy(scaled)
    copied.factor.assign(3.0)
    assert [float(function(tf.constant(2))) for function in copied.functions] == [0.25, 9.0]
    assert float(scaled.power(tf.constant(2))) == 4.0
    assert copied.functions[0] is copy.copy(halved) is halved
    assert copy.copy(scaled.power) == scaled.power
    with tf.GradientTape() as tape:
        result = copied.functions[1](tf.constant(2))
    assert float(tape.gradient(result, copied.factor)) == 6.0


def test_functions_are_pickled_by_their_names_as_python_functions_are():
    assert pickle.loads(pickle.dumps({"f": halved}))["f"] is halved
    assert pickle.loads(pickle.dumps(Scaled.power)) is Scaled.power

    @tfr.recursive
    def local(n):
        return n

    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle.dumps(local)


class Doubled:
    """A decorator that is a descriptor, whose `__get__` takes the class of the object as Python passes it."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args):
        return 2 * self.function(*args)

    def __get__(self, instance, owner):
        return functools.partial(self, instance)


def test_decorators_below_that_are_objects_bind_methods_as_python_does():
    class Counter:
        @tfr.recursive
        @Doubled
        def count(self, n):
            return n if n < 1 else self.count(n - 1) + 1

        plus_two = tfr.recursive(functools.partial(operator.add, 2))  # Python passes it no `self`

    assert int(Counter().count(tf.constant(3))) == 14
    assert int(Counter().plus_two(tf.constant(3))) == 5
    with pytest.raises(ValueError, match=r"the function takes \(b, /\)$"):
        Counter().plus_two()


class Nested(tf.Module):
    @tf.Module.with_name_scope
    @tfr.recursive
    def __call__(self, n):
        if n < 1:
            return n
        return self(n - 1) + 1

    @tf.Module.with_name_scope
    @tfr.recursive
    def odd(self, n):
        if n < 1:
            return False
        return self.even(n - 1)

    @tf.Module.with_name_scope
    @tfr.recursive(output_signature=tf.TensorSpec([], tf.bool))
    def even(self, n):
        if n < 1:
            return True
        return self.odd(n - 1)


@pytest.mark.parametrize("called", ["eagerly", "in a tf.function", "in a session"])
def test_name_scopes_of_a_module_above_are_converted_without_a_warning(called, caplog):
    module = Nested(name="nested")

    def count(n):
        return module(n)

    def odd(n):
        return module.odd(n)

    if called == "in a session":
        with tf.Graph().as_default():
            results = [count(tf.constant(3)), odd(tf.constant(3))]
            with tf.compat.v1.Session(config=tfr.session_config()) as session:
                assert session.run(results) == [3, True]
    else:
        if called == "in a tf.function":
            count, odd = tf.function(count), tf.function(odd)
        assert int(count(tf.constant(3))) == 3
        assert bool(odd(tf.constant(3)))
    assert "AutoGraph could not transform" not in caplog.text
