"""Small programs about shapes of recursion: which function calls which, and how often."""
# SPDX-License-Identifier: Apache-2.0

import functools

import tensorflow as tf
from building import recursive
from programs import adding_to

PROGRAMS = {}
program = adding_to(PROGRAMS)


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
    f, define = recursive("SumToN", [tf.int32], [tf.int32])
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
