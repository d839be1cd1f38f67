"""`tf.autodiff.ForwardAccumulator` gives for a recursive function what it gives for the same one unrolled in Python."""
# SPDX-License-Identifier: Apache-2.0

import itertools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.autograph.impl import api

import tensorflow_recursion as tfr

F64, I32 = tf.float64, tf.int32
DEPTH = 2
SPECS = [tf.TensorSpec([1, 2], F64), tf.TensorSpec([], I32)]


def row(w, n):
    """Row n of w as a product, which TensorFlow differentiates in both modes; of a gather it does only in one."""
    return tf.matmul(tf.one_hot([n], 3, dtype=F64), w)


def multiplied(w):
    @tfr.recursive(input_signature=SPECS)
    def net(x, n):
        if n < 1:
            return x
        return tf.tanh(tf.matmul(tf.pad(net(x, n - 1), [[0, 0], [0, 1]]), w))

    return net


def gathered(w):
    @tfr.recursive(input_signature=SPECS)
    def net(x, n):
        if n < 1:
            return x
        return tf.tanh(net(x, n - 1) * tf.gather(w, [n]))

    return net


def sliced(w):
    @tfr.recursive(input_signature=SPECS)
    def net(x, n):
        if n < 1:
            return x
        return tf.tanh(net(x, n - 1) * w[n] + w[n, 1])

    return net


def unrolled(step):
    def build(w):
        def net(x, n):
            for i in range(1, DEPTH + 1):
                x = tf.tanh(step(w, x, i))
            return x

        return net

    return build


NETS = {
    "product": (multiplied, unrolled(lambda w, x, i: tf.matmul(tf.pad(x, [[0, 0], [0, 1]]), w))),
    "rows": (gathered, unrolled(lambda w, x, i: x * row(w, i))),
    "slices": (sliced, unrolled(lambda w, x, i: x * w[i] + w[i, 1])),
}


def value(net, w):
    return lambda x: net(x, DEPTH)


def gradient(net, w):
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(net(x, DEPTH) ** 2)
        return [tf.convert_to_tensor(one) for one in tape.gradient(y, [x, w])]

    return both


def traced(f, x):
    function = tf.function(f)
    function(x)
    return function


# How what is followed is put into functions: `tangent` calls the one that it is given under an accumulator.
PLACES = {
    "eager": lambda tangent, f, x: tangent(f),
    "around a tf.function": lambda tangent, f, x: tangent(tf.function(f)),
    "around a traced tf.function": lambda tangent, f, x: tangent(traced(f, x)),
    "around a tf.function in another": lambda tangent, f, x: tangent(tf.function(lambda x: tf.function(f)(x))),
    "in a tf.function": lambda tangent, f, x: tf.function(lambda: tangent(f))(),
    "in a tf.function, around another": lambda tangent, f, x: tf.function(lambda: tangent(tf.function(f)))(),
}


def tangents(net, w, what, followed, place):
    """The tangent, as a list of arrays; None where TensorFlow gives None."""
    x = tf.constant([[0.5, -0.25]], F64)
    primal, direction = (x, tf.constant([[1.0, 0.5]], F64)) if followed == "x" else (w, tf.ones_like(w))

    def tangent(f):
        with tf.autodiff.ForwardAccumulator(primal, direction) as accumulator:
            result = f(x)
        return accumulator.jvp(result)

    found = PLACES[place](tangent, what(net, w), x)
    return [None if one is None else one.numpy() for one in tf.nest.flatten(found)]


CASES = list(itertools.product(NETS, (value, gradient), ("x", "w"), PLACES))


@pytest.mark.each_value
@pytest.mark.thorough
@pytest.mark.sampled(6)
@pytest.mark.parametrize(("net", "what", "followed", "place"), CASES)
def test_tangent_is_that_of_the_unrolled_function(net, what, followed, place):
    w = tf.Variable(np.arange(1.0, 7.0).reshape(3, 2) / 6)
    recursive, plain = (build(w) for build in NETS[net])
    got, expected = (tangents(one, w, what, followed, place) for one in (recursive, plain))
    assert [one is None for one in got] == [one is None for one in expected]
    for one, other in zip(got, expected, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-9)


def halve(w):
    w.assign(w * 0.5)


ASSIGNMENTS = {
    "itself": halve,
    "function": tf.function(halve),
    "branch": lambda w: tf.cond(w[0, 0] > 0, lambda: halve(w), lambda: None),
    "loop": lambda w: tf.while_loop(lambda i: i < 2, lambda i: (halve(w), i + 1)[1], [0]),
}


@pytest.mark.parametrize("place", ["here", "in another"])
@pytest.mark.parametrize("how", ASSIGNMENTS)
def test_function_that_assigns_what_a_call_reads_is_refused(how, place):
    w = tf.Variable(np.ones([3, 2]))
    net = multiplied(w)

    @tf.function
    def step(x):
        y = net(x, DEPTH)
        ASSIGNMENTS[how](w)
        return y

    x = tf.constant([[0.5, -0.25]], F64)
    with (
        pytest.raises(LookupError, match=r"assigns to variables that calls in it read \(Variable:0\)"),
        tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)),
    ):
        step(x) if place == "here" else tf.function(lambda x: step(x) * 2)(x)


@pytest.mark.thorough
def test_body_that_assigns_what_it_reads_is_refused():
    w, count = tf.Variable(2.0), tf.Variable(0)

    def power(assigned, by):
        @tfr.recursive
        def power(x, n):
            if n < 1:
                return tf.ones_like(x)
            y = w * x * power(x, n - 1)
            assigned.assign_add(by)
            return y

        return power

    def tangent(net):
        x = tf.constant(3.0)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = net(x, tf.constant(2))
        return float(accumulator.jvp(y))

    with pytest.raises(LookupError, match=r"Function 'power'.* assigns to variables that calls in it read"):
        tangent(power(w, 1.0))
    assert tangent(power(count, 1)) == 24


@pytest.mark.full_matrix
def test_function_may_assign_what_no_call_reads():
    w, count = tf.Variable(np.ones([3, 2]) / 2), tf.Variable(0)
    recursive, plain = (build(w) for build in NETS["product"])
    x = tf.constant([[0.5, -0.25]], F64)

    def tangent(net):
        @tf.function
        def step(x):
            count.assign_add(1)
            return gradient(net, w)(x)

        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            found = step(x)
        return accumulator.jvp(found)

    for one, other in zip(tangent(recursive), tangent(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert count.numpy() == 2


def gradient_of_tangent(net, followed, w, is_persistent):
    """What makes, by a tape around an accumulator, the gradients of a tangent for what the net reads."""
    x = tf.constant([[0.5, -0.25]], F64)

    def gradients():
        with tf.GradientTape(persistent=is_persistent) as tape:
            tape.watch(x)
            primal, direction = (x, tf.ones([1, 2], F64)) if followed == "x" else (w, tf.convert_to_tensor(w))
            with tf.autodiff.ForwardAccumulator(primal, direction) as accumulator:
                y = net(x, tf.constant(DEPTH))
            tangent = accumulator.jvp(y)
        return [tf.convert_to_tensor(one) for one in tape.gradient(tangent, [x, w])]

    return gradients


def in_function(net):
    return tf.function(lambda x, n: net(x, n))


# How the call and what is around it are put into functions.
PLACES_OF_TAPES = {
    "eager": lambda program, net: program(net)(),
    "around a tf.function": lambda program, net: program(in_function(net))(),
    "in a tf.function": lambda program, net: tf.function(program(net))(),
    "in a tf.function, around another": lambda program, net: tf.function(program(in_function(net)))(),
}


# TensorFlow does not tell the accumulator there of what the inner function reads: the tangent is None.
UNKNOWN = ("w", "in a tf.function, around another")


@pytest.mark.full_matrix
@pytest.mark.parametrize(
    ("followed", "place"), [case for case in itertools.product("xw", PLACES_OF_TAPES) if case != UNKNOWN]
)
@pytest.mark.parametrize("is_persistent", [False, True])
@pytest.mark.parametrize("net", NETS)
def test_tape_around_an_accumulator_sees_the_tangent(net, is_persistent, followed, place):
    w = tf.Variable(np.arange(1.0, 7.0).reshape(3, 2) / 6)
    recursive, plain = (build(w) for build in NETS[net])

    def program(f):
        return gradient_of_tangent(f, followed, w, is_persistent)

    got, expected = PLACES_OF_TAPES[place](program, recursive), program(plain)()
    assert len(got) == len(expected) == 2
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


# AutoGraph has an error of its own for what it cannot make anew with more lines, such as a LookupError.
REFUSAL = "'(net|<lambda>)'.*began later or has a tape around it.*nested tapes"


def late(net, x, primal):
    """A tangent that begins when the call is over."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = net(x, tf.constant(DEPTH))
    with tf.autodiff.ForwardAccumulator(primal, tf.ones_like(primal)) as accumulator:
        gradient = tape.gradient(y, x)
    return accumulator.jvp(gradient)


def between_tapes(net, x, primal):
    """The gradient of the tangent of a gradient."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.autodiff.ForwardAccumulator(primal, tf.ones_like(primal)) as accumulator:
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = net(x, tf.constant(DEPTH))
            gradient = inner.gradient(y, x)
        tangent = accumulator.jvp(gradient)
    return None if tangent is None else outer.gradient(tangent, x)


# Where the accumulator follows operators, not functions, or TensorFlow does not tell it of what a function reads.
AS_UNROLLED = [
    (late, "x", "in a tf.function"),
    (late, "w", "in a tf.function, around another"),
    (between_tapes, "x", "in a tf.function"),
    (between_tapes, "w", "in a tf.function"),
    (between_tapes, "w", "in a tf.function, around another"),
]


@pytest.mark.full_matrix
@pytest.mark.parametrize("place", PLACES_OF_TAPES)
@pytest.mark.parametrize("followed", ["x", "w"])
@pytest.mark.parametrize("what", [late, between_tapes])
def test_accumulator_that_did_not_follow_the_call_is_refused_where_it_is_wrong(what, followed, place):
    w = tf.Variable(np.arange(1.0, 7.0).reshape(3, 2) / 6)
    x = tf.constant([[0.5, -0.25]], F64)

    def program(net):
        return lambda: what(net, x, x if followed == "x" else w)

    recursive, plain = (build(w) for build in NETS["product"])
    if (what, followed, place) in AS_UNROLLED:
        got, expected = (PLACES_OF_TAPES[place](program, net) for net in (recursive, plain))
        assert (got is None) == (expected is None)
        if got is not None:
            np.testing.assert_allclose(got, expected, rtol=1e-9)
        return
    with pytest.raises((LookupError, api.StagingError), match=REFUSAL):
        PLACES_OF_TAPES[place](program, recursive)


@pytest.mark.full_matrix
def test_accumulator_of_the_gradient_for_the_result_may_begin_late():
    w = tf.Variable(np.arange(1.0, 7.0).reshape(3, 2) / 6)
    x = tf.constant([[0.5, -0.25]], F64)
    given, ones = tf.constant([[1.0, 2.0]], F64), tf.ones([1, 2], F64)
    found = []
    for net in (build(w) for build in NETS["product"]):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = net(x, DEPTH)
        with tf.autodiff.ForwardAccumulator(given, ones) as accumulator:
            gradient = tape.gradient(y, x, output_gradients=given)
        found.append(accumulator.jvp(gradient))
    np.testing.assert_allclose(*found, rtol=1e-9)


def following_strings(kind):
    """A function that recurses along a string, which is an argument, a result or comes from a table."""
    keys = tf.constant(["a", "b", "c"])
    initializer = tf.lookup.KeyValueTensorInitializer(keys, tf.constant(["b", "c", "end"]))
    table = tf.lookup.StaticHashTable(initializer, "end")

    @tfr.recursive
    def by_argument(x, s):
        if tf.strings.length(s) < 1:
            return x
        return by_argument(x * x, tf.strings.substr(s, 1, -1))

    @tfr.recursive
    def by_table(x, s):
        if s == "end":
            return x
        return by_table(x * x, table.lookup(s))

    @tfr.recursive
    def named(x, s):
        if tf.strings.length(s) < 1:
            return x, s
        below, name = named(x * x, tf.strings.substr(s, 1, -1))
        return below, name + "." + s

    functions = {
        "argument": lambda x: by_argument(x, tf.constant("abc")),
        "table": lambda x: by_table(x, tf.constant("a")),
        "result": lambda x: named(x, tf.constant("abc"))[0],
    }
    return functions[kind]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["argument", "table", "result"])
def test_tangent_beside_strings_is_that_of_the_unrolled_function(kind, place):
    def tangent(f):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            result = f(x)
        return accumulator.jvp(result)

    x = tf.constant(1.25, F64)
    np.testing.assert_allclose(PLACES[place](tangent, following_strings(kind), x), 8 * 1.25**7, rtol=1e-9)


def twice(values, n, again):
    """Calls a function on one tensor in several places: as arguments, and captured."""
    if n < 1:
        return values * again
    return twice(tf.sin(values), n - 1, again) * values


def passed_twice(source):
    net = tfr.recursive(twice)
    return lambda: net(source, tf.constant(DEPTH), source)


def passed_and_captured(source):
    @tfr.recursive
    def net(values, n):
        if n < 1:
            return values * source
        return net(tf.sin(values), n - 1) * values

    return lambda: net(source, tf.constant(DEPTH))


def passed_to_a_tf_function(source):
    net = tfr.recursive(twice)
    called = tf.function(lambda values, again: net(values, tf.constant(DEPTH), again))
    return lambda: called(source, source)


@pytest.mark.each_value
@pytest.mark.parametrize("before", ["a gradient", "a tangent", "nothing"])
@pytest.mark.parametrize("kind", ["tensor", "variable"])
@pytest.mark.parametrize("passed", [passed_twice, passed_and_captured, passed_to_a_tf_function])
def test_tensor_that_a_call_gets_in_several_places_has_one_tangent(passed, kind, before):
    value = tf.constant([0.5, -0.75], F64)
    source = value if kind == "tensor" else tf.Variable(value)

    def tangent(net):
        with tf.autodiff.ForwardAccumulator(source, tf.ones_like(value)) as accumulator:
            result = net()
        return accumulator.jvp(result)

    net = passed(source)
    if before == "a gradient":  # after it, the trace holds the operators of gradients
        with tf.GradientTape() as tape:
            tape.watch(source)
            result = net()
        tape.gradient(result, source)
    elif before == "a tangent":
        tangent(net)
    np.testing.assert_allclose(tangent(net), tangent(lambda: twice(source, DEPTH, source)), rtol=1e-12)


def printing(n):
    if n < 1:
        return n
    tf.print("at", n)
    return printing(n - 1)


@pytest.mark.each_value
@pytest.mark.parametrize("returned", [None, [None], (None, {"none": None})], ids=["nothing", "a list", "a nest"])
@pytest.mark.parametrize("place", PLACES)
def test_tangent_beside_a_call_that_returns_no_tensor_is_that_of_what_is_returned(place, returned, capfd):
    net = tfr.recursive(printing)

    @tf.function
    def report(x):
        net(tf.cast(x, I32))
        return returned

    def cube(x):
        report(x)
        return x**3

    def tangent(f):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            result = f(x)
        return accumulator.jvp(result)

    x = tf.constant(2.0, F64)
    assert PLACES[place](tangent, cube, x).numpy() == 12.0
    assert capfd.readouterr().err.endswith("at 2\nat 1\n")


def fourth_power(scaled):
    """x^4, with a gradient of the user's own, which multiplies by x three times by `scaled`."""

    @tf.custom_gradient
    def power(x):
        return x**4, lambda dy: 4 * scaled(x, dy, tf.constant(3))

    return power


@tfr.recursive(input_signature=[tf.TensorSpec([], F64), tf.TensorSpec([], F64), tf.TensorSpec([], I32)])
def scaled_by_calls(x, dy, n):
    if n < 1:
        return dy
    return x * scaled_by_calls(x, dy, n - 1)


@pytest.mark.each_value
@pytest.mark.parametrize("place", ["eager", "tf.function"])
@pytest.mark.parametrize("scaled", [scaled_by_calls, tf.function(lambda x, dy, n: scaled_by_calls(x, dy, n))])
def test_call_in_a_backward_function_is_followed_by_the_accumulators_that_follow_the_function(scaled, place):
    x, power = tf.constant(1.5, F64), fourth_power(scaled)

    def tangents():
        with tf.autodiff.ForwardAccumulator(x, tf.ones([], F64)) as outer:
            with tf.autodiff.ForwardAccumulator(x, tf.ones([], F64)) as inner:
                y = power(x)
            first = inner.jvp(y)
        assert inner.jvp(outer.jvp(y)) is None, "the inner one follows what the outer one computes"
        return y, first, outer.jvp(y), outer.jvp(first)

    found = tf.function(tangents)() if place == "tf.function" else tangents()
    np.testing.assert_allclose(found, [1.5**4, 4 * 1.5**3, 4 * 1.5**3, 12 * 1.5**2], rtol=1e-12)


@pytest.mark.parametrize("place", ["eager", "tf.function"])
@pytest.mark.parametrize("through_a_function", [False, True])
def test_gradient_of_a_tangent_has_the_parts_of_variables_that_the_body_reads(through_a_function, place):
    w, x = tf.Variable(0.7, dtype=F64), tf.constant(0.5, F64)

    @tfr.recursive
    def power_of_w(x, n):
        if n < 1:
            return x
        return w * power_of_w(x, n - 1)

    call = tf.function(power_of_w) if through_a_function else power_of_w

    def gradients():
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.autodiff.ForwardAccumulator([x, w], [tf.constant(0.3, F64), tf.constant(2.0, F64)]) as accumulator:
                y = call(x, tf.constant(3))
            tangent = accumulator.jvp(y)
        return tangent, *tape.gradient(tangent, [x, w])

    found = tf.function(gradients)() if place == "tf.function" else gradients()
    # y = w^3 x, and its tangent is 0.3 w^3 + 2 (3 w^2 x)
    np.testing.assert_allclose(
        found, [0.3 * 0.7**3 + 6 * 0.7**2 * 0.5, 6 * 0.7**2, 0.9 * 0.7**2 + 12 * 0.7 * 0.5], rtol=1e-12
    )
