"""Bodies whose operators lie apart: on two devices of one process, and on two processes."""
# SPDX-License-Identifier: Apache-2.0

import collections

import distribution_helpers as distribution
import numpy as np
import pytest
import switches
import tensorflow as tf
from distribution_helpers import on
from gradient_helpers import recursive

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
I32, F32 = tf.int32, tf.float32

# What adds a program to the graph with operators on devices a and b (none, if these are empty), and returns its
# fetches; and their values.
Case = collections.namedtuple("Case", "build expected")
CASES = {}


@pytest.fixture(params=["devices", "processes"])
def place(request):
    if request.param == "devices":
        return distribution.two_devices()
    return distribution.of_cluster(request.getfixturevalue("cluster"))


# What needs kernels that the fake GPU has not: of gathers from variables, of integer variables.
FOR_CPUS = ["calls_beside_either_variable", "variables_that_gradients_look_at", "assignments_to_either"]


@pytest.fixture(autouse=True)
def has_kernels(request):
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    if name in FOR_CPUS and request.config.getoption("--fake-gpu"):
        pytest.skip("the fake GPU has no such kernels")


def case(*expected):
    def add(build):
        CASES[build.__name__] = Case(build, expected)
        return build

    return add


def fed(value, dtype=None):
    """A value that no optimizer knows."""
    value = np.asarray(value, dtype)
    return tf1.placeholder_with_default(value.astype(np.int32) if value.dtype == np.int64 else value, value.shape)


def run_in(place, devices, build, **options):
    """Builds a graph over the devices and runs it twice in a session of the place; returns the second run's values."""
    with tf.Graph().as_default():
        fetches = build(*devices)
        with place.session(**options) as session:
            session.run(tf1.global_variables_initializer(), options=distribution.TIMEOUT)
            for _ in range(2):
                values = session.run(fetches, options=distribution.TIMEOUT)
    return values


def same_bits(one, other):
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype == object:
        return one.shape == other.shape and (one == other).all()
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


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


def switched(x, p):
    """x where p is false and where it is true; the other is dead."""
    return tf.raw_ops.Switch(data=x, pred=p)


def live_or(x, otherwise, p):
    """x, which is dead if p, or the other value then."""
    return tf.raw_ops.Merge(inputs=[x, switched(otherwise, p)[1]])[0]


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


# --- Loops --------------------------------------------------------------------------------------------------------


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


# --- Variables ----------------------------------------------------------------------------------------------------


@case(np.float32(32.0), np.float32(6.0))
def captured_variables_on_both(a, b):
    with on(a):
        v = tf1.get_variable("v", initializer=np.float32(2), use_resource=True)
    with on(b):
        w = tf1.get_variable("w", initializer=np.float32(3), use_resource=True)
    f, define = recursive("Affine", [I32], [F32])

    @define
    def Affine(n):
        def deeper():
            with on(b):
                return v * f(n - 1) + w

        return tf.cond(n < 1, lambda: v * 1.0, deeper)

    return [f(fed(3)) - 5.0, v * w]


@case(15)
def variable_assigned_in_bodies(a, b):
    with on(b):
        count = tf1.get_variable("count", [], I32, tf1.zeros_initializer(), use_resource=True)
    f, define = recursive("Counted", [I32], [I32])

    @define
    def Counted(n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + f(n - 1))

    with tf.control_dependencies([count.assign(0)]):
        n = tf.identity(fed(3))
    with on(a), tf.control_dependencies([f(n)]):
        return [count.read_value()]


@case(b"1213121")
def side_effects_in_order(a, b):
    with on(b):
        text = tf1.get_variable("text", initializer="", use_resource=True)
    f, define = recursive("Hanoi", [I32], [I32])

    @define
    def Hanoi(n):
        def move():
            with on(a), tf.control_dependencies([f(n - 1)]):
                grown = text.assign(tf.strings.join([text.read_value(), tf.as_string(n)]))
            with on(b), tf.control_dependencies([grown]):
                right = f(n - 1)
            with on(a), tf.control_dependencies([right]):
                return tf.identity(n)

        return tf.cond(n < 1, lambda: 0, move)

    with tf.control_dependencies([text.assign("")]):
        n = tf.identity(fed(3))
    with tf.control_dependencies([f(n)]):
        return [text.read_value()]


# --- One argument, variables of both devices ---------------------------------------------------------------------


def variables_on_both(a, b, shape=()):
    with on(a):
        v = tf1.get_variable("v", initializer=np.full(shape, 2, np.float32), use_resource=True)
    with on(b):
        w = tf1.get_variable("w", initializer=np.full(shape, 3, np.float32), use_resource=True)
    return v, w


def read(handle):
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=F32)


@case(np.float32(8), np.float32(27), np.float32(12), np.float32(27))
def either_variable(a, b):
    f, define = recursive("Power", [I32, tf.resource], [F32], shapes=[[]], create_grad_func=True)

    @define
    def Power(n, handle):
        return tf.cond(n < 1, lambda: 1.0, lambda: f(n - 1, handle) * read(handle))

    v, w = variables_on_both(a, b)
    ys = [f(fed(3), v.handle), f(fed(3), w.handle)]
    return [*ys, *tf.gradients(ys, [v, w])]


@case(np.float32(10), np.float32(15), np.float32(5), np.float32(5))
def calls_beside_either_variable(a, b):
    """The records of the calls are on different devices too, those of calls in a loop among them."""
    f, define = recursive("Looped", [I32, tf.resource], [F32], shapes=[[]], create_grad_func=True)

    @define
    def Looped(n, handle):
        n = tf.ensure_shape(n, [])
        looped = lambda: tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + f(i, handle)), [0, 0.0])[1]
        return tf.cond(tf.equal(n % 2, 0), lambda: read(handle), lambda: read(handle) + looped())

    v, w = variables_on_both(a, b)
    with on(a):
        y = f(fed(3), v.handle)
    with on(b):
        z = f(fed(3), w.handle)
    return [y, z, *tf.gradients([y, z], [v, w])]


@case(np.float32(16), np.float32(2), np.float32(16))
def records_of_calls_on_either_device(a, b):
    """One function is called in the main graph, and elsewhere in another function's body."""
    f, define_f = recursive("Outer", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    g, define_g = recursive("Inner", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    define_g(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: g(n - 1, x) * 2.0))
    define_f(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: g(n, f(n - 1, x))))
    x = fed(2.0, np.float32)
    with on(b):
        inner = g(fed(1), x)
    with on(a):
        outer = f(fed(2), x)
    return [outer, tf.gradients(inner, x)[0], tf.gradients(outer * 2.0, x)[0]]


@case(np.float32(72), np.float32(108), np.float32(216), np.float32(156))
def variables_that_take_turns(a, b):
    """Two functions that call each other, with the variables changing places every other time."""
    f, define_f = recursive("Turn", [I32, tf.resource, tf.resource], [F32], shapes=[[]], create_grad_func=True)
    g, define_g = recursive("Pass", [I32, tf.resource, tf.resource], [F32], shapes=[[]], create_grad_func=True)
    define_f(lambda n, x, y: tf.cond(n < 1, lambda: 1.0, lambda: g(n - 1, x, y) * read(x)))
    define_g(lambda n, x, y: tf.cond(n < 1, lambda: 1.0, lambda: f(n - 1, y, x) * read(y)))
    v, w = variables_on_both(a, b)
    ys = [f(fed(5), v.handle, w.handle), f(fed(5), w.handle, v.handle)]
    return [*ys, *tf.gradients(ys, [v, w])]


@case(np.full(2, 8, np.float32), np.full(2, 27, np.float32), np.full(2, 12, np.float32), np.full(2, 27, np.float32))
def variables_that_gradients_look_at(a, b):
    """The gradient asks the variable for its shape, so that its handle goes through the record."""
    f, define = recursive("Rows", [I32, tf.resource], [F32], shapes=[[2]], create_grad_func=True)

    @define
    def Rows(n, handle):
        row = tf.raw_ops.ResourceGather(resource=handle, indices=[0, 1], dtype=F32)
        return tf.cond(n < 1, lambda: tf.ones([2]), lambda: f(n - 1, handle) * row)

    with on(a):
        v = tf1.get_variable("v", initializer=fed([2, 2], np.float32), use_resource=True, validate_shape=False)
    with on(b):
        w = tf1.get_variable("w", initializer=fed([3, 3], np.float32), use_resource=True, validate_shape=False)
    ys = [f(fed(3), v.handle), f(fed(3), w.handle)]
    return [*ys, *map(tf.convert_to_tensor, tf.gradients(ys, [v, w]))]


@case(np.float32(2), np.float32(3), np.float32(8), np.float32(18))
def handles_that_functions_return(a, b):
    pick, define_pick = recursive("Pick", [I32, tf.resource], [tf.resource])
    power, define_power = recursive("Power", [I32, tf.resource], [F32])
    define_pick(lambda n, handle: tf.cond(n < 1, lambda: tf.identity(handle), lambda: pick(n - 1, handle)))

    @define_power
    def Power(n, handle):
        deeper = lambda: power(n - 1, pick(n, handle)) * read(pick(0, handle))
        return tf.cond(n < 1, lambda: tf.constant(2.0), deeper)

    v, w = variables_on_both(a, b)
    reads = [read(pick(fed(4), variable.handle)) for variable in (v, w)]
    return [*reads, *(power(fed(2), pick(fed(1), variable.handle)) for variable in (v, w))]


@case(np.float32(10), np.float32(15))
def variables_in_loops_and_branches(a, b):
    f, define = recursive("Loops", [I32, tf.resource], [F32], shapes=[[]])

    @define
    def Loops(n, handle):
        n = tf.ensure_shape(n, [])

        def looped():
            return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + f(i, handle)), [0, 0.0])[1]

        return tf.cond(tf.equal(n % 2, 0), lambda: read(handle), lambda: read(handle) + looped())

    v, w = variables_on_both(a, b)
    n = fed(3)
    return [tf.cond(n < 5, lambda: f(n, variable.handle), lambda: 0.0) for variable in (v, w)]


@case(7, 14)
def assignments_to_either(a, b):
    f, define = recursive("Count", [I32, tf.resource], [I32])

    @define
    def Count(n, handle):
        add = tf.raw_ops.AssignAddVariableOp(resource=handle, value=1)
        with tf.control_dependencies([add]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1, handle) + f(n - 1, handle))

    counts = []
    for device, times in ((a, 1), (b, 2)):
        with on(device):
            count = tf1.get_variable(f"count{times}", [], I32, tf1.zeros_initializer(), use_resource=True)
        done = [count.assign(0)]
        for _ in range(times):
            with tf.control_dependencies(done):
                done = [f(fed(2), count.handle)]
        with on(device), tf.control_dependencies(done):
            counts.append(count.read_value())
    return counts


# --- Gradients ----------------------------------------------------------------------------------------------------


def chain(a, b):
    """f(3, x) where f(n, x) = v * f(n - 1, x) * x + w, the product on one device, the sum on the other."""
    with on(a):
        v = tf1.get_variable("v", initializer=np.float32(2), use_resource=True)
    with on(b):
        w = tf1.get_variable("w", initializer=np.float32(3), use_resource=True)
    f, define = recursive("Chain", [I32, F32], [F32], shapes=[[]], create_grad_func=True)

    @define
    def Chain(n, x):
        def deeper():
            with on(a):
                product = v * f(n - 1, x) * x
            with on(b):
                return product + w

        return tf.cond(n < 1, lambda: x * 1.0, deeper)

    x = fed(0.5, np.float32)
    return f(fed(3), x), [x, v, w]


@case(np.float32(9.5), np.float32(22), np.float32(5.25), np.float32(3))
def gradients(a, b):
    y, xs = chain(a, b)
    return [y, *tf.gradients(y, xs)]


@case(np.float32(9.5), np.float32(22), np.float32(5.25), np.float32(3))
def gradients_colocated_with_operators(a, b):
    y, xs = chain(a, b)
    return [y, *tf1.gradients(y, xs, colocate_gradients_with_ops=True)]


@case(np.float32(9.5), np.float32(22), np.float32(5.25), np.float32(3))
def gradients_on_the_other_device(a, b):
    y, xs = chain(a, b)
    with on(b):
        return [y, *tf.gradients(y, xs)]


@case(np.full([2, 2], 4, np.float32), np.full([2, 2], 24, np.float32))
def gradients_of_matrix_weights(a, b):
    """The weight is multiplied with in every frame; its gradient is summed once."""
    with on(b):
        w = tf1.get_variable("w", initializer=np.full([2, 2], 0.5, np.float32), use_resource=True)
    f, define = recursive("Multiply", [I32, F32], [F32], shapes=[[2, 2]], create_grad_func=True)

    @define
    def Multiply(n, x):
        x = tf.ensure_shape(x, [2, 2])

        def deeper():
            with on(a):
                below = f(n - 1, x)
            with on(b):
                return tf.matmul(below, w)

        return tf.cond(n < 1, lambda: tf.identity(x), deeper)

    y = f(fed(3), fed(np.full([2, 2], 4, np.float32)))
    return [y, *tf.gradients(y, w)]


@case(np.float32(1.0), np.float32(-4.0))
def gradient_through_mutual_functions_apart(a, b):
    f, define_f = recursive("Double", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    g, define_g = recursive("Negate", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    with on(a):
        define_f(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: g(n - 1, x * 2.0)))
    with on(b):
        define_g(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: f(n - 1, -x)))
    x = fed(-0.25, np.float32)
    y = f(fed(3), x)
    return [y, tf.gradients(y, x)[0]]


# --- The cases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_case_has_its_values_on_one_device(name, control_flow):
    """The expectations themselves are right."""
    values = run_in(distribution.one_device(), ("", ""), CASES[name].build)
    for value, expected in zip(values, CASES[name].expected, strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("name", CASES)
def test_devices_agree_on_calls_only_where_arguments_may_die_apart(name, place, control_flow):
    with tf.Graph().as_default():
        fetches = CASES[name].build(*place.devices)
        with place.session() as session:
            session.run(tf1.global_variables_initializer(), options=distribution.TIMEOUT)
            _, metadata = distribution.run_traced(session, fetches)
    nodes = list(distribution.partition_nodes(metadata))
    assert any("/lives" in node.name for node in nodes) == (name in ASKING_CASES), nodes
    partial = {node.name for node in nodes if "_recursion_partial_loop" in node.attr}
    expected = name in PARTIAL_CASES or (control_flow == "v1" and name in PARTIAL_IN_V1)
    assert (len(partial) > 0) == expected, partial


@pytest.mark.parametrize("name", CASES)
def test_values_are_bit_identical_to_one_device_when_operators_lie_apart(name, place, control_flow):
    one = run_in(distribution.one_device(), ("", ""), CASES[name].build)
    apart = run_in(place, place.devices, CASES[name].build)
    assert [same_bits(*pair) for pair in zip(apart, one, strict=True)] == [True] * len(one), (apart, one)


# The dynamic call of a function is beside all the variables that it gets.
ONE_AT_A_TIME = [
    "either_variable",
    "calls_beside_either_variable",
    "variables_that_gradients_look_at",
    "variables_in_loops_and_branches",
    "handles_that_functions_return",
    "assignments_to_either",
]


@pytest.mark.parametrize("name", ONE_AT_A_TIME)
@pytest.mark.parametrize("soft", [False, True])
def test_values_are_those_of_dynamic_runs_when_one_argument_is_a_variable_of_either_device(
    name, soft, place, control_flow
):
    place.config.allow_soft_placement = soft
    dynamic = run_in(place, place.devices, CASES[name].build, static=False)
    static = run_in(place, place.devices, CASES[name].build)
    assert [same_bits(*pair) for pair in zip(static, dynamic, strict=True)] == [True] * len(dynamic), (static, dynamic)


@pytest.mark.parametrize("name", [*ONE_AT_A_TIME, "variables_that_take_turns"])
def test_run_is_static_when_one_argument_is_a_variable_of_either_device(name, place):
    fetches = CASES[name].build(*place.devices)
    with place.session() as session:
        session.run(tf1.global_variables_initializer())
        _, metadata = distribution.run_traced(session, fetches)
    nodes = list(distribution.partition_nodes(metadata))
    assert "Recursion>Invoke" not in {node.op for node in nodes}
    ops = ("ReadVariableOp", "ResourceGather", "AssignAddVariableOp")
    readers = [node for node in nodes if "/" in node.name and node.op in ops]
    assert any("__copy1/" in node.name for node in nodes)
    for device in place.devices:
        assert any(distribution.is_on(node.device, device) for node in readers), readers


@pytest.mark.parametrize("name", ["two_calls_apart", "mutual_functions_apart", "gradients", "outputs_apart"])
def test_run_is_static_and_on_both_devices_when_operators_lie_apart(name, place):
    fetches = CASES[name].build(*place.devices)
    with place.session() as session:
        session.run(tf1.global_variables_initializer())
        _, metadata = distribution.run_traced(session, fetches)
    assert "Recursion>Invoke" not in {node.op for node in distribution.partition_nodes(metadata)}
    assert len(distribution.traced_devices(metadata, r"(Fib|Even|Odd|Chain|Several)\w*/")) == 2


# --- Random numbers -----------------------------------------------------------------------------------------------


def drawing(a, b):
    """The sums of what a body draws on both devices, and of what the main graph draws."""
    tf1.set_random_seed(7)
    f, define = recursive("Draw", [I32], [I32])

    @define
    def Draw(n):
        def deeper():
            with on(a):
                x = tf.random.uniform([], 0, 1000, I32, seed=1)
            with on(b):
                return f(n - 1) + x * tf.random.uniform([], 0, 1000, I32, seed=2)

        return tf.cond(n < 1, lambda: 0, deeper)

    with on(b):
        return [f(fed(1)), tf.random.uniform([], 0, 1000, I32, seed=3)]


def test_random_numbers_are_those_of_one_device_when_seeded(place, control_flow):
    """One frame draws once of each operator, so that no order among frames decides."""

    def draw(place, devices):
        with tf.Graph().as_default():
            fetches = drawing(*devices)
            with place.session() as session:
                return [session.run(fetches, options=distribution.TIMEOUT) for _ in range(4)]

    one = draw(distribution.one_device(), ("", ""))
    assert len({tuple(values) for values in one}) == 4
    assert draw(place, place.devices) == one


def test_random_numbers_are_the_same_multiset_when_many_frames_draw(place):
    def draw(place, devices):
        with tf.Graph().as_default():
            tf1.set_random_seed(7)
            f, define = recursive("Draw", [I32], [I32])

            @define
            def Draw(n):
                def deeper():
                    with on(devices[1]):
                        number = tf.random.uniform([1], 0, 1000, I32, seed=1)
                    with on(devices[0]):
                        return tf.concat([f(n - 1), number, f(n - 1)], 0)

                return tf.cond(n < 1, lambda: tf.zeros([0], I32), deeper)

            fetch = f(fed(4))
            with place.session() as session:
                return sorted(session.run(fetch, options=distribution.TIMEOUT))

    one = draw(distribution.one_device(), ("", ""))
    assert len(set(one)) > 10
    assert draw(place, place.devices) == one


# --- Placement ----------------------------------------------------------------------------------------------------


def test_node_of_body_runs_where_it_was_asked_to(place):
    f, define = recursive("Placed", [I32], [I32])
    a, b = place.devices

    @define
    def Placed(n):
        with tf.device(a):
            x = tf.add(n, 1, name="here")
        with tf.device(b):
            x = tf.multiply(x, 2, name="there")
        return tf.cond(n < 1, lambda: x, lambda: x + f(n - 1))

    y = f(fed(5))
    with place.session() as session:
        value, metadata = distribution.run_traced(session, y)
    assert value == 2 * sum(range(1, 7))
    # Arithmetic on scalars runs without a kernel: the partition graphs know more than the trace.
    nodes = {node.name: node.device for node in distribution.partition_nodes(metadata)}
    assert [distribution.is_on(nodes["Placed/here"], a), distribution.is_on(nodes["Placed/there"], b)] == [True, True]


def test_transformed_graph_has_the_devices_that_were_asked_for(place):
    a, b = place.devices
    fetches = two_calls_apart(a, b)
    static = tfr.transform_graph(tf1.get_default_graph(), fetches)
    devices = {node.device for node in static.node if node.name.startswith("Fib/")}
    for device in (a, b):
        assert any(distribution.is_on(found, device) for found in devices), devices


def test_variable_is_used_where_it_lies_when_the_body_asks_for_nothing(place):
    a, b = place.devices
    with tf.device(b):
        v = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    f, define = recursive("Reads", [I32], [F32])
    define(lambda n: tf.cond(n < 1, lambda: v.read_value(), lambda: f(n - 1) + v))
    with tf.device(a):
        y = f(fed(3))
    with place.session() as session:
        session.run(tf1.global_variables_initializer())
        value, metadata = distribution.run_traced(session, y)
    assert value.tolist() == [4, 8]
    reads = {node.device for node in distribution.partition_nodes(metadata) if node.op == "ReadVariableOp"}
    assert reads
    assert all(distribution.is_on(device, b) for device in reads), reads


def test_body_runs_on_a_device_there_is_when_placement_is_soft(place):
    f, define = recursive("Sum", [I32], [I32])

    @define
    def Sum(n):
        def deeper():
            with tf.device(place.devices[1]), tf.device("/device:GPU:3"):
                return n + f(n - 1)

        return tf.cond(n < 1, lambda: 0, deeper)

    place.config.allow_soft_placement = True
    y = f(fed(10))
    with place.session() as session:
        assert session.run(y, options=distribution.TIMEOUT) == 55


def test_error_names_the_device_when_there_is_none_such(place):
    f, define = recursive("Sum", [I32], [I32])

    @define
    def Sum(n):
        def deeper():
            with tf.device("/device:GPU:3"):
                return n + f(n - 1)

        return tf.cond(n < 1, lambda: 0, deeper)

    y = f(fed(10))
    place.config.allow_soft_placement = False
    with place.session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="GPU:3"):
        session.run(y, options=distribution.TIMEOUT)


@pytest.mark.parametrize("colocates", [False, True])
def test_backward_body_is_split_as_the_forward_one(control_flow, colocates):
    """With or without `colocate_gradients_with_ops`, in branches too."""
    f, define = recursive("Waves", [I32, F32], [F32], create_grad_func=True)
    a, b = distribution.CPUS

    @define
    def Waves(n, x):
        def deeper():
            with tf.device(a):
                x_a = tf.sin(x)
            with tf.device(b):
                return f(n - 1, tf.atan(x_a))

        return tf.cond(n < 1, lambda: x, deeper)

    x = fed(0.5, np.float32)
    gradients = tf1.gradients(f(fed(3), x), x, colocate_gradients_with_ops=colocates)
    graph = tfr.transform_graph(tf1.get_default_graph().as_graph_def(), [gradients[0].name])
    for op, device in (("Cos", a), ("Reciprocal", b)):
        found = [node.device for node in graph.node if "__backward" in node.name and node.op == op]
        assert found and all(distribution.is_on(name, device) for name in found)


def test_no_message_passes_for_edges_that_stay_on_one_device(place, control_flow):
    """A body that lies on one device as a whole costs one message in and one out, however often it calls itself."""
    a, b = place.devices
    f, define = recursive("Fib", [I32], [I32])
    with tf.device(b):
        define(lambda n: tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2)))
    with tf.device(a):
        n = fed(10)
        y = tf.identity(f(n))
    with place.session() as session:
        value, metadata = distribution.run_traced(session, y)
    assert value == 55
    sends = [node.name for node in distribution.partition_nodes(metadata) if node.op in ("_Send", "_HostSend")]
    assert 2 <= len(sends) <= 4, sends


# --- Errors -------------------------------------------------------------------------------------------------------


def test_error_names_node_when_it_fails_on_the_other_device(place, control_flow):
    f, define = recursive("Divide", [I32, I32], [I32])
    a, b = place.devices

    @define
    def Divide(n, x):
        def base():
            with tf.device(b):
                return tf.math.floordiv(100, x, name="quotient")

        def deeper():
            with tf.device(a):
                return f(n - 1, x) + 1

        return tf.cond(n < 1, base, deeper)

    n, x = tf1.placeholder(I32, [], "n"), tf1.placeholder(I32, [], "x")
    y = f(n, x)
    with place.session() as session:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)zero.*quotient|quotient.*zero"):
                session.run(y, {n: 5, x: 0}, options=distribution.TIMEOUT)
            assert session.run(y, {n: 5, x: 7}, options=distribution.TIMEOUT) == 19


def test_error_names_function_and_limit_when_too_deep_on_both(place):
    f, define = recursive("Down", [I32], [I32])
    a, b = place.devices

    @define
    def Down(n):
        def deeper():
            with tf.device(a):
                below = f(n - 1)
            with tf.device(b):
                return 1 + below

        return tf.cond(n < 1, lambda: 0, deeper)

    n = tf1.placeholder(I32, [])
    y = f(n)
    with place.session(max_depth=50) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="(?s)Down.*50.*max_depth"):
            session.run(y, {n: 100}, options=distribution.TIMEOUT)
        assert session.run(y, {n: 40}, options=distribution.TIMEOUT) == 40


def test_error_names_limit_when_only_one_side_is_too_deep(place):
    f, define = recursive("Down", [I32], [I32])
    a, b = place.devices
    with tf.device(b):
        define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    n = tf1.placeholder(I32, [])
    with tf.device(a):
        y = f(n) * 2
    with place.session(max_depth=50) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="(?s)Down.*50.*max_depth"):
            session.run(y, {n: 100}, options=distribution.TIMEOUT)
        assert session.run(y, {n: 40}, options=distribution.TIMEOUT) == 80
