"""Cases about loops whose parts lie apart."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import switches
import tensorflow as tf
from building import recursive
from cases import adding_to, fed, live_or, switched
from distribution_helpers import on

I32, F32 = tf.int32, tf.float32

CASES = {}
case = adding_to(CASES)


@case(285)
def loop_in_body_apart_from_the_rest(a, b):
    f, define = recursive("Loop", [I32], [I32])

    @define
    def Loop(n):
        n = tf.ensure_shape(n, [])

        def deeper():
            with on(a):
                rest = f(n - 1)
            with on(b):
                return rest + tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + n), [0, 0])[1]

        return tf.cond(n < 1, lambda: 0, deeper)

    return [f(fed(9))]


@case(75)
def loop_of_body_on_both(a, b):
    f, define = recursive("Loop", [I32], [I32])

    @define
    def Loop(n):
        n = tf.ensure_shape(n, [])

        def step(i, s):
            with on(a):
                product = i * n
            with on(b):
                return i + 1, s + product

        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + tf.while_loop(lambda i, s: i < n, step, [0, 0])[1])

    return [f(fed(5)) - 10]


@case(16)
def call_in_loop_in_body(a, b):
    f, define = recursive("LoopCalls", [I32], [I32], shapes=[[]])

    @define
    def LoopCalls(n):
        def step(i, s):
            with on(b):
                return i + 1, s + f(i)

        with on(a):
            return tf.cond(n < 1, lambda: 1, lambda: tf.while_loop(lambda i, s: i < n, step, [0, 1])[1])

    return [f(fed(4))]


@case(35)
def call_in_loop_around(a, b):
    f, define = recursive("Sum", [I32], [I32], shapes=[[]])

    @define
    def Sum(n):
        def deeper():
            with on(b):
                return n + f(n - 1)

        return tf.cond(n < 1, lambda: 0, deeper)

    n = fed(6)
    with on(a):
        return [tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + f(i)), [0, 0])[1]]


@case(np.arange(12))
def parallel_iterations_around(a, b):
    f, define = recursive("Down", [I32], [I32], shapes=[[]])

    @define
    def Down(n):
        def deeper():
            with on(b):
                return 1 + f(n - 1)

        return tf.cond(n < 1, lambda: 0, deeper)

    with on(a):
        return [tf.map_fn(f, tf.range(fed(12)), parallel_iterations=6)]


@case(4)
def loop_that_runs_only_in_some_frames(a, b):
    f, define = recursive("Sometimes", [I32], [I32], shapes=[[]])

    @define
    def Sometimes(n):
        n = tf.ensure_shape(n, [])

        def loop():
            def step(i, s):
                with on(b):
                    return i + 1, s + tf.cond(i < 1, lambda: f(n - 1), lambda: 1)

            return tf.while_loop(lambda i, s: i < 2, step, [0, 0])[1]

        with on(a):
            return tf.cond(n < 1, lambda: 0, lambda: tf.cond(tf.equal(n % 2, 0), loop, lambda: f(n - 1)))

    return [f(fed(9))]


# Some variables of these loops may be dead while others live.
PARTIAL_CASES = ("loop_with_a_dead_variable", "loop_variable_that_dies")
# A variable that comes from outside of the loop around lives in the iteration that ends that.
PARTIAL_IN_V1 = ("loop_in_loop_that_starts_from_outside",)


@case(4, -1, 10, 4, 9, 10)
def loop_with_a_dead_variable(a, b):
    """Only in control flow v1 there is a way: a While is dead as a whole."""
    f, define = recursive("Count", [I32], [I32], shapes=[[]])

    @define
    def Count(n):
        def deeper():
            with on(b):
                return f(n - 1) + 1

        return tf.cond(n < 1, lambda: 1, deeper)

    def step(i, x, s):
        with on(b):
            x = x + 1
        with on(a):
            return i + 1, x, s + f(i)

    outputs = []
    with switches.control_flow_v2(False):
        for value in (True, False):
            p = fed(value)
            with on(a):
                i, x, s = tf.while_loop(lambda i, *_: i < 4, step, [fed(0), switched(fed(5), p)[0], fed(0)])
            outputs += [i, live_or(x, -1, p), s]
    return outputs


@case(5, 10, -1, 2, 1, 2)
def loop_variable_that_dies(a, b):
    """In the third iteration, if there is one."""
    f, define = recursive("Same", [I32], [I32], shapes=[[]])

    @define
    def Same(n):
        with on(b):
            return tf.cond(n < 1, lambda: tf.identity(n), lambda: f(n - 1) + 1)

    def step(i, s, x):
        with on(b):
            x = switched(x, i < 2)[1] + 1
        with on(a):
            return i + 1, s + f(i), x

    outputs = []
    with switches.control_flow_v2(False):
        for n in (fed(5), fed(2)):
            with on(b):
                i, s, x = tf.while_loop(lambda i, *_: i < n, step, [fed(0), fed(0), fed(0)])
            outputs += [i, s, live_or(x, -1, n > 2)]
    return outputs


@case(12)
def loop_in_loop_that_starts_from_outside(a, b):
    """In control flow v1 the inner loop's variable x lives in the iteration too that ends the outer loop."""
    f, define = recursive("Twice", [I32], [I32], shapes=[[]])

    @define
    def Twice(n):
        with on(b):
            return tf.cond(n < 1, lambda: 1, lambda: f(n - 1) + 2)

    x = fed(-3)

    def inner(i):
        def step(j, x, s):
            with on(a):
                x = x + 1
            with on(b):
                return j + 1, x, s + f(x)

        return tf.while_loop(lambda j, *_: j < i, step, [0, x, 0])[2]

    with on(b):
        return [tf.while_loop(lambda i, _: i < 5, lambda i, s: (i + 1, s + inner(i)), [0, 0])[1]]
