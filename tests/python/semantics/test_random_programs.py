"""Random recursive programs mean the same in Python, dynamically, and statically on one or more workers."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import random_programs
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import HANG_SECONDS
from lost_values import run_in_session
from random_programs import ARGUMENTS, CHECKS, Unsuitable
from switches import control_flow_v2

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
pytestmark = pytest.mark.thorough

# An expression is a tuple: ("x", i) an argument or a value in scope, ("k", value), (operator, a, b),
# ("if", test, a, b), ("call", function, output, arguments) with less fuel, ("loop", times, start, step), whose step
# sees the index and the sum, or ("shift", times, a, b, step), in which b becomes a, and what the step makes of both
# becomes b. A test is (comparison, a, b). All numbers are int32, and wrap. In programs with tensors there are also
# ("sum", a, b), which kernels compute, ("read", a) and ("//", a, divisor).
OPERATORS = ["+", "-", "*", "min", "max"]
COMPARISONS = ["<", "==", ">="]
FUNCTIONS = st.integers(2, 3)
TABLE = [7, -3, 0, 5, -1]


def expressions(functions, scope, depth, has_tensors=False):
    leaf = st.one_of(random_programs.variables(scope), st.tuples(st.just("k"), st.integers(-3, 3)))
    if depth == 0:
        return leaf
    inner = st.deferred(lambda: expressions(functions, scope, depth - 1, has_tensors))
    test = st.tuples(st.sampled_from(COMPARISONS), inner, inner)
    step = st.deferred(lambda: expressions(functions, scope + 2, depth - 1, has_tensors))
    with_tensors = [
        st.tuples(st.just("sum"), inner, inner),
        st.tuples(st.just("read"), inner),
        st.tuples(st.just("//"), inner, st.sampled_from([-3, 2, 5])),
    ]
    return st.one_of(
        leaf,
        *(with_tensors if has_tensors else []),
        st.tuples(st.sampled_from(OPERATORS), inner, inner),
        random_programs.calls(functions, inner),
        st.tuples(st.just("if"), test, inner, inner),
        st.tuples(st.just("loop"), st.integers(0, 3), inner, step),
        st.tuples(st.just("shift"), st.integers(0, 3), inner, inner, step),
    )


@st.composite
def programs(draw, has_tensors=False):
    functions = draw(FUNCTIONS)
    leaves, trees = expressions(functions, ARGUMENTS, 0), expressions(functions, ARGUMENTS, 3, has_tensors)
    return random_programs.draw_program(draw, functions, leaves, trees)


# --- What a program means -----------------------------------------------------------------------------------------


def wrap(value):
    return (value + 2**31) % 2**32 - 2**31


class Oracle(random_programs.Oracle):
    def other(self, e, fuel, scope):
        kind = e[0]
        if kind == "k":
            return e[1]
        if kind == "if":
            a, b = (self.value(x, fuel, scope) for x in e[1][1:])
            taken = {"<": a < b, "==": a == b, ">=": a >= b}[e[1][0]]
            return self.value(e[2] if taken else e[3], fuel, scope)
        if kind == "loop":
            total = self.value(e[2], fuel, scope)
            for i in range(e[1]):
                total = self.value(e[3], fuel, [*scope, i, total])
            return total
        if kind == "shift":
            a, b = (self.value(x, fuel, scope) for x in e[2:4])
            for _ in range(e[1]):
                a, b = b, self.value(e[4], fuel, [*scope, a, b])
            return a
        a = self.value(e[1], fuel, scope)
        if kind == "read":
            return TABLE[a % len(TABLE)]
        if kind == "//":
            return wrap(a // e[2])
        b = self.value(e[2], fuel, scope)
        if kind == "sum":
            return wrap(a + b)
        return {"min": min(a, b), "max": max(a, b), "+": wrap(a + b), "-": wrap(a - b), "*": wrap(a * b)}[kind]


class Builder(random_programs.Builder):
    def other(self, e, fuel, scope):
        kind = e[0]
        if kind == "k":
            return tf.constant(e[1])
        if kind == "if":
            a, b = (self.value(x, fuel, scope) for x in e[1][1:])
            test = {"<": tf.less, "==": tf.equal, ">=": tf.greater_equal}[e[1][0]](a, b)
            return tf.cond(test, lambda: self.value(e[2], fuel, scope), lambda: self.value(e[3], fuel, scope))
        if kind == "loop":
            step = lambda i, total: (i + 1, self.value(e[3], fuel, [*scope, i, total]))
            return tf.while_loop(lambda i, _: i < e[1], step, [tf.constant(0), self.value(e[2], fuel, scope)])[1]
        if kind == "shift":
            step = lambda i, a, b: (i + 1, b, self.value(e[4], fuel, [*scope, a, b]))
            starts = [self.value(x, fuel, scope) for x in e[2:4]]
            return tf.while_loop(lambda i, *_: i < e[1], step, [tf.constant(0), *starts])[1]
        if kind == "read":
            return tf.gather(tf.constant(TABLE), self.value(e[1], fuel, scope) % len(TABLE))
        if kind == "//":
            return self.value(e[1], fuel, scope) // e[2]
        if kind == "sum":
            return tf.reduce_sum(tf.stack([self.value(x, fuel, scope) for x in e[1:]]))
        apply = {"+": tf.add, "-": tf.subtract, "*": tf.multiply, "min": tf.minimum, "max": tf.maximum}[kind]
        return apply(self.value(e[1], fuel, scope), self.value(e[2], fuel, scope))


def check_modes(bodies, fuel, arguments, repeats):
    try:
        expected = Oracle(bodies, most_calls=2000).call(0, fuel, arguments)
    except Unsuitable:
        return
    with tf.Graph().as_default() as graph:
        builder = Builder(bodies, tf.int32, [])
        placeholders = [tf1.placeholder(tf.int32, []) for _ in range(ARGUMENTS + 1)]
        results = list(builder.functions[0](*placeholders))
        feeds = dict(zip(placeholders, [fuel, *arguments], strict=True))
        options = tf1.RunOptions(timeout_in_ms=1000 * HANG_SECONDS)
        for name, config in random_programs.modes().items():
            times = repeats if "4" in name else 1
            run = lambda session, times=times: [session.run(results, feeds, options=options) for _ in range(times)]
            for values in run_in_session(graph, config, run):
                np.testing.assert_array_equal(values, expected, err_msg=f"{name}: {bodies}")


ARGUMENT_LISTS = st.lists(st.integers(-5, 5), min_size=ARGUMENTS, max_size=ARGUMENTS)


@settings(max_examples=10, derandomize=True, **CHECKS)
@given(programs(), st.integers(0, 3), ARGUMENT_LISTS)
def test_modes_agree_when_program_is_random(bodies, fuel, arguments):
    with control_flow_v2(True):
        check_modes(bodies, fuel, arguments, repeats=3)


@pytest.mark.full_matrix
@settings(max_examples=8, derandomize=True, **CHECKS)
@given(programs(), st.integers(0, 3), ARGUMENT_LISTS)
def test_modes_agree_when_program_is_random_and_control_flow_is_v1(bodies, fuel, arguments):
    with control_flow_v2(False):
        check_modes(bodies, fuel, arguments, repeats=3)


@settings(max_examples=10, derandomize=True, **CHECKS)
@given(programs(has_tensors=True), st.integers(0, 3), ARGUMENT_LISTS, st.booleans())
def test_modes_agree_when_program_is_random_and_has_tensors(bodies, fuel, arguments, is_v2):
    with control_flow_v2(is_v2):
        check_modes(bodies, fuel, arguments, repeats=3)


TWICE = ("+", ("x", 0), ("x", 0))
TWICE_AFTER_FOLDING = ("+", ("+", ("x", 0), ("k", 0)), ("x", 0))


@pytest.mark.parametrize("total", [TWICE, TWICE_AFTER_FOLDING])
@pytest.mark.parametrize("is_v2", [True, False])
def test_modes_agree_when_tensorflow_loses_a_sum_of_equal_terms(total, is_v2):
    """Without calls' results; among arguments; beside a kernel; in a conditional of its own, on either side."""
    choice = ("if", ("<", ("x", 0), ("x", 1)), total, ("if", ("<", ("x", 1), ("k", 0)), ("x", 1), total))
    call = ("call", 0, 1, (total, ("sum", total, ("k", 1))))
    bodies = (((total, call), (("x", 1), choice)),)
    with control_flow_v2(is_v2):
        for arguments in [(3, -5), (2, 7), (7, 2)]:
            check_modes(bodies, 3, arguments, repeats=1)


def test_value_that_is_lost_without_the_optimizer_too_is_an_error():
    with tf.Graph().as_default() as graph:
        lost = tfr.Defun(tf.int32, tf.bool, func_name="F")(lambda a, p: tf.raw_ops.Switch(data=a, pred=p).output_true)
        called = lost(3, tf1.placeholder_with_default(False, []))
        for config in random_programs.modes().values():
            with pytest.raises(tf.errors.InvalidArgumentError, match="value"):
                run_in_session(graph, config, lambda session: session.run(called))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@settings(max_examples=2000, **CHECKS)
@given(st.one_of(programs(), programs(has_tensors=True)), st.integers(0, 4), ARGUMENT_LISTS, st.booleans())
def test_modes_agree_when_programs_are_many(bodies, fuel, arguments, is_v2):
    with control_flow_v2(is_v2):
        check_modes(bodies, fuel, arguments, repeats=10)
