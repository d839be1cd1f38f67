"""Gradients that wait for operators of what they are the gradient of, by control edges.

A gradient that reads what the function has written, or takes what it has left, has to come after it. Forward and
backward functions are two functions, but one program, in which only such a wait keeps the gradient from running first.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

# A program that has run before runs expensive operators beside others; so a gradient that does not wait is too early in
# the second run or a later one.
RUNS = 5


def squared_in_python(x):
    return tf.ensure_shape(tf.py_function(lambda x: x * x, [x], tf.float32), [])


@tfr.recursive
def ends_in_python(x, n):
    if n < 1:
        return squared_in_python(x)
    return 2.0 * ends_in_python(x, n - 1)


@tfr.recursive
def in_branch_of_branch(x, n):
    if n < 1:
        if x > 2.0:
            return squared_in_python(x)
        return x
    return 2.0 * in_branch_of_branch(x, n - 1)


@tfr.recursive
def in_loop(x, n):
    if n < 1:
        i = tf.constant(0)
        while i < 1:
            x = squared_in_python(x)
            i += 1
        return x
    return 2.0 * in_loop(x, n - 1)


@tfr.recursive
def in_branch_of_loop(x, n):
    i = tf.constant(0)
    while i < 1:
        if n < 1:
            x = squared_in_python(x)
        i += 1
    return x if n < 1 else 2.0 * in_branch_of_loop(x, n - 1)


@tfr.recursive
def always_in_python(x, n):
    y = squared_in_python(x)
    if n < 1:
        return y
    return always_in_python(y, n - 1)


def slope(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, tf.constant(2))
    return tape.gradient(y, x)


def derivative_in(place):
    return tf.function(slope) if place == "tf.function" else slope


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["eager", "tf.function"])
@pytest.mark.parametrize("function", [ends_in_python, in_branch_of_branch, in_loop, in_branch_of_loop])
def test_gradient_of_python_that_runs_once(function, place):
    derivative = derivative_in(place)
    assert [float(derivative(function, tf.constant(3.0))) for _ in range(RUNS)] == [24] * RUNS


@pytest.mark.parametrize("place", ["eager", "tf.function"])
def test_gradient_of_python_that_runs_again_says_what_to_write(place):
    """TensorFlow's own loops lose all tapes but the last one, too."""
    derivative = derivative_in(place)
    with pytest.raises(tf.errors.UnknownError, match=r"last run alone.*tf\.custom_gradient around tf\.numpy_function"):
        derivative(always_in_python, tf.constant(1.0))


def test_gradient_of_python_that_runs_at_every_level():
    @tf.custom_gradient
    def squared(x):
        def gradient(dy):
            return tf.ensure_shape(tf.numpy_function(lambda x, dy: (x + x) * dy, [x, dy], tf.float32), [])

        return tf.ensure_shape(tf.numpy_function(lambda x: x * x, [x], tf.float32), []), gradient

    @tfr.recursive
    def power(x, n):
        return power(squared(x), n - 1) if n > 0 else squared(x)

    assert float(slope(power, tf.constant(1.5))) == pytest.approx(8 * 1.5**7)


def writes_then_reads(variable):
    """2 x, which writes x to the variable; the gradient reads that."""

    @tf.custom_gradient
    def doubled(x):
        slowly = tf.ensure_shape(tf.numpy_function(lambda x: x, [x], tf.float32), [])
        assignment = variable.assign(slowly, read_value=False)

        def gradient(dy):
            with tf.control_dependencies([assignment]):
                return dy * variable.read_value()

        return 2.0 * x, gradient

    return doubled


@pytest.mark.parametrize("place", ["eager", "tf.function"])
@pytest.mark.parametrize("where", ["body", "branch"])
def test_gradient_reads_what_the_function_has_written(where, place):
    variable = tf.Variable(1.0)
    doubled = writes_then_reads(variable)

    @tfr.recursive
    def in_body(x, n):
        return doubled(x) + 0.0 * tf.cast(n, tf.float32)

    @tfr.recursive
    def in_branch(x, n):
        if n < 1:
            return doubled(x)
        return in_branch(x, n - 1)

    derivative = derivative_in(place)
    for run in range(RUNS):
        x = 3.0 + run
        assert float(derivative({"body": in_body, "branch": in_branch}[where], tf.constant(x))) == x


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["body", "branch"])
def test_gradient_of_a_gradient_reads_what_the_function_has_written(where):
    variable = tf.Variable(1.0)
    doubled = writes_then_reads(variable)

    @tfr.recursive
    def function(x, n):
        if where == "body":
            return doubled(x) ** 2 + 0.0 * tf.cast(n, tf.float32)
        return doubled(x) ** 2 if n < 1 else function(x, n - 1)

    @tf.function
    def derivatives(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = slope(function, x)  # 2 * 2 x * variable, which has the value of x
        return y, tape.gradient(y, x)

    for run in range(RUNS):
        x = 3.0 + run
        np.testing.assert_allclose(derivatives(tf.constant(x)), [4.0 * x * x, 2.0 * x * x])


@pytest.mark.parametrize("where", ["body", "branch"])
def test_gradient_in_a_session_reads_what_the_function_has_written(where):
    with tf.Graph().as_default():
        variable = tf.compat.v1.get_variable("v", [], use_resource=True)
        doubled = writes_then_reads(variable)

        @tfr.Defun(tf.float32, tf.int32)
        def function(x, n):
            return doubled(x) if where == "body" else tf.cond(n < 1, lambda: doubled(x), lambda: x)

        x = tf.compat.v1.placeholder(tf.float32, [])
        dx = tf.gradients(function(x, tf.constant(0)), x)[0]
        with tf.compat.v1.Session(config=tfr.session_config()) as session:
            for run in range(RUNS):
                session.run(variable.initializer)
                assert session.run(dx, {x: 3.0 + run}) == 3.0 + run


@pytest.mark.thorough
@pytest.mark.parametrize("attempt", range(3))
def test_variable_is_read_before_the_assignment_that_gradients_come_after(attempt):
    """Only the gradients are between the assignment and the call; which of these came first was a matter of luck."""
    weight = tf.Variable(1.0)

    @tfr.recursive
    def power(n, x):
        if n < 1:
            return x
        return power(n - 1, x * weight)

    @tf.function
    def step():
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as inner:
                y = power(tf.constant(3), tf.constant(2.0))
            slope = inner.gradient(y, weight)
            weight.assign_sub(0.1 * slope)
        return outer.gradient(slope, weight), weight.read_value()

    second, value = step()
    assert float(value) == float(weight)
    assert abs(float(value) - 0.4) < 1e-6
    assert abs(float(second) - 12.0) < 1e-5, attempt


# --- Side effects of gradients ----------------------------------------------------------------------------------------


def noting(note):
    """An operator with a gradient that notes what it is given."""

    @tf.custom_gradient
    def op(x):
        def grad(dy):
            note(dy)
            return 1.5 * dy

        return 1.0 * x, grad

    return op


PLACES = {
    "body": lambda op, x: op(x),
    "branch": lambda op, x: tf.cond(x > 0.0, lambda: op(x), lambda: x),
    "loop": lambda op, x: tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, op(x)), (0, x))[1],
    "tf.function": lambda op, x: tf.function(op)(x),
}


def slope_of_both_sides(step, *, is_recursive):
    def f(x, n):
        if n < 1:
            return step(x)
        return step(f(2.0 * x, n - 1)) + step(f(3.0 * x, n - 1))

    if is_recursive:
        f = tfr.recursive(f)

    def slope(factor):
        x = tf.constant(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = factor * f(x, tf.constant(1) if is_recursive else 1)
        return tape.gradient(y, x)

    return slope


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("place", list(PLACES))
def test_side_effects_of_a_gradient_happen_as_in_the_program_unrolled(place, wrap):
    noted = []
    op = noting(lambda dy: tf.py_function(lambda dy: noted.append(float(dy)), [dy], []))
    wrap(slope_of_both_sides(lambda x: PLACES[place](op, x), is_recursive=True))(tf.constant(4.0))
    got, noted[:] = sorted(noted), []
    where = PLACES["body" if place == "tf.function" else place]  # an eager tape leaves effects of tf.functions out
    slope_of_both_sides(lambda x: where(op, x), is_recursive=False)(tf.constant(4.0))
    assert got == sorted(noted)
    assert noted


def test_two_gradients_that_print_the_same_print_it_twice(tmp_path):
    file = tmp_path / "printed"
    op = noting(lambda dy: tf.print(dy, output_stream=f"file://{file}"))
    slope_of_both_sides(op, is_recursive=True)(tf.constant(4.0))
    assert file.read_text().split() == ["4", "4", "6", "6"]


@pytest.mark.parametrize(
    "check",
    [
        lambda dy: tf.debugging.assert_less(dy, 5.0),
        lambda dy: tf.cond(dy > 0.0, lambda: tf.debugging.Assert(dy < 5.0, [dy]), tf.no_op),
    ],
    ids=["body", "branch"],
)
def test_assertion_in_a_gradient_holds(check):
    slope = slope_of_both_sides(noting(check), is_recursive=True)
    assert float(slope(tf.constant(2.0))) == 2.0 * 1.5 * 1.5 * 5.0
    with pytest.raises(tf.errors.InvalidArgumentError):
        slope(tf.constant(4.0))


def test_side_effects_of_a_gradient_that_is_not_asked_for_do_not_happen():
    noted = []
    op = noting(lambda dy: tf.py_function(lambda dy: noted.append(float(dy)), [dy], []))
    slope = slope_of_both_sides(lambda x: x * op(tf.constant(2.0)), is_recursive=True)
    assert float(slope(tf.constant(1.0))) == 20.0
    assert noted == []


@pytest.mark.parametrize("where", [lambda assign: assign(), lambda assign: tf.function(assign)()])
def test_assignment_in_a_gradient_is_warned_of(where):
    calls = tf.Variable(0.0)
    op = noting(lambda dy: where(lambda: calls.assign_add(1.0)))

    @tfr.recursive
    def f(x, n):
        calls.assign_add(0.0)  # in the body, nothing is to be said
        return x if n < 1 else op(f(2.0 * x, n - 1))

    x = tf.constant(1.0)
    with pytest.warns(RuntimeWarning, match="The gradient of 'f' assigns to a variable, in node"):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, tf.constant(3))
    assert float(tape.gradient(y, x)) == 3.0**3
    assert float(calls) == 3.0
