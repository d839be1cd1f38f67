"""Python functions that recursive functions get as arguments or find around them; a body is built more than once."""
# SPDX-License-Identifier: Apache-2.0

import functools
import gc
import random
import weakref

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

pytestmark = pytest.mark.usefixtures("short_collections")
OUTERMOST = pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])


class Scale(tf.Module):
    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(3.0)

    def scaled(self, x):
        return x * self.factor

    @tfr.recursive
    def halved_and_scaled(self, x):
        if x < 100.0:
            return x * self.factor
        return self.halved_and_scaled(x / 2.0)


def functions(scale):
    """What is gone when the call is over, unless the call keeps it."""
    return {
        "lambda": lambda: lambda x: x * scale.factor,
        "method": lambda: scale.scaled,
        "recursive method": lambda: scale.halved_and_scaled,
        "partial": lambda: functools.partial(tf.multiply, scale.factor),
    }


@pytest.fixture
def repeat():
    @tfr.recursive
    def repeat(x, n, function):
        if n < 1:
            return x
        return function(repeat(x, n - 1, function))

    return repeat


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@OUTERMOST
@pytest.mark.parametrize("kind", list(functions(None)))
def test_functions_that_nobody_keeps_have_gradients(outermost, kind, repeat):
    scale = Scale()

    def gradients(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = repeat(x, tf.constant(2), functions(scale)[kind]())
            gc.collect()
            dx = tape.gradient(y, x)
        return y, dx, tape.gradient(y, scale.factor), outer.gradient(dx, scale.factor)

    assert [float(one) for one in outermost(gradients)(tf.constant(2.0))] == [18.0, 9.0, 12.0, 6.0]


@pytest.mark.sampled(2)
@OUTERMOST
@pytest.mark.parametrize("make", ["lambda", "partial", "method"])
def test_functions_that_a_body_makes_have_gradients(outermost, make):
    """Each trace of the body makes others."""

    class Twice:
        def __init__(self, function):
            self.function = function

        def both(self, x):
            return self.function(x) * 2.0

    start = Twice(lambda x: x + 1.0)

    @tfr.recursive
    def compose(x, depth, function):
        if depth == 0:
            return function(x)
        if make == "lambda":
            return compose(x, depth - 1, lambda x: function(x) * 2.0)
        if make == "partial":
            return compose(x, depth - 1, functools.partial(lambda f, x: f(x) * 2.0, function))
        return compose(x, depth - 1, start.both)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compose(x, 3, lambda x: x + 1.0)
        return y, tape.gradient(y, x)

    expected = [4.0, 2.0] if make == "method" else [16.0, 8.0]
    assert [float(one) for one in outermost(gradient)(tf.constant(1.0))] == expected


@pytest.mark.sampled(2)
@OUTERMOST
@pytest.mark.parametrize("way", ["definition", "argument"])
def test_functions_mean_what_they_did_when_they_were_called(outermost, way, repeat):
    """When the gradient is taken, the variable of the loop has another value than at the call."""

    def gradient(x):
        values = []
        with tf.GradientTape() as tape:
            tape.watch(x)
            for k in range(3):

                @tfr.recursive
                def power(x, n):
                    return x if n < 1 else power(x, n - 1) * (k + 1.0)

                by_argument = repeat(x, tf.constant(2), lambda x: x * (k + 1.0))
                values.append(power(x, tf.constant(2)) if way == "definition" else by_argument)
        return values, tape.gradient(values, x)

    values, slope = outermost(gradient)(tf.constant(2.0))
    np.testing.assert_allclose(values, [2.0, 8.0, 18.0])
    assert float(slope) == 14.0


@OUTERMOST
def test_function_keeps_the_variable_that_it_makes(outermost):
    variable = None

    @tfr.recursive
    def power(x, n):
        nonlocal variable
        if variable is None:
            variable = tf.Variable(3.0)
        return x if n < 1 else power(x, n - 1) * variable

    @outermost
    def gradient(x):
        with tf.GradientTape() as tape:
            y = power(x, tf.constant(2))
        return tape.gradient(y, variable)

    assert float(gradient(tf.constant(2.0))) == 12.0


class Factor:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("is_stated", [False, True], ids=["found out", "stated"])
@pytest.mark.parametrize("value", ["object", "number"])
def test_values_that_each_trace_makes_anew_are_an_error_that_says_so(is_stated, value):
    """A body is traced again because it captures a variable."""
    weight = tf.Variable(1.0)

    @tfr.recursive(output_signature=tf.TensorSpec([], tf.float32) if is_stated else None)
    def power(x, depth, factor):
        if depth == 0:
            return x * weight
        made = Factor(2.0) if value == "object" else random.random()
        return power(x, depth - 1, made) * (factor.value if value == "object" else factor)

    with pytest.raises(TypeError, match=r"(?s)Function 'power': each time.*'factor' is .*__eq__.*random numbers"):
        tf.function(lambda x: power(x, 3, Factor(2.0) if value == "object" else 1.0))(tf.constant(1.0))


@OUTERMOST
def test_equal_objects_that_each_trace_makes_anew_are_taken(outermost):
    class Equal(Factor):
        def __eq__(self, other):
            return isinstance(other, Equal) and self.value == other.value

        def __hash__(self):
            return hash(self.value)

    @tfr.recursive
    def power(x, depth, factor):
        if depth == 0:
            return x
        return power(x, depth - 1, Equal(factor.value + 1.0)) * factor.value

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(x, 3, Equal(1.0))
        return tape.gradient(y, x)

    assert float(outermost(gradient)(tf.constant(1.0))) == 6.0


@pytest.mark.sampled(2)
@OUTERMOST
@pytest.mark.parametrize("way", ["nested", "partial"])
def test_functions_that_functions_refer_to_mean_what_they_did(outermost, way, repeat):
    """A variable that one of them assigns is what the others see."""

    def gradient(x):
        values, known = [], None

        def two():
            nonlocal known
            known = 2.0
            return known

        with tf.GradientTape() as tape:
            tape.watch(x)
            for k in range(3):

                def scaled(x):
                    return x * (two() * k + known - 1.0)

                given = functools.partial(lambda f, x: f(x), scaled) if way == "partial" else lambda x: scaled(x)
                values.append(repeat(x, tf.constant(2), given))
        return values, tape.gradient(values, x)

    values, slope = outermost(gradient)(tf.constant(1.0))
    np.testing.assert_allclose(values, [1.0, 9.0, 25.0])
    assert float(slope) == 35.0


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(2.0)

    def scaled(self, x):
        return x * self.weight

    @tfr.recursive
    def halved(self, x):
        return x * self.weight if x < 100.0 else self.halved(x / 2.0)

    @tf.function
    def gradient(self, x, repeat, way):
        given = {"lambda": lambda x: x * self.weight, "method": self.scaled, "recursive method": self.halved}
        with tf.GradientTape() as tape:
            y = repeat(x, tf.constant(2), given[way])
        return tape.gradient(y, self.weight)


@pytest.mark.parametrize("way", ["lambda", "method", "recursive method"])
def test_functions_do_not_keep_the_object_whose_method_calls(way, repeat):
    net = Net()
    gone = weakref.ref(net)
    assert float(net.gradient(tf.constant(1.0), repeat, way)) == 4.0
    del net
    gc.collect()
    assert gone() is None


def test_gradient_where_the_object_that_an_argument_uses_is_gone(repeat):
    def doubled(net):
        return lambda x: net.halved(x) * 2.0

    nets = [Net()]
    weight = nets[0].weight

    @tf.function(autograph=False)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = repeat(x, tf.constant(2), doubled(nets[0]))
        nets.clear()
        gc.collect()
        return tape.gradient(y, [x, weight])

    np.testing.assert_allclose(gradient(tf.constant(1.0)), [16.0, 16.0])


def squared(x):
    return x * x


class Times:
    """A decorator that is a class."""

    def __init__(self, function, factor):
        functools.update_wrapper(self, function)
        self.function = function
        self.factor = factor

    def __call__(self, x):
        return self.function(x) * self.factor


def times(function, factor):
    @functools.wraps(function)
    def scaled(x):
        return function(x) * factor

    return scaled


def times_with_note(function, factor):
    scaled = times(function, factor)
    scaled.note = "told by which object it is"
    return scaled


@pytest.mark.sampled(2)
@OUTERMOST
@pytest.mark.parametrize("decorate", [Times, times, times_with_note])
def test_decorated_functions_are_not_taken_for_what_they_decorate(outermost, decorate, repeat):
    """TensorFlow does: what `functools.wraps` has made is to tf.function the function in it."""

    def gradients(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            values = [repeat(x, tf.constant(1), decorate(squared, factor)) for factor in (2.0, 3.0)]
        return [tape.gradient(value, x) for value in values]

    assert [float(one) for one in outermost(gradients)(tf.constant(1.0))] == [4.0, 6.0]


@OUTERMOST
def test_decorated_functions_mean_what_they_did_when_they_were_called(outermost, repeat):
    def gradients(x):
        values = []
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            for k in range(2):

                @functools.wraps(squared)
                def scaled(x):
                    return squared(x) * (k + 1.0)

                values.append(repeat(x, tf.constant(1), scaled))
        return [tape.gradient(value, x) for value in values]

    assert [float(one) for one in outermost(gradients)(tf.constant(1.0))] == [2.0, 4.0]


def test_decorated_function_that_a_body_makes_is_one_kind(repeat):
    @tfr.recursive
    def nested(x, n):
        return x if n < 1 else repeat(nested(x, n - 1), n, times(squared, 0.5))

    assert float(tf.function(nested)(tf.constant(4.0), tf.constant(2))) == 0.5 * (0.5 * 8.0**2) ** 2


def scaled_by_default(x, factor=2.0):
    return x * factor


@OUTERMOST
def test_function_has_the_defaults_of_the_call(outermost, repeat, monkeypatch):
    monkeypatch.setattr(scaled_by_default, "__defaults__", (2.0,))

    def gradients(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            first = repeat(x, tf.constant(1), scaled_by_default)
            scaled_by_default.__defaults__ = (3.0,)
            second = repeat(x, tf.constant(1), scaled_by_default)
            scaled_by_default.__defaults__ = (5.0,)
        return tape.gradient(first, x), tape.gradient(second, x)

    assert [float(one) for one in outermost(gradients)(tf.constant(1.0))] == [2.0, 3.0]


@OUTERMOST
def test_functions_that_are_defaults_mean_what_they_did(outermost, repeat):
    def gradients(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            values = []
            for k in range(2):

                def scaled(x, by=lambda x: x * (k + 2.0), *, then=lambda x: x + k):
                    return then(by(x))

                values.append(repeat(x, tf.constant(2), scaled))
        return [*values, *(tape.gradient(value, x) for value in values)]

    assert [float(one) for one in outermost(gradients)(tf.constant(1.0))] == [4.0, 13.0, 4.0, 9.0]


@OUTERMOST
def test_function_sees_what_a_variable_around_it_is_at_each_call(outermost, repeat):
    def values(x):
        found, k = [], 2.0

        def scaled(x):
            return x * k

        for k in (2.0, 3.0):  # noqa: B007  # `scaled` reads it
            found.append(repeat(x, tf.constant(1), scaled))
        return found

    assert [float(one) for one in outermost(values)(tf.constant(1.0))] == [2.0, 3.0]


K = 1.0
WEIGHT = None


def times_k(x):
    return x * K


def times_k_by_another(x):
    return times_k(x) + 0.0 * K


def counted(x):
    global K
    K += 1.0
    return 2.0 * x


@pytest.mark.sampled(2)
@OUTERMOST
@pytest.mark.parametrize(
    "make",
    [lambda: lambda x: x * K, lambda: times_k, lambda: times_k_by_another],
    ids=["lambda", "function", "another"],
)
def test_global_variables_are_those_of_the_call(outermost, make, repeat, monkeypatch):
    """As in a script, where the variable of a loop is global. Gradients are computed when all calls have been made."""
    taken = []
    for k in (2.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "K", k)
        function = make()
        x = tf.constant(1.5)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = outermost(lambda x, function=function: repeat(x, tf.constant(2), function))(x)
        taken.append((tape, x, y))
    assert [float(y) for _, _, y in taken] == [6.0, 13.5, 6.0]
    assert [float(tape.gradient(y, x)) for tape, x, y in taken] == [4.0, 9.0, 4.0]


def test_global_variables_may_be_variables_that_are_gone_later(repeat, monkeypatch):
    for k in (2.0, 3.0):
        monkeypatch.setitem(globals(), "WEIGHT", tf.Variable(k))
        with tf.GradientTape() as tape:
            y = repeat(tf.constant(1.0), tf.constant(2), lambda x: x * WEIGHT)
        assert [float(y), float(tape.gradient(y, WEIGHT))] == [k * k, 2 * k]


def test_function_that_assigns_a_global_variable_assigns_it(repeat, monkeypatch):
    monkeypatch.setitem(globals(), "K", 0.0)
    assert float(repeat(tf.constant(1.0), tf.constant(3), counted)) == 8.0
    traced, traces = K, repeat.experimental_get_tracing_count()
    assert traced > 0.0
    assert float(repeat(tf.constant(1.0), tf.constant(3), counted)) == 8.0
    assert repeat.experimental_get_tracing_count() == traces
    assert traced == K


def test_one_trace_while_global_variables_stay(repeat, monkeypatch):
    for _ in range(3):
        monkeypatch.setitem(globals(), "K", 2.0)
        assert float(repeat(tf.constant(1.0), tf.constant(3), lambda x: times_k(x))) == 8.0
    assert repeat.experimental_get_tracing_count() == 1
