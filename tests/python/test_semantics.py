"""Small programs that mean the same in Python, run dynamically, and run statically: on one worker or several, on one
device, two devices or two processes."""
# SPDX-License-Identifier: Apache-2.0

import collections
import contextlib
import functools
import threading

import distribution_helpers as distribution
import numpy as np
import pytest
import switches
import tensorflow as tf
from gradient_helpers import recursive

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

# The options of static execution, and how deep a recursion is that is called deep.
Mode = collections.namedtuple("Mode", "options depth")
MODES = {
    "dynamic": Mode(None, 100_000),
    "static1": Mode({"workers": 1}, 100_000),
    "static4": Mode({"workers": 4}, 100_000),
    "devices": Mode({}, 3000),
    "processes": Mode({}, 200),
}
STATIC = [name for name in MODES if name != "dynamic"]

# A name for each test, what builds the function and its oracle, its arguments' dtypes, and lists of arguments.
Program = collections.namedtuple("Program", "build types inputs")
PROGRAMS = {}

# Arguments where a call costs a round trip or more.
FEWER_INPUTS = {
    "fib": [[-1], [11]],
    "ack": [[2, 3]],
    "tak": [[6, 4, 2]],
    "mutual_recursion_of_three": [[0], [7]],
    "many_call_sites": [[0]],
    "loop_whose_length_is_from_a_call": [[0], [3]],
}


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def place(mode, request):
    """Where the sessions of the mode run."""
    if mode == "processes":
        return distribution.of_cluster(request.getfixturevalue("cluster"))
    return distribution.two_devices() if mode == "devices" else distribution.one_device()


@pytest.fixture
def run(mode, place):
    """Runs fetches in one session of the mode, after the variables are initialized.

    The operators of the graph and of the bodies are spread over the devices of the mode's place.
    """
    options = MODES[mode].options
    with contextlib.ExitStack() as stack:
        if len(place.devices) > 1:
            stack.enter_context(place.spread())

        @functools.cache
        def session():
            session = stack.enter_context(place.session(static=options is not None, **(options or {})))
            session.run(tf1.global_variables_initializer())
            return session

        def run(fetches, feeds=None):
            return session().run(fetches, feeds, options=distribution.TIMEOUT)

        run.session = session
        yield run


def program(types, *inputs):
    """Adds a function without arguments, which returns a TensorFlow function and its oracle, to the programs."""

    def add(build):
        PROGRAMS[build.__name__] = Program(build, types, inputs)
        return build

    return add


def check(actual, expected):
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            check(one, other)
    elif np.asarray(expected).dtype.kind in "fc":
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(actual, expected)


# --- Numbers ------------------------------------------------------------------------------------------------------


@program([tf.int32], [-1], [0], [1], [10], [17])
def fib():
    f, define = recursive("Fib", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2)))

    def oracle(n):
        return n if n < 2 else oracle(n - 1) + oracle(n - 2)

    return f, oracle


@program([tf.int32, tf.int32], [0, 3], [2, 3], [3, 2])
def ack():
    f, define = recursive("Ack", [tf.int32, tf.int32], [tf.int32])

    @define
    def Ack(m, n):
        inner = lambda: tf.cond(tf.equal(n, 0), lambda: f(m - 1, 1), lambda: f(m - 1, f(m, n - 1)))
        return tf.cond(tf.equal(m, 0), lambda: n + 1, inner)

    def oracle(m, n):
        if m == 0:
            return n + 1
        return oracle(m - 1, 1) if n == 0 else oracle(m - 1, oracle(m, n - 1))

    return f, oracle


@program([tf.int32] * 3, [6, 4, 2], [8, 4, 0], [1, 2, 3])
def tak():
    f, define = recursive("Tak", [tf.int32] * 3, [tf.int32])

    @define
    def Tak(x, y, z):
        return tf.cond(y < x, lambda: f(f(x - 1, y, z), f(y - 1, z, x), f(z - 1, x, y)), lambda: z)

    def oracle(x, y, z):
        return oracle(oracle(x - 1, y, z), oracle(y - 1, z, x), oracle(z - 1, x, y)) if y < x else z

    return f, oracle


@program([tf.int32], [0], [1], [2], [40])
def primes():
    i32 = tf.int32
    test, define_test = recursive("IsPrime", [i32, i32], [tf.bool])
    minus, define_minus = recursive("PrimeMinus", [i32, i32], [i32])
    plus, define_plus = recursive("PrimePlus", [i32, i32], [i32])
    f, define = recursive("Primes", [i32], [i32])

    @define_test
    def IsPrime(n, i):
        k = 6 * i - 1
        deeper = lambda: tf.cond(tf.equal(n % k, 0), lambda: False, lambda: test(n, i + 1))
        return tf.cond(k * k > n, lambda: True, deeper)

    @define_minus
    def PrimeMinus(n, i):
        k = 6 * i - 1
        found = lambda: tf.cond(tf.equal(n, 0), lambda: k, lambda: plus(n - 1, i))
        return tf.cond(test(k, 1), found, lambda: plus(n, i))

    @define_plus
    def PrimePlus(n, i):
        k = 6 * i + 1
        found = lambda: tf.cond(tf.equal(n, 0), lambda: k, lambda: minus(n - 1, i + 1))
        return tf.cond(test2(k, 1), found, lambda: minus(n, i + 1))

    test2, define_test2 = recursive("IsPrimeToo", [i32, i32], [tf.bool])

    @define_test2
    def IsPrimeToo(n, i):
        p, q = 6 * i - 1, 6 * i + 1
        divides = tf.logical_or(tf.equal(n % p, 0), tf.logical_and(q < n, tf.equal(n % q, 0)))
        return tf.cond(p * p > n, lambda: True, lambda: tf.logical_and(tf.logical_not(divides), test2(n, i + 1)))

    @define
    def Primes(n):
        return tf.case([(n <= 0, lambda: 2), (tf.equal(n, 1), lambda: 3)], default=lambda: minus(n - 2, 1))

    def oracle_test(n, i):
        k = 6 * i - 1
        return k * k > n or (n % k != 0 and oracle_test(n, i + 1))

    def oracle_test2(n, i):
        p, q = 6 * i - 1, 6 * i + 1
        return p * p > n or (n % p != 0 and not (q < n and n % q == 0) and oracle_test2(n, i + 1))

    def oracle(n):
        if n < 2:
            return 2 if n <= 0 else 3
        n, i, is_minus = n - 2, 1, True
        while True:
            k = 6 * i - 1 if is_minus else 6 * i + 1
            if oracle_test(k, 1) if is_minus else oracle_test2(k, 1):
                if n == 0:
                    return k
                n -= 1
            i += 0 if is_minus else 1
            is_minus = not is_minus

    return f, oracle


@program([tf.int64, tf.int64], [48, 36], [2**40, 3 * 2**38], [7, 0])
def gcd_of_int64():
    f, define = recursive("Gcd", [tf.int64] * 2, [tf.int64])
    define(lambda a, b: tf.cond(tf.equal(b, 0), lambda: a, lambda: f(b, a % b)))

    def oracle(a, b):
        return np.int64(a if b == 0 else oracle(b, a % b))

    return f, oracle


@program([tf.int32, tf.int32], [-17, 5], [17, -5], [17, 5], [-17, -5])
def arithmetic_of_int32():
    """Python's rules for signs, and wrapping."""
    f, define = recursive("Arithmetic", [tf.int32] * 2, [tf.int32] * 4)

    @define
    def Arithmetic(a, b):
        done = lambda: [a // b, a % b, tf.maximum(a, -b), tf.abs(a) * tf.negative(b) - tf.minimum(a, b)]
        shifted = lambda: [2 * r for r in f(a, b - 100)]
        return tf.cond(b < 50, done, shifted)

    return f, lambda a, b: (a // b, a % b, max(a, -b), abs(a) * -b - min(a, b))


@program([tf.int32], [3], [40])
def overflow_of_int32():
    f, define = recursive("Power", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 1, lambda: 3 * f(n - 1)))
    return f, lambda n: np.int64(3**n & 0xFFFFFFFF).astype(np.int32)


@program([tf.float64, tf.float64], [2.0, 1e-9], [1e10, 1e-3])
def square_root_of_float64():
    f, define = recursive("Newton", [tf.float64] * 3, [tf.float64])
    root, define_root = recursive("Root", [tf.float64] * 2, [tf.float64])

    @define
    def Newton(x, guess, tolerance):
        better = (guess + x / guess) / 2
        return tf.cond(tf.abs(better - guess) < tolerance, lambda: better, lambda: f(x, better, tolerance))

    define_root(lambda x, tolerance: f(x, x, tolerance))
    return root, lambda x, tolerance: np.sqrt(x)


@program([tf.int32, tf.float32], [0, 1.5], [10, 0.5], [3, -2.0])
def power_of_float32():
    f, define = recursive("PowerOf", [tf.int32, tf.float32], [tf.float32])

    @define
    def PowerOf(n, x):
        even = lambda: f(n // 2, x * x)
        return tf.cond(n < 1, lambda: 1.0, lambda: tf.cond(tf.equal(n % 2, 0), even, lambda: x * f(n - 1, x)))

    return f, lambda n, x: np.float32(x) ** n


@program([tf.int32, tf.complex64], [0, 1j], [5, 1 + 2j])
def complex_powers():
    f, define = recursive("ComplexPower", [tf.int32, tf.complex64], [tf.complex64])
    define(lambda n, z: tf.cond(n < 1, lambda: tf.ones_like(z), lambda: z * f(n - 1, z)))
    return f, lambda n, z: np.complex64(z) ** n


@program([tf.int32, tf.bool], [0, True], [3, True], [4, False])
def bools():
    f, define = recursive("Flip", [tf.int32, tf.bool], [tf.bool, tf.bool])

    @define
    def Flip(n, b):
        def deeper():
            x, y = f(n - 1, tf.logical_not(b))
            return tf.logical_or(x, y), tf.logical_and(x, tf.not_equal(y, b))

        return tf.cond(n < 1, lambda: (b, tf.logical_not(b)), deeper)

    def oracle(n, b):
        if n < 1:
            return b, not b
        x, y = oracle(n - 1, not b)
        return x or y, x and (y != b)

    return f, oracle


@program([tf.int32], [0], [5])
def strings():
    f, define = recursive("Word", [tf.int32], [tf.string])
    define(lambda n: tf.cond(n < 1, lambda: ".", lambda: tf.strings.join([f(n - 1), tf.as_string(n), f(n - 2)])))

    def oracle(n):
        return b"." if n < 1 else oracle(n - 1) + str(n).encode() + oracle(n - 2)

    return f, oracle


# --- Shapes of recursion ------------------------------------------------------------------------------------------


@program([tf.int32], [0], [1], [10], [11])
def mutual_recursion():
    even, define_even = recursive("Even", [tf.int32], [tf.bool])
    odd, define_odd = recursive("Odd", [tf.int32], [tf.bool])
    define_even(lambda n: tf.cond(tf.equal(n, 0), lambda: True, lambda: odd(n - 1)))
    define_odd(lambda n: tf.cond(tf.equal(n, 0), lambda: False, lambda: even(n - 1)))
    return even, lambda n: n % 2 == 0


@program([tf.int32], [0], [7], [12])
def mutual_recursion_of_three():
    a, define_a = recursive("A", [tf.int32], [tf.int32])
    b, define_b = recursive("B", [tf.int32], [tf.int32])
    c, define_c = recursive("C", [tf.int32], [tf.int32])
    define_a(lambda n: tf.cond(n < 1, lambda: 1, lambda: b(n - 1) + c(n - 2)))
    define_b(lambda n: tf.cond(n < 1, lambda: 2, lambda: c(n - 1) * 3 - a(n - 3)))
    define_c(lambda n: tf.cond(n < 1, lambda: 3, lambda: a(n - 1) - b(n - 2) + c(n - 2)))

    def oracle(n, which=0):
        if n < 1:
            return which + 1
        if which == 0:
            return oracle(n - 1, 1) + oracle(n - 2, 2)
        if which == 1:
            return oracle(n - 1, 2) * 3 - oracle(n - 3, 0)
        return oracle(n - 1, 0) - oracle(n - 2, 1) + oracle(n - 2, 2)

    return a, oracle


@program([tf.int32], [0], [1], [2], [3], [4])
def nested_calls():
    fac, define = recursive("Fac", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 2, lambda: 1, lambda: n * fac(n - 1)))
    nested = lambda n: fac(fac(n % 4)) + fac(fac(fac(n % 3)))

    def oracle(n):
        o = lambda k: 1 if k < 2 else k * o(k - 1)
        return o(o(n % 4)) + o(o(o(n % 3)))

    return nested, oracle


@program([tf.int32], [50], [99], [101], [200])
def nested_calls_in_body():
    f, define = recursive("McCarthy", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n > 100, lambda: n - 10, lambda: f(f(n + 11))))
    return f, lambda n: n - 10 if n > 100 else 91


@program([tf.int32], [0], [1], [9], [20])
def hofstadter():
    """g(n) = n - g(g(n - 1)), and the female and male sequences."""
    female, define_female = recursive("Female", [tf.int32], [tf.int32])
    male, define_male = recursive("Male", [tf.int32], [tf.int32])
    define_female(lambda n: tf.cond(tf.equal(n, 0), lambda: 1, lambda: n - male(female(n - 1))))
    define_male(lambda n: tf.cond(tf.equal(n, 0), lambda: 0, lambda: n - female(male(n - 1))))

    @functools.cache
    def oracle_female(n):
        return 1 if n == 0 else n - oracle_male(oracle_female(n - 1))

    @functools.cache
    def oracle_male(n):
        return 0 if n == 0 else n - oracle_female(oracle_male(n - 1))

    return lambda n: (female(n % 10), male(n % 10)), lambda n: (oracle_female(n % 10), oracle_male(n % 10))


@program([tf.int32], [0], [1], [7])
def several_outputs():
    f, define = recursive("Several", [tf.int32], [tf.int32, tf.float32, tf.string])

    @define
    def Several(n):
        def deeper():
            a, b, c = f(n - 1)
            return a + n, b * 2.0, tf.strings.join([c, "x"])

        return tf.cond(n < 1, lambda: (0, 1.0, ""), deeper)

    return f, lambda n: (n * (n + 1) // 2, 2.0**n, b"x" * n)


@program([tf.int32], [0], [8])
def outputs_that_swap():
    f, define = recursive("Swap", [tf.int32, tf.int32, tf.int32], [tf.int32, tf.int32])

    @define
    def Swap(n, a, b):
        return tf.cond(n < 1, lambda: (a, b), lambda: f(n - 1, b, a + b))

    def oracle(n, a=0, b=1):
        return (a, b) if n < 1 else oracle(n - 1, b, a + b)

    return lambda n: f(n, 0, 1), oracle


@program([tf.int32], [5])
def output_that_is_never_read():
    f, define = recursive("Unread", [tf.int32], [tf.int32, tf.int32])

    @define
    def Unread(n):
        return tf.cond(n < 1, lambda: (0, 0), lambda: (f(n - 1)[0] + 1, n // 2))

    return lambda n: f(n)[0], lambda n: n


@program([], [])
def zero_inputs():
    f, define = recursive("Nothing", [], [tf.int32])
    g, define_g = recursive("Twelve", [], [tf.int32])
    define(lambda: tf.constant(6))
    define_g(lambda: f() + f())
    return lambda: g() * 2, lambda: 24


@program([tf.int32], [4])
def argument_that_is_output():
    f, define = recursive("Through", [tf.int32, tf.int32], [tf.int32, tf.int32, tf.int32])
    define(lambda a, b: (b, a, tf.constant(7)))
    return lambda n: f(*f(n, 2)[:2]), lambda n: (n, 2, 7)


@program([tf.int32], [0], [3])
def wide_recursion():
    f, define = recursive("Wide", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 1, lambda: tf.add_n([f(n - 1) + i for i in range(8)])))

    def oracle(n):
        return 1 if n < 1 else 8 * oracle(n - 1) + 28

    return f, oracle


@program([tf.int32], [0], [3])
def many_call_sites():
    f, define = recursive("Site", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + n))
    return lambda n: tf.add_n([f(n + i) for i in range(60)]), lambda n: sum(k * (k + 1) // 2 for k in range(n, n + 60))


@program([tf.int32], [0], [1], [2], [7])
def branches_of_case():
    f, define = recursive("Collatz", [tf.int32], [tf.int32])

    @define
    def Collatz(n):
        steps = [lambda: 1 + f(n // 2), lambda: 1 + f(3 * n + 1)]
        return tf.cond(n < 2, lambda: 0, lambda: tf.switch_case(n % 2, steps))

    def oracle(n):
        return 0 if n < 2 else 1 + oracle(n // 2 if n % 2 == 0 else 3 * n + 1)

    return f, oracle


@program([tf.int32], [0], [1], [2], [9], [-3])
def switch_case_with_default():
    f, define = recursive("Cases", [tf.int32], [tf.int32])

    @define
    def Cases(n):
        return tf.switch_case(
            n, {0: lambda: 10, 1: lambda: f(0) + 1, 2: lambda: f(1) * f(0)}, default=lambda: -f(n % 3)
        )

    def oracle(n):
        return {0: 10, 1: 11, 2: 110}[n] if n in (0, 1, 2) else -oracle(n % 3)

    return f, oracle


@program([tf.int32], [-2], [0], [1], [6])
def calls_in_both_branches():
    f, define = recursive("Both", [tf.int32], [tf.int32])

    @define
    def Both(n):
        inner = lambda: tf.cond(tf.equal(n % 2, 0), lambda: f(n - 1) + f(n - 2), lambda: 2 * f(n - 1))
        return tf.cond(n < 1, lambda: tf.cond(n < 0, lambda: f(n + 1) + 5, lambda: 1), inner)

    def oracle(n):
        if n < 1:
            return oracle(n + 1) + 5 if n < 0 else 1
        return oracle(n - 1) + oracle(n - 2) if n % 2 == 0 else 2 * oracle(n - 1)

    return f, oracle


@program([tf.int32], [0], [5])
def predicate_from_a_call():
    odd, define_odd = recursive("IsOdd", [tf.int32], [tf.bool])
    f, define = recursive("SumOdd", [tf.int32], [tf.int32])
    define_odd(lambda n: tf.cond(n < 1, lambda: False, lambda: tf.logical_not(odd(n - 1))))
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + tf.cond(odd(n), lambda: n, lambda: 0)))
    return f, lambda n: sum(range(1, n + 1, 2))


# --- Tensors ------------------------------------------------------------------------------------------------------


@program([tf.int32, tf.float32], [0, [[1, 2], [3, 4]]], [4, [[1, 2], [3, 4]]], [3, [[0.5]]])
def tree_of_matrix_products():
    f, define = recursive("Products", [tf.int32, tf.float32], [tf.float32])
    define(lambda n, x: tf.cond(n < 1, lambda: x / 4, lambda: tf.matmul(f(n - 1, x), f(n - 2, tf.transpose(x))) + x))

    def oracle(n, x):
        x = np.asarray(x, np.float32)
        return x / 4 if n < 1 else oracle(n - 1, x) @ oracle(n - 2, x.T) + x

    return f, oracle


@program([tf.int32], [0], [1], [12])
def lists_of_any_length():
    f, define = recursive("Lists", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 2, lambda: tf.fill([n + 1], n), lambda: tf.concat([f(n // 2), [n], f(n - 3)], 0)))

    def oracle(n):
        return [n] * (n + 1) if n < 2 else [*oracle(n // 2), n, *oracle(n - 3)]

    return f, oracle


@program([tf.int32], [[3, 1, 2]], [[]], [[5, 5, 1, 9, -2, 0, 7, 3, 3]])
def quicksort():
    f, define = recursive("Sort", [tf.int32], [tf.int32])

    @define
    def Sort(xs):
        xs = tf.ensure_shape(xs, [None])

        def parts():
            rest = xs[1:]
            less = tf.gather(rest, tf.where(rest < xs[0])[:, 0])
            more = tf.gather(rest, tf.where(rest >= xs[0])[:, 0])
            return tf.concat([f(less), xs[:1], f(more)], 0)

        return tf.cond(tf.size(xs) < 1, lambda: xs, parts)

    xs = lambda xs: f(tf.reshape(xs, [-1]))
    return xs, lambda values: np.array(sorted(values), np.int32)


@program([tf.int32], [0], [6])
def tensor_lists():
    f, define = recursive("Push", [tf.int32, tf.variant], [tf.variant])

    @define
    def Push(n, items):
        more = lambda: f(n - 1, tf.raw_ops.TensorListPushBack(input_handle=items, tensor=n * n))
        return tf.cond(n < 1, lambda: tf.identity(items), more)

    def squares(n):
        shape = tf.constant([], tf.int32)
        empty = tf.raw_ops.EmptyTensorList(element_dtype=tf.int32, element_shape=shape, max_num_elements=-1)
        # The list that two calls share must be as it was for either.
        items = [f(n, empty), f(n - 1, empty)]
        return tuple(tf.raw_ops.TensorListLength(input_handle=item) for item in items) + (
            tf.raw_ops.TensorListStack(input_handle=items[0], element_shape=shape, element_dtype=tf.int32),
        )

    return squares, lambda n: (n, max(n - 1, 0), [i * i for i in range(n, 0, -1)])


# --- Loops --------------------------------------------------------------------------------------------------------


@program([tf.int32], [0], [1], [9])
def loop_in_body():
    f, define = recursive("Loop", [tf.int32], [tf.int32])

    @define
    def Loop(n):
        n = tf.ensure_shape(n, [])
        step = lambda i, s: (i + 1, s + i * n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 2) + tf.while_loop(lambda i, s: i < n, step, [0, 0])[1])

    def oracle(n):
        return 0 if n < 1 else oracle(n - 2) + sum(i * n for i in range(n))

    return f, oracle


@program([tf.int32], [0], [3], [5])
def call_in_loop_in_body():
    f, define = recursive("LoopCalls", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def LoopCalls(n):
        step = lambda i, s: (i + 1, s + f(i))
        return tf.cond(n < 1, lambda: 1, lambda: tf.while_loop(lambda i, s: i < n, step, [0, 1])[1])

    return f, lambda n: 2**n


@program([tf.int32], [0], [4], [6])
def cond_in_loop_in_body():
    f, define = recursive("CondInLoop", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def CondInLoop(n):
        n = tf.ensure_shape(n, [])

        def step(i, s):
            return i + 1, tf.cond(
                tf.equal(i % 3, 1), lambda: s + f(i), lambda: tf.cond(i > 3, lambda: s - i, lambda: s + n)
            )

        return tf.while_loop(lambda i, s: i < n, step, [0, 1])[1]

    def oracle(n):
        s = 1
        for i in range(n):
            s = s + oracle(i) if i % 3 == 1 else s - i if i > 3 else s + n
        return s

    return f, oracle


@program([tf.int32], [0], [3])
def nested_loops_with_calls():
    f, define = recursive("Nested", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def Nested(n):
        def outer(i, s):
            inner = lambda j, t: (j + 1, t + f(n - 1) * j + i)
            return i + 1, s + tf.while_loop(lambda j, t: j <= i, inner, [0, s])[1]

        return tf.cond(n < 1, lambda: 1, lambda: tf.while_loop(lambda i, s: i < n, outer, [0, 0])[1])

    def oracle(n):
        if n < 1:
            return 1
        s = 0
        for i in range(n):
            t = s
            for j in range(i + 1):
                t += oracle(n - 1) * j + i
            s += t
        return s

    return f, oracle


@program([tf.int32], [0], [5])
def loop_whose_length_is_from_a_call():
    f, define = recursive("Bound", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def Bound(n):
        return tf.while_loop(lambda i: tf.cond(n > 0, lambda: i < f(n - 1) + 2, lambda: False), lambda i: i + 1, [0])

    return f, lambda n: 2 * n


@program([tf.int32], [0], [30])
def calls_in_parallel_iterations():
    f, define = recursive("Down", [tf.int32], [tf.int32], shapes=[[]])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    call = lambda n: tf.map_fn(f, tf.range(n), parallel_iterations=10)
    return call, lambda n: np.arange(n)


@program([tf.int32], [0], [4])
def tensor_array_in_body():
    f, define = recursive("Table", [tf.int32], [tf.int32])

    @define
    def Table(n):
        def rows():
            array = tf.TensorArray(tf.int32, size=n, infer_shape=False, element_shape=[])
            fill = lambda i, a: (i + 1, a.write(i, i * n))
            return tf.concat([f(n - 1), tf.while_loop(lambda i, a: i < n, fill, [0, array])[1].stack()], 0)

        return tf.cond(n < 1, lambda: tf.zeros([0], tf.int32), rows)

    return f, lambda n: np.array([i * k for k in range(1, n + 1) for i in range(k)], np.int32)


# --- The programs in every mode -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_result_is_that_of_python_when_run(name, run, mode, control_flow):
    build, types, inputs = PROGRAMS[name]
    if mode == "processes":
        inputs = FEWER_INPUTS.get(name, inputs)
    call, oracle = build()
    arguments = [tf1.placeholder(dtype) for dtype in types]
    results = call(*arguments)
    for values in inputs:
        check(run(results, dict(zip(arguments, values, strict=True))), oracle(*values))
    if types:
        constant = call(*[tf.constant(value, dtype) for dtype, value in zip(types, inputs[-1], strict=True)])
        check(run(constant), oracle(*inputs[-1]))


@pytest.mark.parametrize(
    "name", ["fib", "ack", "primes", "wide_recursion", "many_call_sites", "nested_loops_with_calls"]
)
def test_result_is_the_same_when_run_many_times_on_several_workers(name):
    build, types, inputs = PROGRAMS[name]
    call, oracle = build()
    arguments = [tf1.placeholder(dtype) for dtype in types]
    results = call(*arguments)
    expected = oracle(*inputs[-1])
    with tf1.Session(config=tfr.session_config(workers=4)) as session:
        call = session.make_callable(results, arguments)
        for _ in range(60):
            check(call(*inputs[-1]), expected)


# --- Depth --------------------------------------------------------------------------------------------------------


def test_deep_recursion_ends_when_linear(run, mode):
    depth = MODES[mode].depth
    f, define = recursive("SumTo", [tf.int64], [tf.int64])
    define(lambda n: tf.cond(n < 1, lambda: tf.constant(0, tf.int64), lambda: n + f(n - 1)))
    assert run(f(depth)) == depth * (depth + 1) // 2


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_deep_recursion_ends_when_each_level_has_loop_and_tensor(run, mode, control_flow):
    f, define = recursive("Deep", [tf.int32, tf.string], [tf.int32], shapes=[[]])

    @define
    def Deep(n, s):
        loop = lambda: tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t + f(n - 1, s) * i), [0, 0])[1]
        return tf.cond(n < 1, lambda: tf.strings.length(s), lambda: tf.cond(n > 2, lambda: f(n - 1, s), loop))

    assert run(f(MODES[mode].depth // 2, "abc")) == 3


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_late_argument_goes_down_a_chain_of_open_frames_when_deep(run, mode):
    """The argument comes only once the recursion has returned its other output through a queue."""
    f, define = recursive("Chain", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda n, x: tf.cond(n < 1, lambda: (n - 1, x + 1), lambda: f(n - 1, x)))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    early, late = f(tf1.placeholder_with_default(MODES[mode].depth, []), queue.dequeue())
    with tf.control_dependencies([queue.enqueue(early)]):
        result = tf.identity(late)
    assert run(result) == 0


def test_runs_may_alternate_when_deep_and_shallow(run, mode):
    deep = min(MODES[mode].depth, 5000)
    f, define = recursive("Count", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    n = tf1.placeholder(tf.int32, [])
    y = f(n)
    assert [run(y, {n: k}) for k in (3, deep, 0, deep, 2)] == [3, deep, 0, deep, 2]


# --- Partial invocation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_output_returns_when_argument_it_does_not_need_waits_for_it(run, control_flow, is_constant):
    f, define = recursive("Pair", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda a, b: (a * 2, b + 1))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    first, second = f(4 if is_constant else tf1.placeholder_with_default(4, []), queue.dequeue())
    with tf.control_dependencies([queue.enqueue(first)]):
        result = second + 0
    for _ in range(3):
        assert run(result) == 9


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_output_returns_when_constant_call_waits_inside_a_branch_and_a_callee(run, control_flow):
    f, define = recursive("Pair", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda a, b: (a * 2, b + 1))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    take, define_take = recursive("Take", [tf.int32], [tf.int32])
    define_take(lambda n: tf.cond(n < 1, lambda: tf.ensure_shape(queue.dequeue(), []), lambda: take(n - 1)))

    def branch():
        first, second = f(4, take(3))
        with tf.control_dependencies([queue.enqueue(first)]):
            return second + 0

    assert run(tf.cond(tf1.placeholder_with_default(True, []), branch, lambda: 0)) == 9


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_outputs_return_one_by_one_when_each_argument_waits_for_an_output(run):
    f, define = recursive("Relay", [tf.int32] * 4, [tf.int32] * 4)
    define(lambda n, a, b, c: tf.cond(n < 1, lambda: (n, a + 1, b + 1, c + 1), lambda: f(n - 1, a, b, c)))
    queues = [tf.queue.FIFOQueue(1, tf.int32, []) for _ in range(3)]
    outputs = f(tf1.placeholder_with_default(5, []), *[queue.dequeue() for queue in queues])
    passed = [queue.enqueue(output) for queue, output in zip(queues, outputs, strict=False)]
    with tf.control_dependencies(passed):
        result = tf.identity(outputs[-1])
    assert run(result) == 3


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_cond_ends_when_branch_not_taken_has_the_late_argument(run, control_flow):
    f, define = recursive("Choose", [tf.bool, tf.int32, tf.int32], [tf.int32])
    define(lambda p, a, b: tf.cond(p, lambda: a + 1, lambda: b + 2))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    p = tf1.placeholder(tf.bool, [])
    y = f(p, 1, queue.dequeue())
    fill = queue.enqueue(10)
    # The step as a whole ends when the queue is filled: by what the call returns, else by another run.
    with tf.control_dependencies([y]):
        refill = queue.enqueue(20)
    assert run([y, refill], {p: True})[0] == 2
    assert run(queue.size()) == 0
    run(fill)
    assert run(y, {p: False}) == 12


def test_call_that_dies_argument_by_argument_leaves_what_waits_beside_it(run):
    """Its arguments' places are those of others, which still wait, until one of them comes alive."""
    down, define_down = recursive("Down", [tf.int32], [tf.float32])
    define_down(lambda n: tf.cond(n < 1, lambda: tf.constant([1.0, 2.0]), lambda: down(n - 1) + 1.0))
    dies, define_dies = recursive("Dies", [tf.float32] * 2, [tf.float32])
    define_dies(lambda p, q: tf.cond(tf.reduce_sum(p) < 0, lambda: dies(p + 1.0, q), lambda: p + q))
    f, define = recursive("Beside", [tf.float32, tf.int32, tf.bool, tf.bool], [tf.float32] * 2)

    @define
    def Beside(v, n, p, q):
        x = tf.concat([tf.concat([v, v], 0), down(n)], 0)
        first = tf.raw_ops.Switch(data=x, pred=tf.logical_not(p))
        second = tf.raw_ops.Switch(data=x, pred=tf.logical_not(q))
        y = dies(first[1], second[1])
        return x, tf.raw_ops.Merge(inputs=[first[0], y])[0]

    v, n = tf1.placeholder(tf.float32, [2]), tf1.placeholder(tf.int32, [])
    p, q = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.bool, [])
    outputs = f(v, n, p, q)
    x = [10, 20, 10, 20, 4, 5]
    for is_dead in (True, False):
        result = run(list(outputs), {v: [10, 20], n: 3, p: is_dead, q: is_dead})
        np.testing.assert_array_equal(result, [x, x if is_dead else np.multiply(x, 2)])


def test_call_ends_when_another_thread_fills_the_queue(run):
    f, define = recursive("Wait", [tf.int32, tf.int32], [tf.int32])
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: f(n - 1, x) + 1))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    y = f(10, queue.dequeue())
    fill = queue.enqueue(100)
    session = run.session()
    timer = threading.Timer(0.1, lambda: session.run(fill))
    timer.start()
    assert run(y) == 110
    timer.join()


def test_dequeue_in_body_waits_for_enqueue_in_another_branch_of_recursion(run):
    """Kernels that wait do not hold workers: many frames wait in the queue at once."""
    take, define_take = recursive("Take", [tf.int32], [tf.int32])
    queue = tf.queue.FIFOQueue(-1, tf.int32, [])
    define_take(lambda n: tf.cond(n < 1, queue.dequeue, lambda: take(n - 1) + take(n - 1)))
    total = take(5)
    put = queue.enqueue_many([tf.range(32)])
    session = run.session()
    timer = threading.Timer(0.1, lambda: session.run(put))
    timer.start()
    assert run(total) == sum(range(32))
    timer.join()


# --- Dead calls ---------------------------------------------------------------------------------------------------


def counting(name="count"):
    return tf1.get_variable(name, [], tf.int32, tf1.zeros_initializer(), use_resource=True)


def test_body_runs_only_in_branch_taken_when_call_stands_in_cond(run, control_flow):
    count = counting()
    f, define = recursive("Counted", [tf.int32], [tf.int32])

    @define
    def Counted(n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1))

    p = tf1.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: f(3), lambda: -f(10) - 1)
    assert (run(y, {p: True}), run(count)) == (0, 4)
    assert (run(y, {p: False}), run(count)) == (-1, 15)


def test_call_is_dead_when_all_of_its_arguments_are(run):
    """What reads a dead call through a merge gets the other branch."""
    f, define = recursive("Inc", [tf.int32, tf.int32], [tf.int32])
    define(lambda a, b: a + b)
    p = tf1.placeholder(tf.bool, [])
    x = tf.constant(5)
    when_false, when_true = tf.raw_ops.Switch(data=x, pred=p)
    result, index = tf.raw_ops.Merge(inputs=[f(when_false, when_false), f(when_true, when_true) * 3])
    assert run([result, index], {p: False}) == [10, 0]
    assert run([result, index], {p: True}) == [30, 1]


@pytest.mark.parametrize("in_cond", [False, True])
def test_call_runs_only_in_iterations_that_take_place_when_loop_reads_from_outside(run, control_flow, in_cond):
    """In control flow v1 what is read from outside lives in the iteration too that finds the condition false."""
    count, x = counting(), tf1.placeholder_with_default(5, [])
    f, define = recursive("Counted", [tf.int32, tf.int32], [tf.int32])

    @define
    def Counted(x, n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: x, lambda: f(x, n - 1) + 1)

    def step(i, total):
        call = (lambda: tf.cond(x > 0, lambda: f(x, i), lambda: 0)) if in_cond else (lambda: f(x, i))
        return i + 1, total + tf.ensure_shape(call(), [])

    total = tf.while_loop(lambda i, _: i < 3, step, [0, 0])[1]
    assert run(total) == 5 + 6 + 7
    assert run(count) == 1 + 2 + 3


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_output_is_live_when_only_the_argument_of_the_other_is_dead(run):
    f, define = recursive("Apart", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda a, b: (a + 1, b + 1))
    p = tf1.placeholder(tf.bool, [])
    when_false, when_true = tf.raw_ops.Switch(data=tf.constant(5), pred=p)
    live, maybe = f(tf1.placeholder_with_default(1, []), when_true)
    merged, _ = tf.raw_ops.Merge(inputs=[maybe, when_false * 100])
    assert run([live, merged], {p: True}) == [2, 6]
    assert run([live, merged], {p: False}) == [2, 500]


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_argument_from_outside_of_loop_waits_for_no_other(run, control_flow):
    """The body puts into the queue what the other argument waits for."""
    queue = tf1.FIFOQueue(10, [tf.int32], [[]])
    f, define = recursive("Feed", [tf.int32, tf.int32], [tf.int32])

    @define
    def Feed(taken, x):
        with tf.control_dependencies([queue.enqueue(x)]):
            put = tf.identity(x)
        return taken + put

    x = tf1.placeholder_with_default(5, [])

    def step(i, total):
        with tf.control_dependencies([i]):
            return i + 1, total + tf.ensure_shape(f(queue.dequeue(), x), [])

    total = tf.while_loop(lambda i, _: i < 3, step, [0, 0], parallel_iterations=1)[1]
    assert run(total) == 3 * (5 + 5)


def test_loop_runs_with_variables_that_live(run):
    """Only in control flow v1 there is a way: a While is dead as a whole."""
    f, define = recursive("Count", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 1, lambda: f(n - 1) + 1))
    p, n = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.int32, [])
    when_false, when_true = tf.raw_ops.Switch(data=tf.constant(5), pred=p)
    step = lambda i, x, total: (i + 1, x + i, total + tf.ensure_shape(f(i), []))
    with switches.control_flow_v2(False):
        i, x, total = tf.while_loop(lambda i, *_: i < n, step, [0, when_false, 0])
        below, _ = tf.while_loop(lambda x, _: x < n, lambda x, i: (x + 1, i + 1), [when_false, 0])
    x, _ = tf.raw_ops.Merge(inputs=[x, when_true * 100])
    below, _ = tf.raw_ops.Merge(inputs=[below, when_true * 200])
    assert run([i, x, total, below], {p: False, n: 3}) == [3, 5 + 0 + 1 + 2, 1 + 2 + 3, 5]
    assert run([i, x, total, below], {p: True, n: 3}) == [3, 500, 1 + 2 + 3, 1000]
    assert run([i, x, total, below], {p: True, n: 0}) == [0, 500, 0, 1000]


def test_control_dependency_on_dead_call_is_dead(run, control_flow):
    count = counting()
    f, define = recursive("Void", [tf.int32], [tf.int32])
    define(lambda n: n + 1)
    p = tf1.placeholder(tf.bool, [])

    def branch():
        with tf.control_dependencies([f(1)]):
            return count.assign_add(1, read_value=True)

    y = tf.cond(p, branch, lambda: tf.constant(-1))
    assert [run(y, {p: b}) for b in (False, True, False)] == [-1, 1, -1]
    assert run(count) == 1


# --- State --------------------------------------------------------------------------------------------------------


def test_captured_values_are_those_of_outermost_call(run, control_flow):
    w = tf1.get_variable("w", initializer=[1, 2, 3], use_resource=True)
    x = tf1.placeholder(tf.int32, [])
    f, define = recursive("Captured", [tf.int32], [tf.int32])
    g, define_g = recursive("CapturedToo", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: w * x, lambda: g(n - 1) + x))
    define_g(lambda n: tf.cond(n < 1, lambda: w - x, lambda: f(n - 1) * 2))
    assert run(f(3), {x: 5}).tolist() == [7, 9, 11]
    assert run(f(2), {x: 10}).tolist() == [30, 50, 70]
    run(w.assign([0, 0, 1]))
    assert run(f(0), {x: 2}).tolist() == [0, 0, 2]


def test_variable_is_assigned_in_every_invocation(run, control_flow):
    count = counting()
    f, define = recursive("FibCount", [tf.int32], [tf.int32])

    @define
    def FibCount(n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2))

    assert run(f(12)) == 144
    assert run(count) == 465


def test_variable_is_assigned_in_order_when_control_dependencies_say_so(run, control_flow):
    text = tf1.get_variable("text", initializer="", use_resource=True)
    f, define = recursive("Hanoi", [tf.int32], [tf.int32])

    @define
    def Hanoi(n):
        def move():
            with tf.control_dependencies([f(n - 1)]):
                grown = text.assign(tf.strings.join([text.read_value(), tf.as_string(n)]))
            with tf.control_dependencies([grown]):
                right = f(n - 1)
            with tf.control_dependencies([right]):
                return tf.identity(n)

        return tf.cond(n < 1, lambda: 0, move)

    assert run(f(4)) == 4
    assert run(text) == b"121312141213121"


def test_resource_argument_is_the_callers_variable(run, control_flow):
    v, w = counting("v"), counting("w")
    f, define = recursive("Alternate", [tf.int32, tf.resource, tf.resource], [tf.int32])

    @define
    def Alternate(n, a, b):
        def step():
            with tf.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=a, value=n)]):
                return f(n - 1, b, a)

        return tf.cond(n < 1, lambda: tf.raw_ops.ReadVariableOp(resource=a, dtype=tf.int32), step)

    assert run(f(5, v.handle, w.handle)) == 4 + 2
    assert run([v, w]) == [5 + 3 + 1, 4 + 2]


def test_ref_variable_is_read_and_assigned_outside_of_call_when_session_runs_both(run, variable_kind):
    w = tf1.get_variable("w", initializer=2)
    f, define = recursive("Times", [tf.int32, tf.int32], [tf.int32])
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: 2 * f(n - 1, x)))
    with tf.control_dependencies([tf1.assign(w, 3)]):
        y = f(3, w.read_value())
    assert run(y) == 24
    assert run(tf1.assign_add(w, f(1, 5))) == 13


def test_queue_passes_values_between_invocations(run, control_flow):
    queue = tf.queue.FIFOQueue(-1, tf.int32, [])
    f, define = recursive("Enqueue", [tf.int32], [tf.int32])

    @define
    def Enqueue(n):
        def step():
            with tf.control_dependencies([queue.enqueue(n * n)]):
                return f(n - 1) + 1

        return tf.cond(n < 1, lambda: 0, step)

    y = f(5)
    with tf.control_dependencies([y]):
        values = queue.dequeue_many(5)
    assert sorted(run(values)) == [1, 4, 9, 16, 25]
    assert run(queue.size()) == 0


def test_print_in_body_prints_once_per_invocation(run, tmp_path, control_flow):
    path = tmp_path / "log"
    f, define = recursive("Say", [tf.int32], [tf.int32])

    @define
    def Say(n):
        with tf.control_dependencies([tf.print("n is", n, output_stream=f"file://{path}")]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1))

    run(f(3))
    assert path.read_text().split("\n") == ["n is 3", "n is 2", "n is 1", "n is 0", ""]


def test_side_effects_are_done_when_what_waits_for_the_call_runs(run, control_flow):
    count = counting()
    f, define = recursive("Effect", [tf.int32], [])
    g, define_g = recursive("EffectBeside", [tf.int32], [tf.int32])

    @define
    def Effect(n):
        def deeper():
            with tf.control_dependencies([f(n - 1)]):
                return tf.identity(n)

        with tf.control_dependencies([count.assign_add(n)]):
            done = tf.cond(n < 1, lambda: n, deeper)
        with tf.control_dependencies([done]):
            return tf.no_op()

    @define_g
    def EffectBeside(n):
        f(n)
        return n + 1

    with tf.control_dependencies([f(4)]):
        after = count.read_value()
    assert run(after) == 10
    with tf.control_dependencies([g(3)]):
        later = count.read_value()
    assert run(later) == 16


def test_assert_in_body_ends_the_run_when_it_fails(run, control_flow):
    f, define = recursive("Checked", [tf.int32], [tf.int32])

    @define
    def Checked(n):
        with tf.control_dependencies([tf1.assert_greater(n, 2, message="too small")]):
            n = tf.identity(n)
        return tf.cond(n < 10, lambda: f(n - 1), lambda: n)

    n = tf1.placeholder(tf.int32, [])
    y = f(n)
    for _ in range(2):
        assert run(y, {n: 11}) == 11
        with pytest.raises(tf.errors.InvalidArgumentError, match="too small"):
            run(y, {n: 5})


# --- Random numbers -----------------------------------------------------------------------------------------------


def random_number():
    return tf.random.uniform([], 0, 2**30, tf.int32, seed=11)


@functools.cache
def stock_stream(count):
    """What a session without any function draws."""
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(5)
        number = random_number()
        return [int(session.run(number)) for _ in range(count)]


def test_random_stream_goes_on_when_fetches_change(run):
    tf1.set_random_seed(5)
    r = random_number()
    f, define = recursive("Id", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    y, z = f(3), f(r % 4)
    drawn = [run(r), run([r, y])[0], run([y, r])[1], run(r), run([z, r])[1], run({"r": r, "y": y})["r"], run(r)]
    assert drawn == stock_stream(7)


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_random_stream_of_body_goes_on_when_fetches_change(run):
    """The operator stands in the graph once: its stream is the one it has outside of functions."""
    tf1.set_random_seed(5)
    f, define = recursive("Draw", [tf.int32], [tf.int32])
    define(
        lambda n: tf.cond(n < 1, lambda: tf.constant([], tf.int32), lambda: tf.concat([[random_number()], f(n - 1)], 0))
    )
    one, three = f(1), f(3)
    x = tf1.placeholder_with_default(2, [])
    drawn = [run(one), run([one, x])[0], run(three), run([x, f(2)])[1], run(one)]
    assert sorted(np.concatenate(drawn)) == sorted(stock_stream(8))
    assert [drawn[0][0], drawn[1][0], drawn[-1][0]] == [stock_stream(8)[i] for i in (0, 1, 7)]
