"""Random recursive programs have the same gradients by dual numbers, dynamically, and statically."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import random_programs
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import HANG_SECONDS
from lost_values import run_in_session
from random_programs import ARGUMENTS, CHECKS, OUTPUTS, Unsuitable
from switches import control_flow_v2

tf1 = tf.compat.v1
pytestmark = pytest.mark.thorough

# An expression is a tuple: ("x", i) an argument or a value in scope, ("captured", i), ("k", value), (unary, a),
# (binary, a, b), ("select", a, b, x, y) which is x where a < b, ("if", a, b, x, y) the same by a cond on their sums,
# ("call", function, output, arguments) with less fuel, ("loop", times, start, step), whose step sees the start and the
# value so far, or ("shift", times, a, b, step), in which b becomes a, and what the step makes of both becomes b. All
# numbers are float64, of one shape in a program.
UNARY = ["tanh", "sin", "gauss"]
BINARY = ["+", "-", "*", "@"]
SHAPES = [(), (2, 2)]
FUNCTIONS = st.integers(1, 3)
CAPTURED = 2  # a tensor and a variable


def expressions(functions, scope, depth):
    leaf = st.one_of(
        random_programs.variables(scope),
        st.tuples(st.just("captured"), st.integers(0, CAPTURED - 1)),
        st.tuples(st.just("k"), st.sampled_from([-1.5, 0.5, 2.0])),
    )
    if depth == 0:
        return leaf
    inner = st.deferred(lambda: expressions(functions, scope, depth - 1))
    step = st.deferred(lambda: expressions(functions, scope + 2, depth - 1))
    return st.one_of(
        leaf,
        st.tuples(st.sampled_from(UNARY), inner),
        st.tuples(st.sampled_from(BINARY), inner, inner),
        random_programs.calls(functions, inner),
        st.tuples(st.sampled_from(["select", "if"]), inner, inner, inner, inner),
        st.tuples(st.just("loop"), st.integers(0, 2), inner, step),
        st.tuples(st.just("shift"), st.integers(0, 3), inner, inner, step),
    )


@st.composite
def programs(draw):
    functions = draw(FUNCTIONS)
    small, large = expressions(functions, ARGUMENTS, 1), expressions(functions, ARGUMENTS, 3)
    return random_programs.draw_program(draw, functions, small, large)


# --- What a program means -----------------------------------------------------------------------------------------


class Dual:
    """A value, and its derivatives by every number that it may depend on, along the first axis."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other):
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __matmul__(self, other):
        if not self.value.shape:
            return self * other
        return Dual(self.value @ other.value, self.slope @ other.value + self.value @ other.slope)

    def apply(self, function, derivative):
        return Dual(function(self.value), self.slope * derivative(self.value))


APPLY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "@": lambda a, b: a @ b,
    "tanh": lambda a: a.apply(np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sin": lambda a: a.apply(np.sin, np.cos),
    "gauss": lambda a: a.apply(lambda x: np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x)),
}


def less(a, b):
    if np.any(np.abs(a - b) < 1e-6):
        raise Unsuitable
    return a < b


class Oracle(random_programs.Oracle):
    def __init__(self, bodies, captured, zero):
        super().__init__(bodies, most_calls=300)
        self.captured = captured
        self.zero = zero

    def value(self, e, fuel, scope):
        result = super().value(e, fuel, scope)
        if max(np.max(np.abs(result.value)), np.max(np.abs(result.slope))) > 1e4:
            raise Unsuitable
        return result

    def other(self, e, fuel, scope):
        kind = e[0]
        if kind == "captured":
            return self.captured[e[1]]
        if kind == "k":
            return Dual(np.full(self.zero.value.shape, e[1]), self.zero.slope)
        if kind == "if":
            a, b = (self.value(x, fuel, scope) for x in e[1:3])
            return self.value(e[3] if less(np.sum(a.value), np.sum(b.value)) else e[4], fuel, scope)
        if kind == "loop":
            start = value = self.value(e[2], fuel, scope)
            for _ in range(e[1]):
                value = self.value(e[3], fuel, [*scope, start, value])
            return value
        if kind == "shift":
            a, b = (self.value(x, fuel, scope) for x in e[2:4])
            for _ in range(e[1]):
                a, b = b, self.value(e[4], fuel, [*scope, a, b])
            return a
        parts = [self.value(x, fuel, scope) for x in e[1:]]
        if kind == "select":
            a, b, x, y = parts
            chosen = less(a.value, b.value)
            return Dual(np.where(chosen, x.value, y.value), np.where(chosen, x.slope, y.slope))
        return APPLY[kind](*parts)


def values_and_gradients(bodies, fuel, numbers, weights):
    """Values of the first function's outputs, and the gradients of their weighted sum by each array of `numbers`."""
    count, shape = numbers.shape[0], numbers.shape[1:]
    slopes = np.eye(numbers.size).reshape(numbers.size, count, *shape)
    duals = [Dual(numbers[i], slopes[:, i]) for i in range(count)]
    zero = Dual(np.zeros(shape), np.zeros([numbers.size, *shape]))
    outputs = Oracle(bodies, duals[ARGUMENTS:], zero).call(0, fuel, duals[:ARGUMENTS])
    axes = tuple(range(1, 1 + len(shape)))
    total = sum(np.sum(output.slope * weight, axes) for output, weight in zip(outputs, weights, strict=True))
    return [output.value for output in outputs], total.reshape(numbers.shape)


def second_gradients(bodies, fuel, numbers, weights, directions):
    """Gradients of the sum of the gradients, weighted by `directions`: differences of exact gradients."""
    result = np.zeros_like(numbers)
    for index in np.ndindex(numbers.shape):
        step = np.zeros_like(numbers)
        step[index] = 1e-5
        above, below = (values_and_gradients(bodies, fuel, numbers + s, weights)[1] for s in (step, -step))
        result[index] = np.sum((above - below) * directions) / 2e-5
    return result


# --- The same in TensorFlow ---------------------------------------------------------------------------------------


class Builder(random_programs.Builder):
    def __init__(self, bodies, captured, shape):
        self.captured = captured
        super().__init__(bodies, tf.float64, shape)

    def other(self, e, fuel, scope):
        kind = e[0]
        if kind == "captured":
            return tf.convert_to_tensor(self.captured[e[1]])
        if kind == "k":
            return tf.constant(e[1], tf.float64, self.shape)
        if kind == "if":
            a, b = (tf.reduce_sum(self.value(x, fuel, scope)) for x in e[1:3])
            return tf.cond(a < b, lambda: self.value(e[3], fuel, scope), lambda: self.value(e[4], fuel, scope))
        if kind == "loop":
            start = self.value(e[2], fuel, scope)
            step = lambda i, value: (i + 1, self.value(e[3], fuel, [*scope, start, value]))
            return tf.while_loop(lambda i, _: i < e[1], step, [tf.constant(0), start])[1]
        if kind == "shift":
            step = lambda i, a, b: (i + 1, b, self.value(e[4], fuel, [*scope, a, b]))
            starts = [self.value(x, fuel, scope) for x in e[2:4]]
            return tf.while_loop(lambda i, *_: i < e[1], step, [tf.constant(0), *starts])[1]
        parts = [self.value(x, fuel, scope) for x in e[1:]]
        if kind == "select":
            return tf.where(parts[0] < parts[1], parts[2], parts[3])
        apply = {
            "+": tf.add,
            "-": tf.subtract,
            "*": tf.multiply,
            "@": tf.matmul if self.shape else tf.multiply,
            "tanh": tf.tanh,
            "sin": tf.sin,
            "gauss": lambda x: tf.exp(-x * x),
        }
        return apply[kind](*parts)


def check_gradients(bodies, fuel, shape, numbers, is_v2, second_order=False):
    numbers = np.array(numbers[: (ARGUMENTS + CAPTURED) * int(np.prod(shape))]).reshape(-1, *shape)
    generator = np.random.default_rng(1)
    weights = generator.normal(size=[OUTPUTS, *shape])
    directions = generator.normal(size=numbers.shape)
    try:
        values, gradients = values_and_gradients(bodies, fuel, numbers, weights)
        expected = [np.stack(values), gradients]
        if second_order:
            expected.append(second_gradients(bodies, fuel, numbers, weights, directions))
    except Unsuitable:
        return
    with control_flow_v2(is_v2), tf.Graph().as_default() as graph:
        *arguments, tensor = (tf1.placeholder(tf.float64, shape) for _ in range(ARGUMENTS + 1))
        variable = tf1.get_variable("v", initializer=numbers[-1], use_resource=True)
        fed_fuel = tf1.placeholder(tf.int32, [])
        outputs = Builder(bodies, [tensor, variable], shape).functions[0](fed_fuel, *arguments)
        xs = [*arguments, tensor, variable]
        gradient = lambda y: tf.stack(tf.gradients(y, xs, unconnected_gradients="zero"))
        fetches = [tf.stack(outputs), gradient(tf.reduce_sum(tf.stack(outputs) * weights))]
        if second_order:
            fetches.append(gradient(tf.reduce_sum(fetches[1] * directions)))
        feeds = dict(zip([fed_fuel, *arguments, tensor], [fuel, *numbers[:-1]], strict=True))
        initializer = tf1.global_variables_initializer()

        def run(session):
            session.run(initializer)
            return session.run(fetches, feeds, options=tf1.RunOptions(timeout_in_ms=1000 * HANG_SECONDS))

        for name, config in random_programs.modes().items():
            got = run_in_session(graph, config, run)
            for one, other, tolerance in zip(got, expected, [1e-9, 1e-9, 1e-4], strict=False):
                scale = max(1, np.max(np.abs(other)))
                np.testing.assert_allclose(one, other, tolerance, tolerance * scale, err_msg=f"{name}: {bodies}")


COUNT = (ARGUMENTS + CAPTURED) * 4
NUMBERS = st.lists(st.integers(-30, 30).map(lambda n: n / 20 + 0.013), min_size=COUNT, max_size=COUNT)
INPUTS = (st.integers(0, 3), st.sampled_from(SHAPES), NUMBERS)


@settings(max_examples=4, derandomize=True, **CHECKS)
@given(programs(), *INPUTS)
def test_gradients_are_those_of_dual_numbers(bodies, fuel, shape, numbers):
    check_gradients(bodies, fuel, shape, numbers, is_v2=True)


@pytest.mark.full_matrix
@settings(max_examples=5, derandomize=True, **CHECKS)
@given(programs(), *INPUTS)
def test_gradients_are_those_of_dual_numbers_when_control_flow_is_v1(bodies, fuel, shape, numbers):
    check_gradients(bodies, fuel, shape, numbers, is_v2=False)


@pytest.mark.full_matrix
@settings(max_examples=2, derandomize=True, **CHECKS)
@given(programs(), *INPUTS, st.booleans())
def test_second_gradients_are_differences_of_first_ones(bodies, fuel, shape, numbers, is_v2):
    check_gradients(bodies, fuel, shape, numbers, is_v2, second_order=True)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@settings(max_examples=1000, **CHECKS)
@given(programs(), *INPUTS, st.booleans())
def test_gradients_are_those_of_dual_numbers_when_programs_are_many(bodies, fuel, shape, numbers, is_v2):
    check_gradients(bodies, fuel, shape, numbers, is_v2)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@settings(max_examples=200, **CHECKS)
@given(programs(), *INPUTS, st.booleans())
def test_second_gradients_are_differences_of_first_ones_when_programs_are_many(bodies, fuel, shape, numbers, is_v2):
    check_gradients(bodies, fuel, shape, numbers, is_v2, second_order=True)
