"""Functions that a body passes to calls may refer to tensors, which are further arguments of these calls."""
# SPDX-License-Identifier: Apache-2.0

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

pytestmark = pytest.mark.usefixtures("static_or_error")
RUN_BY = pytest.mark.parametrize("run_by", [lambda step: step, tf.function], ids=["eager", "tf.function"])

Factors = collections.namedtuple("Factors", ["first", "rest"])


@tfr.recursive
def repeat(n, x, g):
    """g applied n times."""
    if n < 1:
        return x
    return repeat(n - 1, g(x), g)


def over_a_variable(k):
    return lambda y: y * k


def over_a_default(k):
    return lambda y, factor=k: y * factor


def over_a_keyword(k):
    return lambda y, *, factor=k: y * factor


def partial(k):
    return functools.partial(tf.multiply, k)


def over_a_tuple(k):
    both = (k, 1.0)
    return lambda y: y * both[0] * both[1]


def over_a_named_tuple(k):
    both = Factors(first=k, rest=(1.0,))
    return lambda y: y * both.first * both.rest[0]


def over_a_function(k):
    inner = over_a_variable(k)
    return lambda y: inner(y)


def over_two(k):
    one = k + 0.0
    return lambda y: y * (k + one) / 2.0


def over_a_ragged_tensor(k):
    rows = tf.RaggedTensor.from_row_splits([k, 1.0], [0, 1, 2])
    return lambda y: y * rows[0][0] * rows.flat_values[1]


class Scale(tf.experimental.ExtensionType):
    factor: tf.Tensor
    name: str = "scale"

    @tfr.recursive
    def scaled(self, y):
        return y * self.factor


def over_an_extension_type(k):
    scale = Scale(k)
    return lambda y: y * scale.factor


def method_of_an_extension_type(k):
    return Scale(k).scaled


@pytest.mark.thorough
@pytest.mark.sampled(12)
@RUN_BY
@pytest.mark.parametrize(
    "make",
    [
        over_a_variable,
        over_a_default,
        over_a_keyword,
        partial,
        over_a_tuple,
        over_a_named_tuple,
        over_a_function,
        over_two,
        over_a_ragged_tensor,
        over_an_extension_type,
        method_of_an_extension_type,
    ],
)
def test_value_and_derivatives(make, run_by):
    @tfr.recursive
    def outer(n, x):
        if n < 1:
            return x
        return outer(n - 1, repeat(2, x, make(x + tf.cast(n, tf.float32))))

    def unrolled(n, x):
        for i in range(n, 0, -1):
            x = x * (x + i) ** 2
        return x

    def derivatives(function):
        def step(x):
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch(x)
                    y = function(2, x)
                dx = first.gradient(y, x)
            return y, dx, second.gradient(dx, x)

        return step

    x = tf.constant(0.5)
    np.testing.assert_allclose(run_by(derivatives(outer))(x), derivatives(unrolled)(x), rtol=1e-5)


def test_functions_of_one_kind_share_a_trace():
    """Which tensors they refer to does not matter."""
    traces = []

    @tfr.recursive
    def once(x, g):
        traces.append(x)
        return g(x)

    @tf.function
    def step(a, b):
        found = once(1.0, lambda y: y * a) + once(1.0, lambda y: y * b) * 10.0
        return found, [once(1.0, lambda y: y * k) for k in (a, b)]

    found, several = step(tf.constant(2.0), tf.constant(3.0))
    assert float(found) == 32.0
    assert [float(one) for one in several] == [2.0, 3.0]
    assert len(traces) <= 6  # of three lambdas, each for what it returns and for its trace


def test_what_is_made_of_tensors_is_told_by_its_kind_and_passed_along():
    @tfr.recursive
    def once(x, g):
        return g(x)

    @tfr.recursive
    def step(a, n):
        if n < 1:
            return a
        names = [Scale(step(a, n - 1), name) for name in ("one", "one", "two")]
        one, other, two = ((lambda y, k=k: y * k.factor * len(k.name)) for k in names)
        return once(2.0, one) + once(3.0, other) + once(4.0, two) + once(1.0, names[0].scaled)

    with tf.GradientTape() as tape:
        tape.watch(a := tf.constant(1.5))
        y = step(a, tf.constant(1))
    assert float(y) == 1.5 * 28.0 and float(tape.gradient(y, a)) == 28.0


def test_one_tensor_twice_is_told_from_two_tensors():
    @tfr.recursive
    def once(x, g, h):
        return g(x) * 10.0 + h(x)

    def times(k):
        return lambda y: y * k

    @tf.function
    def step(a, b):
        g, h = times(a), times(b)
        pairs = [(g, g), (g, h), (h, g), (times(a), times(a)), (times(b), h)]
        return [once(1.0, *pair) for pair in pairs] + [once(1.0, one, one) for one in (h, lambda y: g(h(y)) + h(y))]

    found = [float(one) for one in step(tf.constant(2.0), tf.constant(3.0))]
    assert found == [22.0, 23.0, 32.0, 22.0, 33.0, 33.0, 99.0]


@pytest.mark.parametrize("place", ["branch", "loop"])
def test_tensors_of_control_flow(place):
    @tfr.recursive
    def outer(n, x):
        if n < 1:
            return x
        if place == "branch":
            if n > 1:
                k = x + 1.0
                x = repeat(2, x, lambda y: y * k)
        else:
            for i in tf.range(2):
                k = tf.cast(i, tf.float32) + x
                x = repeat(1, x, lambda y: y + k)
        return outer(n - 1, x)

    expected = {"branch": 2.0 * 9.0, "loop": 2.0}[place]
    if place == "loop":
        for _ in range(2):
            for i in range(2):
                expected = expected + i + expected
    assert float(outer(tf.constant(2), tf.constant(2.0))) == expected


def test_map_and_fold_over_a_tree():
    """What such functions are for: one recursion over the tree, and what it does is an argument."""
    left, right = tf.constant([1, 3, -1, -1, -1]), tf.constant([2, 4, -1, -1, -1])
    values = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])

    @tfr.recursive
    def fold(node, f):
        if left[node] < 0:
            return values[node]
        return f(values[node], fold(left[node], f), fold(right[node], f))

    @tf.function
    def scaled(factor):
        with tf.GradientTape() as tape:
            tape.watch(factor)
            y = fold(tf.constant(0), lambda value, a, b: value + factor * (a + b))
        return y, tape.gradient(y, factor)

    # 1 + k (2 + k (4 + 5) + 3) = 1 + 5 k + 9 k^2
    np.testing.assert_allclose(scaled(tf.constant(2.0)), [47.0, 41.0])


@pytest.mark.thorough
def test_list_in_a_function_is_an_error_that_says_what_to_do():
    @tfr.recursive
    def outer(n, x):
        if n < 1:
            return x
        ks = [x * 2.0]
        return outer(n - 1, repeat(2, x, lambda y: y * ks[0]))

    with pytest.raises(tfr.errors.CallError, match="'g' is the function <lambda>.*let it refer to the tensors in them"):
        outer(tf.constant(2), tf.constant(1.0))


def test_functions_of_a_recursion_may_refer_to_a_named_tuple():
    @tfr.recursive
    def product(n, g, factors):
        if n < 1:
            return g(factors.first)
        return product(n - 1, lambda y: y * factors.first, factors)

    assert float(product(tf.constant(3), lambda y: y, Factors(tf.constant(3.0), ()))) == 9.0


@pytest.mark.thorough
def test_dictionary_in_a_function_of_a_recursion_is_an_error_that_says_what_to_do():
    @tfr.recursive
    def product(n, g, factors):
        if n < 1:
            return g(factors["k"])
        return product(n - 1, lambda y: y * factors["k"], factors)

    with pytest.raises(tfr.errors.CallError, match="'g' is the function <lambda>.*let it refer to the tensors in them"):
        product(tf.constant(3), lambda y: y, {"k": tf.constant(3.0)})


def continued(g, k):
    return lambda y: g(y) * k


def composed_with_itself(g, k):
    return lambda y: g(g(y))


@pytest.mark.thorough
@pytest.mark.parametrize("grown", [continued, composed_with_itself])
def test_function_that_grows_is_an_error(grown):
    """To trace the one that is composed with itself takes twice as long at each level."""

    @tfr.recursive
    def grows(n, x, g):
        if n < 1:
            return g(x)
        return grows(n - 1, x + 1.0, grown(g, x + 1.0))

    with pytest.raises(tfr.errors.CallError, match="12 times in a row with a function that calls the one before"):
        grows(tf.constant(3), tf.constant(1.0), lambda y: y)


def test_functions_grow_where_python_ends_it():
    @tfr.recursive
    def grows(level, x, g):
        return g(x) if level == 0 else grows(level - 1, x, lambda y: g(g(y)))

    assert float(grows(5, tf.constant(0.0), lambda y: y + 1.0)) == 32.0
