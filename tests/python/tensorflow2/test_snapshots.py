"""Second derivatives run a function once more: with its variables as they were when it was called, and to no effect."""
# SPDX-License-Identifier: Apache-2.0

import warnings

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

RUN_BY = pytest.mark.parametrize("run_by", [lambda step: step, tf.function], ids=["eager", "tf.function"])
EXECUTION = pytest.mark.parametrize("is_static", [True, False], ids=["static", "dynamic"])
DEPTH = 3


@pytest.fixture(autouse=True)
def execution(request):
    """Runs a test that has a parameter `is_static` with static execution on or off."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    with tfr.config.static_execution(parameters.get("is_static", True)):
        yield


def recursive_power(weight):
    """x w^n by recursion."""

    @tfr.recursive
    def power(n, x):
        if n < 1:
            return x
        return power(n - 1, x * weight)

    return power


def unrolled_power(weight):
    """x w^n, unrolled."""

    def power(n, x):
        for _ in range(n):
            x = x * weight
        return x

    return power


def derivatives_with_assignments(power, weight):
    """Three orders of derivatives of a power by its weight, which is assigned to before each of them."""

    def step(x):
        weight.assign(2.0)
        with tf.GradientTape(persistent=True) as third:
            with tf.GradientTape(persistent=True) as second:
                with tf.GradientTape() as first:
                    y = power(DEPTH, x)
                weight.assign(50.0)
                dw = first.gradient(y, weight)
            weight.assign(60.0)
            ddw = second.gradient(dw, weight)
        weight.assign(70.0)
        return y, dw, ddw, third.gradient(ddw, weight)

    return step


def derivatives_of(function):
    """Value and two derivatives of a function of n and x, for n = DEPTH."""

    def step(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(DEPTH, x)
            dx = inner.gradient(y, x)
        return y, dx, outer.gradient(dx, x)

    return step


@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.sampled(2)
@EXECUTION
@RUN_BY
def test_derivatives_are_at_the_value_of_the_call(run_by, is_static):
    weight = tf.Variable(0.0)
    expected = [8.0 * 5, 3 * 4.0 * 5, 6 * 2.0 * 5, 6.0 * 5]
    for power in (recursive_power(weight), unrolled_power(weight)):
        step = run_by(derivatives_with_assignments(power, weight))
        np.testing.assert_allclose(step(tf.constant(5.0)), expected)
        assert float(weight) == 70.0


@pytest.mark.thorough
@pytest.mark.each_value
@EXECUTION
@RUN_BY
def test_function_that_assigns_has_its_effect_once(run_by, is_static):
    calls, total = tf.Variable(0), tf.Variable(1.0)

    @tfr.recursive
    def product(n, x):
        if n < 1:
            return x
        calls.assign_add(1)
        total.assign(total * 2.0)
        return product(n - 1, x * x * total)

    step = run_by(derivatives_of(product))
    for run in range(2):
        y, dx, ddx = step(tf.constant(1.5))
        assert (int(calls), float(total)) == ((run + 1) * DEPTH, 2.0 ** ((run + 1) * DEPTH))
        np.testing.assert_allclose([dx * 1.5 / y, ddx * 1.5**2 / y], [8.0, 56.0], rtol=1e-5)  # y is c x^8


@pytest.mark.sampled(2)
@pytest.mark.thorough
@RUN_BY
def test_second_derivative_draws_the_same_random_numbers(run_by):
    generator = tf.random.Generator.from_seed(7)

    @tfr.recursive
    def noisy(n, x):
        if n < 1:
            return x
        return noisy(n - 1, x * x * generator.uniform([3]))

    step = run_by(derivatives_of(noisy))
    x = tf.constant([1.0, 2.0, 3.0])
    y, dx, ddx = step(x)
    np.testing.assert_allclose(dx * x / y, [8.0] * 3, rtol=1e-5)
    np.testing.assert_allclose(ddx * x * x / y, [56.0] * 3, rtol=1e-5)
    after = generator.state.numpy()
    generator.reset_from_seed(7)
    np.testing.assert_array_equal(noisy(DEPTH, x), y)
    np.testing.assert_array_equal(generator.state, after)  # the derivatives drew nothing


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["branch", "loop"])
def test_calls_in_control_flow(place):
    weight = tf.Variable(0.0)
    power = recursive_power(weight)

    @tf.function
    def step(x, n):
        weight.assign(2.0)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x
                if place == "branch":
                    if n > 1:
                        y = power(DEPTH, x)
                else:
                    for _ in tf.range(n):
                        y = power(DEPTH, y)
            dw = inner.gradient(y, weight)
            weight.assign(50.0)
        return y, dw, outer.gradient(dw, weight)

    expected = [40.0, 60.0, 60.0] if place == "branch" else [320.0, 6 * 32.0 * 5, 30 * 16.0 * 5]
    np.testing.assert_allclose(step(tf.constant(5.0), tf.constant(2)), expected)


@RUN_BY
def test_variable_as_an_argument(run_by):
    weight = tf.Variable(2.0)

    @tfr.recursive
    def power(n, x, factor):
        if n < 1:
            return x
        return power(n - 1, x * factor, factor)

    @run_by
    def step(x):
        weight.assign(2.0)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = power(DEPTH, x, weight)
            weight.assign(50.0)
            dw = inner.gradient(y, weight)
        return outer.gradient(dw, weight)

    assert float(step(tf.constant(5.0))) == 6 * 2.0 * 5


@pytest.mark.sampled(2)
@pytest.mark.thorough
@RUN_BY
def test_rows_of_a_table(run_by):
    table = tf.Variable([[1.0], [2.0], [3.0]])

    @tfr.recursive
    def product(n):
        if n < 1:
            return tf.ones([1])
        return product(n - 1) * tf.gather(table, n - 1) ** 2

    @run_by
    def step():
        table.assign([[1.0], [2.0], [3.0]])
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = product(3)
            dy = tf.convert_to_tensor(inner.gradient(y, table))
            table.assign([[7.0], [7.0], [7.0]])
        return dy, tf.convert_to_tensor(outer.gradient(dy, table))

    # y = (a b c)^2, the first derivative for a is 2 a (b c)^2, and that of the sum of all three for a is
    # 2 (b c)^2 + 4 a b c (b + c)
    first, second = step()
    np.testing.assert_allclose(first[:, 0], [72.0, 36.0, 24.0])
    np.testing.assert_allclose(second[:, 0], [72 + 120, 18 + 96, 8 + 72])


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("differentiate", ["jacobian", "vectorized_map"])
def test_vectorized_derivatives(differentiate):
    weight = tf.Variable(2.0)
    power = recursive_power(weight)
    xs = tf.constant([1.0, 2.0, 3.0])

    def of(x):
        with tf.GradientTape() as inner:
            y = power(DEPTH, x)
        return inner.gradient(y, weight)  # 3 x w^2, summed

    @tf.function
    def step():
        weight.assign(2.0)
        with tf.GradientTape() as outer:
            found = of(xs) if differentiate == "jacobian" else tf.vectorized_map(of, xs)
        weight.assign(50.0)
        return (outer.jacobian if differentiate == "jacobian" else outer.gradient)(found, weight)

    np.testing.assert_allclose(step(), 6 * 2.0 * 6)


@pytest.mark.thorough
def test_loaded_function(tmp_path):
    module = tf.Module()
    module.weight = tf.Variable(2.0)
    power = recursive_power(module.weight)
    module.power = tf.function(lambda x: power(tf.constant(DEPTH), x), input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = loaded.power(tf.constant(5.0))
        dw = inner.gradient(y, loaded.weight)
    loaded.weight.assign(50.0)
    assert float(outer.gradient(dw, loaded.weight)) == 6 * 2.0 * 5


def test_variable_that_has_no_value_yet():
    """A function may give a variable its first value: the snapshot has none of it, which is no error."""
    state = tf.Variable(shape=[], dtype=tf.float32, initial_value=tf.zeros([]))
    tf.raw_ops.DestroyResourceOp(resource=state.handle)

    @tfr.recursive
    def begin(n, x):
        if n < 1:
            state.assign(x)
            return x * state
        return begin(n - 1, x)

    assert float(begin(2, tf.constant(3.0))) == 9.0


@pytest.mark.thorough
@pytest.mark.parametrize("operator", ["RandomUniform", "LookupTableInsertV2"])
def test_what_may_be_something_else_the_second_time_is_warned_of(operator):
    table = tf.lookup.experimental.MutableHashTable(tf.int32, tf.float32, 0.0)

    @tfr.recursive
    def draws(n, x):
        if n < 1:
            return x
        if operator == "RandomUniform":
            return draws(n - 1, x * tf.random.uniform([]))
        table.insert(n, 1.0)
        return draws(n - 1, x * table.lookup(n))

    x = tf.constant(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = draws(2, x)
        tape.gradient(y, x)
    with pytest.warns(RuntimeWarning, match=f"of 'draws'.*run the function once more.*{operator}"):
        derivatives_of(draws)(x)


def assigned_row(table, n):
    table[n].assign(table[n] + 1.0)


ROWS = {
    "one": assigned_row,
    "added": lambda table, n: table.scatter_nd_add([[n]], [1.0]),
    "put": lambda table, n: table.scatter_nd_update([[n]], [table[n] + 1.0]),
    "added slices": lambda table, n: table.scatter_add(tf.IndexedSlices(tf.constant([1.0]), tf.reshape(n, [1]))),
    "all": lambda table, n: table.assign_add(tf.one_hot(n, 4)),
    "by a function": lambda table, n: tf.function(assigned_row)(table, n),
}


@pytest.mark.sampled(6)
@pytest.mark.thorough
@pytest.mark.each_value
@EXECUTION
@RUN_BY
@pytest.mark.parametrize("assign", ROWS.values(), ids=list(ROWS))
def test_rows_that_a_body_assigns_are_as_they_were_and_assigned_once(run_by, is_static, assign):
    """The first update of rows makes TensorFlow update that variable in place."""
    table, other = tf.Variable(tf.zeros([4])), tf.Variable(tf.ones([4]))

    @tfr.recursive
    def net(n, x):
        assign(table, n)
        if n < 1:
            return x * table[n] * other[n]
        return net(n - 1, x) * x * table[n] * other[n]

    step = run_by(derivatives_of(lambda _, x: net(tf.constant(2), x)))
    for k in range(1, 4):  # x^3 k^3
        np.testing.assert_allclose(step(tf.constant(0.5)), [0.125 * k**3, 0.75 * k**3, 3.0 * k**3], rtol=1e-5)
        np.testing.assert_array_equal(table, [k, k, k, 0.0])


@pytest.mark.thorough
def test_second_derivative_of_what_a_table_remembers():
    table = tf.Variable(tf.fill([6], -1.0))

    @tfr.recursive
    def power(n, x):
        if table[n] >= 0.0:
            return table[n]
        if n < 1:
            return tf.ones_like(x)
        y = x * power(n - 1, x)
        table.scatter_nd_update([[n]], [y])
        return y

    step = derivatives_of(lambda _, x: power(tf.constant(4), x))
    for _ in range(3):
        table.assign(tf.fill([6], -1.0))
        assert float(step(tf.constant(1.5))[2]) == pytest.approx(12 * 1.5**2)
