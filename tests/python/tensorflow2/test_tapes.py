"""tf.GradientTape and what builds on it, in and around tf.functions, on a power by recursion: v x^n."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import new_name

import tensorflow_recursion as tfr

N = 5
X = 2.0
V = 1.5
# The derivatives of v x^n at these numbers: by x once, twice, three times; by v; by x and v.
DX, DXX, DXXX, DV, DXV = 120.0, 240.0, 360.0, 32.0, 80.0


@pytest.fixture
def v():
    return tf.Variable(V)


@pytest.fixture
def power(v):
    """v x^n by recursion, with the variable captured."""
    power_name = new_name("Power")
    declared = tfr.Declare(power_name, [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)], output_shapes=[[]])

    @tfr.Defun(tf.float32, tf.int32, func_name=power_name)
    def impl(x, n):
        return tf.cond(n < 1, lambda: v * 1.0, lambda: x * declared(x, n - 1))

    return impl


@pytest.fixture(params=["in", "around", "around, in another"])
def differentiate(request, power):
    """Calls a function of `power`, which takes x and n, so that its tapes are inside a tf.function, or around one."""
    if request.param == "in":
        return lambda func: tf.function(lambda: func(lambda x, n=N: power(x, n)))()
    called = tf.function(lambda x, n: power(x, n))
    around = lambda func: func(lambda x, n=N: called(x, n))
    return around if request.param == "around" else lambda func: tf.function(lambda: around(func))()


def numbers(values):
    return [None if value is None else np.asarray(value).tolist() for value in tf.nest.flatten(values)]


def test_tape_adds_gradients_of_calls_to_those_of_operators(differentiate, v):
    def gradient(power):
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(x) + x
        return tape.gradient(y, [x, v])

    assert numbers(differentiate(gradient)) == [DX + 1, DV]


def test_captured_variables_are_watched(differentiate, v):
    watched = []

    def gradient(power):
        with tf.GradientTape() as tape:
            y = power(tf.constant(X))
        watched.extend(tape.watched_variables())
        return tape.gradient(y, v)

    assert numbers(differentiate(gradient)) == [DV]
    assert watched
    assert all(variable is v for variable in watched)


def test_persistent_tape_answers_several_times(differentiate, v):
    def gradient(power):
        x = tf.constant(X)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = power(x)
            z = y * y
        return tape.gradient(y, x), tape.gradient(z, x), tape.gradient(z, v)

    y = V * X**N
    assert numbers(differentiate(gradient)) == [DX, 2 * y * DX, 2 * y * DV]


@pytest.mark.thorough
@pytest.mark.sampled(2)
def test_gradient_of_gradient_by_nested_tapes(differentiate, v):
    def gradient(power):
        x = tf.constant(X)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = power(x)
            first = inner.gradient(y, x)
        return first, outer.gradient(first, [x, v])

    assert numbers(differentiate(gradient)) == [DX, DXX, DXV]


@pytest.mark.full_matrix
def test_third_order_by_nested_tapes(differentiate):
    def gradient(power):
        x = tf.constant(X)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as middle:
                middle.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    y = power(x)
                first = inner.gradient(y, x)
            second = middle.gradient(first, x)
        return first, second, outer.gradient(second, x)

    assert numbers(differentiate(gradient)) == [DX, DXX, DXXX]


def test_unconnected_sources_follow_the_rule_of_tensorflow(differentiate):
    def gradient(power):
        x, other = tf.constant(X), tf.constant(1.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, other])
            y = power(x)
        return [tape.gradient(y, other, unconnected_gradients=rule) for rule in ("none", "zero")]

    assert differentiate(lambda power: gradient(power)[1:])[0].numpy() == 0.0
    found = []
    differentiate(lambda power: found.append(gradient(power)[0]))
    assert all(gradient is None for gradient in found)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("pfor", [True, False])
def test_jacobian(differentiate, pfor):
    def gradient(power):
        x = tf.constant([2.0, 3.0])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.stack([power(x[0], 3), power(x[1], 2)])
        return tape.jacobian(y, x, experimental_use_pfor=pfor)

    assert numbers(differentiate(gradient)) == [[[V * 3 * 4, 0.0], [0.0, V * 2 * 3]]]


@pytest.mark.thorough
@pytest.mark.sampled(4)
def test_hessian_as_jacobian_of_gradient(differentiate):
    def gradient(power):
        x = tf.constant([2.0, 3.0])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = power(x[0], 3) * x[1]
            first = inner.gradient(y, x)
        return outer.jacobian(first, x)

    assert numbers(differentiate(gradient)) == [[[V * 6 * 2 * 3, V * 3 * 4], [V * 3 * 4, 0.0]]]


@pytest.mark.sampled(2)
def test_batch_jacobian(differentiate):
    def gradient(power):
        x = tf.constant([[2.0], [3.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.stack([[power(x[0, 0], 3)], [power(x[1, 0], 3)]])
        return tape.batch_jacobian(y, x)

    assert numbers(differentiate(gradient)) == [[[[V * 3 * 4]], [[V * 3 * 9]]]]


def test_vectorized_map_and_its_gradient(differentiate):
    def gradient(power):
        x = tf.constant([2.0, 3.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.vectorized_map(lambda one: power(one, 3), x)
        return y, tape.gradient(y, x)

    assert numbers(differentiate(gradient)) == [[V * 8, V * 27], [V * 3 * 4, V * 3 * 9]]


@pytest.mark.thorough
def test_gradient_of_a_vectorized_map_for_a_variable(power, v):
    def gradient():
        with tf.GradientTape() as tape:
            y = tf.vectorized_map(lambda one: power(one, 3), tf.constant([2.0, 3.0]))
        return tape.gradient(y, v)

    assert numbers([gradient(), tf.function(gradient)()]) == [8.0 + 27.0, 8.0 + 27.0]


def test_vectorized_map_of_gradients(differentiate):
    def gradient(power):
        def one(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = power(x, 3)
            return tape.gradient(y, x)

        return tf.vectorized_map(one, tf.constant([2.0, 3.0]))

    assert numbers(differentiate(gradient)) == [[V * 3 * 4, V * 3 * 9]]


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("taken", [[], [1], [0, 1]])
def test_vectorized_branch_that_some_elements_take(taken):
    w = tf.Variable([[0.5, 0.25], [0.25, -0.5]])

    @tfr.recursive
    def net(x, n):
        return x if n < 1 else tf.tanh(tf.linalg.matvec(w, net(x, n - 1)))

    def gradient(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(net(x, 2))
        return tape.gradient(y, w)

    def of_element(element):
        x, is_taken = element
        called = tf.cond(is_taken, lambda: net(x, 3), lambda: x)
        return called, tf.cond(is_taken, lambda: gradient(x), lambda: tf.zeros([2, 2]))

    elements = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([0 in taken, 1 in taken])
    expected = zip(*[of_element((x, is_taken)) for x, is_taken in zip(*elements, strict=True)], strict=True)
    for value, one_by_one in zip(tf.vectorized_map(of_element, elements), expected, strict=True):
        np.testing.assert_allclose(value, one_by_one, rtol=1e-5)


@pytest.mark.full_matrix
def test_second_derivative_of_a_vectorized_loop_in_a_body():
    w = tf.Variable([0.5, -0.25])

    def goes_on(i, y):
        return tf.logical_and(i < 2, y[0] < 5.0)

    def loop(x):
        return tf.reduce_sum(tf.while_loop(goes_on, lambda i, y: (i + 1, tf.tanh(y * w)), (0, x))[1])

    @tfr.recursive
    def vectorized(x, n):
        return x if n < 1 else tf.vectorized_map(lambda element: loop(x * element), vectorized(x, n - 1))

    def one_by_one(x, n):
        return x if n < 1 else tf.stack([loop(x * element) for element in tf.unstack(one_by_one(x, n - 1))])

    def derivatives(function):
        x = tf.constant([2.0, 4.0])
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = tf.reduce_sum(tf.sin(function(x, tf.constant(2))))
            gradients = first.gradient(y, [x, w])
            total = tf.add_n([tf.reduce_sum(gradient**2) for gradient in gradients])
        return gradients + second.gradient(total, [x, w])

    for found, right in zip(derivatives(vectorized), derivatives(one_by_one), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_custom_gradient_around(differentiate, v):
    def gradient(power):
        @tf.custom_gradient
        def clipped(x):
            y = power(x)

            def grad(dy, variables):
                return dy * 7.0, [dy * 11.0 for _ in variables]

            return y, grad

        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = clipped(x)
        return tape.gradient(y, [x, v])

    assert numbers(differentiate(gradient)) == [7.0, 11.0]


def test_custom_gradient_that_calls(differentiate):
    @tfr.recursive
    def times_cosine(x, dy, n):
        return dy if n < 1 else tf.cos(x) * times_cosine(x, dy, n - 1)

    def gradients(_):
        @tf.custom_gradient
        def sine(x):
            return tf.sin(x), lambda dy: tf.cond(dy > 0.0, lambda: times_cosine(x, dy, 1), lambda: dy)

        x = tf.constant(X)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = tf.function(sine)(x)
            dx = first.gradient(y, x)
        return dx, second.gradient(dx, x)

    assert numbers(differentiate(gradients)) == pytest.approx([np.cos(X), -np.sin(X)])


def test_custom_gradient_inside():
    @tf.custom_gradient
    def doubled(x):
        return x * 2.0, lambda dy: dy * 10.0

    chain_name = new_name("Chain")
    declared = tfr.Declare(chain_name, [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @tfr.Defun(tf.float32, tf.int32, func_name=chain_name)
    def chain(x, n):
        return tf.cond(n < 1, lambda: x, lambda: doubled(declared(x, n - 1)))

    called = tf.function(lambda x: chain(x, 3))
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = called(x)
    assert numbers([y, tape.gradient(y, x)]) == [8.0, 1000.0]


def test_recompute_grad(differentiate, v):
    def gradient(power):
        recomputed = tf.recompute_grad(lambda x: power(x))
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = recomputed(x)
        return tape.gradient(y, [x, v])

    assert numbers(differentiate(gradient)) == [DX, DV]


@pytest.mark.parametrize("where", ["in", "around"])
def test_forward_accumulator(power, v, where):
    called = tf.function(lambda x: power(x, N))

    def tangent():
        x = tf.constant(X)
        with tf.autodiff.ForwardAccumulator([x, v], [tf.constant(1.0), tf.constant(10.0)]) as accumulator:
            y = called(x) if where == "around" else power(x, N)
        return accumulator.jvp(y)

    assert numbers(tangent() if where == "around" else tf.function(tangent)()) == [DX + 10 * DV]


@pytest.mark.thorough
def test_forward_over_backward(power):
    called = tf.function(lambda x: power(x, N))
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = called(x)
        first = tape.gradient(y, x)
    assert numbers([first, accumulator.jvp(first)]) == [DX, DXX]


def test_symbolic_gradients_in_a_tf_function(power, v):
    @tf.function
    def gradients(x):
        first = tf.gradients(power(x, N), [x, v])
        return first, tf.gradients(first[0], [x, v])

    assert numbers(gradients(tf.constant(X))) == [DX, DV, DXX, DXV]


@pytest.mark.thorough
def test_tape_around_control_flow_that_calls(power, v):
    @tf.function
    def gradient(x, n):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.cond(n > 2, lambda: power(x, n), lambda: x)
            z = x
            for _ in tf.range(2):
                z = power(z, 2)
        return tape.gradient(y, [x, v]), tape.gradient(z, [x, v])

    # z = v (v x^2)^2
    assert numbers(gradient(tf.constant(X), tf.constant(N))) == [DX, DV, V**3 * 4 * X**3, 3 * V**2 * X**4]


def test_tape_in_a_recursive_body():
    """The body of f takes the gradient of x^n at x = n, and f sums that over n."""
    cube_name = new_name("Cube")
    declared = tfr.Declare(cube_name, [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])
    sum_name = new_name("Sum")
    sums = tfr.Declare(sum_name, [("n", tf.int32)], [("y", tf.float32)])

    @tfr.Defun(tf.float32, tf.int32, func_name=cube_name)
    def cube(x, n):
        return tf.cond(n < 1, lambda: 1.0, lambda: x * declared(x, n - 1))

    def slope(n):
        x = tf.cast(n, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x, 3)
        return tape.gradient(y, x)

    @tfr.Defun(tf.int32, func_name=sum_name)
    def impl(n):
        return tf.cond(n < 1, lambda: 0.0, lambda: slope(n) + sums(n - 1))

    with tf.GradientTape(persistent=True):  # is none of the body's business
        result = tf.function(lambda: impl(3))()
    assert result.numpy() == 3.0 * (1 + 4 + 9)


@pytest.mark.parametrize("is_called_before", [False, True])
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
def test_tape_in_a_body_around_a_function_that_captures_a_variable(outermost, is_called_before):
    """The body is traced before the function that it calls is; so the call lacks what that one captures, at first."""
    v = tf.Variable(V)

    @tfr.recursive
    def raised(x, n):
        if n < 1:
            return v * 1.0
        return x * raised(x, n - 1)

    @tfr.recursive
    def slopes(x, n):
        if n < 1:
            return 0.0 * x, 0.0 * x
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = raised(x, n)
        of_x, of_v = tape.gradient(y, [x, v])
        sum_of_x, sum_of_v = slopes(x, n - 1)
        return of_x + sum_of_x, of_v + sum_of_v

    def called(x, n):
        if is_called_before:
            raised(x, n)
        return slopes(x, n)

    got = outermost(called)(tf.constant(X), tf.constant(N))
    expected = [sum(V * n * X ** (n - 1) for n in range(1, N + 1)), sum(X**n for n in range(1, N + 1))]
    assert numbers(got) == expected


def test_gradient_of_a_call_is_all_that_a_body_returns():
    """What it returns is found out where calls return what is not computed: a tape sees a gradient all the same."""

    @tfr.recursive
    def raised(x, n):
        if n < 1:
            return x * 0.0 + V
        return x * raised(x, n - 1)

    @tfr.recursive
    def slopes(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = raised(x, n)
            if n > 2:
                y = 2.0 * y
            for _ in tf.range(2):
                y = y + 1.0
        slope = tape.gradient(y, x)
        if n < 1:
            return slope
        return slope + slopes(x, n - 1)

    expected = sum(V * n * X ** (n - 1) * (2 if n > 2 else 1) for n in range(1, N + 1))
    assert numbers(slopes(tf.constant(X), tf.constant(N))) == [expected]


@pytest.mark.thorough
def test_first_call_may_be_under_nested_tapes(power, v):
    """What a tape has to do with a body is its call, not the operators that are traced while it is active."""
    x = tf.Variable(X)
    called = tf.function(lambda: power(x, N))
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            y = called()
        first = inner.gradient(y, v)
    assert numbers([first, outer.gradient(first, x)]) == [DV, DXV]


def test_gradient_in_a_branch_that_reads_a_variable_which_the_body_does_not_is_error(v):
    @tf.custom_gradient
    def scaled(x):
        return x * 1.0, lambda dy: dy * v.read_value()

    @tfr.recursive(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
    def unread(x, n):
        if n < 1:
            return x
        return scaled(unread(x, n - 1))

    x = tf.constant(2.0)
    with (
        pytest.raises(ValueError, match="Function 'unread': its gradient uses a variable.*, which its body does not"),
        tf.GradientTape() as tape,
    ):
        tape.watch(x)
        tape.gradient(unread(x, 2), x)


def test_gradient_of_the_users_own_reads_in_every_branch_what_it_reads_outside():
    """The body's argument comes into each branch twice: as the branch reads it, and as the user's gradient does."""

    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 2.0 * x

    @tfr.recursive
    def f(x, n):
        if n < 1:
            return tf.reduce_sum(square(x) * x)
        return f(square(tf.sin(x)) + x, n - 1) * tf.reduce_sum(square(x))

    def plain(x, n):
        if n < 1:
            return tf.reduce_sum(x**3)
        return plain(tf.sin(x) ** 2 + x, n - 1) * tf.reduce_sum(x**2)

    x = tf.constant([0.5, 0.9, -0.3], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result, expected = f(x, tf.constant(2)), plain(x, 2)
    np.testing.assert_allclose(tape.gradient(result, x), tape.gradient(expected, x), rtol=1e-12)
