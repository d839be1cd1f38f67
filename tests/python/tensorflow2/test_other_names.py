"""Functions that are made recursive under another name than that by which they call themselves."""
# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


def fib(n):
    return tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))


def gcd(a, b):
    if b == 0:
        return a
    return gcd(b, a % b)


def is_even(n):
    if n == 0:
        return True
    return is_odd(n - 1)


def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


@pytest.mark.parametrize("autograph", [True, False])
@pytest.mark.parametrize("is_global", [True, False], ids=["global", "local"])
def test_own_name_in_a_body_is_the_recursive_function(autograph, is_global):
    """Each of two functions that are made of one means itself."""

    def local(n):
        return tf.cond(n < 2, lambda: n, lambda: local(n - 1) + local(n - 2))

    python_function = fib if is_global else local
    fast = tfr.recursive(python_function, autograph=autograph)
    assert int(fast(tf.constant(20))) == 6765
    shallow = tfr.recursive(python_function, autograph=autograph, max_depth=5)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        shallow(tf.constant(20))
    assert int(fast(tf.constant(20))) == 6765
    assert python_function is (fib if is_global else local)


def test_body_is_converted_under_another_name():
    function = tfr.recursive(gcd)
    assert int(function(tf.constant(48), tf.constant(18))) == 6
    assert int(function(48, 18)) == 6  # a function for each pair of numbers


def test_functions_that_call_each_other_lead_back_to_the_recursive_one():
    even, odd = tfr.recursive(is_even), tfr.recursive(is_odd)
    assert [bool(even(tf.constant(n))) for n in (0, 1, 2000)] == [True, False, True]
    assert [bool(odd(tf.constant(n))) for n in (0, 1, 2001)] == [False, True, True]


def test_decorator_is_around_each_call():
    def negated(function):
        @functools.wraps(function)
        def wrapper(x, n):
            return -function(x, n)

        return wrapper

    def power(x, n):
        if n < 1:
            return x
        return x * power(x, n - 1)

    plain = tfr.recursive(power)  # before the name is another function's
    assert float(plain(tf.constant(2.0), tf.constant(2))) == 8.0
    power = negated(power)
    assert float(tfr.recursive(power)(tf.constant(2.0), tf.constant(2))) == -8.0


def test_function_that_a_body_makes():
    @tfr.recursive
    def outer(n, x):
        def scaled(k, y):
            if k < 1:
                return y
            return x * scaled(k - 1, y)

        if n < 1:
            return x
        y = outer(n - 1, x)
        return tfr.recursive(scaled, name="inner")(n, y)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = outer(tf.constant(3), x)
    assert float(y) == 2.0**7
    assert float(tape.gradient(y, x)) == 7 * 2.0**6


def test_body_passes_itself_on():
    def leaves(n):
        if n < 2:
            return n
        return tf.reduce_sum(tf.map_fn(leaves, tf.stack([n - 1, n - 2])))

    assert int(tfr.recursive(leaves)(tf.constant(8))) == 21


@pytest.mark.thorough
def test_derivatives_are_of_the_function_that_was_called():
    """A body is built again for them, when its name is another function's."""

    def power(x, n):
        if n < 1:
            return tf.ones_like(x)
        return x * power(x, n - 1)

    function, x = tfr.recursive(power), tf.constant([2.0, 3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, tf.constant(3))
        power = None
        slope = tape.gradient(y, x)
    np.testing.assert_allclose(slope, [12.0, 27.0])
    np.testing.assert_allclose(outer.gradient(slope, x), [12.0, 18.0])


class Tree(tf.Module):
    def depth(self, n):
        if n < 1:
            return n
        return self.depth(n // 2) + 1

    recursive_depth = tfr.recursive(depth)


_calls = 0


def counted(n):
    global _calls
    _calls += 1
    if n < 1:
        return n
    return counted(n - 1) + 1


def with_two(m, n):
    if n < 1:
        return m
    return with_two(m, n - 1) + 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "make",
    [
        lambda: Tree().recursive_depth,
        lambda: tfr.recursive(counted),
        lambda: tfr.recursive(functools.partial(with_two, 2), name="partial"),
    ],
    ids=["method", "assigns_a_global", "partial"],
)
def test_others_are_errors_that_say_what_to_write(make):
    with pytest.raises(Exception, match=r"without end.*under another name.*write f = tfr.recursive\(f\)"):
        make()(tf.constant(3))
