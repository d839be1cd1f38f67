"""Gradients of gradients where operators of a body have gradients of the user's own, by `tf.custom_gradient`.

Some do not depend on what they are given: of a loop, the gradients for the records of all iterations are then zeros, in
a list. Others read tensors of the body, of which the gradient of the gradient has copies. What is right is what
TensorFlow computes for the same program without recursion.
"""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import derivatives

tf1 = tf.compat.v1
pytestmark = [pytest.mark.thorough, pytest.mark.each_value, pytest.mark.sampled(2)]

F64, I32 = tf.float64, tf.int32
DEPTH, AT = 2, 0.7


@tf.custom_gradient
def constant(x):
    return tf.identity(x), lambda dy: 5.0 * tf.ones(tf.shape(x), F64)


@tf.custom_gradient
def held(x):
    return tf.identity(x), tf.stop_gradient


@tf.custom_gradient
def sloped(x):
    return tf.exp(x), lambda dy: dy * x * x


@tf.custom_gradient
def sloped_twice(x):
    def gradient(dy):
        @tf.custom_gradient
        def slope(z):
            return z * x * x, lambda dz: dz * x * 3.0

        return slope(dy)

    return tf.exp(x), gradient


# What `f(n, x)` is, from calls of `f` and an `operator` with such a gradient. `n` is a tensor or a Python number.


def loop(f, n, x, operator):
    return repeat(lambda a: f(n - 1, operator(a) * 0.5) + a * 0.3, x)


def loop_in_loop(f, n, x, operator):
    return repeat(lambda a: repeat(lambda b: f(n - 1, operator(b) * 0.7) * b, a) * a, x)


def branch_in_loop(f, n, x, operator):
    index = tf.minimum(n - 1, 1)
    return repeat(lambda a: tf.switch_case(index, [lambda: f(n - 1, operator(a)), lambda: f(n - 1, a * a)]), x)


def elements(f, n, x, operator):
    each = tf.map_fn(lambda a: f(n - 1, operator(a) * x), tf.stack([x, x * x]))
    return tf.reduce_sum(each, 0)


def result_ignored(f, n, x, operator):
    return repeat(lambda a: operator(f(n - 1, a * x)) * x, x)


BODIES = {body.__name__: body for body in (loop, loop_in_loop, branch_in_loop, elements, result_ignored)}
LINEAR = {"held": held, "sloped": sloped, "sloped_twice": sloped_twice}
OPERATORS = {"constant": constant, **LINEAR}


def repeat(step, start):
    invariants = [tf.TensorShape([]), start.shape]
    return tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, step(a)), [0, start], invariants)[1]


def check(run, shape, compute, orders=2):
    """Compare a recursion with the same one unrolled; `compute(choose, f, n, x)` is `f(n, x)`."""
    at = np.full(shape or (), AT)

    def unrolled(n, x):
        return compute(lambda first, other: first() if n < 1 else other(), unrolled, n, x)

    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder_with_default(at, at.shape)  # of an open shape, TensorFlow fails for some
        expected = session.run(derivatives(unrolled(DEPTH, x), x, orders, "zero"))
    f, define = recursive("F", [I32, F64], [F64], shapes=[shape])
    define(lambda n, x: compute(lambda first, other: tf.cond(n < 1, first, other), f, n, x))
    x = tf1.placeholder_with_default(at, shape)
    got = run(derivatives(f(DEPTH, x), x, orders, "zero"))
    for order, (value, right) in enumerate(zip(got, expected, strict=True)):
        np.testing.assert_allclose(value, right, rtol=1e-9, err_msg=f"derivative {order}")


shapes = pytest.mark.parametrize("shape", [(), (2,), None])


# TensorFlow itself fails for the others: it finds no tensors of branches in loops, and none for gradients of gradients.
IN_LOOPS = [
    pytest.param(body, operator, id=f"{name}-{operator_name}")
    for name, body in BODIES.items()
    for operator_name, operator in OPERATORS.items()
    if operator is not sloped_twice and not (operator is sloped and body is branch_in_loop)
]


@pytest.mark.thorough
@pytest.mark.sampled(6)
@pytest.mark.parametrize("control_flow", ["v2"], indirect=True)  # stock TensorFlow: no second gradient of v1 loops
@shapes
@pytest.mark.parametrize(("body", "operator"), IN_LOOPS)
def test_orders_through_loops_in_branches(run, control_flow, body, operator, shape):
    check(run, shape, lambda choose, f, n, x: choose(lambda: x * x, lambda: body(f, n, x, operator)))


# `constant` is not among them: where a function passes zeros to a gradient that ignores what it is given, TensorFlow's
# unrolled program may not call that at all.
@pytest.mark.thorough
@shapes
@pytest.mark.parametrize("operator", LINEAR.values(), ids=LINEAR)
@pytest.mark.parametrize("where", ["outside of the branch", "on both sides"])
def test_orders_through_bodies(run, control_flow, operator, shape, where):
    def outside(choose, f, n, x):
        return operator(choose(lambda: x * x, lambda: f(n - 1, operator(x * 0.3) * x) * 0.2)) * x

    def on_both_sides(choose, f, n, x):
        y = operator(x * 0.3)
        return operator(choose(lambda: x * y, lambda: f(n - 1, operator(x * 0.3) * y * 0.2) * 0.05)) * y

    check(run, shape, outside if where == "outside of the branch" else on_both_sides, orders=3)
