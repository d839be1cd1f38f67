"""What tests of random recursive programs share: how programs are drawn, what calls mean, how functions are made.

A program is a tuple of functions. A function has for each of its outputs two expressions, tuples that begin with
their kind: the value without fuel, and with. Every call has less fuel, so each program ends.
"""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf
from hypothesis import HealthCheck
from hypothesis import strategies as st

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

OUTPUTS = 2
ARGUMENTS = 2  # besides fuel
CHECKS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def variables(scope):
    """("x", i): an argument, or a value that a loop around has added to the scope."""
    return st.tuples(st.just("x"), st.integers(0, scope - 1))


def calls(functions, arguments):
    """("call", function, output, arguments)."""
    function, output = st.integers(0, functions - 1), st.integers(0, OUTPUTS - 1)
    return st.tuples(st.just("call"), function, output, st.tuples(*[arguments] * ARGUMENTS))


def draw_program(draw, functions, without_fuel, with_fuel):
    """The program; a body has two calls at most, as more would take for ever."""
    bodies = st.tuples(*[st.tuples(*[st.tuples(without_fuel, with_fuel)] * OUTPUTS)] * functions)
    return draw(bodies.filter(lambda bodies: all(calls_in(body) <= 2 for body in bodies)))


def calls_in(expression):
    """Calls of a body; what is inside of a loop counts twice."""
    if not isinstance(expression, tuple):
        return 0
    factor = 2 if expression and expression[0] in ("loop", "shift") else 1
    return factor * sum(map(calls_in, expression)) + bool(expression and expression[0] == "call")


class Unsuitable(Exception):
    """The program runs too long, or its numbers are not fit to be compared."""


class Oracle:
    """Runs a program in Python; subclasses say what the other kinds of expressions mean."""

    def __init__(self, bodies, most_calls):
        self.bodies = bodies
        self.calls_left = most_calls

    def call(self, function, fuel, arguments):
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Unsuitable
        return [self.value(output[fuel > 0], fuel, arguments) for output in self.bodies[function]]

    def value(self, e, fuel, scope):
        if e[0] == "x":
            return scope[e[1]]
        if e[0] == "call":
            return self.call(e[1], fuel - 1, [self.value(a, fuel, scope) for a in e[3]])[e[2]]
        return self.other(e, fuel, scope)


class Builder:
    """Makes a program's functions in the default graph; subclasses say what the other kinds of expressions are."""

    def __init__(self, bodies, dtype, shape):
        self.shape = shape
        inputs = [("fuel", tf.int32)] + [(f"a{i}", dtype) for i in range(ARGUMENTS)]
        outputs = [(f"r{i}", dtype) for i in range(OUTPUTS)]
        shapes = [shape] * OUTPUTS
        self.functions = [tfr.Declare(f"F{i}", inputs, outputs, output_shapes=shapes) for i in range(len(bodies))]
        for i, body in enumerate(bodies):
            types = [dtype for _, dtype in inputs]
            tfr.Defun(*types, func_name=f"F{i}", out_names=[name for name, _ in outputs])(self.body(body))

    def body(self, body):
        def traced(fuel, a, b):
            fuel = tf.ensure_shape(fuel, [])
            scope = [tf.ensure_shape(x, self.shape) for x in (a, b)]
            values = lambda fueled: [tf.identity(self.value(output[fueled], fuel, scope)) for output in body]
            return tf.cond(fuel > 0, lambda: values(1), lambda: values(0))

        return traced

    def value(self, e, fuel, scope):
        if e[0] == "x":
            return scope[e[1]]
        if e[0] == "call":
            return self.functions[e[1]](fuel - 1, *[self.value(a, fuel, scope) for a in e[3]])[e[2]]
        return self.other(e, fuel, scope)


def modes():
    """Configurations of sessions that have to agree, by name."""
    return {
        "dynamic": tf1.ConfigProto(),
        "static, 1 worker": tfr.session_config(workers=1),
        "static, 4 workers": tfr.session_config(workers=4),
        "static, 4 workers, in frames": tfr.session_config(workers=4, compile=False),
    }
