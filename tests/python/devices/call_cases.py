"""Cases about calls, values and branches whose parts lie apart."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import tensorflow as tf
from building import recursive
from cases import adding_to, fed, live_or, switched
from distribution_helpers import on

I32, F32 = tf.int32, tf.float32

CASES = {}
case = adding_to(CASES)


# --- Shapes of recursion ------------------------------------------------------------------------------------------


@case(144)
def two_calls_apart(a, b):
    f, define = recursive("Fib", [I32], [I32])

    @define
    def Fib(n):
        def calls():
            with on(a):
                left = f(n - 1)
            with on(b):
                right = f(n - 2)
            return left + right

        return tf.cond(n < 2, lambda: n, calls)

    return [f(fed(12))]


@case(78)
def base_case_and_recursive_case_apart(a, b):
    f, define = recursive("Sum", [I32], [I32])

    @define
    def Sum(n):
        def base():
            with on(a):
                return n * n

        def deeper():
            with on(b):
                return n + f(n - 1)

        return tf.cond(n < 1, base, deeper)

    return [f(fed(12))]


@case(False, True)
def mutual_functions_apart(a, b):
    even, define_even = recursive("Even", [I32], [tf.bool])
    odd, define_odd = recursive("Odd", [I32], [tf.bool])
    with on(a):
        define_even(lambda n: tf.cond(tf.equal(n, 0), lambda: True, lambda: odd(n - 1)))
    with on(b):
        define_odd(lambda n: tf.cond(tf.equal(n, 0), lambda: False, lambda: even(n - 1)))
    return [even(fed(15)), odd(fed(15))]


@case(91, 91)
def nested_calls_apart(a, b):
    f, define = recursive("McCarthy", [I32], [I32])

    @define
    def McCarthy(n):
        def nested():
            with on(a):
                inner = f(n + 11)
            with on(b):
                return f(inner)

        return tf.cond(n > 100, lambda: n - 10, nested)

    return [f(fed(85)), f(fed(100))]


@case(9)
def ackermann_on_both(a, b):
    f, define = recursive("Ack", [I32, I32], [I32])

    @define
    def Ack(m, n):
        def positive():
            with on(b):
                return tf.cond(tf.equal(n, 0), lambda: f(m - 1, 1), lambda: f(m - 1, f(m, n - 1)))

        with on(a):
            return tf.cond(tf.equal(m, 0), lambda: n + 1, positive)

    return [f(fed(2), fed(3))]


@case(6, 10, 21)
def call_sites_on_either_device(a, b):
    f, define = recursive("Sum", [I32], [I32])
    with on(a):
        define(lambda n: tf.cond(n < 1, lambda: 0, lambda: n + f(n - 1)))
        here = f(fed(3))
    with on(b):
        there = f(fed(4))
        both = f(f(fed(3)))
    return [here, there, both]


@case(55)
def body_apart_from_its_only_call(a, b):
    f, define = recursive("Sum", [I32], [I32])
    with on(b):
        define(lambda n: tf.cond(n < 1, lambda: 0, lambda: n + f(n - 1)))
    with on(a):
        return [f(fed(10))]


@case(24)
def functions_without_arguments_apart(a, b):
    f, define = recursive("Six", [], [I32])
    g, define_g = recursive("Twelve", [], [I32])
    with on(a):
        define(lambda: tf.constant(6))
    with on(b):
        define_g(lambda: f() + f())
        return [g() * 2]


# --- Values -------------------------------------------------------------------------------------------------------


@case(28, 128.0, b"xxxxxxx")
def outputs_apart(a, b):
    f, define = recursive("Several", [I32], [I32, F32, tf.string])

    @define
    def Several(n):
        def deeper():
            x, y, z = f(n - 1)
            with on(a):
                x = x + n
            with on(b):
                return x, y * 2.0, tf.strings.join([z, "x"])

        return tf.cond(n < 1, lambda: (0, 1.0, ""), deeper)

    return list(f(fed(7)))


@case(5)
def only_output_of_the_other_device_is_read(a, b):
    f, define = recursive("Unread", [I32], [I32, I32])

    @define
    def Unread(n):
        def deeper():
            x, _ = f(n - 1)
            with on(b):
                x = x + 1
            with on(a):
                return x, n // 2

        return tf.cond(n < 1, lambda: (0, 0), deeper)

    return [f(fed(5))[0]]


@case(89, 55)
def outputs_that_swap_devices(a, b):
    f, define = recursive("Swap", [I32] * 3, [I32, I32])

    @define
    def Swap(n, x, y):
        def deeper():
            with on(a):
                total = x + y
            with on(b):
                return f(n - 1, total, tf.identity(x))

        return tf.cond(n < 1, lambda: (x, y), deeper)

    return list(f(fed(10), fed(1), fed(0)))


@case(np.array([[37, 54], [81, 118]], np.float32))
def matrices_cross(a, b):
    f, define = recursive("Powers", [I32, F32], [F32])

    @define
    def Powers(n, x):
        def deeper():
            with on(a):
                left = f(n - 1, x)
            with on(b):
                return tf.matmul(left, x)

        return tf.cond(n < 1, lambda: tf.identity(x), deeper)

    return [f(fed(2), fed([[1, 2], [3, 4]], np.float32))]


@case([3, 9])
def tensor_lists_cross(a, b):
    f, define = recursive("Push", [I32, tf.variant], [tf.variant])

    @define
    def Push(n, items):
        def more():
            with on(a):
                item = n * n
            with on(b):
                return f(n - 1, tf.raw_ops.TensorListPushBack(input_handle=items, tensor=item))

        return tf.cond(n < 1, lambda: tf.identity(items), more)

    shape = tf.constant([], I32)
    empty = tf.raw_ops.EmptyTensorList(element_dtype=I32, element_shape=shape, max_num_elements=-1)
    with on(a):
        items = f(fed(3), empty)
        length = tf.raw_ops.TensorListLength(input_handle=items)
        first = tf.raw_ops.TensorListGetItem(input_handle=items, index=0, element_shape=shape, element_dtype=I32)
    return [tf.stack([length, first])]


# --- Dead branches ------------------------------------------------------------------------------------------------


@case(-7, 120)
def call_in_branch_not_taken(a, b):
    f, define = recursive("Fac", [I32], [I32])

    @define
    def Fac(n):
        def deeper():
            with on(b):
                return n * f(n - 1)

        return tf.cond(n < 2, lambda: 1, deeper)

    with on(a):
        x = fed(5)
        return [tf.cond(x > 7, lambda: f(x), lambda: -7), tf.cond(x < 7, lambda: f(x), lambda: -7)]


@case(10)
def device_is_only_in_branch_never_taken(a, b):
    f, define = recursive("Sum", [I32], [I32])

    @define
    def Sum(n):
        def never():
            with on(b):
                return f(n * 2) * 3

        with on(a):
            step = lambda: tf.cond(n > 100, never, lambda: n + f(n - 1))
            return tf.cond(n < 1, lambda: 0, step)

    return [f(fed(4))]


@case(16)
def branches_within_branches_apart(a, b):
    f, define = recursive("Steps", [I32], [I32])

    @define
    def Steps(n):
        def halved():
            with on(a):
                return f(n // 2) + 1

        def grown():
            with on(b):
                return f(3 * n + 1) + 1

        return tf.cond(n < 2, lambda: 0, lambda: tf.cond(tf.equal(n % 2, 0), halved, grown))

    return [f(fed(7))]


# What decides on the calls of these lies on both devices.
ASKING_CASES = ("one_argument_is_dead", "one_argument_or_the_other_is_dead")


def negations(a, b):
    """f(x, y) = -x, -y, 7, each argument where the other is not."""
    f, define = recursive("Negations", [I32, I32], [I32, I32, I32])

    @define
    def Negations(x, y):
        with on(a):
            x = -x
        with on(b):
            return x, -y, 7

    return f


@case(-1, -5, 7, -5, -1, 7)
def one_argument_is_dead(a, b):
    f = negations(a, b)
    dead, x = fed(True), fed(5)
    outputs = []
    for arguments in ((switched(x, dead)[0], x), (x, switched(x, dead)[0])):
        y = f(*arguments)
        outputs += [live_or(y[i], -1, dead) if argument is not x else y[i] for i, argument in enumerate(arguments)]
        outputs.append(y[2])
    return outputs


@case(-1, -5, 7, -5, -1, 7)
def one_argument_or_the_other_is_dead(a, b):
    f = negations(a, b)
    outputs = []
    for value in (True, False):
        p, x = fed(value), fed(5)
        when_false, when_true = switched(x, p)
        y = f(when_false, when_true)
        outputs += [live_or(y[0], -1, p), live_or(y[1], -1, tf.logical_not(p)), y[2]]
    return outputs


@case(-1, 3, -1, 5, 8, 3)
def dead_arguments_at_all_depths(a, b):
    """f(n, x, y) counts up what lives of x and y, which change places at each level."""
    f, define = recursive("Places", [I32, I32, I32], [I32, I32])

    @define
    def Places(n, x, y):
        def deeper():
            with on(a):
                x_below = x + 1
            with on(b):
                y_below = y + 2
            y_result, x_result = f(n - 1, y_below, x_below)
            return x_result, y_result

        return tf.cond(n < 1, lambda: (tf.identity(x), tf.identity(y)), deeper)

    outputs = []
    for n, value in ((2, True), (3, True), (2, False)):
        p = fed(value)
        x, y = f(fed(n), switched(fed(5), p)[0], fed(0))
        outputs += [live_or(x, -1, p), y]
    return outputs
