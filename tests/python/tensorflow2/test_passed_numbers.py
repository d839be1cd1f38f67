"""Python numbers that change from call to call of a recursion which TensorFlow ends: they are passed as tensors."""
# SPDX-License-Identifier: Apache-2.0

import warnings

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

OUTERMOST = pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
SHORT, LONG = [5.0, 7.0], [1.0, 2.0, 3.0, 4.0]
WARNING = "its calls pass another Python number as "


def plain(function):
    return function


# Each makes functions by the decorator that it is given, and returns what is called with a tensor of numbers.
PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


@program
def index(recursive):
    @recursive
    def fraction(a, i):
        if i == tf.size(a) - 1:
            return a[i]
        return a[i] + 1.0 / fraction(a, i + 1)

    return lambda a: fraction(a, 0)


@program
def default_and_keyword(recursive):
    @recursive
    def horner(a, i=0, *, scale):
        if i == tf.size(a) - 1:
            return a[i] * scale
        return a[i] + 0.5 * horner(a, i + 1, scale=scale / 2)

    return lambda a: horner(a, scale=3.0)


@program
def several_arguments(recursive):
    @recursive
    def product(a, *range_and_factor):
        low, factor = range_and_factor
        if low >= tf.size(a):
            return factor * tf.reduce_sum(a)
        return a[low] * product(a, low + 1, factor * 0.5) + 1.0

    return lambda a: product(a, 0, 2.0)


@program
def state_in_a_nest(recursive):
    @recursive
    def walk(a, state):
        if state["i"] >= tf.size(a):
            return tf.reduce_sum(a) * state["scale"][0]
        return a[state["i"]] * walk(a, {"i": state["i"] + 1, "scale": (state["scale"][0] * 0.5,)})

    return lambda a: walk(a, {"i": 0, "scale": (2.0,)})


@program
def two_functions(recursive):
    @recursive
    def even(a, i):
        return 0.0 if i >= tf.size(a) else a[i] + odd(a, i + 1)

    @recursive
    def odd(a, i):
        return 1.0 if i >= tf.size(a) else -a[i] * even(a, i + 1)

    return lambda a: even(a, 0)


@program
def children_of_a_heap(recursive):
    @recursive
    def tree(i, a):
        if 2 * i + 1 >= tf.size(a):
            return a[i]
        right = tree(2 * i + 2, a) if 2 * i + 2 < tf.size(a) else tf.constant(0.0)
        return tf.tanh(tree(2 * i + 1, a) + 0.5 * right) * a[i]

    return lambda a: tree(0, a)


@program
def loop_around_a_call(recursive):
    @recursive
    def total(a, i):
        if i >= tf.size(a):
            return 0.0
        found = 0.0
        for _ in tf.range(2):
            found += total(a, i + 2) * a[i]
        return found + a[i]

    return lambda a: total(a, 0)


@program
def accumulator(recursive):
    @recursive
    def total(a, i, found):
        return found if i == tf.size(a) else total(a, i + 1, found + a[i] ** 2)

    return lambda a: total(a, 0, 0.0)


@program
def tolerance(recursive):
    def curve(t):
        return tf.exp(-t * t)

    @recursive
    def area(low, high, error):
        middle = (low + high) / 2
        whole = (high - low) * curve(middle)
        halves = (high - low) / 2 * (curve((low + middle) / 2) + curve((middle + high) / 2))
        if tf.abs(halves - whole) < error:
            return halves
        return area(low, middle, error / 2) + area(middle, high, error / 2)

    return lambda a: area(0.0 * a[0], a[1] / 4, 0.01)


@program
def function_that_a_body_makes(recursive):
    @recursive
    def outer(a, n):
        @recursive
        def inner(i):
            return 1.0 if i == tf.size(a) else a[i] * inner(i + 1) + 1.0

        return inner(0) if n == 0 else inner(0) * outer(a, n - 1)

    return lambda a: outer(a, tf.constant(2))


@program
def more_than_python_unrolls(recursive):
    @recursive
    def repeat(a, depth):
        return tf.reduce_sum(a) if depth == 0 else tf.sin(repeat(a, depth - 1))

    return lambda a: repeat(a, 100)


@program
def doubles(recursive):
    @recursive
    def grow(x, factor):
        return x if tf.abs(x) > 1000.0 else grow(x * factor, factor + 0.5)

    return lambda a: grow(tf.cast(a[0], tf.float64), 1.5)


@program
def long_integers(recursive):
    @recursive
    def total(a, i):
        if i == tf.size(a, tf.int64):
            return 0.0
        return a[i] + total(a, i + 1)

    return lambda a: total(a, 0)


@program
def integers_that_grow(recursive):
    @recursive
    def total(a, seed, n):
        return 0.0 if n < 1 else tf.cast(seed % 100, tf.float32) * a[0] + total(a, seed * 16807 % 2147483647, n - 1)

    return lambda a: total(a, 1, tf.constant(30))


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings(f"ignore:.*{WARNING}")
@pytest.mark.each_value
@OUTERMOST
@pytest.mark.parametrize("make", PROGRAMS.values(), ids=list(PROGRAMS))
def test_values_and_gradients_are_those_of_python(make, outermost, functions_run_eagerly):
    def with_gradient(function):
        def of(a):
            with tf.GradientTape() as tape:
                tape.watch(a)
                value = function(a)
            return value, tape.gradient(value, a)

        return of

    vectors = [tf.constant(SHORT), tf.constant(LONG)]
    expected = [with_gradient(make(plain))(a) for a in vectors]
    tf.config.run_functions_eagerly(False)
    function = outermost(with_gradient(make(tfr.recursive)))
    for a, values in zip(vectors, expected, strict=True):
        for found, value in zip(function(a), values, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-4)


def fraction():
    @tfr.recursive
    def fraction(a, i):
        if i == tf.size(a) - 1:
            return a[i]
        return a[i] + 1.0 / fraction(a, i + 1)

    return fraction


def test_a_warning_says_which_numbers_are_tensors_and_of_what_dtype():
    function = fraction()
    with pytest.warns(RuntimeWarning, match=f"Function 'fraction': {WARNING}'i' each time.*of int32.*tf.constant"):
        assert float(function(tf.constant(SHORT), 0)) == np.float32(5 + 1 / 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(tf.constant(LONG), 0)
        function(tf.constant(LONG), 1)
        fraction()(tf.constant(LONG), tf.constant(0))


def test_methods_of_several_objects_need_one_warning():
    class Model(tf.Module):
        def __init__(self, weight):
            super().__init__()
            self.weight = tf.Variable(weight)

        @tfr.recursive
        def total(self, a, i):
            return self.weight if i == tf.size(a) else a[i] * self.total(a, i + 1)

    with pytest.warns(RuntimeWarning, match=WARNING):
        assert float(Model(2.0).total(tf.constant(SHORT), 0)) == 70.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(Model(3.0).total(tf.constant(SHORT), 0)) == 105.0


def test_numbers_of_a_recursion_that_python_ends_keep_their_values():
    seen = []

    @tfr.recursive
    def layers(x, i):
        seen.append(i)
        return x if i == 20 else tf.tanh(layers(x, i + 1))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layers(tf.constant(1.0), 0)
    assert set(seen) == set(range(21))


@pytest.mark.thorough
def test_floats_of_a_recursion_that_either_may_end_keep_their_digits():
    @tfr.recursive
    def steps(x, t):
        if t >= 3.0:  # after 30 steps, or 31 in float32
            return x
        return x if x > 1e6 else steps(x + 1.0, t + 0.1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(steps(tf.constant(0.0), 0.0)) == 30.0


@pytest.mark.full_matrix
@pytest.mark.filterwarnings("ignore:overflow encountered")  # TensorFlow takes a float for float32 first
@pytest.mark.filterwarnings(f"ignore:.*{WARNING}")
def test_numbers_that_the_dtype_of_earlier_ones_does_not_hold_have_a_wider_one():
    @tfr.recursive
    def last(x, i, t):
        return tf.cast(i, tf.float64) + tf.cast(t, tf.float64) if x < 1 else last(x - 1, i + 1, t / 2)

    assert float(last(tf.constant(2), 0, 1.0)) == 2.25
    assert float(last(tf.constant(2), 2**40, 1.0)) == 2**40 + 2.25
    assert float(last(tf.constant(2), 0, 1e300)) == 2.5e299


def test_error_that_tensors_have_too_is_said_once():
    @tfr.recursive
    def layers(x, i):
        return tf.matmul(x, tf.zeros([7, 7])) if i == 5 else layers(tf.tanh(x), i + 1)

    with pytest.raises(ValueError, match="Dimensions must be equal") as error:
        layers(tf.zeros([3, 3]), 0)
    assert str(error.value).count("Dimensions must be equal") == 1


def test_numbers_are_values_again_after_the_user_has_interrupted():
    is_interrupted = True

    @tfr.recursive
    def total(x, i):
        if is_interrupted and tf.is_tensor(i):
            raise KeyboardInterrupt
        names = ["a", "b", "c"]
        return len(names[i]) if (i == 2 and not is_interrupted) or x < 1 else total(x - 1, i + 1)

    with pytest.raises(KeyboardInterrupt):
        total(tf.constant(5), 0)
    is_interrupted = False
    assert int(total(tf.constant(5), 0)) == 1


@OUTERMOST
def test_error_is_that_of_values_and_says_that_tensors_fail_too(outermost):
    names = ["a", "b", "c"]

    @tfr.recursive
    def longest(x, i):
        if x < 1:
            return 0
        return len(names[i]) + longest(x - 1, i + 1)

    message = f"(?s)list index out of range.*Function 'longest': {WARNING}'i' each time.*it fails, too: "
    for _ in range(2):
        with pytest.raises(Exception, match=message):  # AutoGraph makes an error of its own of an IndexError
            outermost(lambda: longest(tf.constant(2), 0))()


def test_numbers_are_values_again_after_a_call_that_failed():
    layers = [tf.Variable(2.0), tf.Variable(3.0)]

    @tfr.recursive
    def product(x, i, ends_in_python):
        if ends_in_python and i == len(layers):
            return x
        if not ends_in_python and x > 100.0:
            return x
        return product(x * layers[i], i + 1, ends_in_python)

    with pytest.raises(Exception, match="list index out of range"):
        product(tf.constant(1.0), 0, False)
    assert float(product(tf.constant(1.0), 0, True)) == 6.0


@pytest.mark.thorough
def test_numbers_that_no_tensor_holds_stay_values():
    @tfr.recursive
    def multiplied(x, number):
        return x if x < 1 else multiplied(x - 1, number * 256)

    with pytest.raises(TypeError, match=r"other kinds of arguments 64 times in a row.*tf\.constant\(n\)"):
        multiplied(tf.constant(1), 3)


def test_a_call_that_fails_while_it_runs_is_not_made_again():
    calls = tf.Variable(0)

    @tfr.recursive
    def total(a, i):
        if i == 0:
            calls.assign_add(1)
        if i == tf.size(a):
            with tf.control_dependencies([tf.debugging.assert_less(calls, 0)]):
                return tf.constant(0.0)
        return a[i] + total(a, i + 1)

    with pytest.warns(RuntimeWarning, match=WARNING), pytest.raises(tf.errors.InvalidArgumentError):
        total(tf.constant(SHORT), 0)
    assert int(calls) == 1


def test_numbers_are_tensors_in_sessions():
    with tf.Graph().as_default(), pytest.warns(RuntimeWarning, match=WARNING):
        a = tf.constant([5.0, 7.0])
        value = fraction()(a, 0)
        gradient = tf.compat.v1.gradients(value, a)
        with tf.compat.v1.Session(config=tfr.session_config(on_fallback="error")) as session:
            found = session.run([value, *gradient])
    np.testing.assert_allclose(found[0], 5 + 1 / 7)
    np.testing.assert_allclose(found[1], [1.0, -1 / 49])


def test_error_of_a_nested_conditional_expression_quotes_the_condition_as_written():
    def choose(x):
        return x if (x < 3.0 if x < 4.0 else x < 2.0) else tf.constant(1)

    with pytest.raises(TypeError, match=r"'.?x < 3.0 if x < 4.0 else x < 2.0.?' has dtype float32"):
        tf.function(choose)(tf.constant(1.0))
